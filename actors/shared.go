package actors

// shared is tasks of which each worker has some of its own, the same ones in
// every visit so that what they touch stays near; then it takes of the others'.
type shared struct {
	own  [][]int32 // by worker
	back bool      // taken from the last to the first, see turned
	next []rest    // by worker: of its own
	seen []uint64  // by task: what it had cost when tasks were dealt out last
	cost []uint64  // since then
	load []uint64  // by worker
}

func newShared(workers int) shared {
	return shared{own: make([][]int32, workers), next: make([]rest, workers), load: make([]uint64, workers)}
}

// begin makes all tasks free to take.
func (s *shared) begin(back bool) {
	s.back = back
	for w := range s.next {
		s.next[w].next.Store(0)
	}
}

// take takes a task of a worker's own.
func (s *shared) take(worker int) (task int, ok bool) {
	own := s.own[worker]
	if i := s.next[worker].next.Add(1) - 1; i < int64(len(own)) {
		return int(own[turned(int(i), len(own), s.back)]), true
	}
	return 0, false
}

// peek is what a worker will take next of its own.
func (s *shared) peek(worker int) (task int, ok bool) {
	own := s.own[worker]
	if i := s.next[worker].next.Load(); i < int64(len(own)) {
		return int(own[turned(int(i), len(own), s.back)]), true
	}
	return 0, false
}

// left says whether a worker has any left of its own.
func (s *shared) left(worker int) bool {
	return s.next[worker].next.Load() < int64(len(s.own[worker]))
}

// steal takes one of another worker's.
func (s *shared) steal(worker int) (task int, ok bool) {
	for v := range s.own {
		if v != worker && s.left(v) {
			if i, ok := s.take(v); ok {
				return i, true
			}
		}
	}
	return 0, false
}

// mostMoves bounds how often balance changes who has what at once, and slack
// what it leaves as it is: one part in so many.
const (
	mostMoves = 8
	slack     = 16
)

// balance deals n tasks out: neighbours together at first, then by what they
// cost since it was called last, with as few changes as will do. total is what a
// task has cost since the start.
func (s *shared) balance(n int, total func(task int) uint64) {
	if len(s.seen) != n {
		s.seen, s.cost = make([]uint64, n), make([]uint64, n)
		for w := range s.own {
			s.own[w] = make([]int32, 0, n)
		}
		for i := range n {
			w := i * len(s.own) / n
			s.own[w] = append(s.own[w], int32(i))
		}
	}
	for i := range n {
		t := total(i)
		s.cost[i], s.seen[i] = t-min(s.seen[i], t), t
	}
	clear(s.load)
	for w, own := range s.own {
		for _, i := range own {
			s.load[w] += s.cost[i]
		}
	}
	for range mostMoves {
		if !s.move() {
			return
		}
	}
}

// move evens out the most and the least loaded worker, by a task that one gives
// the other or by two that they exchange; false when that would not help.
func (s *shared) move() bool {
	hi, lo := 0, 0
	for w := range s.load {
		if s.load[w] > s.load[hi] {
			hi = w
		}
		if s.load[w] < s.load[lo] {
			lo = w
		}
	}
	much, little := s.own[hi], s.own[lo]
	d := s.load[hi] - s.load[lo]
	if d <= s.load[hi]/slack {
		return false
	}
	best, moved, give, take := d, uint64(0), -1, -1 // what would be left of d, by how much, and whose
	for i := range much {
		for k := -1; k < len(little); k++ {
			x := s.cost[much[i]]
			if k >= 0 {
				x -= min(x, s.cost[little[k]])
			}
			if left := max(d, 2*x) - min(d, 2*x); left < best {
				best, moved, give, take = left, x, i, k
			}
		}
	}
	if give < 0 {
		return false
	}
	s.load[hi] -= moved
	s.load[lo] += moved
	if take >= 0 {
		much[give], little[take] = little[take], much[give]
		return true
	}
	s.own[lo] = append(little, much[give])
	s.own[hi] = append(much[:give], much[give+1:]...)
	return true
}
