package sim

import (
	"context"
	"reflect"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

// A deadlock that a fault breaks is found, or not, whatever looks at the run:
// in rounds, window by window, in shorter windows, and held at some instant.
func TestBrokenDeadlockIsFoundAlike(t *testing.T) {
	for _, at := range []string{"19us", "21us", "25us", "28us", "31us"} {
		p, _, err := topology.Load(topology.LoadOptions{Files: []string{"../examples/disasters/deadlock-ring.yaml"}, Sets: []string{
			"faults=[{name: y, kind: device-down, target: s2, at: " + at + ", for: 5ms}]", "run.limit=400us",
		}})
		if err != nil {
			t.Fatal(err)
		}
		short := *p
		short.Window /= 7
		var want any
		for _, w := range []struct {
			how  string
			plan *topology.Plan
			o    Options
		}{
			{"in rounds", p, Options{Workers: 1}},
			{"in windows", p, Options{Workers: 1, Between: func(clock.Time, uint64) {}}},
			{"in short windows", &short, Options{Workers: 1}},
			{"held on the way", p, Options{Workers: 2, Stops: []Pause{{At: 11_000_000, Do: func(*Fabric) error { return nil }}}}},
		} {
			r, err := Run(context.Background(), w.plan, w.o)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = r.Deadlocks
			}
			if len(r.Deadlocks) != 1 || !reflect.DeepEqual(any(r.Deadlocks), want) {
				t.Errorf("down at %s, %s: %+v, in rounds %+v", at, w.how, r.Deadlocks, want)
			}
		}
	}
}

// A question that comes before the next instant changes nothing, however the
// windows fall.
func TestSamplerIgnoresEarlyCalls(t *testing.T) {
	plan := &topology.Plan{}
	a, b := NewSampler(plan), NewSampler(plan)
	for now := clock.Time(0); a.Count < 3*mostStep; {
		ta, ok := a.Due(now)
		if !ok {
			t.Fatalf("nothing is due at %v", now)
		}
		for early := b.Next().Add(-3 * FirstInterval); early < b.Next(); early = early.Add(FirstInterval / 3) {
			if _, ok := b.Due(early); ok {
				t.Fatalf("due at %v, before %v", early, b.Next())
			}
		}
		if tb, ok := b.Due(now); !ok || ta != tb || a.State() != b.State() {
			t.Fatalf("%v and %v at %v", ta, tb, now)
		}
		now = a.Next().Add(clock.Duration(a.Count % 7)) // the next event comes a little later
	}
}
