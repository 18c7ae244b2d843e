package fabric

import (
	"math/bits"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// wakes is a set of wake-ups like [alarms] for slots that are nearly all in use
// and change all the time: the ports' next dequeues. It is a winner tree: to set
// a slot plays its matches anew, up to the final, with no branch that
// depends on who wins. The leaves stand in the order of rank, so that of two at
// one instant the left one is first.
type wakes struct {
	first wake
	pair  [][2]wake // place i of the tree is pair[i/2][i%2]; nodes 2i and 2i+1 play for i
	leaf  []int32   // by slot: its place, 0 = the slot is never used
}

type wake struct {
	at   clock.Time // Never = unset
	slot int32
}

// newWakes makes unset slots; rank orders slots at one instant. Those before
// used are never set.
func newWakes(rank []int32, used int) wakes {
	n := 1 << bits.Len(uint(max(len(rank)-used-1, 1)))
	a := wakes{first: wake{at: clock.Never}, pair: make([][2]wake, n), leaf: make([]int32, len(rank))}
	for i := range a.pair {
		a.pair[i] = [2]wake{a.first, a.first}
	}
	for s := used; s < len(rank); s++ {
		i := int32(n) + rank[s] - int32(used)
		a.leaf[s] = i
		a.pair[i>>1][i&1].slot = int32(s)
	}
	return a
}

// next is the earliest instant, Never when no slot is set.
func (a *wakes) next() clock.Time { return a.first.at }

// top is the slot that is due first; there must be one.
func (a *wakes) top() int { return int(a.first.slot) }

// at returns a slot's instant, Never when unset.
func (a *wakes) at(slot int) clock.Time { return a.place(slot).at }

func (a *wakes) place(slot int) *wake {
	i := a.leaf[slot]
	return &a.pair[i>>1][i&1]
}

// set moves a slot's wake-up to t; Never unsets it.
func (a *wakes) set(slot int, t clock.Time) {
	i, tree := uint(a.leaf[slot]), a.pair
	x := wake{t, int32(slot)}
	for i > 1 {
		p := &tree[i>>1]
		p[i&1] = x
		o := p[i&1^1]
		if o.at-clock.Time(i&1) < x.at { // the right one yields at one instant
			x.slot = o.slot
		}
		x.at = min(x.at, o.at)
		i >>= 1
	}
	a.first = x
}

// each visits the slots that are set.
func (a *wakes) each(visit func(slot int, at clock.Time)) {
	for s := range a.leaf {
		if at := a.at(s); at != clock.Never {
			visit(s, at)
		}
	}
}

func (a *wakes) snapshot(w *snap.Writer) {
	w.Len(len(a.leaf))
	for s := range a.leaf {
		w.Time(a.at(s))
	}
}

func (a *wakes) restore(r *snap.Reader) {
	r.Expect("wake-up slots", r.Len(), len(a.leaf))
	for s, i := range a.leaf {
		if t := r.Time(); i != 0 {
			a.set(s, t)
		} else if t != clock.Never {
			r.Expect("instant of a slot that is not used", int(t), 0)
		}
	}
}
