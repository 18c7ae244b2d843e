package fabric

import (
	"math/bits"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// announce tells the peers of PGs whose XOFF state changed; a PG that came
// back to the announced state within one event is not heard of. Several
// priorities of a port share one frame.
func (s *Switch) announce(now clock.Time, out *actors.Outbox) {
	if len(s.mmu.changed) == 0 {
		return
	}
	for _, g := range s.mmu.changed {
		i := int(g) >> 3
		if p := &s.ports[i]; s.tellable(i) {
			if d := s.due(i) ^ p.xoffSent; d != 0 {
				s.announcePort(now, i, d, out)
			}
		}
	}
	s.mmu.Clear()
}

// due is the mask of the port's PGs that the peer should know in XOFF; what a
// silenced one was last told stays.
func (s *Switch) due(i int) uint8 {
	p := &s.ports[i]
	var m uint8
	for g := range 8 {
		switch {
		case p.pgPrios[g] == 0:
		case s.silenced(p, g):
			m |= p.xoffSent & (1 << g)
		case s.mmu.XOFF(i<<3 + g):
			m |= 1 << g
		}
	}
	return m
}

func (s *Switch) tellable(i int) bool {
	p := &s.ports[i]
	return p.pfcOn != 0 && !p.pfcOff && p.upOut && !s.down
}

// silenced: a stormed PG under action drop sends no PFC (switch §3.5).
func (s *Switch) silenced(p *portState, g int) bool {
	return p.hasDog && p.dog[bits.TrailingZeros8(p.pgPrios[g])].Dropping()
}

// announcePort sends one frame for the PGs in diff, XOFF or XON by their state.
func (s *Switch) announcePort(now clock.Time, i int, diff uint8, out *actors.Outbox) {
	p := &s.ports[i]
	var pause, resume uint8
	for ; diff != 0; diff &= diff - 1 {
		g := bits.TrailingZeros8(diff)
		p.xoffSent ^= 1 << g
		kind := record.Xon
		if p.xoffSent&(1<<g) != 0 {
			kind = record.Xoff
			s.countWaits()
			s.wait.xoffs++
			pause |= p.pgPrios[g]
			c := &p.c.PG[g]
			c.XOFF++
			c.FirstXOFF = clock.Min(c.FirstXOFF, now)
			s.timer.set(i<<3+g, s.refreshAt(now, p))
		} else {
			resume |= p.pgPrios[g]
			s.wait.xoffs--
			s.timer.set(i<<3+g, clock.Never)
		}
		s.note(record.Record{At: now, Port: uint16(i + 1), Prio: uint8(g), Kind: kind, X: s.mmu.PGBytes(i<<3 + g)})
	}
	s.sendPFC(now, i, pause, resume, out)
}

// refreshAt is half the pause after now: the peer never runs out of pause
// while the PG is in XOFF (switch §3.2).
func (s *Switch) refreshAt(now clock.Time, p *portState) clock.Time {
	if p.quanta == 0 {
		return clock.Never
	}
	return now.Add(p.port.RefreshSpan(p.quanta))
}

// sendPFC puts a PFC frame out with the configured quanta for the priorities
// in pause and 0 for those in resume.
func (s *Switch) sendPFC(now clock.Time, i int, pause, resume uint8, out *actors.Outbox) {
	p := &s.ports[i]
	f := &s.pfcFrame // not an object a frame: faults take it as an interface
	*f = wire.Frame{Kind: wire.KindPFC, Len: wire.PFCFrame}
	for m := pause | resume; m != 0; m &= m - 1 {
		n := bits.TrailingZeros8(m)
		c := &p.c.PFC[n]
		if pause&(1<<n) != 0 {
			f.SetPFCTime(n, p.quanta)
			c.TxPause++
			if c.txSince == clock.Never {
				c.txSince = now
			}
			continue
		}
		f.SetPFCTime(n, 0)
		c.TxResume++
		if c.txSince != clock.Never {
			c.txPaused += now.Sub(c.txSince)
			c.txSince = clock.Never
		}
	}
	p.port.SendPFC(now, f)
	if s.work.at(s.wakeSlot(i)) != clock.Never {
		s.arm(now, &s.ports[i], i) // the slot of the PFC frame puts the next dequeue off
	}
	s.chain.Mix(now, uint64(i)<<48|0x504643, uint64(pause)|uint64(resume)<<8)
	if !p.seam {
		out.SendLate(i+1, f)
		return
	}
	if v := p.wire.Out(now, i+1, f, out); v.Act == Go || v.Act == Late {
		out.SendLate(i+1, f)
	}
}

// refresh repeats the pause of a PG that is still in XOFF.
func (s *Switch) refresh(now clock.Time, slot int, out *actors.Outbox) {
	i, g := slot>>3, slot&7
	p := &s.ports[i]
	if p.xoffSent&(1<<g) == 0 || !s.tellable(i) || s.silenced(p, g) {
		s.timer.set(slot, clock.Never)
		return
	}
	s.timer.set(slot, s.refreshAt(now, p))
	s.sendPFC(now, i, p.pgPrios[g], 0, out)
}

// reannounce brings the peer of port i up to date after PFC could not be sent
// for a while: what is in XOFF pauses again, what the peer was told and no
// longer holds is resumed.
func (s *Switch) reannounce(now clock.Time, i int, out *actors.Outbox) {
	if !s.tellable(i) {
		return
	}
	p := &s.ports[i]
	due := s.due(i)
	var again uint8
	for m := due & p.xoffSent; m != 0; m &= m - 1 {
		g := bits.TrailingZeros8(m)
		if !s.silenced(p, g) {
			again |= p.pgPrios[g]
			s.timer.set(i<<3+g, s.refreshAt(now, p))
		}
	}
	if again != 0 {
		s.sendPFC(now, i, again, 0, out)
	}
	if d := due ^ p.xoffSent; d != 0 {
		s.announcePort(now, i, d, out)
	}
}

// control takes a PFC or 802.3x frame; At of a PFC frame is the instant it
// acts on the scheduler.
func (s *Switch) control(now clock.Time, pn int, f *wire.Frame) {
	p := &s.ports[pn-1]
	s.chain.Mix(now, frameKey(f, pn), f.A^f.B<<1^uint64(f.D))
	if f.Kind == wire.KindPause {
		p.c.Pause++
		return
	}
	switch {
	case s.down:
		return
	case f.Has(wire.FlagBadFCS):
		p.c.CRC++
		return
	case f.Has(wire.DamagedType):
		return // no MAC control frame any more
	}
	for m := uint8(f.D); m != 0; m &= m - 1 {
		n := bits.TrailingZeros8(m)
		s.pausePrio(now, pn, p, n, f.PFCTime(n))
	}
	if p.nonEmpty != 0 {
		s.arm(now, &s.ports[pn-1], pn-1)
	}
}

// pausePrio applies time[n] = t to one priority.
func (s *Switch) pausePrio(now clock.Time, pn int, p *portState, n int, t uint16) {
	c := &p.c.PFC[n]
	if t == 0 {
		c.RxResume++
	} else {
		c.RxPause++
	}
	if p.pfcOn&(1<<n) == 0 || p.pfcOff {
		c.Ignored++
		return
	}
	s.settle(now, pn, p, n)
	was, is := p.port.Pause(now, n, t)
	switch {
	case is && !was:
		c.rxSince = now.Add(-p.port.PauseLag()) // the pause counts from reception
		s.note(record.Record{At: now, Port: uint16(pn), Prio: uint8(n), Kind: record.PauseStart})
		if p.hasDog {
			s.armDog(now, pn-1, n)
		}
	case was && !is:
		s.endPause(now, now.Add(-p.port.PauseLag()), pn, c, n)
	}
}

// settle closes the books of a pause that ran out before now.
func (s *Switch) settle(now clock.Time, pn int, p *portState, n int) {
	c := &p.c.PFC[n]
	if c.rxSince == clock.Never {
		return
	}
	if u := p.port.PausedUntil(n); u <= now {
		s.endPause(u, u, pn, c, n)
	}
}

// endPause books a pause that ends at `at`, and ended at `counted` by reception.
func (s *Switch) endPause(at, counted clock.Time, pn int, c *PFCCount, n int) {
	c.rxPaused += counted.Sub(c.rxSince)
	c.rxSince = clock.Never
	c.On2Off++
	s.note(record.Record{At: at, Port: uint16(pn), Prio: uint8(n), Kind: record.PauseEnd})
}
