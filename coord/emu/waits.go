package emu

import (
	"encoding/binary"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/topology"
)

// waits notes what changed in the waits of the share's switches at an instant;
// put together with those of other shares they show deadlocks, see
// [sim.Deadlocks]. It says whether they are in the log.
func (l *noteLog) waits(n uint64, at clock.Time, changed []fabric.WaitState) bool {
	if !l.open(entryWaits, n) {
		return false
	}
	since := func(b []byte, t clock.Time) []byte { return binary.AppendVarint(b, int64(at-t)) }
	b := binary.AppendUvarint(binary.AppendVarint(l.raw, int64(at)), uint64(len(changed)))
	for i := range changed {
		s := &changed[i]
		b = binary.AppendUvarint(b, uint64(s.Dev))
		b = binary.AppendUvarint(b, uint64(len(s.Queues)))
		for _, q := range s.Queues {
			b = since(append(binary.AppendUvarint(b, uint64(q.Port)), q.Prio), q.Since)
		}
		b = binary.AppendUvarint(b, uint64(len(s.Groups)))
		for k := range s.Groups {
			g := &s.Groups[k]
			b = since(append(binary.AppendUvarint(b, uint64(g.Port)), g.Prios), g.Since)
			b = binary.AppendVarint(binary.AppendUvarint(b, uint64(g.Slice)), g.Shared)
			b = binary.AppendUvarint(binary.AppendVarint(b, g.ResumeAt), uint64(len(g.Held)))
			for _, h := range g.Held {
				b = since(append(binary.AppendUvarint(b, uint64(h.Port)), h.Prio), h.Since)
			}
		}
	}
	l.raw = b
	l.done()
	return true
}

// count reads the length of a list whose items take a byte at least.
func (c *cursor) count() int {
	n := c.uint()
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return 0
	}
	return int(n)
}

// waits reads an entry of waits.
func (c *cursor) waits(e *entry) {
	at := clock.Time(c.int())
	since := func() clock.Time { return at - clock.Time(c.int()) }
	for range c.count() {
		s := fabric.WaitState{Dev: int32(c.uint())}
		for range c.count() {
			s.Queues = append(s.Queues, fabric.PausedQueue{Port: uint16(c.uint()), Prio: c.byte(), Since: since()})
		}
		for range c.count() {
			g := fabric.StoppedGroup{Port: uint16(c.uint()), Prios: c.byte(), Since: since(), Slice: uint16(c.uint())}
			g.Shared, g.ResumeAt = c.int(), c.int()
			for range c.count() {
				g.Held = append(g.Held, fabric.HeldIn{Port: uint16(c.uint()), Prio: c.byte(), Since: since()})
			}
			s.Groups = append(s.Groups, g)
		}
		if c.bad {
			return
		}
		e.waits = append(e.waits, s)
	}
}

// fits says whether waits are of ports that a plan has.
func fits(p *topology.Plan, waits []fabric.WaitState) bool {
	for i := range waits {
		s := &waits[i]
		if s.Dev < 0 || int(s.Dev) >= len(p.Devices) || p.Devices[s.Dev].Switch == nil {
			return false
		}
		has := func(port uint16) bool { return port > 0 && int(port) <= len(p.Devices[s.Dev].Ports) }
		for _, q := range s.Queues {
			if !has(q.Port) {
				return false
			}
		}
		for k := range s.Groups {
			if !has(s.Groups[k].Port) || slices.ContainsFunc(s.Groups[k].Held, func(h fabric.HeldIn) bool { return !has(h.Port) }) {
				return false
			}
		}
	}
	return true
}
