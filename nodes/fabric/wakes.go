package fabric

import (
	"math/bits"
	"slices"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// wakes is a set of wake-ups like [alarms] for slots that are nearly all in use
// and change all the time: the ports' next dequeues. It is a winner tree: to set
// a slot plays its matches anew, up to the final, with no branch that depends on
// who wins. A wake-up stands in it as one word: its instant since base, and
// below that its leaf. The leaves stand in the order of rank, so that of two at
// one instant the left one is first.
type wakes struct {
	first clock.Time // the earliest, Never when no slot is set
	best  uint64     // its word
	pair  [][2]uint64
	when  []clock.Time // by leaf
	slot  []int32      // by leaf
	of    []int32      // by slot: its leaf, -1 = the slot is never used
	base  clock.Time
	far   uint64 // what a word has in place of a time that long after base, or longer
	shift uint8  // bits of a leaf's number
}

// unset is the word of a slot that is not set.
const unset = 1<<64 - 1

// newWakes makes unset slots; rank orders slots at one instant. Those before
// used are never set.
func newWakes(rank []int32, used int) wakes {
	n := 1 << bits.Len(uint(max(len(rank)-used-1, 1)))
	a := wakes{
		first: clock.Never, pair: make([][2]uint64, n), when: make([]clock.Time, n), slot: make([]int32, n),
		of: make([]int32, len(rank)), shift: uint8(bits.Len(uint(n - 1))),
	}
	a.far = unset>>a.shift - 1
	for i := range n {
		a.pair[i], a.when[i] = [2]uint64{unset, unset}, clock.Never
	}
	for s := range rank {
		if a.of[s] = -1; s >= used {
			i := rank[s] - int32(used)
			a.of[s], a.slot[i] = i, int32(s)
		}
	}
	return a
}

// next is the earliest instant, Never when no slot is set.
func (a *wakes) next() clock.Time { return a.first }

// top is the slot that is due first; there must be one.
func (a *wakes) top() int { return int(a.slot[a.best&uint64(len(a.slot)-1)]) }

// at returns a slot's instant, Never when unset.
func (a *wakes) at(slot int) clock.Time {
	if i := a.of[slot]; i >= 0 {
		return a.when[i]
	}
	return clock.Never
}

// set moves a slot's wake-up to t; Never unsets it.
func (a *wakes) set(slot int, t clock.Time) {
	k := uint(a.of[slot])
	a.when[k] = t
	x := uint64(unset)
	if t != clock.Never {
		d := uint64(t - a.base)
		if d >= a.far {
			a.rebase()
			return
		}
		x = d<<(a.shift&63) | uint64(k)
	}
	tree := a.pair
	for i := uint(len(tree)) + k; i > 1; {
		j := i >> 1
		if j >= uint(len(tree)) {
			break // not so
		}
		p := &tree[j]
		p[i&1] = x
		x = min(x, p[i&1^1])
		i = j
	}
	if d := x >> (a.shift & 63); d < a.far {
		a.best, a.first = x, a.base+clock.Time(d)
		return
	}
	a.last(x)
}

// last is what set does when no slot is set any more, or none before far.
func (a *wakes) last(x uint64) {
	if x != unset {
		a.rebase()
		return
	}
	a.best, a.first = x, clock.Never
}

// rebase makes all words anew: since the first instant that is set.
func (a *wakes) rebase() {
	a.base = 0
	if t := slices.Min(a.when); t != clock.Never {
		a.base = t
	}
	n := len(a.pair)
	for k, t := range a.when {
		x := uint64(unset)
		if t != clock.Never {
			x = min(uint64(t-a.base), a.far)<<a.shift | uint64(k)
		}
		a.pair[(n+k)>>1][k&1] = x
	}
	for i := n - 1; i > 1; i-- {
		a.pair[i>>1][i&1] = min(a.pair[i][0], a.pair[i][1])
	}
	a.best, a.first = min(a.pair[1][0], a.pair[1][1]), slices.Min(a.when)
}

// each visits the slots that are set.
func (a *wakes) each(visit func(slot int, at clock.Time)) {
	for s := range a.of {
		if at := a.at(s); at != clock.Never {
			visit(s, at)
		}
	}
}

func (a *wakes) snapshot(w *snap.Writer) {
	w.Len(len(a.of))
	for s := range a.of {
		w.Time(a.at(s))
	}
}

func (a *wakes) restore(r *snap.Reader) {
	r.Expect("wake-up slots", r.Len(), len(a.of))
	for s, i := range a.of {
		if t := r.Time(); i >= 0 {
			a.set(s, t)
		} else if t != clock.Never {
			r.Expect("instant of a slot that is not used", int(t), 0)
		}
	}
}
