package rnic

import "github.com/rocemu/rocemu/clock"

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

// ring is a FIFO of small ids that grows.
type ring struct {
	b    []int32
	head int
	n    int
}

func (r *ring) push(v int32) {
	if r.n == len(r.b) {
		big := make([]int32, max(8, 2*len(r.b)))
		for i := range r.n {
			big[i] = r.b[(r.head+i)&(len(r.b)-1)]
		}
		r.b, r.head = big, 0
	}
	r.b[(r.head+r.n)&(len(r.b)-1)] = v
	r.n++
}

func (r *ring) pop() int32 {
	v := r.b[r.head]
	r.head = (r.head + 1) & (len(r.b) - 1)
	r.n--
	return v
}

func (r *ring) at(i int) int32 { return r.b[(r.head+i)&(len(r.b)-1)] }
