package fabric

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// alarms is a set of named wake-ups: each slot has at most one instant. The
// order is (instant, rank of the slot), which is total, so it does not depend
// on how the heap came to be. A place of the heap has four children, which fill
// a cache line: a port's next dequeue sinks through half as many levels.
type alarms struct {
	first clock.Time // the earliest instant, Never when no slot is set
	heap  []alarm
	pos   []int32 // slot → index in heap, -1 = unset
	rank  []int32
}

type alarm struct {
	at   clock.Time
	rank int32
	slot int32
}

// newAlarms makes n unset slots. rank orders slots at one instant; nil = by number.
func newAlarms(n int, rank []int32) alarms {
	a := alarms{first: clock.Never, heap: make([]alarm, 0, n), pos: make([]int32, n), rank: rank}
	if rank == nil {
		a.rank = make([]int32, n)
		for i := range a.rank {
			a.rank[i] = int32(i)
		}
	}
	for i := range a.pos {
		a.pos[i] = -1
	}
	return a
}

// next is the earliest instant, Never when no slot is set.
func (a *alarms) next() clock.Time { return a.first }

// top is the slot that is due first; there must be one.
func (a *alarms) top() int { return int(a.heap[0].slot) }

// at returns a slot's instant, Never when unset.
func (a *alarms) at(slot int) clock.Time {
	if i := a.pos[slot]; i >= 0 {
		return a.heap[i].at
	}
	return clock.Never
}

// set moves a slot's wake-up to t; Never unsets it.
func (a *alarms) set(slot int, t clock.Time) {
	a.move(slot, t)
	if a.first = clock.Never; len(a.heap) > 0 {
		a.first = a.heap[0].at
	}
}

func (a *alarms) move(slot int, t clock.Time) {
	i := int(a.pos[slot])
	switch {
	case t == clock.Never:
		if i >= 0 {
			a.remove(i)
		}
		return
	case i < 0:
		a.heap = append(a.heap, alarm{t, a.rank[slot], int32(slot)})
		a.up(len(a.heap) - 1)
	case t < a.heap[i].at:
		a.heap[i].at = t
		a.up(i)
	case t > a.heap[i].at:
		a.heap[i].at = t
		a.down(i)
	}
}

func (a *alarms) remove(i int) {
	n := len(a.heap) - 1
	a.pos[a.heap[i].slot] = -1
	last := a.heap[n]
	a.heap = a.heap[:n]
	if i == n {
		return
	}
	a.heap[i] = last
	a.pos[last.slot] = int32(i)
	a.down(i)
	a.up(int(a.pos[last.slot]))
}

func (x *alarm) before(y *alarm) bool {
	return x.at < y.at || x.at == y.at && x.rank < y.rank
}

func (a *alarms) up(i int) {
	h, x := a.heap, a.heap[i]
	for i > 0 {
		p := (i - 1) >> 2
		if !x.before(&h[p]) {
			break
		}
		h[i] = h[p]
		a.pos[h[i].slot] = int32(i)
		i = p
	}
	h[i] = x
	a.pos[x.slot] = int32(i)
}

func (a *alarms) down(i int) {
	h, x := a.heap, a.heap[i]
	for {
		c := 4*i + 1
		if c >= len(h) {
			break
		}
		last := min(c+4, len(h))
		for r := c + 1; r < last; r++ {
			if h[r].before(&h[c]) {
				c = r
			}
		}
		if !h[c].before(&x) {
			break
		}
		h[i] = h[c]
		a.pos[h[i].slot] = int32(i)
		i = c
	}
	h[i] = x
	a.pos[x.slot] = int32(i)
}

func (a *alarms) snapshot(w *snap.Writer) {
	w.Len(len(a.pos))
	for s := range a.pos {
		w.Time(a.at(s))
	}
}

func (a *alarms) restore(r *snap.Reader) {
	r.Expect("alarm slots", r.Len(), len(a.pos))
	for s := range a.pos {
		a.set(s, r.Time())
	}
}
