package fabric

import (
	"math/rand"
	"testing"

	"github.com/rocemu/rocemu/clock"
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
			switch { // words have no room for all of these
			case seed%4 == 1 && step%100 > 50:
				at = clock.Time(rnd.Int63())
			case seed%4 == 2:
				at = clock.Time(rnd.Int63n(4)<<60) + clock.Time(rnd.Intn(3))
			}
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
