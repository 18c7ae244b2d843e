package fault

import (
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// End is the wire state of one port: the frame faults of its two directions
// and the outages of its cable.
type End struct {
	busy bool // anything at all to ask

	out, in []*state // active frame faults, in name order
	swapOut wire.Frame
	swapIn  wire.Frame
	hasOut  bool
	hasIn   bool

	down   int // faults that hold the link down
	deaf   int // the same and one-way faults, for what arrives
	outage []span

	prop, ingress, pfcLag clock.Duration
	rate                  clock.Rate
	cut64                 bool // At marks the first 64 bytes
	cable                 state
}

// span is an outage of what arrives: [from, to).
type span struct{ from, to clock.Time }

// outageLimit bounds the outages that are remembered: more than fit into the
// flight of a frame cannot matter.
const outageLimit = 64

func (e *End) init(plan *topology.Plan, dev *topology.Device, i int) {
	p := &dev.Ports[i]
	e.prop, e.ingress, e.rate = p.Prop, p.IngressHalf, p.Rate
	e.pfcLag = p.Response - p.EgressHalf
	e.cut64 = dev.Switch != nil && dev.Switch.CutThrough
	if p.BERNum == 0 {
		return
	}
	name := dev.Name + "/ber"
	e.cable = state{Spec: &Spec{
		Index: -1, Name: name, Kind: BER, Key: clock.HashString(plan.Seed^uint64(p.Num), name),
		Until: clock.Never, Prob: prob{hi: p.BERNum}, Dir: In, Match: match{op: -1, psn: -1}, Bucket: -1,
	}, life: active, next: clock.Never, stop: clock.Never}
	e.cable.ber.bit = e.cable.Prob
	e.in, e.busy = append(e.in, &e.cable), true
}

// Busy reports whether a port has faults to ask; when not, Send and In would
// pass every frame unchanged.
func (d *Device) Busy(port int) bool { return d.ends[port-1].busy }

// rebuild makes the lists of active frame faults anew.
func (d *Device) rebuild(now clock.Time) {
	for i := range d.ends {
		e := &d.ends[i]
		e.prune(now)
		e.out, e.in = e.out[:0], e.in[:0]
		if e.cable.Spec != nil {
			e.in = append(e.in, &e.cable)
		}
		for _, st := range d.all {
			if st.life != active || !st.Kind.onFrames() || d.routed(st) {
				continue
			}
			if _, ok := st.at(d.id, i+1); !ok {
				continue
			}
			side := d.sides(st.Spec)
			if side.has(Out) {
				e.out = append(e.out, st)
			}
			if side.has(In) {
				e.in = append(e.in, st)
			}
		}
		e.busy = len(e.out)+len(e.in)+e.down+e.deaf > 0 || e.hasOut || e.hasIn || len(e.outage) > 0
	}
}

// routed reports whether the switch itself acts on a fault where it measures
// or routes frames, not on the wire.
func (d *Device) routed(st *state) bool {
	return d.dev.Switch != nil && (st.Kind == MTU || st.Kind == Blackhole && st.Port == 0 && st.Dir == Both)
}

// sides is where a frame fault acts. A whole device judges each frame once, on
// arrival, unless the fault says otherwise; an RNIC receives too.
func (d *Device) sides(s *Spec) Dir {
	switch {
	case s.Kind == RxOverflow:
		return In
	case s.Dir == Both && s.Port == 0 && s.Dev == d.id && d.dev.Switch != nil:
		return In
	}
	return s.Dir
}

// cut opens an outage of what arrives.
func (e *End) cut(now clock.Time) {
	if e.deaf++; e.deaf > 1 {
		return
	}
	if len(e.outage) == outageLimit {
		e.outage = slices.Delete(e.outage, 0, 1)
	}
	e.outage = append(e.outage, span{now, clock.Never})
}

// heal closes it.
func (e *End) heal(now clock.Time) {
	if e.deaf--; e.deaf == 0 && len(e.outage) > 0 {
		e.outage[len(e.outage)-1].to = now
	}
}

// SetRate tells the rate at which the far end sends, for the length of a
// frame's flight.
func (d *Device) SetRate(port int, r clock.Rate) { d.ends[port-1].rate = r }

// hitByOutage reports whether the flight of f, which is processed at now,
// overlaps an outage: from its first bit at the sender to its last bit here.
func (e *End) hitByOutage(now clock.Time, f *wire.Frame) bool {
	last := now.Add(-e.ingress)
	if isPause(f) {
		last = now.Add(-e.pfcLag)
	}
	n := int64(f.Len) + wire.Overhead
	if e.cut64 && !isPause(f) {
		n = min(n, wire.MinFrame)
	}
	ser, _ := e.rate.Serialise(n, 0)
	first := last.Add(-e.prop - ser)
	for i := range e.outage {
		if o := &e.outage[i]; o.from < last && first < o.to {
			return true
		}
	}
	return false
}

// prune forgets outages that no frame in flight can have met.
func (e *End) prune(now clock.Time) {
	horizon := now.Add(-(e.prop + e.ingress + e.rate.Span(1<<16) + clock.Millisecond))
	for len(e.outage) > 0 && e.outage[0].to < horizon {
		e.outage = slices.Delete(e.outage, 0, 1)
	}
}

// fate is the verdict on one frame.
type fate struct {
	drop  record.Reason
	fault int32
	hold  bool // swapped with the next frame
	delay clock.Duration
	extra int // copies
}

// judge lets the active faults of one side act on f, in name order, until one
// takes it.
func (d *Device) judge(now clock.Time, port int, list []*state, side Dir, f *wire.Frame) fate {
	var v fate
	for _, st := range list {
		if st.life != active || !st.Match.ok(f) && st.Kind != BER || !d.takes(st, port, side, f) {
			continue
		}
		d.apply(st, f, &v)
		v.fault = st.Index + 1
		r := frameRecord(now, port, f)
		r.Reason = uint8(v.drop)
		d.hit(st, &r)
		if v.drop != 0 {
			break
		}
	}
	d.settle(now)
	return v
}

// hit counts one hit and records it; the last of a count ends the fault.
func (d *Device) hit(st *state, r *record.Record) {
	st.hits++
	if st.Index >= 0 {
		r.Kind, r.Dev, r.Fault = record.FaultHit, d.id, st.Index+1
		d.Emit(*r)
	}
	if st.Count != 0 && st.hits >= st.Count && st.life == active {
		st.life, st.stop, st.next, st.spent = ended, r.At, r.At, true
		d.note(st, record.FaultEnd, r.At)
		d.spent = true
	}
}

// settle takes faults whose count is used up out of the lists; their End event
// comes with the next Step, which is due at once.
func (d *Device) settle(now clock.Time) {
	if d.spent {
		d.spent, d.next = false, now
		d.rebuild(now)
	}
}

// frameRecord names the packet a fault acted on.
func frameRecord(now clock.Time, port int, f *wire.Frame) record.Record {
	return record.Record{
		At: now, Port: uint16(port), Src: f.Src &^ altBit, Dst: f.Dst &^ altBit, QPN: f.DstQPN(), PSN: uint32(f.PSN()),
		Op: uint8(f.Op()), Iter: f.Iter,
	}
}
