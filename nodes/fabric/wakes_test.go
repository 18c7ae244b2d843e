package fabric

import (
	"math/rand"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// TestWakesEqualAlarms sets and unsets random slots in the tree and in the heap:
// after every step both must name the same slot and instant.
func TestWakesEqualAlarms(t *testing.T) {
	for seed := range int64(200) {
		rnd := rand.New(rand.NewSource(seed))
		ports := 1 + rnd.Intn(40)
		used := ports * rnd.Intn(2)
		var rank []int32
		for _, half := range []int{0, ports} { // as Switch.ranks
			for _, r := range rnd.Perm(ports) {
				rank = append(rank, int32(half+r))
			}
		}
		w, a := newWakes(rank, used), newAlarms(2*ports, rank)
		for step := range 400 {
			slot, at := used+rnd.Intn(2*ports-used), clock.Time(rnd.Intn(30))
			if rnd.Intn(3) == 0 {
				at = clock.Never
			}
			w.set(slot, at)
			a.set(slot, at)
			if w.next() != a.next() || w.at(slot) != at {
				t.Fatalf("seed %d step %d: next %v, want %v", seed, step, w.next(), a.next())
			}
			if a.next() != clock.Never && w.top() != a.top() {
				t.Fatalf("seed %d step %d: slot %d is first, want %d", seed, step, w.top(), a.top())
			}
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

// TestShortHash: the hash of a RoCE frame is that of its key, and a pick
// without a division is the remainder.
func TestShortHash(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 10_000 {
		f := wire.Frame{Src: rnd.Uint32(), Dst: rnd.Uint32(), SPort: uint16(rnd.Uint32()), Kind: wire.Kind(rnd.Intn(int(wire.KindOther) + 1))}
		h := Hasher{Seed: rnd.Uint32()}
		if got, want := h.Of(&f), Murmur3(KeyOf(&f), h.Seed); got != want {
			t.Fatalf("%+v: %#x, want %#x", f, got, want)
		}
		if x, n := rnd.Uint32(), 1+rnd.Uint32()%70; pick(x, n) != x%n {
			t.Fatalf("pick(%d, %d) = %d", x, n, pick(x, n))
		}
	}
}
