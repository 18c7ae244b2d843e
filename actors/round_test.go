package actors_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// even is a fabric in rounds: hubs with relays of their own and relays between.
func even(seed uint64) actortest.Spec {
	return actortest.Spec{Seed: seed, Relays: 30, Private: 18, Even: true, Cables: 14, Burst: 40}
}

// One digest for the oracle, for every length of rounds and of windows and
// every number of workers, on fabrics that rounds suit and on others.
func TestRoundsEqualOracle(t *testing.T) {
	odd := spec(3)
	odd.Private = 6
	for _, s := range []actortest.Spec{even(1), even(2), even(3), odd} {
		want, events := actortest.New(s).Oracle()
		for _, cut := range []clock.Duration{1, 3} {
			for _, stride := range []int{4, 7, 64} {
				windows := uint64(0)
				for _, workers := range []int{1, 2, 8} {
					s.Window = actortest.New(s).Window / cut
					e := engine(t, actortest.New(s), workers)
					e.Stride = stride
					r := run(t, e)
					if g := e.Digest(); g != want || e.Totals().Events != events || r.End != actors.Idle {
						t.Errorf("seed %d W/%d stride %d workers %d: digest %x, %d events, end %v; oracle %x, %d", s.Seed, cut, stride, workers, g, e.Totals().Events, r.End, want, events)
					}
					if windows == 0 {
						windows = e.Windows()
					}
					if n := e.Windows(); n != windows {
						t.Errorf("seed %d W/%d stride %d workers %d: %d windows, %d with one", s.Seed, cut, stride, workers, n, windows)
					}
					s.Window = 0
				}
			}
		}
	}
}

// Rounds are used where they may be, and Observe is called that much less; it
// is still called at each multiple of the stride and at each cut, with exactly
// what lies before it done.
func TestRoundsAreSeen(t *testing.T) {
	plain := engine(t, actortest.New(even(4)), 1)
	end := run(t, plain)
	e := engine(t, actortest.New(even(4)), 1)
	e.Stride = 8
	calls, eighths, cuts := 0, uint64(0), 0
	const every = 5300 * clock.Nanosecond
	next := clock.Time(0).Add(every)
	e.Observe = func(start clock.Time, n uint64) {
		calls++
		if n%8 == 0 {
			eighths++
		}
		if start < next {
			return
		}
		for _, d := range e.Local() {
			if st := e.Status(d); st.LastEvent >= next {
				t.Fatalf("%v executed before the cut at %v", st.LastEvent, next)
			}
		}
		cuts++
		next = next.Add((start.Sub(next)/every + 1) * every)
		e.Cut = next
	}
	e.Cut = next
	if r := run(t, e); r.At != end.At || e.Digest() != plain.Digest() {
		t.Errorf("in rounds: end %v, digest %x; else %v, %x", r.At, e.Digest(), end.At, plain.Digest())
	}
	if n := e.Windows(); calls*2 > int(n) || eighths < n/8 || cuts < 10 {
		t.Errorf("%d calls in %d windows, %d at multiples of 8, %d cuts", calls, n, eighths, cuts)
	}
}

// A state held at any instant is the same in rounds as in single windows.
func TestRoundsHold(t *testing.T) {
	for _, at := range []clock.Time{1, 777_777, 3_000_000, 9_999_999} {
		var sums []actors.Digest
		for _, stride := range []int{0, 16} {
			e := engine(t, actortest.New(even(5)), 1)
			e.Stride = stride
			e.HoldAt(at)
			r, err := e.Run(context.Background())
			if err != nil || r.End != actors.Held {
				t.Fatalf("stride %d: %v, %v", stride, r.End, err)
			}
			sums = append(sums, e.Digest())
		}
		if sums[0] != sums[1] {
			t.Errorf("held at %v: %x in rounds, %x else", at, sums[1], sums[0])
		}
	}
}

// owing is an actor that waits for ever for one request.
type owing struct{ actors.Actor }

func (s owing) Advance(end clock.Time, in *actors.Inbox, out *actors.Outbox, st *actors.Status) {
	s.Actor.Advance(end, in, out, st)
	st.Outstanding = 1
}

// A run that ends because nothing is due any more ends at the same instant in
// rounds as in single windows.
func TestRoundsStall(t *testing.T) {
	stalls := 0
	for seed := range uint64(20) {
		var ends []actors.Result
		for _, stride := range []int{0, 64} {
			s := even(seed)
			s.Burst = 3
			f := actortest.New(s)
			hosted := make([]actors.Actor, len(f.Relays))
			for i, r := range f.Relays {
				hosted[i] = r
			}
			hosted[0] = owing{hosted[0]}
			f.Config.Stall = 0
			e, err := actors.New(f.Config, hosted, 1)
			if err != nil {
				t.Fatal(err)
			}
			e.Stride = stride
			ends = append(ends, run(t, e))
		}
		if ends[0] != ends[1] {
			t.Errorf("seed %d: %+v in rounds, %+v in single windows", seed, ends[1], ends[0])
		}
		if ends[0].End == actors.Stalled {
			stalls++
		}
	}
	if stalls < 10 {
		t.Errorf("only %d of 20 runs stalled", stalls)
	}
}

// Processes that run rounds together get the oracle's digest, wherever devices
// are placed: racks whole, racks torn apart, each device alone.
func TestRoundsOverProcesses(t *testing.T) {
	odd := spec(3)
	odd.Private = 6
	for _, s := range []actortest.Spec{even(1), even(2), odd} {
		want, events := actortest.New(s).Oracle()
		windows := uint64(0)
		for _, stride := range []int{0, 5, 16} {
			for _, procs := range []int{2, 5} {
				for place := range uint64(2) {
					got := together(t, s, procs, stride, func(d int32) int { return int(clock.Mix(place, uint64(d), 5) % uint64(procs)) })
					if got.digest != want || got.events != events {
						t.Errorf("seed %d stride %d, %d processes: digest %x, %d events; oracle %x, %d", s.Seed, stride, procs, got.digest, got.events, want, events)
					}
					if stride == 0 {
						windows = got.windows
					} else if s.Even && (got.windows == windows || got.windows > windows*4/3) {
						t.Errorf("seed %d stride %d, %d processes: %d exchanges for %d windows", s.Seed, stride, procs, got.windows, windows)
					}
				}
			}
		}
	}
}

// outcome is what processes made together.
type outcome struct {
	digest          actors.Digest
	events, windows uint64
}

// together runs a fabric in processes that meet in a mesh.
func together(t *testing.T, s actortest.Spec, procs, stride int, owner func(int32) int) outcome {
	m := newMesh(procs)
	var wg sync.WaitGroup
	all := make([]outcome, procs)
	for p := range procs {
		e, err := actortest.New(s).Engine(1+p%2, func(d int32) bool { return owner(d) == p })
		if err != nil {
			t.Fatal(err)
		}
		e.Stride = stride
		e.Carrier = m
		wg.Go(func() {
			defer e.Close()
			if r, err := e.Run(context.Background()); err != nil || r.End != actors.Idle {
				t.Error(r.End, err)
			}
			all[p] = outcome{digest: e.Digest(), events: e.Totals().Events, windows: e.Windows()}
		})
	}
	wg.Wait()
	sum := all[0]
	for _, o := range all[1:] {
		sum.digest, sum.events = sum.digest.Plus(o.digest), sum.events+o.events
		if o.windows != sum.windows {
			t.Errorf("processes with %d and %d exchanges", sum.windows, o.windows)
		}
	}
	return sum
}

// Whoever reads a cable sees in rounds what is there to see in single windows.
func TestTapsInRounds(t *testing.T) {
	tapped := func(stride, workers int) (all [][]wire.Frame) {
		fab := actortest.New(even(6))
		e := engine(t, fab, workers)
		e.Stride = stride
		var taps []*actors.Tap
		for _, d := range e.Local() {
			for p := range fab.Config.Cables[d] {
				taps = append(taps, e.TapTo(d, p+1))
			}
		}
		all = make([][]wire.Frame, len(taps))
		read := func(clock.Time, uint64) {
			for i, x := range taps {
				x.Read(func(f *wire.Frame) { all[i] = append(all[i], *f) })
			}
		}
		e.Observe = read
		r := run(t, e)
		read(r.At, e.Windows())
		for i, x := range taps {
			slices.SortStableFunc(all[i], func(a, b wire.Frame) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.A, b.A)) })
			if x.Missed() > 0 {
				t.Errorf("stride %d: tap %d missed %d frames", stride, i, x.Missed())
			}
			x.Close()
		}
		return all
	}
	want := tapped(0, 1)
	frames := 0
	for _, workers := range []int{1, 4} {
		got := tapped(16, workers)
		frames = 0
		for i := range want {
			frames += len(want[i])
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%d workers, tap %d: %d frames in rounds, %d in windows, or others", workers, i, len(got[i]), len(want[i]))
			}
		}
	}
	if frames < 1000 {
		t.Errorf("only %d frames", frames)
	}
}
