package actors

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Remote is what one device sent over one port to another process since the
// last exchange. The slices are valid until the next.
type Remote struct {
	Src, Dst         int32
	SrcPort, DstPort uint16
	Frames           []wire.Frame // in order of arrival
	Late             []wire.Frame
}

// leastTaken is the least number of frames that room is made for.
const leastTaken = 256

// TakeRemote hands out the frames since the last exchange that go to devices of
// other processes, by (source device, port), and forgets them.
func (e *Engine) TakeRemote(visit func(Remote)) {
	slices.SortFunc(e.remote, func(a, b *Channel) int { // workers finish in any order
		return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.srcPort, b.srcPort))
	})
	spare := e.taken
	for _, c := range e.remote {
		r := Remote{Src: c.src, Dst: c.dst, SrcPort: c.srcPort, DstPort: c.dstPort, Late: c.lateW}
		n := int(c.pushed - c.popped)
		if n > 0 {
			c.pub, c.shown = c.pushed, c.pushed
			if len(spare) < n {
				e.taken = make([]wire.Frame, max(n, 2*len(e.taken), leastTaken))
				spare = e.taken
			}
			r.Frames, spare = spare[:0:n], spare[n:]
			for f := c.front(); f != nil; f = c.front() {
				r.Frames = append(r.Frames, *f)
				c.pop()
			}
		}
		visit(r)
		c.lateW = c.lateW[:0]
		c.dirty = false
		c.tidy(&e.scratch[0].pool, true)
		c.newAt, c.workAt = clock.Never, clock.Never
	}
	e.remote = e.remote[:0]
}

// Deliver adds frames that another process sent before the exchange. It
// refuses what does not fit the plan, so a malformed batch cannot corrupt the
// run.
func (e *Engine) Deliver(r Remote) error {
	if r.Dst < 0 || int(r.Dst) >= len(e.actors) || e.actors[r.Dst] == nil {
		return fmt.Errorf("actors: batch for device %d, which is not hosted here", r.Dst)
	}
	if r.DstPort < 1 || int(r.DstPort) > len(e.docks[r.Dst].in()) {
		return fmt.Errorf("actors: batch for %s:%d, which does not exist", e.cfg.Names[r.Dst], r.DstPort)
	}
	c := e.docks[r.Dst].in()[r.DstPort-1]
	if c.src != r.Src || c.srcPort != r.SrcPort {
		return fmt.Errorf("actors: batch for %s:%d from the wrong device %d:%d", e.cfg.Names[r.Dst], r.DstPort, r.Src, r.SrcPort)
	}
	last := c.lastAt
	for i := range r.Frames {
		if r.Frames[i].At < e.now || r.Frames[i].At < last {
			return fmt.Errorf("actors: batch for %s:%d arrives at %v, before %v", e.cfg.Names[r.Dst], r.DstPort, r.Frames[i].At, max(e.now, last))
		}
		last = r.Frames[i].At
	}
	for i := range r.Late {
		if r.Late[i].At < e.now {
			return fmt.Errorf("actors: late frame for %s:%d arrives at %v, before %v", e.cfg.Names[r.Dst], r.DstPort, r.Late[i].At, e.now)
		}
	}
	if len(r.Frames) > 0 {
		c.open(r.Frames[0].At)
	}
	for i := range r.Frames {
		c.push(&r.Frames[i], &e.scratch[0].pool)
	}
	for i := range r.Late {
		c.lateW, c.extra = append(c.lateW, r.Late[i]), true
		c.newAt = min(c.newAt, r.Late[i].At)
		if isWork(&r.Late[i]) {
			c.workAt = min(c.workAt, r.Late[i].At)
		}
	}
	n, w := c.publish()
	e.docks[c.dst].mark(int(c.dstPort))
	e.next[c.dst] = min(e.next[c.dst], n)
	e.work[c.dst] = min(e.work[c.dst], w)
	return nil
}
