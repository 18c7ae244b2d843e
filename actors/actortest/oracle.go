package actortest

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// stream is one channel's frames as the oracle keeps them: those in order and
// those that may overtake.
type stream struct {
	key  uint64
	dst  int
	fifo []wire.Frame
	late []wire.Frame
}

// Oracle runs the fabric to its quiet end event by event, with no windows, no
// inboxes and no engine, and returns the digest and the number of events. It
// states the total order a second time, independently.
func (f *Fabric) Oracle() (actors.Digest, uint64) {
	o := f.OracleTo(clock.Never)
	return o.Digest, o.Events
}

// Outcome is what a fabric comes to.
type Outcome struct {
	Digest actors.Digest
	Events uint64
	End    clock.Time // the stop, or when it has been idle long enough
	// Leaps are the spans without any event that are longer than two windows:
	// the instants of the event before and of the event or the end after.
	Leaps [][2]clock.Time
}

// OracleTo is Oracle for a fabric that is stopped at an instant.
func (f *Fabric) OracleTo(stop clock.Time) (x Outcome) {
	o, last := newOracle(f), clock.Time(0)
	leap := func(to clock.Time) {
		if to.Sub(last) > 2*f.Window {
			x.Leaps = append(x.Leaps, [2]clock.Time{last, to})
		}
	}
	for x.End = stop; ; {
		d, t := o.earliest()
		if end := o.worked().Add(f.Config.Settle); end < stop && t >= end && o.quiet() {
			x.End = end
		}
		if t >= x.End {
			break
		}
		leap(t)
		last = t
		o.instant(d, t)
	}
	leap(x.End)
	for i, r := range f.Relays {
		x.Digest.Add(clock.HashString(f.Config.Seed, f.Config.Names[i]), r.chain)
		x.Events += r.evs
	}
	return x
}

// worked is the instant of the last event.
func (o *oracle) worked() (t clock.Time) {
	for _, r := range o.f.Relays {
		t = max(t, r.work)
	}
	return t
}

// quiet reports whether nothing is to come but disturbances and pauses.
func (o *oracle) quiet() bool {
	for d, r := range o.f.Relays {
		if r.NextOwn() != clock.Never {
			return false
		}
		for _, s := range o.in[d] {
			if s.works() {
				return false
			}
		}
	}
	return true
}

// works reports whether the stream has a token.
func (s *stream) works() bool {
	for _, l := range [][]wire.Frame{s.fifo, s.late} {
		for i := range l {
			if l[i].Kind != wire.KindPFC {
				return true
			}
		}
	}
	return false
}

type oracle struct {
	f   *Fabric
	out [][]*stream // by device and port - 1
	in  [][]*stream
}

func newOracle(f *Fabric) *oracle {
	o := &oracle{f: f, out: make([][]*stream, len(f.Relays)), in: make([][]*stream, len(f.Relays))}
	for d, c := range f.Config.Cables {
		o.in[d] = make([]*stream, len(c))
		for p, x := range c {
			key := clock.Mix(clock.HashString(f.Config.Seed, f.Config.Names[d]), uint64(p+1), 0x63)
			o.out[d] = append(o.out[d], &stream{key: key, dst: int(x.Peer)})
		}
	}
	for d, c := range f.Config.Cables {
		for p, x := range c {
			o.in[x.Peer][x.PeerPort-1] = o.out[d][p]
		}
	}
	return o
}

// earliest scans for the next event of all.
func (o *oracle) earliest() (dev int, at clock.Time) {
	at = clock.Never
	for d, r := range o.f.Relays {
		t := min(r.NextFault(), r.NextOwn())
		for _, s := range o.in[d] {
			if len(s.fifo) > 0 {
				t = min(t, s.fifo[0].At)
			}
			for i := range s.late {
				t = min(t, s.late[i].At)
			}
		}
		if t < at {
			dev, at = d, t
		}
	}
	return dev, at
}

// instant processes everything of one relay at t, class by class.
func (o *oracle) instant(d int, t clock.Time) {
	r := o.f.Relays[d]
	emit := func(port int, f *wire.Frame, late bool) {
		s := o.out[d][port-1]
		if !late {
			s.fifo = append(s.fifo, *f)
			return
		}
		s.late = append(s.late, *f)
	}
	for r.NextFault() == t {
		r.OnFault(t)
	}
	for {
		f, port, ok := o.arrival(d, t)
		if !ok {
			break
		}
		r.OnArrival(t, port, &f, emit)
	}
	for r.NextOwn() == t {
		r.OnTimer(t, emit)
	}
}

// arrival takes the first frame of relay d at t: channels in the order of a hash
// keyed by the instant, inside a channel in order of sending, late frames last.
func (o *oracle) arrival(d int, t clock.Time) (f wire.Frame, port int, ok bool) {
	var best, bestKey uint64
	for p, s := range o.in[d] {
		if !s.due(t) {
			continue
		}
		tie := clock.Mix(o.f.Config.Seed, s.key, uint64(t))
		if !ok || tie < best || tie == best && s.key < bestKey {
			best, bestKey, port, ok = tie, s.key, p+1, true
		}
	}
	if !ok {
		return f, 0, false
	}
	return o.in[d][port-1].take(t), port, true
}

// due reports whether a frame arrives at t.
func (s *stream) due(t clock.Time) bool {
	if len(s.fifo) > 0 && s.fifo[0].At == t {
		return true
	}
	for i := range s.late {
		if s.late[i].At == t {
			return true
		}
	}
	return false
}

func (s *stream) take(t clock.Time) (f wire.Frame) {
	if len(s.fifo) > 0 && s.fifo[0].At == t {
		f = s.fifo[0]
		s.fifo = s.fifo[1:]
		return f
	}
	for i := range s.late {
		if s.late[i].At == t {
			f = s.late[i]
			s.late = append(s.late[:i], s.late[i+1:]...)
			return f
		}
	}
	panic("actortest: no frame is due")
}
