package actors_test

import (
	"context"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// stuck has a request that only a fault at heals lets complete.
type stuck struct {
	at, healed clock.Time
	chain      actors.Chain
}

func (s *stuck) Advance(end clock.Time, in *actors.Inbox, _ *actors.Outbox, st *actors.Status) {
	for in.Next() < end {
		in.Take()
	}
	*st = actors.Status{Next: clock.Never, NextWork: clock.Never, NextFault: clock.Never, Outstanding: 1}
	if s.at < end {
		s.healed, st.Outstanding, st.LastWork = s.at, 0, s.at
		s.chain.Mix(s.at, 1, 1)
	}
}
func (s *stuck) Chain() actors.Chain        { return s.chain }
func (s *stuck) Snapshot(*snap.Writer)      {}
func (s *stuck) Restore(*snap.Reader) error { return nil }

// liveFault hands one fault over, as a cluster's gate does.
type liveFault struct {
	at  clock.Time
	dev *stuck
}

func (g *liveFault) Await(_ context.Context, e *actors.Engine, start, end clock.Time) (clock.Time, error) {
	next := g.at
	if g.dev.at == clock.Never && next < start {
		return next, nil
	}
	if next != clock.Never && next < end && g.dev.at == clock.Never {
		g.dev.at = next
		e.Wake(0, next)
	}
	if g.dev.at != clock.Never {
		return clock.Never, nil
	}
	return next, nil
}

// A live fault that is still to come holds the verdict of a stall off, like one
// of the fabric file.
func TestLiveFaultHoldsStallOff(t *testing.T) {
	for _, at := range []clock.Time{clock.Never, clock.Time(700 * clock.Microsecond)} {
		dev := &stuck{at: clock.Never}
		e, err := actors.New(actors.Config{
			Names: []string{"a"}, Cables: [][]actors.Ports{nil}, Window: clock.Microsecond, Settle: 100 * clock.Microsecond,
			Limit: clock.Time(clock.Second), Until: clock.Never,
		}, []actors.Actor{dev}, 1)
		if err != nil {
			t.Fatal(err)
		}
		e.Gate = &liveFault{at, dev}
		r, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := actors.Stalled
		if at != clock.Never {
			want = actors.Idle
		}
		if r.End != want || at != clock.Never && dev.healed != at {
			t.Errorf("fault at %v: end %d at %v, want %d; healed at %v", at, r.End, r.At, want, dev.healed)
		}
		e.Close()
	}
}
