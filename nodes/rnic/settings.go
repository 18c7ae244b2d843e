package rnic

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
)

// Settings change while an RNIC runs (`changes:`, `emuctl set`): the NIC of the
// plan in force takes the place of the one before; queue pairs and congestion
// control go on from where they are with the new parameters.

// settings brings in what the timeline has for now.
func (r *RNIC) settings(now clock.Time) {
	r.adopt(now)
	for i := range r.ports { // pauses of priorities that are no longer honoured end
		p := &r.ports[i]
		for prio := range 8 {
			if !r.nic.Lossless[prio] && p.PausedUntil(prio) != 0 {
				r.resumed(now, now, p, prio)
			}
		}
	}
	for i := range r.pairs {
		if p := &r.pairs[i]; p.q != nil {
			r.refresh(now, int32(i), p)
		}
	}
	r.trySend(now)
}

// adopt takes over the settings in force at an instant. The class of what is
// sent stays: it belongs to the switch port at the other end.
func (r *RNIC) adopt(now clock.Time) {
	nic := *r.idx.Timeline.At(now).Devices[r.dev.ID].NIC
	nic.PrioOf = r.dev.NIC.PrioOf
	r.nic, r.adopted = &nic, now
	r.dcqcn, r.swift = dcqcnParams(r.nic), swiftParams(r.nic)
	np := newNP(r.nic)
	r.np.Scope, r.np.Interval = np.Scope, np.Interval
	r.cfgs = map[cfgKey]*qp.Config{}
	for i := range r.pairs {
		p := &r.pairs[i]
		if p.q == nil {
			continue
		}
		p.q.SetConfig(r.config(p))
		if p.ctl.dcqcn != nil {
			p.ctl.dcqcn.SetParams(r.dcqcn)
		}
		if p.ctl.swift != nil {
			p.ctl.swift.SetParams(r.swift)
		}
	}
	if r.faults.d != nil {
		r.faults.rx.resize(r)
	}
}

// config is the transport's settings of a pair: shared by all RNICs until
// settings change here.
func (r *RNIC) config(p *pair) *qp.Config {
	pq := &r.plan.QPs[p.id]
	if r.adopted == clock.Never {
		return r.idx.of(r.k, pq)
	}
	_, other, _ := r.ends(p)
	k := cfgKey{nic: r.nic, par: &r.nic.QP, peer: other, mtu: pq.MTU}
	if r.cfgs[k] == nil {
		r.cfgs[k] = newConfig(r.plan.Seed, r.nic, &r.nic.QP, other, pq.MTU)
	}
	return r.cfgs[k]
}
