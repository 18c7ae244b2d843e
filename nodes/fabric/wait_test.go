package fabric

import (
	"slices"
	"testing"

	"github.com/rocemu/rocemu/clock"
)

// TestWaitsFollowTheQueues: from a PG's XOFF on, waits count what the queues
// hold; long after the last one they are not counted, and the next begins anew.
func TestWaitsFollowTheQueues(t *testing.T) {
	l := pair(t)
	l.hosts["a"].send(stream{to: 2, len: 1000, dscp: 3, end: clock.Time(4 * ms)})
	l.hosts["b"].rules = []*pauseRule{
		{prio: 3, quanta: 65535, from: clock.Time(100 * us), to: clock.Time(900 * us), every: 50 * us},
		{prio: 3, quanta: 65535, from: clock.Time(2 * ms), to: clock.Time(2900 * us), every: 50 * us},
	}
	l.build(1, 0)
	s := l.sws["leaf1"]
	begins, ends := 0, 0
	for i, was := 1, false; i <= 400; i++ {
		l.phase(clock.Duration(i) * 10 * us)
		w := &s.wait
		for k := 0; w.xoffs > 0 && k <= calmVisits; k++ { // however long the XOFF lasts
			w.rest()
		}
		if w.xoffs > 0 && !w.counting {
			t.Fatalf("at %d0 us %d groups are in XOFF and waits are not counted", i, w.xoffs)
		}
		if w.counting {
			got := slices.Clone(w.held)
			if w.counting = false; !slices.Equal(got, recount(s)) {
				t.Fatalf("at %d0 us waits are %v, the queues hold %v", i, got, w.held)
			}
		}
		if w.counting != was {
			if was = w.counting; was {
				begins++
			} else {
				ends++
			}
		}
	}
	if begins != 2 || ends != 2 {
		t.Errorf("counting began %d times and ended %d times", begins, ends)
	}
}

// recount counts a switch's waits anew.
func recount(s *Switch) []uint32 {
	calm := s.wait.calm
	s.countWaits()
	s.wait.calm = calm
	return s.wait.held
}
