package actors_test

import (
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
)

// asked is an actor that notes which hints it got since it ran last.
type asked struct {
	actors.Actor
	levels []int
	runs   int
	hints  int
	bad    int
}

func (a *asked) Hint(level int) {
	if level == 0 {
		a.hints++
		a.levels = a.levels[:0]
	}
	a.levels = append(a.levels, level)
}

func (a *asked) Advance(end clock.Time, in *actors.Inbox, out *actors.Outbox, st *actors.Status) {
	for i, l := range a.levels {
		if i > 0 && l != a.levels[i-1]+1 {
			a.bad++
		}
	}
	a.levels = a.levels[:0]
	a.runs++
	a.Actor.Advance(end, in, out, st)
}

// Behind hubs memory is asked for of those alone that run in a visit, and before
// they do; of hubs too, but for the first of a visit.
func TestHintsAreForThoseThatRun(t *testing.T) {
	f := actortest.New(actortest.Spec{Seed: 5, Relays: 600, Private: 540, Even: true, Cables: 60, Burst: 2})
	all := make([]*asked, len(f.Relays))
	hosted := make([]actors.Actor, len(f.Relays))
	for i, r := range f.Relays {
		all[i] = &asked{Actor: r}
		hosted[i] = all[i]
	}
	e, err := actors.New(f.Config, hosted, 1)
	if err != nil {
		t.Fatal(err)
	}
	e.Stride = 64
	run(t, e)
	var private, core asked
	for d, a := range all {
		sum := &core
		if c := f.Config.Cables[d]; len(c) == 1 || len(c) == 2 && c[0].Peer == c[1].Peer {
			sum = &private
			if a.hints > a.runs {
				t.Errorf("actor %d was asked for %d times and ran %d times", d, a.hints, a.runs)
			}
		}
		sum.hints, sum.runs, sum.bad = sum.hints+a.hints, sum.runs+a.runs, sum.bad+a.bad
	}
	if private.bad+core.bad > 0 {
		t.Errorf("%d visits began with hints out of order", private.bad+core.bad)
	}
	if private.hints == 0 || core.hints < core.runs/2 {
		t.Errorf("asked for %d of %d visits behind hubs, %d of %d others", private.hints, private.runs, core.hints, core.runs)
	}
	want, _ := actortest.New(actortest.Spec{Seed: 5, Relays: 600, Private: 540, Even: true, Cables: 60, Burst: 2}).Oracle()
	if g := e.Digest(); g != want {
		t.Errorf("digest %x, oracle %x", g, want)
	}
}
