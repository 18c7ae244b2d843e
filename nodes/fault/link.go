package fault

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
)

// fall takes the links of a fault down. With `detect` the ends go on sending
// until they notice.
func (d *Device) fall(st *state, now clock.Time) {
	st.down, st.away, st.member = true, false, clock.Never
	st.blind = st.Kind == LinkDown && st.Detect > 0
	d.eachEnd(st, func(e *End, peer bool) {
		if st.deafens(peer) {
			e.cut(now)
		}
		if st.shows() && !st.blind {
			e.down++
		}
	})
	if !st.blind {
		d.push(st, LinkFell)
	}
}

// notice is the end of a detection time.
func (d *Device) notice(st *state) {
	st.blind = false
	d.eachEnd(st, func(e *End, _ bool) { e.down++ })
	d.push(st, LinkFell)
}

// rise brings them back: at once as links, after hold as ECMP members.
func (d *Device) rise(st *state, now clock.Time) {
	d.eachEnd(st, func(e *End, peer bool) {
		if st.deafens(peer) {
			e.heal(now)
		}
		if st.shows() && !st.blind {
			e.down--
		}
	})
	st.down, st.blind = false, false
	d.push(st, LinkRose)
	if st.Hold > 0 {
		st.away, st.member = true, now.Add(st.Hold)
		return
	}
	d.push(st, Rejoined)
}

// deafens reports whether what arrives at this end is lost. Out of the named
// port is into the far end.
func (s *Spec) deafens(peer bool) bool {
	switch s.Kind {
	case Drain:
		return false
	case OneWay:
		return s.Dir == Both || (s.Dir == Out) == peer
	}
	return true
}

// shows reports whether the ends see that the link is down. A one-way fault
// does not show: the light in the other direction still comes.
func (s *Spec) shows() bool { return s.Kind != Drain && s.Kind != OneWay }

// eachEnd visits the ports of this device that a fault touches.
func (d *Device) eachEnd(st *state, visit func(e *End, peer bool)) {
	for i := range d.ends {
		if peer, ok := st.at(d.id, i+1); ok {
			visit(&d.ends[i], peer)
		}
	}
}

// Up reports whether a port has link. One-way faults do not show: the port
// still sees light.
func (d *Device) Up(port int) bool { return d.ends[port-1].down == 0 }

// Usable reports whether a port may be an ECMP member: it has link as far as
// the device knows, no hold runs, and its far end is not drained. When no port
// of a group is usable, one that is Up is better than none.
func (d *Device) Usable(port int) bool {
	for _, st := range d.all {
		if !st.down && !st.away || st.blind || st.Kind == OneWay {
			continue
		}
		if peer, ok := st.at(d.id, port); ok && (peer || st.Kind != Drain) {
			return false
		}
	}
	return true
}

// Broken visits the ports whose cables routing has withdrawn, as seen from a
// switch that is not at them.
func (d *Device) Broken(visit func(dev int32, port int)) {
	for _, st := range d.all {
		if !st.told {
			continue
		}
		for _, p := range st.Places {
			if p.Port != remote {
				visit(p.Dev, p.Port)
			}
		}
	}
}

// Alive reports whether the device itself is up.
func (d *Device) Alive() bool {
	for _, st := range d.all {
		if st.Kind == DeviceDown && st.down && st.Dev == d.id {
			return false
		}
	}
	return true
}

// Active returns the fault of a kind that is in force at a port (0 = the
// device), the last one to start, by name among equals; nil when none is. A
// device derives its setting from the plan and this, so an undo is exact.
func (d *Device) Active(k Kind, port int) *Spec {
	var best *Spec
	for _, st := range d.all {
		if st.Kind != k || st.life != active {
			continue
		}
		peer, ok := st.at(d.id, port)
		if port == 0 {
			ok, peer = st.Dev == d.id || st.Dev < 0, false
		}
		if ok && st.inDir(peer) && (best == nil || st.At >= best.At) {
			best = st.Spec
		}
	}
	return best
}

// inDir reports whether a setting that has a direction (rate) holds at this
// end: out of the named port, or out of the far end for `in`.
func (s *Spec) inDir(peer bool) bool {
	if s.Dir == Both || !s.Kind.onLink() {
		return true
	}
	return (s.Dir == Out) != peer
}

// Each visits the active faults of a kind on this device, in name order.
func (d *Device) Each(k Kind, visit func(*Spec)) {
	for _, st := range d.all {
		if st.Kind == k && st.life == active {
			visit(st.Spec)
		}
	}
}

// Hit counts a hit that the device itself found (settings and receive-side
// faults) and records it.
func (d *Device) Hit(s *Spec, r record.Record) {
	for _, st := range d.all {
		if st.Spec.Index == s.Index {
			d.hit(st, &r)
			d.settle(r.At)
			return
		}
	}
}

// Tally counts a hit without a record: for faults that act on every frame.
func (d *Device) Tally(s *Spec) {
	for _, st := range d.all {
		if st.Spec.Index == s.Index {
			st.hits++
			return
		}
	}
}

// Sent counts a frame that the device sent because of a storm.
func (d *Device) Sent(s *Spec) {
	for _, st := range d.all {
		if st.Spec == s {
			st.hits++
		}
	}
}

// Status visits every fault of this device: hits, and when it ended (Never
// while it has not).
func (d *Device) Status(visit func(index int32, hits uint64, started bool, end clock.Time)) {
	for _, st := range d.all {
		visit(st.Index, st.hits, st.life != planned, st.stop)
	}
}

func (d *Device) note(st *state, k record.Kind, now clock.Time) {
	if st.Dev != d.id && st.Dev >= 0 {
		return // the named device tells
	}
	d.Emit(record.Record{At: now, Dev: d.id, Kind: k, Fault: st.Index + 1, Port: uint16(max(st.Port, 0))})
}
