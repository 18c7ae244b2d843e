package fabric

import "github.com/rocemu/rocemu/topology"

// memory derives the MMU's sizes from the plan: PGs of lossless priorities get
// guaranteed space, threshold, headroom and XON offset of the lowest priority
// mapped to them; other PGs are limited by the pool alone and, per egress
// queue, by the lossy limit.
func (s *Switch) memory() MMUConfig {
	sw := s.plan.Switch
	cell := sw.Cell
	n := max(sw.Slices, 1)
	c := MMUConfig{
		Cell: int32(cell), Slices: n,
		Shared:       int32(sw.BufferBytes / cell / int64(n)),
		HeadroomPool: int32(sw.HeadroomPool / cell / int64(n)),
	}
	c.PGs, c.Queues = make([]PGConfig, 0, 8*len(s.ports)), make([]QueueConfig, 0, 8*len(s.ports))
	var reserved int64
	for i := range s.ports {
		p := &s.ports[i]
		for g := range 8 {
			pg := s.pgConfig(p, g)
			reserved += int64(pg.Min)
			if sw.HeadroomPool == 0 {
				reserved += int64(pg.Headroom)
			}
			c.PGs = append(c.PGs, pg)
			c.Queues = append(c.Queues, s.queueConfig(p, g))
		}
	}
	if sw.ReserveOff {
		c.Shared = int32(max(int64(c.Shared)-reserved/int64(n)-int64(c.HeadroomPool), 0))
	}
	return c
}

func (s *Switch) pgConfig(p *portState, g int) PGConfig {
	if p.pgPrios[g] == 0 {
		return PGConfig{}
	}
	n := firstBit(p.pgPrios[g])
	pp, sw := p.plan.PFC, s.plan.Switch
	c := PGConfig{
		Lossless: true, Min: int32((pp.Guaranteed[n] + sw.Cell - 1) / sw.Cell),
		Headroom: int32(p.plan.Headroom[g]), XONOffset: pp.XONOffset[n],
	}
	c.Limit = Limit{Mode: Dynamic, Num: pp.Alpha[n].Num, Den: pp.Alpha[n].Den}
	if pp.XOFF[n] > 0 {
		c.Limit = Limit{Mode: Static, Bytes: pp.XOFF[n]}
	}
	if sw.HeadroomPool > 0 {
		c.Headroom = 1<<31 - 1
		if sw.CapPerPG > 0 {
			c.Headroom = int32(sw.CapPerPG / sw.Cell)
		}
		if pp.Headroom[n] >= 0 { // a size given for the group caps it, too
			c.Headroom = min(c.Headroom, int32(p.plan.Headroom[n]))
		}
	}
	return c
}

func (s *Switch) queueConfig(p *portState, q int) QueueConfig {
	for n := range 8 {
		if p.pfcOn&(1<<n) != 0 && (int(p.maps.tcToQueue.of(uint8(n))) == q || int(p.pfcToQ[n]) == q) {
			return QueueConfig{Lossless: true, Limit: lossyLimit(p.plan.Lossy)}
		}
	}
	return QueueConfig{Limit: lossyLimit(p.plan.Lossy)}
}

func lossyLimit(l *topology.Lossy) Limit {
	switch {
	case l == nil:
		return Limit{}
	case l.Limit > 0:
		return Limit{Mode: Static, Bytes: l.Limit}
	case l.Alpha.Num == 0:
		return Limit{}
	}
	return Limit{Mode: Dynamic, Num: l.Alpha.Num, Den: l.Alpha.Den}
}
