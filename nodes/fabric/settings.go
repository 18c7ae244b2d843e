package fabric

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fault"
	"github.com/rocemu/rocemu/topology"
)

// Settings change while a switch runs (`changes:`, `emuctl set`): the device of
// the plan in force takes the place of the one before, and everything derived
// from it is derived anew. What is queued, paused, drawn and counted stays.

// Settings returns the device whose settings are in force.
func (s *Switch) Settings() *topology.Device { return s.plan }

// settings brings in what the timeline has for now, below the faults that are
// active.
func (x *faultPlan) settings(now clock.Time, out *actors.Outbox) {
	s := x.s
	s.adopt(now)
	x.hash()
	for i := range s.ports {
		x.portSettings(now, i+1, fault.MTU, out)
	}
	if b := x.d.Active(fault.Buffer, 0); b != nil {
		s.SetBuffer(now, b.Size, out)
	}
	s.announce(now, out)
}

// adopt takes over the settings in force at an instant. PGs whose state flips
// stay to be announced.
func (s *Switch) adopt(now clock.Time) {
	d := s.timeline.At(now).Devices[s.id]
	d.Route, d.Groups, d.AltRoute = s.plan.Route, s.plan.Groups, s.plan.AltRoute
	s.plan, s.adopted = &d, now
	for i := range s.ports {
		p, pp := &s.ports[i], &d.Ports[i]
		p.plan = pp
		p.mtu = uint16(min(pp.MTU, 1<<16-1))
		p.quanta = pp.PFC.Quanta
		s.setTable(i, &pp.QoS.DSCPToTC)
		p.sched.setWeights(&pp.QoS.Sched, int(p.mtu))
		w := new([8]WRED)
		for q := range w {
			w[q] = s.newWRED(pp, i, q)
			if p.wred != nil {
				w[q].avg, w[q].draws = p.wred[q].avg, p.wred[q].draws
			}
		}
		p.setWRED(w)
	}
	e := &d.Switch.ECMP
	s.SetHash(Hasher{CRC: e.Hash == "crc32", Spray: e.Spray, Seed: e.Seed})
	s.mmu.Reconfigure(s.memory())
	s.onlys()
}

// Reconfigure takes other thresholds and sizes for the same PGs, queues and
// slices, and re-evaluates all PGs. What is stored stays stored.
func (m *MMU) Reconfigure(c MMUConfig) {
	m.pool = c.HeadroomPool > 0
	for i := range m.sl {
		m.sl[i].size, m.sl[i].hdrmSize = c.Shared, c.HeadroomPool
	}
	for i := range m.pg {
		p, n := &m.pg[i], &c.PGs[i]
		was := p.shared()
		p.min, p.cap, p.xonOffset = n.Min, n.Headroom, n.XONOffset
		p.setLimit(n.Limit, m.cell)
		s := p.of
		s.used += p.shared() - was
		s.mark = max(s.mark, s.used)
		m.lim[i], m.q[i].lossless = c.Queues[i].Limit, c.Queues[i].Lossless
	}
	m.Reevaluate()
}
