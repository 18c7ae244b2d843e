package sim

import (
	"fmt"

	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/topology"
)

// keeps refuses settings that a restored fabric would not take over: they are
// part of the saved state, or decide what that state is made of.
func (s *Saved) keeps(plan *topology.Plan) error {
	if s.Hash == plan.Hash {
		return nil
	}
	was, err := s.Plan()
	if err != nil {
		return fmt.Errorf("the saved fabric's own file: %w", err)
	}
	if len(was.Devices) != len(plan.Devices) {
		return nil // Restore says what differs
	}
	for i := range plan.Devices {
		a, b := &was.Devices[i], &plan.Devices[i]
		if a.Switch == nil || b.Switch == nil || len(a.Ports) != len(b.Ports) {
			continue
		}
		if what := keptBySwitch(a, b); what != "" {
			return fmt.Errorf("%s: %s differs from the saved fabric, which keeps its own: restore without the change and make it with a fault of kind set where there is one", b.Name, what)
		}
	}
	return nil
}

// keptBySwitch names the first setting that differs and would not take effect.
func keptBySwitch(a, b *topology.Device) string {
	x, y := a.Switch, b.Switch
	switch {
	case x.BufferBytes != y.BufferBytes:
		return fmt.Sprintf("buffer.size (%d B, saved %d B)", y.BufferBytes, x.BufferBytes)
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
