package topology

import "testing"

// A set of hops keeps each once, in order, few or many, up to its bound.
func TestHops(t *testing.T) {
	for _, n := range []int{1, fewHops, fewHops + 1, 200, mostHops + 10} {
		var s hops
		for range 2 {
			for i := range n {
				s.add(hop{dev: int32(i / 3), port: i % 3})
			}
		}
		if len(s.list) != min(n, mostHops) {
			t.Errorf("%d of %d hops", len(s.list), n)
		}
		for i, h := range s.list {
			if h != (hop{dev: int32(i / 3), port: i % 3}) {
				t.Fatalf("of %d, number %d is %v", n, i, h)
			}
		}
	}
}
