package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/topology"
)

// keeps refuses what a restored fabric would not take over: it is part of the
// saved state, or decides what that state is made of.
func (s *Saved) keeps(plan *topology.Plan) error {
	if err := s.sameDevices(plan); err != nil {
		return err
	}
	if err := s.sameFaults(plan); err != nil {
		return err
	}
	if err := s.goesOn(&plan.Run); err != nil {
		return err
	}
	if s.Hash == plan.Hash {
		return nil
	}
	was, err := s.Plan()
	if err != nil {
		return fmt.Errorf("the saved fabric's own file: %w", err)
	}
	if err := sameFlows(was, plan); err != nil {
		return err
	}
	for i := range plan.Devices {
		a, b := &was.Devices[i], &plan.Devices[i]
		if len(a.Ports) != len(b.Ports) {
			continue
		}
		what := keptByWire(a, b)
		switch {
		case what != "":
		case a.Switch != nil && b.Switch != nil:
			what = keptBySwitch(a, b)
		case a.NIC != nil && b.NIC != nil:
			what = keptByNIC(a.NIC, b.NIC)
		}
		if what != "" {
			return fmt.Errorf("%s: %s differs from the saved fabric, which keeps its own: restore without the change and make it with a fault of kind set where there is one", b.Name, what)
		}
	}
	return keptByQPs(was, plan)
}

// keptByWire names what would let a frame overtake those that are on their way.
func keptByWire(a, b *topology.Device) string {
	for j := range b.Ports {
		p, q := &a.Ports[j], &b.Ports[j]
		was, is := p.EgressHalf+p.Prop+p.PeerIngressHalf, q.EgressHalf+q.Prop+q.PeerIngressHalf
		if is < was || p.PeerCutThrough != q.PeerCutThrough {
			return fmt.Sprintf("the way from port %d (%v with half of both pipelines, saved %v)", q.Num, is, was)
		}
	}
	return ""
}

// keptByNIC names the first setting of an RNIC that differs and is part of what
// its queue pairs and limiters were made with.
func keptByNIC(a, b *topology.NIC) string {
	l := []setting{{"model", a.Model, b.Model}, {"mtu", a.MTU, b.MTU}, {"recovery", a.Recovery, b.Recovery}, {"sport", a.SPort, b.SPort}}
	if b.Congestion != "none" { // limiters that are there can be left alone
		l = append(l, setting{"congestion", a.Congestion, b.Congestion})
	}
	return changed(l)
}

// setting is what a key was in the saved fabric and is in this one.
type setting struct {
	key     string
	was, is any
}

// changed names the first setting that is another now, "" = none.
func changed(l []setting) string {
	for _, x := range l {
		if x.was != x.is {
			return fmt.Sprintf("%s (%v, saved %v)", x.key, x.is, x.was)
		}
	}
	return ""
}

// keptByQPs names the first attribute of a queue pair that differs and was
// settled when it was connected.
func keptByQPs(was, is *topology.Plan) error {
	for i := range is.QPs {
		if i >= len(was.QPs) {
			return nil // the workload differs, as is said before
		}
		for _, p := range [][2]*topology.QPParams{{was.QPs[i].Params, is.QPs[i].Params}, {was.QPs[i].BParams, is.QPs[i].BParams}} {
			if p[0] == nil || p[1] == nil {
				continue
			}
			what := changed([]setting{
				{"initial_psn", p[0].InitialPSN, p[1].InitialPSN},
				{"max_rd_atomic", p[0].MaxRdAtomic, p[1].MaxRdAtomic},
				{"max_dest_rd_atomic", p[0].MaxDestRd, p[1].MaxDestRd},
				{"recv_queue", p[0].RecvQueue, p[1].RecvQueue},
				{"connect", p[0].ConnectCM, p[1].ConnectCM},
			})
			if what != "" {
				return fmt.Errorf("queue pair 0x%x of %s: qp.%s differs from the saved fabric, whose queue pairs are connected: restore without the change", is.QPs[i].AQPN, is.RNIC(is.QPs[i].A).Name, what)
			}
		}
	}
	return nil
}

// goesOn wants an end of the run that is not behind it.
func (s *Saved) goesOn(r *topology.Run) error {
	switch {
	case r.Until == topology.UntilTime && r.At < s.At:
		return fmt.Errorf("run.until %v lies before %v, the instant it was saved at", r.At, s.At)
	case r.Limit > 0 && clock.Time(0).Add(r.Limit) < s.At:
		return fmt.Errorf("run.limit %v lies before %v, the instant it was saved at: both count from the run's start", r.Limit, s.At)
	}
	return nil
}

// of says whose state it is when the names tell that it is another fabric's.
func (s *Saved) of(plan *topology.Plan) string {
	was, err := s.Plan()
	if err != nil || was.Name == plan.Name {
		return ""
	}
	return fmt.Sprintf("it is %s at %v, and %s is asked for: ", was.Name, s.At, plan.Name)
}

// sameFlows wants the workload of the saved fabric: requests that it has posted
// go on as they are there, whatever a file says of them.
func sameFlows(was, is *topology.Plan) error {
	const advice = "; it keeps its workload, and the seed that drew it: restore without the change"
	if len(was.Flows) != len(is.Flows) {
		return fmt.Errorf("the workload of the saved one has %d single flows, that of %s has %d%s", len(was.Flows), is.Name, len(is.Flows), advice)
	}
	for i := range was.Flows {
		if what := otherFlow(&was.Flows[i], &is.Flows[i], was, is); what != "" {
			return fmt.Errorf("workload.%s%s", what, advice)
		}
	}
	return nil
}

// otherFlow names what differs between two flows, "" = nothing.
func otherFlow(a, b *topology.Flow, was, is *topology.Plan) string {
	line := is.Lines[b.Line].Name
	if old := was.Lines[a.Line].Name; old != line {
		return fmt.Sprintf("%s stands where the saved one has %s", line, old)
	}
	what := changed([]setting{
		{"from", was.RNIC(a.From).Name, is.RNIC(b.From).Name},
		{"to", was.RNIC(a.To).Name, is.RNIC(b.To).Name},
		{"verb", was.Lines[a.Line].Verb, is.Lines[b.Line].Verb},
		{"size", fmt.Sprint(a.Size, " B"), fmt.Sprint(b.Size, " B")},
		{"start", a.Start, b.Start},
		{"count", times(a.Count), times(b.Count)},
		{"window", a.Window, b.Window},
		{"interval", a.Interval, b.Interval},
		{"rate", a.Rate, b.Rate},
		{"dscp", a.DSCP, b.DSCP},
	})
	if what != "" {
		return line + "." + what + " differs"
	}
	c, d := *a, *b
	c.Opt, d.Opt = nil, nil
	if c != d || (a.Opt == nil) != (b.Opt == nil) || a.Opt != nil && *a.Opt != *b.Opt {
		return line + " differs"
	}
	return ""
}

// times is a count as a file has it.
func times(n int64) string {
	if n < 0 {
		return "forever"
	}
	return fmt.Sprint(n)
}

// sameDevices wants each device of the saved fabric where it was.
func (s *Saved) sameDevices(plan *topology.Plan) error {
	const advice = "give the fabric file that was saved, or none"
	if len(s.devices) != len(plan.Devices) {
		return fmt.Errorf("the saved one has %d devices, %s has %d: %s", len(s.devices), plan.Name, len(plan.Devices), advice)
	}
	for i := range s.devices {
		if was, is := s.devices[i].name, plan.Devices[i].Name; was != is {
			return fmt.Errorf("device %d is %s in the saved one, %s in %s: %s", i, was, is, plan.Name, advice)
		}
	}
	return nil
}

// sameFaults wants the faults and planned changes of the saved fabric: what they
// did, and when they act, is in its state.
func (s *Saved) sameFaults(plan *topology.Plan) error {
	is := faultTexts(plan)
	if slices.Equal(is, s.Faults) {
		return nil
	}
	var what []string
	for _, x := range []struct {
		in, out []string
		where   string
	}{{s.Faults, is, "only the saved one"}, {is, s.Faults, "only this one"}} {
		for _, f := range x.in {
			if !slices.Contains(x.out, f) {
				what = append(what, fmt.Sprintf("%s has %q", x.where, f))
				break
			}
		}
	}
	if len(what) == 0 {
		what = []string{"they are in another order"}
	}
	return fmt.Errorf("it keeps the faults and changes it was saved with, with the same --chaos seed if there was one: %s; "+
		"a fabric that runs in a cluster takes others: emuctl snapshot restore --pause, emuctl fault inject", strings.Join(what, ", "))
}

// faultTexts are the faults of a plan as text.
func faultTexts(p *topology.Plan) []string {
	l := make([]string, len(p.Faults))
	for i := range p.Faults {
		l[i] = p.Faults[i].String()
	}
	return l
}

// keptBySwitch names the first setting that differs and would not take effect.
func keptBySwitch(a, b *topology.Device) string {
	x, y := a.Switch, b.Switch
	switch {
	case x.BufferBytes != y.BufferBytes:
		return fmt.Sprintf("buffer.size (%d B, saved %d B)", y.BufferBytes, x.BufferBytes)
	case x.ECMP != y.ECMP:
		return fmt.Sprintf("ecmp (%s, seed %d, spray %v; saved %s, %d, %v)", y.ECMP.Hash, y.ECMP.Seed, y.ECMP.Spray, x.ECMP.Hash, x.ECMP.Seed, x.ECMP.Spray)
	case x.Cell != y.Cell || x.Slices != y.Slices || x.HeadroomPool != y.HeadroomPool:
		return "buffer.cell, slices or headroom_pool"
	}
	for j := range b.Ports {
		p, q := &a.Ports[j], &b.Ports[j]
		switch {
		case p.MTU != q.MTU:
			return fmt.Sprintf("mtu of port %d (%d, saved %d)", q.Num, q.MTU, p.MTU)
		case p.Rate != q.Rate:
			return fmt.Sprintf("rate of port %d (%v, saved %v)", q.Num, q.Rate, p.Rate)
		case p.PFC.Lossless != q.PFC.Lossless:
			return "pfc.priorities"
		case (p.PFC.Watchdog == nil) != (q.PFC.Watchdog == nil):
			return "pfc.watchdog (there in one of the two)"
		case hasAQM(p) != hasAQM(q):
			return "ecn (there in one of the two)"
		case p.QoS.DSCPToTC != q.QoS.DSCPToTC:
			return "qos.dscp_to_tc"
		}
	}
	return ""
}

// hasAQM says whether some queue of a port marks or drops early: then its state
// is saved.
func hasAQM(p *topology.Port) bool {
	for n := range 8 {
		if p.ECN == nil {
			return false
		}
		if w := fabric.NewWRED(&p.ECN[n], 0); w.Active() {
			return true
		}
	}
	return false
}
