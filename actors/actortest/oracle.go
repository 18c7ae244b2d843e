package actortest

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// stream is one channel's frames as the oracle keeps them: those in order and
// those that may overtake.
type stream struct {
	key    uint64
	dst    int
	fifo   []wire.Frame
	popped uint64
	late   []lateFrame
	lateN  uint64
}

type lateFrame struct {
	ord uint64
	f   wire.Frame
}

// Oracle runs the fabric to its quiet end event by event, with no windows, no
// inboxes and no engine, and returns the digest and the number of events. It
// states the total order a second time, independently.
func (f *Fabric) Oracle() (actors.Digest, uint64) {
	o := newOracle(f)
	for {
		d, t := o.earliest()
		if t == clock.Never {
			break
		}
		o.instant(d, t)
	}
	var g actors.Digest
	var n uint64
	for i, r := range f.Relays {
		g.Add(clock.HashString(f.Config.Seed, f.Config.Names[i]), r.chain)
		n += r.evs
	}
	return g, n
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
				t = min(t, s.late[i].f.At)
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
		s.late = append(s.late, lateFrame{s.lateN | 1<<63, *f})
		s.lateN++
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

// arrival takes the first frame of relay d at t in the order (keyed hash,
// channel, late frames last, ordinal), heads of streams only.
func (o *oracle) arrival(d int, t clock.Time) (f wire.Frame, port int, ok bool) {
	var best, bestKey uint64
	bestLate := -1
	for p, s := range o.in[d] {
		if len(s.fifo) > 0 && s.fifo[0].At == t {
			tie := clock.Mix(o.f.Config.Seed, s.key, uint64(t))
			if !ok || tie < best || tie == best && s.key < bestKey {
				best, bestKey, bestLate, port, ok = tie, s.key, -1, p+1, true
			}
		}
		for i := range s.late {
			if s.late[i].f.At != t {
				continue
			}
			tie := clock.Mix(o.f.Config.Seed, s.key, uint64(t))
			if !ok || tie < best || tie == best && s.key < bestKey {
				best, bestKey, bestLate, port, ok = tie, s.key, i, p+1, true
			}
			break // the first of an instant is the head of the late stream
		}
	}
	if !ok {
		return f, 0, false
	}
	if t == 1600000 {
		println("orc", len(o.in[d]), port, bestLate, best)
	}
	s := o.in[d][port-1]
	if bestLate < 0 {
		f = s.fifo[0]
		s.fifo = s.fifo[1:]
		s.popped++
		return f, port, true
	}
	f = s.late[bestLate].f
	s.late = append(s.late[:bestLate], s.late[bestLate+1:]...)
	return f, port, true
}
