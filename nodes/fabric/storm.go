package fabric

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// pollSlot is the alarm of the watchdog of port index i and priority n.
func (s *Switch) pollSlot(i, n int) int { return 8*len(s.ports) + i<<3 + n }

func (s *Switch) armDog(now clock.Time, i, n int) {
	d := &s.ports[i].dog[n]
	d.Arm(now)
	s.timer.set(s.pollSlot(i, n), d.Next())
}

// poll runs the watchdog of one port and priority.
func (s *Switch) poll(now clock.Time, k int, out *actors.Outbox) {
	i, n := k>>3, k&7
	p := &s.ports[i]
	s.settle(now, i+1, p, n)
	c := &p.c.PFC[n]
	change := p.dog[n].Poll(p.port.Paused(now, n), c.RxPause, c.On2Off)
	s.timer.set(s.pollSlot(i, n), p.dog[n].Next())
	if change == 0 {
		return
	}
	r := record.Record{At: now, Port: uint16(i + 1), Prio: uint8(n), Kind: record.Watchdog}
	if change > 0 {
		r.X = 1
	}
	s.note(r)
	s.chain.Mix(now, uint64(i)<<48|uint64(n)<<40|0x7764, uint64(r.X))
	if change > 0 && p.dog[n].Dropping() {
		s.discard(now, i, int(p.pfcToQ[n]), discardStorm)
	}
	if change < 0 {
		s.reannounce(now, i, out)
	}
	s.announce(now, out)
	s.arm(now, &s.ports[i], i)
}

// discarding says on whose account queued frames are dropped.
type discarding uint8

const (
	discardStorm discarding = iota
	discardLink
	discardDevice
)

// discard drops all frames of a queue.
func (s *Switch) discard(now clock.Time, i, q int, by discarding) {
	p := &s.ports[i]
	why := [...]record.Reason{record.PFCWatchdog, record.LinkDown, record.DeviceDown}[by]
	for p.q[q].n > 0 {
		level := p.q[q].bytes
		f, m := p.q[q].pop(&s.pool)
		s.wait.leave(s.ports[i].q[q].row, int(m.pg)>>3)
		s.mmu.Release(int(m.pg), i<<3+q, m.cells)
		p.c.Queue[q].Drops++
		if by == discardStorm {
			p.dog[p.dogOf[q]].TxDropped++
		}
		s.drop(now, i+1, f, dropNote{why: why, prio: uint8(q), level: level})
	}
	p.nonEmpty &^= 1 << q
	p.sched.Empty(q)
}

// stormDrop drops a frame for a stormed queue, or received in the PG of a
// stormed priority of its own port.
func (s *Switch) stormDrop(now clock.Time, pn int, in, e *portState, pg, q uint8, f *wire.Frame) bool {
	if e.hasDog {
		if n := e.dogOf[q]; e.pfcOn&(1<<n) != 0 && e.pfcToQ[n] == q && e.dog[n].Dropping() {
			e.dog[n].TxDropped++
			e.c.Queue[q].Drops++
			s.drop(now, pn, f, dropNote{why: record.PFCWatchdog, prio: q})
			return true
		}
	}
	if in.hasDog && in.pgPrios[pg] != 0 && s.silenced(in, int(pg)) {
		in.dog[firstBit(in.pgPrios[pg])].RxDropped++
		in.c.PG[pg].Drops++
		in.c.InDrops++
		s.drop(now, pn, f, dropNote{why: record.PFCWatchdog, prio: pg})
		return true
	}
	return false
}
