package fabric

import (
	"math/rand"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// drain serves n frames from backlogged queues of the given lengths and
// returns the bytes of each queue.
func drain(s *Scheduler, lens [8]uint16, n int) (bytes [8]int64) {
	var q [8]queue
	var pool chunkPool
	var ready uint8
	refill := func(i int) { q[i].push(&pool, &wire.Frame{Len: lens[i]}, stored{}) }
	for i, l := range lens {
		if l != 0 {
			ready |= 1 << i
			refill(i)
			refill(i)
		}
	}
	for range n {
		i := s.Pick(ready, &q)
		f, _ := q[i].pop(&pool)
		bytes[i] += int64(f.Len)
		refill(i)
	}
	return bytes
}

// TestDWRRShares: bytes follow the weights whatever the frame sizes.
func TestDWRRShares(t *testing.T) {
	var w [8]topology.Sched
	w[1].Weight, w[2].Weight, w[5].Weight = 1, 3, 6
	s := NewScheduler(&w, 9216)
	b := drain(&s, [8]uint16{1: 64, 2: 9216, 5: 1500}, 200_000)
	total := b[1] + b[2] + b[5]
	for i, share := range map[int]int64{1: 1, 2: 3, 5: 6} {
		if d := b[i]*10 - total*share; d > 20*9216*6 || d < -20*9216*6 {
			t.Errorf("queue %d got %d of %d bytes, want %d/10", i, b[i], total, share)
		}
	}
}

// TestStrictFirst: strict queues go first, the highest number first.
func TestStrictFirst(t *testing.T) {
	var w [8]topology.Sched
	w[6].Strict, w[2].Strict = true, true
	s := NewScheduler(&w, 9216)
	if b := drain(&s, [8]uint16{0: 64, 2: 64, 6: 64}, 100); b[6] != 6400 {
		t.Errorf("%v", b)
	}
	if b := drain(&s, [8]uint16{0: 64, 2: 64}, 100); b[2] != 6400 {
		t.Errorf("%v", b)
	}
}

// TestQueueFIFO: order and byte counts under random pushes and pops; memory
// goes back when the queue shrinks.
func TestQueueFIFO(t *testing.T) {
	rnd := rand.New(rand.NewSource(3))
	var q queue
	var pool chunkPool
	var want []uint16
	var bytes int64
	step := func(push bool) {
		if push {
			l := uint16(64 + rnd.Intn(9000))
			q.push(&pool, &wire.Frame{Len: l}, stored{int32(l), 1})
			want, bytes = append(want, l), bytes+int64(l)
			return
		}
		f, m := q.pop(&pool)
		if f.Len != want[0] || m.pg != int32(want[0]) {
			t.Fatalf("got %d, want %d", f.Len, want[0])
		}
		bytes -= int64(want[0])
		want = want[1:]
	}
	for phase := range 6 {
		for range 5000 {
			step(len(want) == 0 || rnd.Intn(10) < 4+3*(1-phase&1))
			if q.bytes != bytes || int(q.n) != len(want) {
				t.Fatalf("%d bytes %d frames, want %d and %d", q.bytes, q.n, bytes, len(want))
			}
		}
	}
	n := 0
	q.each(func(f *wire.Frame, _ stored) {
		if f.Len != want[n] {
			t.Fatalf("each: frame %d", n)
		}
		n++
	})
	for len(want) > 0 {
		step(false)
	}
	if pool.nUsed != 0 || len(pool.free) > spareChunks {
		t.Errorf("%d chunks in use, %d kept", pool.nUsed, len(pool.free))
	}
}

// TestNoEmptyQueueHasADeficit: while a port has chosen among queues, one that ran
// empty has no deficit; once all are empty nothing of it is left, and it is looked
// at no more until the port chooses again.
func TestNoEmptyQueueHasADeficit(t *testing.T) {
	l := pair(t)
	l.hosts["a"].send(stream{to: 2, len: 1000, dscp: 3, gap: 250 * ns, end: clock.Time(1900 * us)})
	l.hosts["a"].send(stream{to: 2, len: 700, dscp: 4, gap: 400 * ns, end: clock.Time(1900 * us)})
	for i := range 8 { // pauses gather frames of one class or the other
		from := clock.Time(i) * clock.Time(200*us)
		l.hosts["b"].rules = append(l.hosts["b"].rules, &pauseRule{prio: 3 + i%2, quanta: 4000, from: from, to: from.Add(20 * us)})
	}
	l.build(1, 0)
	s := l.sws["leaf1"]
	chose, rested := 0, 0
	for i, was := 1, false; i <= 4000; i++ {
		l.phase(clock.Duration(i) * us / 2)
		for k := range s.ports {
			p := &s.ports[k]
			for q, d := range p.sched.deficit {
				if d != 0 && (p.q[q].n == 0 || !p.turns) {
					t.Fatalf("step %d: queue %d of port %d has a deficit of %d, %d frames, turns %v", i, q, k+1, d, p.q[q].n, p.turns)
				}
			}
		}
		if now := s.ports[1].turns; now != was {
			if was = now; now {
				chose++
			} else {
				rested++
			}
		}
	}
	if chose < 3 || rested < 3 {
		t.Errorf("the port began to choose %d times and ended %d times", chose, rested)
	}
}
