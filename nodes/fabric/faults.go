package fabric

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fault"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// faultPlan drives a switch with the faults of package fault. It keeps no
// settings: at every start and end it derives them anew from the plan and from
// what is active, so that an undo is exact.
type faultPlan struct {
	d    *fault.Device
	s    *Switch
	plan *topology.Plan
}

// Schedule plans a fault in the switch; its start must not be executed yet.
func (s *Switch) Schedule(plan *topology.Plan, f *topology.Fault, index int32) error {
	spec, err := fault.Compile(plan, f, index)
	if err != nil {
		return err
	}
	s.faultsOn(plan).d.Add(&spec)
	return nil
}

// ClearFault ends a fault at t.
func (s *Switch) ClearFault(index int32, t clock.Time) {
	if x, ok := s.faults.(*faultPlan); ok {
		x.d.Clear(index, t)
		if s.timeline != nil {
			_ = s.timeline.End(index, t) // live: what does not fit then waits
		}
	}
}

// FaultStatus visits the faults of this device.
func (s *Switch) FaultStatus(visit func(index int32, hits uint64, started bool, end clock.Time)) {
	if x, ok := s.faults.(*faultPlan); ok {
		x.d.Status(visit)
	}
}

// faultsOn returns the switch's fault plan and makes it when it has none.
func (s *Switch) faultsOn(plan *topology.Plan) *faultPlan {
	if x, ok := s.faults.(*faultPlan); ok {
		return x
	}
	x := &faultPlan{d: fault.NewDevice(plan, s.id, nil), s: s, plan: plan}
	x.d.Emit = s.note
	x.d.Bucket = func(f *wire.Frame) uint32 { return s.hash.Of(f) }
	s.faults = x
	x.rewire()
	return x
}

// cableErrors makes the fault plan of a switch whose cables have a bit error
// rate of their own.
func (s *Switch) cableErrors(plan *topology.Plan) {
	for i := range s.plan.Ports {
		if s.plan.Ports[i].BERNum != 0 {
			s.faultsOn(plan)
			return
		}
	}
}

// Next implements [Faults].
func (x *faultPlan) Next() clock.Time { return clock.Min(x.d.Next(), x.d.NextHeld()) }

// NextFault and NextWork sort what is to come: starts and ends, and frames.
func (x *faultPlan) NextFault() clock.Time { return x.d.NextFault() }

// NextWork implements [Faults].
func (x *faultPlan) NextWork() clock.Time { return x.d.NextWork() }

// Blame implements [Faults].
func (x *faultPlan) Blame(now clock.Time, f *wire.Frame, why record.Reason) int32 {
	if why == record.MTU {
		return x.d.BlameMTU(now, f)
	}
	return x.d.Blame(now, 0, f)
}

// Apply implements [Faults].
func (x *faultPlan) Apply(now clock.Time, s *Switch, out *actors.Outbox) {
	for _, e := range x.d.Step(now) {
		x.act(now, e, out)
	}
	x.rewire()
	for {
		port, f, ok := x.d.Held(now)
		if !ok {
			return
		}
		s.lastWork = now
		s.admitHeld(now, port, &f, out)
	}
}

// rewire asks the faults only where there are any.
func (x *faultPlan) rewire() {
	for i := range x.s.ports {
		x.s.SetWire(i+1, nil)
		if x.d.Busy(i + 1) {
			x.s.SetWire(i+1, x)
		}
	}
	x.s.router = nil
	x.d.Each(fault.Route, func(*fault.Spec) { x.s.router = x })
	x.d.Each(fault.Blackhole, func(*fault.Spec) { x.s.router = x })
}

// act follows one step of the schedule.
func (x *faultPlan) act(now clock.Time, e fault.Event, out *actors.Outbox) {
	s := x.s
	switch e.Phase {
	case fault.LinkFell, fault.LinkRose, fault.Rejoined:
		x.links(now, out)
		return
	case fault.Withdrawn, fault.Restored:
		x.detours()
		return
	case fault.Beat:
		x.storm(now, e.Spec, out)
		return
	case fault.Forge:
		x.forge(now, e.Spec, out)
		return
	}
	switch e.Spec.Kind {
	case fault.Rate, fault.MTU, fault.PFCOff:
		for i := range s.ports {
			x.portSettings(now, i+1, e.Spec.Kind, out)
		}
	case fault.ECNOff:
		s.SetECNOff(x.any(fault.ECNOff))
	case fault.Hash:
		x.hash()
	case fault.Set:
		x.settings(now, out)
	case fault.Buffer:
		if b := x.d.Active(fault.Buffer, 0); b != nil {
			s.SetBuffer(now, b.Size, out)
		} else {
			s.RestoreBuffer(now, out)
		}
	}
}

func (x *faultPlan) any(k fault.Kind) bool {
	on := false
	x.d.Each(k, func(*fault.Spec) { on = true })
	return on
}

// links brings device, links and ECMP membership to what the faults leave up.
func (x *faultPlan) links(now clock.Time, out *actors.Outbox) {
	s := x.s
	if dead := !x.d.Alive(); dead != s.down {
		s.SetDown(now, dead, out)
	}
	for i := range s.ports {
		p := &s.ports[i]
		if m := x.d.Usable(i + 1); m != p.member {
			s.SetMember(i+1, m)
		}
	}
	for i := range s.ports {
		if up := x.d.Up(i + 1); up != s.ports[i].upOut {
			s.SetLink(now, i+1, Out, up, out)
		}
	}
	for i := range s.ports { // SetLink takes a port out of its groups for good
		s.ports[i].member = x.d.Usable(i + 1)
	}
	s.relive()
}

// portSettings derives a port's rate, length limit and PFC from what is active.
func (x *faultPlan) portSettings(now clock.Time, port int, k fault.Kind, out *actors.Outbox) {
	s, pp := x.s, &x.s.plan.Ports[port-1]
	a := x.d.Active(k, port)
	switch k {
	case fault.Rate:
		r := pp.Rate
		if a != nil {
			r = a.Rate
		}
		if s.Rate(port) != r {
			s.SetRate(now, port, r)
		}
		x.d.SetRate(port, r)
	case fault.MTU:
		n := pp.MTU
		if a != nil {
			n = int(min(a.Size, int64(n)))
		}
		s.SetMTU(port, n)
	case fault.PFCOff:
		s.SetPFCOff(now, port, a != nil, out)
	}
}

func (x *faultPlan) hash() {
	e := &x.s.plan.Switch.ECMP
	h := Hasher{CRC: e.Hash == "crc32", Spray: e.Spray, Seed: e.Seed}
	if a := x.d.Active(fault.Hash, 0); a != nil {
		switch a.HashName {
		case "":
			h.Seed = a.Seed
		default:
			h.CRC = a.HashName == "crc32"
		}
	}
	x.s.SetHash(h)
}

// storm sends XOFF of a pause storm, whatever the buffers say.
func (x *faultPlan) storm(now clock.Time, a *fault.Spec, out *actors.Outbox) {
	for i := range x.s.ports {
		if a.Port == 0 || a.Port == i+1 {
			if x.s.ports[i].upOut && !x.s.down {
				x.s.sendPFC(now, i, a.Prios, 0, out)
				x.d.Sent(a)
			}
		}
	}
}

// forge puts an inject fault's frame on the cable, or lets it arrive. It takes
// no slot of the port.
func (x *faultPlan) forge(now clock.Time, a *fault.Spec, out *actors.Outbox) {
	s, f := x.s, a.Forge.Frame
	port := max(a.Port, 1)
	p := &s.ports[port-1]
	f.At = now
	s.lastWork = now
	pause := f.Kind == wire.KindPFC || f.Kind == wire.KindPause
	if a.Dir == fault.In {
		if pause {
			s.control(now, port, &f)
			return
		}
		p.c.RxInjected.add(f.Len)
		s.admitHeld(now, port, &f, out)
		return
	}
	if pause {
		timeline := p.port
		timeline.SendPFC(now, &f)
	} else {
		p.port.Aside(now, &f)
		p.c.Injected.add(f.Len)
	}
	out.SendLate(port, &f)
}

// Out implements [Wire].
func (x *faultPlan) Out(now clock.Time, port int, f *wire.Frame, out *actors.Outbox) Verdict {
	r := x.d.Send(now, port, f, out)
	v := Verdict{Act: Keep, Extra: uint32(r.Extra), ExtraBytes: uint32(r.Extra) * uint32(f.Len)}
	if r.Drop != record.NoReason {
		v.Act, v.Reason, v.Fault = Drop, r.Drop, r.Fault
	}
	return v
}

// In implements [Wire].
func (x *faultPlan) In(now clock.Time, port int, f *wire.Frame) Verdict {
	r := x.d.In(now, port, f)
	v := Verdict{Extra: uint32(r.Extra), ExtraBytes: uint32(r.Extra) * uint32(f.Len)}
	switch {
	case r.Drop != record.NoReason:
		v.Act, v.Reason, v.Fault = Drop, r.Drop, r.Fault
	case r.Keep:
		v.Act = Keep
	}
	return v
}

// Route implements [Router]: frames to a diverted destination take the ports
// of the latest route fault, or have no route when it names none.
func (x *faultPlan) Route(now clock.Time, f *wire.Frame, hash uint32) (int, Verdict) {
	if by, gone := x.d.Swallow(now, f); gone {
		return 0, Verdict{Act: Drop, Reason: record.Fault, Fault: by}
	}
	var a *fault.Spec
	x.d.Each(fault.Route, func(s *fault.Spec) {
		if s.To == f.Dst && (a == nil || s.At >= a.At) {
			a = s
		}
	})
	switch {
	case a == nil:
		return 0, Verdict{}
	}
	x.d.Tally(a)
	if len(a.Via) == 0 {
		return 0, Verdict{Act: Drop, Reason: record.NoRoute, Fault: a.Index + 1}
	}
	return int(a.Via[hash%uint32(len(a.Via))]), Verdict{}
}

// Held returns what faults keep back at a port when the run ends.
func (s *Switch) Held(port int) (out, in Count) {
	if x, ok := s.faults.(*faultPlan); ok {
		x.d.Waiting(port, func(leaving bool, f *wire.Frame) {
			if leaving {
				out.add(f.Len)
			} else {
				in.add(f.Len)
			}
		})
	}
	return out, in
}

// Snapshot and Restore carry the state of the faults.
func (x *faultPlan) Snapshot(w *snap.Writer) { x.d.Snapshot(w) }

// Restore implements [Faults].
func (x *faultPlan) Restore(r *snap.Reader) error {
	x.d.Restore(r)
	x.rewire()
	x.detours()
	return r.Err
}

// admitHeld takes a frame that a fault kept back, or made: it is here whole.
func (s *Switch) admitHeld(now clock.Time, pn int, f *wire.Frame, out *actors.Outbox) {
	in := &s.ports[pn-1]
	if f.Kind == wire.KindPFC || f.Kind == wire.KindPause {
		s.control(now, pn, f)
		return
	}
	in.rx.add(f.Len)
	if f.Has(wire.FlagBadFCS) {
		in.c.CRC++
		s.drop(now, pn, f, dropNote{why: record.CRC})
		return
	}
	s.forward(now, pn, in, f, s.decide(now, in, f), out)
}

// onlyUp is the fallback of a group without a usable member: ports that have
// link are better than none (a drained device, a hold that still runs).
func (s *Switch) onlyUp(all []uint16) []uint16 {
	var m []uint16
	for _, pn := range all {
		if s.ports[pn-1].upOut {
			m = append(m, pn)
		}
	}
	return m
}
