package actors

import (
	"cmp"
	"math/rand"
	"slices"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// TestMergeEqualsSort: what an inbox hands out over several windows is all that
// was sent, sorted by (time, keyed hash, channel, ordinal), late frames last.
func TestMergeEqualsSort(t *testing.T) {
	type sent struct {
		at        clock.Time
		hash, key uint64
		ord       uint64
		port      int
		id        uint64
	}
	told := 0
	for seed := range int64(300) {
		rnd := rand.New(rand.NewSource(seed))
		ports, span := 1+rnd.Intn(20), 1+rnd.Intn(60)
		if seed%3 == 0 {
			span = 1 << 55 // longer than a word has room for
		}
		draw := func() clock.Time { // in a long one, many at the same instant before those that no word tells apart
			if span > 1<<50 && rnd.Intn(2) == 0 {
				return clock.Time(rnd.Intn(8))
			}
			return clock.Time(rnd.Intn(span))
		}
		w := &scratch{}
		in, k := &Inbox{w: w}, &dock{}
		k.init(make([]*Channel, 2*ports))
		in.seed = uint64(seed)
		var want []sent
		for p := range ports {
			c := newChannel(rnd.Uint64(), int32(p), 99, 1, uint16(p+1))
			k.in()[p] = c
			k.mark(p + 1)
			var ats []clock.Time
			for range rnd.Intn(30) {
				ats = append(ats, draw())
			}
			slices.Sort(ats)
			for i, at := range ats {
				id := rnd.Uint64()
				c.push(&wire.Frame{At: at, A: id}, &w.pool)
				want = append(want, sent{at, clock.Mix(in.seed, c.key, uint64(at)), c.key, uint64(i), p + 1, id})
			}
			for i := range rnd.Intn(20) * rnd.Intn(2) {
				f := wire.Frame{At: draw(), A: rnd.Uint64()}
				c.lateW, c.extra = append(c.lateW, f), true
				want = append(want, sent{f.At, clock.Mix(in.seed, c.key, uint64(f.At)), c.key, uint64(i) | 1<<63, p + 1, f.A})
			}
			c.publish()
		}
		slices.SortFunc(want, func(a, b sent) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.hash, b.hash), cmp.Compare(a.key, b.key), cmp.Compare(a.ord, b.ord))
		})
		n := 0
		for _, end := range []clock.Time{clock.Time(span / 3), clock.Time(span / 2), clock.Time(span)} {
			for in.begin(k, end); in.Next() != clock.Never; n++ {
				at := in.Next()
				ahead, _ := in.Peek()
				f, port := in.Take()
				if ahead != nil && ahead != f && ahead.At != f.At {
					t.Fatalf("seed %d: an arrival at %v was told ahead, %v came", seed, ahead.At, at)
				}
				if alone := (n == 0 || want[n-1].at < at) && (n+1 >= len(want) || at < want[n+1].at); alone && span <= 60 && want[n].ord>>63 == 0 {
					if told++; ahead != f {
						t.Fatalf("seed %d: arrival %d, alone at %v, was not told ahead", seed, n, at)
					}
				}
				if n >= len(want) || at != want[n].at || f.At != at || port != want[n].port || f.A != want[n].id {
					t.Fatalf("seed %d: arrival %d of %d at %v by port %d is not the one that sorting gives", seed, n, len(want), at, port)
				}
			}
			if n < len(want) && want[n].at < end {
				t.Fatalf("seed %d: an arrival at %v was left before %v", seed, want[n].at, end)
			}
			if f, _ := in.Peek(); f != nil {
				t.Fatalf("seed %d: an arrival at %v is told where none is left before %v", seed, f.At, end)
			}
			in.rest(true)
		}
		if n != len(want) {
			t.Fatalf("seed %d: %d arrivals of %d", seed, n, len(want))
		}
	}
	if told < 500 {
		t.Errorf("%d arrivals were alone: the test misses what it is for", told)
	}
}
