package actors

import (
	"slices"
	"testing"
)

// Tasks are dealt out evenly by what they cost, each to one worker, and stay
// where they are while that is even enough.
func TestBalance(t *testing.T) {
	for _, c := range []struct {
		workers int
		cost    []uint64
		most    uint64 // that a worker may have afterwards
	}{
		{2, []uint64{30, 30, 20, 20}, 50},
		{2, []uint64{10, 10, 10, 10, 10, 10, 10, 10}, 40},
		{2, []uint64{100, 1, 1, 1, 1, 1}, 100},
		{2, []uint64{9, 9, 9, 9, 0, 0, 0, 0}, 18},
		{3, []uint64{50, 40, 30, 20, 10, 60}, 75},
		{4, []uint64{7, 7}, 7},
		{2, nil, 0},
	} {
		s, n := newShared(c.workers), len(c.cost)
		times := uint64(0)
		deal := func() (all []int32) {
			times++
			s.balance(n, func(i int) uint64 { return times * c.cost[i] })
			for _, own := range s.own {
				all = append(all, own...)
			}
			return all
		}
		for range 3 {
			deal()
		}
		all := deal()
		if again := deal(); !slices.Equal(all, again) {
			t.Errorf("%v: %v, then %v", c.cost, all, again)
		}
		for w, own := range s.own {
			sum := uint64(0)
			for _, i := range own {
				sum += c.cost[i]
			}
			if sum > c.most || sum != s.load[w] {
				t.Errorf("%v: worker %d has %v, which is %d, at most %d, said to be %d", c.cost, w, own, sum, c.most, s.load[w])
			}
		}
		if slices.Sort(all); len(slices.Compact(all)) != n {
			t.Errorf("%v: tasks %v", c.cost, all)
		}
	}
}

// Each task is taken once, whoever takes it.
func TestShared(t *testing.T) {
	s := newShared(3)
	for _, back := range []bool{false, true} {
		s.balance(7, func(int) uint64 { return 1 })
		s.begin(back)
		var got []int
		for next, more := s.peek(1); ; next, more = s.peek(1) {
			i, ok := s.take(1)
			if ok != more || i != next {
				t.Errorf("worker 1 took %d, %v where it was to take %d, %v", i, ok, next, more)
			}
			if !ok {
				break
			}
			got = append(got, i)
		}
		if len(got) != len(s.own[1]) || s.left(1) {
			t.Errorf("worker 1 took %v of its own %v", got, s.own[1])
		}
		if slices.IsSorted(got) == back {
			t.Errorf("worker 1 took %v of %v with back %v", got, s.own[1], back)
		}
		for i, ok := s.steal(1); ok; i, ok = s.steal(1) {
			got = append(got, i)
		}
		if slices.Sort(got); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6}) {
			t.Errorf("taken: %v", got)
		}
	}
}
