package fault

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// takes decides whether a fault that matches f acts on it: the n-th only, by
// chance, by length or by destination.
func (d *Device) takes(st *state, port int, side Dir, f *wire.Frame) bool {
	switch st.Kind {
	case MTU:
		if int64(f.Len) <= st.Size {
			return false
		}
	case Blackhole:
		if !d.swallows(st, f) {
			return false
		}
	case MarkCE:
		if f.ECN() == wire.NotECT || f.ECN() == wire.CE {
			return false
		}
	case RxOverflow:
		if !st.Has(f.DstQPN()) {
			return false
		}
	case Corrupt:
		if !st.Field.in(f) {
			return false
		}
	}
	st.seen++
	if st.Every > 1 && st.seen%st.Every != 0 {
		return false
	}
	p := st.Prob
	if st.Kind == BER {
		p = st.ber.frame(int(f.Len))
	}
	return p.sure || p.draw(st.Key, st.seen, uint64(d.id)<<20|uint64(port)<<2|uint64(side))
}

// Swallow reports whether a blackhole of the whole switch takes f, and
// counts the hit.
func (d *Device) Swallow(now clock.Time, f *wire.Frame) (by int32, gone bool) {
	for _, st := range d.all {
		if st.Kind == Blackhole && st.life == active && d.routed(st) && d.swallows(st, f) {
			r := frameRecord(now, 0, f)
			r.Reason = uint8(record.Fault)
			d.hit(st, &r)
			d.settle(now)
			return st.Index + 1, true
		}
	}
	return 0, false
}

// swallows is the test of a blackhole: the destination and the hash bucket.
func (d *Device) swallows(st *state, f *wire.Frame) bool {
	if st.DstRNIC != 0 && f.Dst&^altBit != st.DstRNIC {
		return false
	}
	if st.Bucket < 0 {
		return true
	}
	if d.Bucket == nil {
		return false
	}
	n := st.Buckets
	if n == 0 {
		n = d.members(f.Dst)
	}
	return n > 0 && int(d.Bucket(f)%uint32(n)) == st.Bucket
}

// members is the size of the ECMP group toward an RNIC.
func (d *Device) members(dst uint32) int {
	if dst == 0 || int(dst) > len(d.dev.Route) || d.dev.Route[dst-1] < 0 {
		return 0
	}
	return len(d.dev.Groups[d.dev.Route[dst-1]])
}

// apply is what a fault does to a frame.
func (d *Device) apply(st *state, f *wire.Frame, v *fate) {
	switch st.Kind {
	case Drop, Loss, Blackhole:
		v.drop = record.Fault
	case MTU:
		v.drop = record.MTU
	case RxOverflow:
		v.drop = record.RxOverflow
	case BER:
		f.Set(wire.FlagBadFCS)
	case Corrupt:
		corrupt(st.Field, f)
	case Duplicate:
		v.extra++
	case Delay:
		v.delay += st.By
	case Reorder:
		v.hold = true
	case MarkCE:
		f.TOS |= wire.CE
	case DSCP:
		f.TOS = uint8(st.To)<<2 | f.ECN()
	}
}

// in reports whether f has the field.
func (x Field) in(f *wire.Frame) bool {
	switch x {
	case FieldFCS, FieldEtherType:
		return true
	case FieldIPID, FieldIPTTL, FieldIPTOS, FieldIPChecksum:
		return !isPause(f)
	case FieldUDPChecksum:
		return roce(f) || f.Kind == wire.KindUDP
	case FieldPad:
		return roce(f) && f.Pad() != 0
	}
	return roce(f)
}

// corrupt flips a field. The FCS is recomputed unless it is the field, so only
// the checks of the RNIC find out; the ICRC masks TTL, ToS, UDP checksum and
// the reserved bits of the BTH, so nobody does (transport §1.9). The IP
// identification is covered by the ICRC alone, which only RoCE has.
func corrupt(field Field, f *wire.Frame) {
	if field == FieldIPID && !roce(f) {
		return
	}
	switch field {
	case FieldFCS:
		f.Set(wire.FlagBadFCS)
	case FieldEtherType:
		f.Set(wire.DamagedType)
	case FieldIPChecksum:
		f.BreakIP()
	case FieldIPID, FieldPad, FieldICRC:
		f.BreakICRC()
	case FieldBTHPSN:
		f.SetPSN(f.PSN() ^ 1)
		f.BreakICRC()
	case FieldIPTTL:
		if f.TTL > 1 {
			f.TTL--
		}
	case FieldIPTOS:
		if e := f.ECN(); e == wire.ECT0 || e == wire.ECT1 {
			f.TOS ^= wire.ECT0 ^ wire.ECT1
		}
	}
}

// Sender takes frames for the peer; an outbox is one.
type Sender interface {
	Send(port int, f *wire.Frame)
	SendLate(port int, f *wire.Frame)
}

// Sent tells a port what became of a frame it dequeued, for its counters. A
// frame that is swapped counts as in flight until the next one frees it.
type Sent struct {
	Drop  record.Reason // not NoReason: lost on the wire here
	Fault int32         // index of the fault that took it, plus one
	Extra int           // frames put on the wire beyond the one dequeued
}

// Send passes a dequeued frame, whose At is set, through the faults of a port
// and hands what is left of it to out. Ports that are not Busy may skip it.
func (d *Device) Send(now clock.Time, port int, f *wire.Frame, out Sender) Sent {
	e := &d.ends[port-1]
	if e.down > 0 {
		return Sent{Drop: record.LinkDown, Fault: d.Blame(now, port, f)}
	}
	v := d.judge(now, port, e.out, Out, f)
	if v.drop != 0 {
		return Sent{Drop: v.drop, Fault: v.fault}
	}
	if v.hold && !e.hasOut {
		e.hasOut, e.swapOut = true, *f
		return Sent{}
	}
	s := Sent{Extra: v.extra}
	at := f.At
	for range v.extra + 1 {
		if v.delay > 0 || isPause(f) {
			g := *f
			g.At = at.Add(v.delay)
			out.SendLate(port, &g)
			continue
		}
		out.Send(port, f)
	}
	if e.hasOut {
		e.hasOut = false
		e.swapOut.At = at // behind the next frame, which overtook it
		out.Send(port, &e.swapOut)
		d.rebuild(now)
	}
	return s
}

func isPause(f *wire.Frame) bool { return f.Kind == wire.KindPFC || f.Kind == wire.KindPause }

// Got is the verdict on a frame that has arrived. When Drop is set it is lost;
// when Keep is set it must not be processed now. What is kept, and the Extra
// copies that a fault made of it, come from Held when they are due.
type Got struct {
	Drop  record.Reason
	Fault int32
	Keep  bool
	Extra int
}

// In judges an arriving frame before the device sees it. Ports that are not
// Busy may skip it.
func (d *Device) In(now clock.Time, port int, f *wire.Frame) Got {
	e := &d.ends[port-1]
	if len(e.outage) > 0 && e.hitByOutage(now, f) {
		why := record.LinkDown
		if !d.Alive() {
			why = record.DeviceDown
		}
		return Got{Drop: why, Fault: d.Blame(now, port, f)}
	}
	v := d.judge(now, port, e.in, In, f)
	if v.drop != 0 {
		return Got{Drop: v.drop, Fault: v.fault}
	}
	g := Got{Extra: v.extra}
	for range v.extra {
		d.held.push(now.Add(v.delay), port, f)
	}
	switch {
	case v.delay > 0:
		d.held.push(now.Add(v.delay), port, f)
		g.Keep = true
		return g
	case v.hold && !e.hasIn:
		e.hasIn, e.swapIn = true, *f
		g.Keep = true
		return g
	}
	if e.hasIn {
		e.hasIn = false
		d.held.push(now, port, &e.swapIn)
		d.rebuild(now)
	}
	return g
}

// Blame counts a frame lost for want of a link as a hit of the fault that has
// the link down: the latest to start at this port, or at any port for 0. It
// returns the fault's index plus one.
func (d *Device) Blame(now clock.Time, port int, f *wire.Frame) int32 {
	return d.blame(now, port, f, record.LinkDown, func(st *state) bool {
		switch st.Kind {
		case LinkDown, LinkFlap, OneWay, DeviceDown:
			_, ok := st.at(d.id, port)
			return (ok || port == 0) && st.life != planned
		}
		return false
	})
}

// BlameMTU counts a frame that a port found too long as a hit of the latest
// active fault that makes it so. It returns the fault's index plus one, 0 when
// the frame is too long for the settings, too.
func (d *Device) BlameMTU(now clock.Time, f *wire.Frame) int32 {
	return d.blame(now, 0, f, record.MTU, func(st *state) bool {
		return st.Kind == MTU && st.life == active && st.Size < int64(f.Len)
	})
}

func (d *Device) blame(now clock.Time, port int, f *wire.Frame, why record.Reason, may func(*state) bool) int32 {
	var best *state
	for _, st := range d.all {
		if may(st) && (best == nil || st.At >= best.At) {
			best = st
		}
	}
	if best == nil || isPause(f) {
		return 0
	}
	r := frameRecord(now, port, f)
	r.Reason = uint8(why)
	d.hit(best, &r)
	d.settle(now)
	return best.Index + 1
}

// NextHeld is when the next delayed frame is due; Never when none is.
func (d *Device) NextHeld() clock.Time { return d.held.next() }

// Held takes the next delayed or swapped frame that is due at now.
func (d *Device) Held(now clock.Time) (port int, f wire.Frame, ok bool) {
	if d.held.next() > now {
		return 0, wire.Frame{}, false
	}
	return d.held.pop()
}

// Waiting counts the frames that faults keep back at a port, for the account
// of the run's end: out are on their way, in have been received.
func (d *Device) Waiting(port int, visit func(out bool, f *wire.Frame)) {
	e := &d.ends[port-1]
	if e.hasOut {
		visit(true, &e.swapOut)
	}
	if e.hasIn {
		visit(false, &e.swapIn)
	}
	for i := range d.held.q {
		if h := &d.held.q[i]; h.port == port {
			visit(false, &h.f)
		}
	}
}
