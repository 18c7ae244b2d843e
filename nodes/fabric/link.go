package fabric

import (
	"math/bits"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// outages remembers when a cable did not carry frames toward this end, as far
// back as a frame that still arrives may have been on it.
type outages struct {
	any  bool
	down clock.Time // start of the running outage, Never = link up
	past []outage
}

type outage struct{ from, to clock.Time }

// hit reports whether a frame on the cable in [first, last] met an outage.
func (o *outages) hit(first, last clock.Time) bool {
	if o.down < last {
		return true
	}
	for i := range o.past {
		if o.past[i].from < last && first < o.past[i].to {
			return true
		}
	}
	return false
}

// lostOnCable applies outages and the fault seam to an arriving frame.
func (s *Switch) lostOnCable(now clock.Time, pn int, in *portState, f *wire.Frame) bool {
	if in.outage && in.outages.hit(s.onCable(now, in, f)) {
		in.rxLost(f)
		s.lose(now, pn, f, Verdict{Reason: record.LinkDown})
		return true
	}
	if in.wire == nil {
		return false
	}
	v := in.wire.In(now, pn, f)
	in.c.RxInjected.Frames += uint64(v.Extra)
	in.c.RxInjected.Bytes += uint64(v.ExtraBytes)
	if v.Act != Drop {
		return v.Act == Keep
	}
	in.rxLost(f)
	s.lose(now, pn, f, v)
	return true
}

func (p *portState) rxLost(f *wire.Frame) {
	if f.Kind != wire.KindPFC && f.Kind != wire.KindPause {
		p.c.RxDropped.add(f.Len)
	}
}

// onCable returns when the first bit entered the cable and the last one left it.
func (s *Switch) onCable(now clock.Time, in *portState, f *wire.Frame) (first, last clock.Time) {
	pp := in.plan
	r := in.port.Rate()
	full, _ := r.Serialise(int64(f.Len)+wire.Overhead, 0)
	switch {
	case f.Kind == wire.KindPFC || f.Kind == wire.KindPause:
		last = now.Add(pp.EgressHalf - pp.Response)
	case s.cut:
		last = now.Add(s.tailLag(in, f) - pp.IngressHalf)
	default:
		last = now.Add(-pp.IngressHalf)
	}
	return last.Add(-full - pp.Prop), last
}

// Direction selects the sides of a port that a fault acts on.
type Direction uint8

// Directions, seen from the port.
const (
	Out  Direction = 1
	In   Direction = 2
	Both Direction = 3
)

// SetLink takes the link of a port down or up (from 1) in the given
// directions. Going down, frames queued for the port drop as link_down and
// ECMP leaves it out until [Switch.SetMember] takes it back; pauses are
// forgotten. Frames on the cable while it is down are lost at the receiver.
func (s *Switch) SetLink(now clock.Time, port int, dir Direction, up bool, out *actors.Outbox) {
	i := port - 1
	p := &s.ports[i]
	if dir&In != 0 {
		s.setIn(now, p, up)
	}
	if dir&Out != 0 && p.upOut != up {
		p.upOut = up
		if !up {
			p.member = false
			s.relive()
			s.resetPause(now, port)
			s.discardPort(now, i, discardLink, out)
		} else {
			s.reannounce(now, i, out)
		}
	}
	x := int64(0)
	if up {
		x = 1
	}
	s.note(record.Record{At: now, Port: uint16(port), Kind: record.LinkState, X: x})
}

func (s *Switch) setIn(now clock.Time, p *portState, up bool) {
	o := &p.outages
	if !o.any {
		o.any, o.down = true, clock.Never
		p.outage = true
	}
	if !up {
		o.down = min(o.down, now)
		return
	}
	if o.down == clock.Never {
		return
	}
	// A frame is on the cable for its own length and the flight; what ended
	// longer ago than that can meet no frame any more.
	r := p.port.Rate()
	span := r.Span(1<<16) + p.plan.Prop + p.plan.IngressHalf + p.plan.Response
	keep := o.past[:0]
	for _, x := range o.past {
		if x.to.Add(span) > now {
			keep = append(keep, x)
		}
	}
	o.past = append(keep, outage{o.down, now})
	o.down = clock.Never
}

// SetMember takes a port out of or back into the ECMP groups.
func (s *Switch) SetMember(port int, in bool) {
	s.ports[port-1].member = in
	s.relive()
}

// relive rebuilds the live members of all groups, in port order.
func (s *Switch) relive() {
	for g, all := range s.groups {
		m := make([]uint16, 0, len(all))
		for _, pn := range all {
			if s.ports[pn-1].member {
				m = append(m, pn)
			}
		}
		if len(m) == 0 && s.faults != nil {
			m = s.onlyUp(all)
		}
		s.live[g] = m
	}
	s.onlys()
}

// onlys notes the groups that leave no choice: one live member, no flooding.
func (s *Switch) onlys() {
	for g, m := range s.live {
		s.only[g] = 0
		if len(m) == 1 && (s.plan.Floods == nil || !s.plan.Floods[g]) {
			s.only[g] = m[0]
		}
	}
}

func (s *Switch) resetPause(now clock.Time, port int) {
	p := &s.ports[port-1]
	for n := range 8 {
		if c := &p.c.PFC[n]; c.rxSince != clock.Never {
			s.settle(now, port, p, n)
			if c.rxSince != clock.Never {
				s.endPause(now, now, port, c, n)
			}
		}
	}
	p.port.ClearPause()
}

// discardPort drops all that is queued for a port.
func (s *Switch) discardPort(now clock.Time, i int, by discarding, out *actors.Outbox) {
	for q := range 8 {
		s.discard(now, i, q, by)
	}
	s.announce(now, out)
	s.arm(now, &s.ports[i], i)
}

// SetDown switches the device off or on. Off: everything stored and everything
// that arrives drops as device_down, nothing is sent. On: empty queues, no
// pauses, the same settings.
func (s *Switch) SetDown(now clock.Time, down bool, out *actors.Outbox) {
	if s.down == down {
		return
	}
	s.down = down
	for i := range s.ports {
		if down {
			s.discardPort(now, i, discardDevice, out)
			s.resetPause(now, i+1)
			s.wait.xoffs -= bits.OnesCount8(s.ports[i].xoffSent)
			s.ports[i].xoffSent = 0
			for n := range 8 {
				s.timer.set(i<<3+n, clock.Never)
				if c := &s.ports[i].c.PFC[n]; c.txSince != clock.Never {
					c.txPaused += now.Sub(c.txSince)
					c.txSince = clock.Never
				}
			}
		} else {
			s.reannounce(now, i, out)
		}
	}
	s.mmu.Clear()
}

// SetRate changes a port's line rate for frames dequeued from now on.
func (s *Switch) SetRate(now clock.Time, port int, r clock.Rate) {
	s.ports[port-1].port.SetRate(r)
	s.arm(now, &s.ports[port-1], port-1)
}

// Rate returns a port's line rate.
func (s *Switch) Rate(port int) clock.Rate { return s.ports[port-1].port.Rate() }

// SetMTU changes a port's largest frame and returns the former one.
func (s *Switch) SetMTU(port, mtu int) (old int) {
	p := &s.ports[port-1]
	old, p.mtu = int(p.mtu), uint16(mtu)
	return old
}

// SetPFCOff stops a port from sending and honouring PFC, or lets it again.
func (s *Switch) SetPFCOff(now clock.Time, port int, off bool, out *actors.Outbox) {
	p := &s.ports[port-1]
	if p.pfcOff == off {
		return
	}
	p.pfcOff = off
	if off {
		s.resetPause(now, port)
	} else {
		s.reannounce(now, port-1, out)
	}
	s.arm(now, &s.ports[port-1], port-1)
}

// SetECNOff stops marking and early drops of the whole device, or lets them again.
func (s *Switch) SetECNOff(off bool) { s.ecnOff = off }

// SetBuffer resizes the shared pool to bytes over all slices; RestoreBuffer
// brings the plan's size back.
func (s *Switch) SetBuffer(now clock.Time, bytes int64, out *actors.Outbox) {
	c := s.memory()
	was := s.plan.Switch.BufferBytes / s.plan.Switch.Cell / int64(c.Slices)
	now64 := bytes / s.plan.Switch.Cell / int64(c.Slices)
	s.mmu.SetShared(int32(max(int64(c.Shared)+now64-was, 0)))
	s.announce(now, out)
}

// RestoreBuffer undoes SetBuffer.
func (s *Switch) RestoreBuffer(now clock.Time, out *actors.Outbox) {
	s.SetBuffer(now, s.plan.Switch.BufferBytes, out)
}

// SetDSCP maps a DSCP to another TC on a port's ingress and returns the former TC.
func (s *Switch) SetDSCP(port int, dscp, tc uint8) (old uint8) {
	p := &s.ports[port-1]
	own := *p.maps.dscpToTC // others may share it
	old, own[dscp&63] = own[dscp&63], tc&7
	p.maps.dscpToTC = &own
	return old
}

// SetHash replaces the ECMP hash and returns the former one.
func (s *Switch) SetHash(h Hasher) (old Hasher) {
	old = s.hash
	h.n = s.hash.n
	s.hash = h
	return old
}

// SetWire puts a fault seam on a port end, nil takes it off.
func (s *Switch) SetWire(port int, w Wire) {
	p := &s.ports[port-1]
	p.wire, p.seam = w, w != nil
}

// SetRouter puts a fault seam on the route choice, nil takes it off.
func (s *Switch) SetRouter(r Router) { s.router = r }
