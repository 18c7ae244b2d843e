package rnic

import (
	"fmt"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// due is one entry of an agenda: instance id is due at At.
type due struct {
	at clock.Time
	id int32
}

// agenda is a 4-ary heap of deadlines in the order (at, id). Entries are
// cancelled lazily: the owner compares with what it holds.
type agenda struct{ h []due }

func (a *agenda) next() clock.Time {
	if len(a.h) == 0 {
		return clock.Never
	}
	return a.h[0].at
}

func (x due) before(y due) bool { return x.at < y.at || x.at == y.at && x.id < y.id }

func (a *agenda) push(d due) {
	a.h = append(a.h, d)
	i := len(a.h) - 1
	for i > 0 {
		p := (i - 1) >> 2
		if !d.before(a.h[p]) {
			break
		}
		a.h[i] = a.h[p]
		i = p
	}
	a.h[i] = d
}

func (a *agenda) pop() due {
	top := a.h[0]
	n := len(a.h) - 1
	d := a.h[n]
	a.h = a.h[:n]
	if n == 0 {
		return top
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		m := c
		for k := c + 1; k < min(c+4, n); k++ {
			if a.h[k].before(a.h[m]) {
				m = k
			}
		}
		if !a.h[m].before(d) {
			break
		}
		a.h[i] = a.h[m]
		i = m
	}
	a.h[i] = d
	return top
}

// wakes is the agenda of pairs: at most one entry a pair, whose place the pair
// knows, so that an entry moves instead of being left behind: ACK timers that
// are armed again with every packet would pile up for their whole span.
type wakes struct {
	agenda
	few [2]due // until more are needed
}

// wakeUp makes sure that pair i is looked at by t: it enters the agenda or
// moves forward in it.
func (r *RNIC) wakeUp(i int32, p *pair, t clock.Time) {
	p.wakeAt = t
	w := &r.pairWake
	k := int(p.slot) - 1
	if k < 0 {
		w.h = append(w.h, due{})
		k = len(w.h) - 1
	}
	d := due{t, i}
	for k > 0 {
		up := (k - 1) >> 2
		if !d.before(w.h[up]) {
			break
		}
		w.h[k] = w.h[up]
		r.pairs[w.h[k].id].slot = int32(k) + 1
		k = up
	}
	w.h[k] = d
	p.slot = int32(k) + 1
}

// wakeNext takes the earliest pair off the agenda.
func (r *RNIC) wakeNext() int32 {
	h := r.pairWake.h
	top, n := h[0].id, len(h)-1
	d := h[n]
	h = h[:n]
	r.pairWake.h = h
	p := &r.pairs[top]
	p.wakeAt, p.slot = clock.Never, 0
	if n == 0 {
		return top
	}
	k := 0
	for {
		c := 4*k + 1
		if c >= n {
			break
		}
		m := c
		for x := c + 1; x < min(c+4, n); x++ {
			if h[x].before(h[m]) {
				m = x
			}
		}
		if !h[m].before(d) {
			break
		}
		h[k] = h[m]
		r.pairs[h[k].id].slot = int32(k) + 1
		k = m
	}
	h[k] = d
	r.pairs[d.id].slot = int32(k) + 1
	return top
}

// restoreWakes reads the agenda of pairs.
func (r *RNIC) restoreWakes(s *snap.Reader) error {
	r.pairWake.restore(s)
	for k, d := range r.pairWake.h {
		if d.id < 0 || int(d.id) >= len(r.pairs) || r.pairs[d.id].slot != 0 || r.pairs[d.id].wakeAt != d.at {
			return fmt.Errorf("rnic %s: state wakes queue pair %d at %v, which it does not wait for", r.dev.Name, d.id, d.at)
		}
		r.pairs[d.id].slot = int32(k) + 1
	}
	return nil
}

// ring is a FIFO of small ids that grows. It must not be copied.
type ring struct {
	b    []int32
	head uint32
	n    uint32
	few  [4]int32 // until more are needed
}

func (r *ring) push(v int32) {
	if int(r.n) == len(r.b) {
		r.grow()
	}
	r.b[int(r.head+r.n)&(len(r.b)-1)] = v
	r.n++
}

func (r *ring) grow() {
	b := r.few[:]
	if r.n > 0 {
		b = make([]int32, max(8, 2*len(r.b)))
	}
	for i := range r.n {
		b[i] = r.at(i)
	}
	r.b, r.head = b, 0
}

func (r *ring) pop() int32 {
	v := r.b[int(r.head)&(len(r.b)-1)]
	r.head++
	r.n--
	return v
}

func (r *ring) at(i uint32) int32 { return r.b[int(r.head+i)&(len(r.b)-1)] }
