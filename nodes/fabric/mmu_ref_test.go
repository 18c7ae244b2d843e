package fabric

import (
	"math/big"
	"math/rand"
	"testing"

	"github.com/rocemu/rocemu/nodes/record"
)

// refMMU is the shared buffer in the plainest form: every threshold is computed
// anew with big rationals, every PG is looked at after every operation.
type refMMU struct {
	c              MMUConfig
	used, hdrm     []int64
	queue          []int64
	xoff           []bool
	shWM, hdWM, qW []int64
}

func newRef(c MMUConfig) *refMMU {
	n := len(c.PGs)
	return &refMMU{
		c: c, used: make([]int64, n), hdrm: make([]int64, n), queue: make([]int64, n), xoff: make([]bool, n),
		shWM: make([]int64, n), hdWM: make([]int64, n), qW: make([]int64, n),
	}
}

func (r *refMMU) slice(pg int) int { return pg / 8 * r.c.Slices / (len(r.c.PGs) / 8) }

func (r *refMMU) shared(pg int) int64 { return max(r.used[pg]-int64(r.c.PGs[pg].Min), 0) }

func (r *refMMU) free(pg int) int64 {
	f := int64(r.c.Shared)
	for i := range r.used {
		if r.slice(i) == r.slice(pg) {
			f -= r.shared(i)
		}
	}
	return max(f, 0)
}

// threshold is in bytes; nil = unlimited.
func (r *refMMU) threshold(l Limit, free int64) *big.Rat {
	switch l.Mode {
	case Dynamic:
		t := big.NewRat(l.Num, l.Den)
		return t.Mul(t, big.NewRat(free*int64(r.c.Cell), 1))
	case Static:
		return big.NewRat(l.Bytes, 1)
	}
	return nil
}

func (r *refMMU) bytes(cells, more int64) *big.Rat {
	return big.NewRat(cells*int64(r.c.Cell)+more, 1)
}

func (r *refMMU) admit(pg, q int, n int64) record.Reason {
	p, e := r.c.PGs[pg], r.c.Queues[q]
	free := r.free(pg)
	if t := r.threshold(e.Limit, free); !(p.Lossless && e.Lossless) && t != nil && r.bytes(r.queue[q]+n, 0).Cmp(t) > 0 {
		return record.EgressLimit
	}
	sh := r.used[pg] + n - int64(p.Min)
	t := r.threshold(p.Limit, free)
	switch {
	case sh <= 0:
		r.used[pg] += n
	case sh-r.shared(pg) <= free && (t == nil || r.bytes(sh, 0).Cmp(t) <= 0):
		r.used[pg] += n
	case !p.Lossless:
		return record.BufferShared
	default:
		var pool int64
		for i := range r.hdrm {
			if r.slice(i) == r.slice(pg) {
				pool += r.hdrm[i]
			}
		}
		why := record.NoReason
		if r.hdrm[pg]+n > int64(p.Headroom) {
			why = record.BufferHeadroom
		} else if r.c.HeadroomPool > 0 && pool+n > int64(r.c.HeadroomPool) {
			why = record.HeadroomPool
		}
		if why != record.NoReason {
			if r.used[pg]+r.hdrm[pg] > 0 {
				r.xoff[pg] = true
			}
			return why
		}
		r.hdrm[pg] += n
	}
	r.queue[q] += n
	r.shWM[pg] = max(r.shWM[pg], r.shared(pg))
	r.hdWM[pg] = max(r.hdWM[pg], r.hdrm[pg])
	r.qW[q] = max(r.qW[q], r.queue[q])
	r.raise(pg)
	return record.NoReason
}

func (r *refMMU) raise(pg int) {
	for i, p := range r.c.PGs {
		if !p.Lossless || r.slice(i) != r.slice(pg) {
			continue
		}
		t := r.threshold(p.Limit, r.free(i))
		if r.hdrm[i] > 0 || (r.shared(i) > 0 && t != nil && r.bytes(r.shared(i), 0).Cmp(t) >= 0) {
			r.xoff[i] = true
		}
	}
}

func (r *refMMU) release(pg, q int, n int64) {
	h := min(n, r.hdrm[pg])
	r.hdrm[pg] -= h
	r.used[pg] -= n - h
	r.queue[q] -= n
	for i, p := range r.c.PGs {
		if !p.Lossless || !r.xoff[i] || r.hdrm[i] > 0 || r.slice(i) != r.slice(pg) {
			continue
		}
		t := r.threshold(p.Limit, r.free(i))
		over := r.shared(i) > 0 && t != nil && r.bytes(r.shared(i), 0).Cmp(t) >= 0
		room := t == nil || r.bytes(r.shared(i), p.XONOffset).Cmp(t) <= 0
		if r.used[i] == 0 || (room && !over) {
			r.xoff[i] = false
		}
	}
}

func randomConfig(rnd *rand.Rand) MMUConfig {
	c := MMUConfig{Cell: []int32{208, 254, 256, 80}[rnd.Intn(4)], Slices: 1 + rnd.Intn(2), Shared: int32(20 + rnd.Intn(400))}
	if rnd.Intn(2) == 0 {
		c.HeadroomPool = int32(5 + rnd.Intn(60))
	}
	limit := func() Limit {
		switch rnd.Intn(6) {
		case 0:
			return Limit{Mode: Static, Bytes: int64(rnd.Intn(40_000))}
		case 1:
			return Limit{Mode: Dynamic, Num: 3, Den: 7}
		case 2:
			return Limit{Mode: Unlimited}
		}
		return Alpha(rnd.Intn(16) - 8)
	}
	for range 8 * (2 + rnd.Intn(2)) {
		c.PGs = append(c.PGs, PGConfig{
			Lossless: rnd.Intn(3) > 0, Min: int32(rnd.Intn(3) * rnd.Intn(12)),
			Headroom: int32(rnd.Intn(40)), Limit: limit(), XONOffset: int64(rnd.Intn(4) * rnd.Intn(3000)),
		})
		c.Queues = append(c.Queues, QueueConfig{Lossless: rnd.Intn(3) > 0, Limit: limit()})
	}
	return c
}

// TestMMUAgainstReference runs a thousand random programs against the plain
// model and compares every cell, state and watermark after every step.
func TestMMUAgainstReference(t *testing.T) {
	for seed := range int64(1000) {
		rnd := rand.New(rand.NewSource(seed))
		c := randomConfig(rnd)
		m, r := NewMMU(c), newRef(c)
		type held struct {
			pg, q int
			n     int32
		}
		var in []held
		for step := range 150 {
			if len(in) > 0 && rnd.Intn(5) < 2 {
				k := rnd.Intn(len(in))
				h := in[k]
				in = append(in[:k], in[k+1:]...)
				m.Release(h.pg, h.q, h.n)
				r.release(h.pg, h.q, int64(h.n))
			} else {
				h := held{rnd.Intn(len(c.PGs)), rnd.Intn(len(c.PGs)), int32(1 + rnd.Intn(1+rnd.Intn(30)))}
				if rnd.Intn(3) > 0 {
					h.pg = rnd.Intn(3)
				}
				if rnd.Intn(4) == 0 && m.Pass(h.pg, h.q, h.n) {
					before := append([]bool(nil), r.xoff...)
					if why := r.admit(h.pg, h.q, int64(h.n)); why != record.NoReason {
						t.Fatalf("seed %d step %d: Pass let through what is %v", seed, step, why)
					}
					r.release(h.pg, h.q, int64(h.n))
					for i := range before {
						if before[i] != r.xoff[i] {
							t.Fatalf("seed %d step %d: Pass hid a flip of PG %d", seed, step, i)
						}
					}
				} else {
					got, want := m.Admit(h.pg, h.q, h.n), r.admit(h.pg, h.q, int64(h.n))
					if got != want {
						t.Fatalf("seed %d step %d: admit %+v: %v, want %v", seed, step, h, got, want)
					}
					if got == record.NoReason {
						in = append(in, h)
					}
				}
			}
			m.Clear()
			compare(t, seed, step, m, r)
		}
	}
}

func compare(t *testing.T, seed int64, step int, m *MMU, r *refMMU) {
	t.Helper()
	if err := m.Check(); err != nil {
		t.Fatalf("seed %d step %d: %v", seed, step, err)
	}
	for i := range r.used {
		g, s, h := m.Use(i)
		if int64(g+s) != r.used[i] || int64(h) != r.hdrm[i] || int64(s) != r.shared(i) || m.XOFF(i) != r.xoff[i] {
			t.Fatalf("seed %d step %d PG %d: min %d shared %d headroom %d xoff %v; want used %d headroom %d xoff %v",
				seed, step, i, g, s, h, m.XOFF(i), r.used[i], r.hdrm[i], r.xoff[i])
		}
		sw, hw := m.PGMarks(i)
		c := int64(m.cell)
		if sw != r.shWM[i]*c || hw != r.hdWM[i]*c || m.QueueMark(i) != r.qW[i]*c {
			t.Fatalf("seed %d step %d PG %d: watermarks %d %d %d; want %d %d %d cells", seed, step, i, sw/c, hw/c, m.QueueMark(i)/c, r.shWM[i], r.hdWM[i], r.qW[i])
		}
	}
}

// TestPlainMMUEqualsFull runs the same program with the short way of lossless
// PGs and powers of two, and without it: answers, states and flips are the same
// in the same order.
func TestPlainMMUEqualsFull(t *testing.T) {
	short := 0
	for seed := range int64(1000) {
		rnd := rand.New(rand.NewSource(seed))
		c := randomConfig(rnd)
		m, full := NewMMU(c), NewMMU(c)
		for i := range full.pg {
			full.pg[i].plain = false
		}
		type held struct {
			pg, q int
			n     int32
		}
		var in []held
		for step := range 150 {
			h := held{rnd.Intn(len(c.PGs)), rnd.Intn(len(c.PGs)), int32(1 + rnd.Intn(20))}
			if m.pg[h.pg].plain {
				short++
			}
			switch k := rnd.Intn(5); {
			case k < 2 && len(in) > 0:
				i := rnd.Intn(len(in))
				m.Release(in[i].pg, in[i].q, in[i].n)
				full.Release(in[i].pg, in[i].q, in[i].n)
				in = append(in[:i], in[i+1:]...)
			case k == 2:
				if got, want := m.Pass(h.pg, h.q, h.n), full.Pass(h.pg, h.q, h.n); got != want {
					t.Fatalf("seed %d step %d: pass %v, want %v", seed, step, got, want)
				}
			default:
				got, want := m.Admit(h.pg, h.q, h.n), full.Admit(h.pg, h.q, h.n)
				if got != want {
					t.Fatalf("seed %d step %d: admit %v, want %v", seed, step, got, want)
				}
				if got == record.NoReason {
					in = append(in, h)
				}
			}
			same(t, seed, step, m, full)
		}
	}
	if short < 10_000 {
		t.Errorf("only %d steps took the short way", short)
	}
}

func same(t *testing.T, seed int64, step int, m, full *MMU) {
	t.Helper()
	for i := range m.pg {
		p, q := m.pg[i], full.pg[i]
		p.plain = false
		if p.of != &m.sl[p.slice] || q.of != &full.sl[q.slice] {
			t.Fatalf("PG %d is not in its slice", i)
		}
		p.of, q.of = nil, nil
		if p != q || m.q[i] != full.q[i] {
			t.Fatalf("seed %d step %d PG %d: %+v %+v, want %+v %+v", seed, step, i, p, m.q[i], q, full.q[i])
		}
	}
	if len(m.changed) != len(full.changed) || m.stored != full.stored {
		t.Fatalf("seed %d step %d: %d flips, %d cells; want %d, %d", seed, step, len(m.changed), m.stored, len(full.changed), full.stored)
	}
	for i, pg := range m.changed {
		if pg != full.changed[i] {
			t.Fatalf("seed %d step %d: flips %v, want %v", seed, step, m.changed, full.changed)
		}
	}
}
