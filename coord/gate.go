package coord

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
)

// errFenced: the ledger has given the slot to another incarnation.
var errFenced = errors.New("coord: the slot has a newer owner")

// gate lets a slot's engine run up to the applied grant and hands it live
// faults and the stop, each at an instant that follows from the ledger alone.
// It implements actors.Gate.
type gate struct {
	rep  *Replica
	run  string
	slot int
	inc  uint64
	fab  Fabric
	// starve tells the leader that the engine waits for this instant.
	starve func(start, end clock.Time)

	looks chan *look // questions that come while the engine waits
	look  func(e *actors.Engine, l *look, start clock.Time)

	version uint64
	grant   clock.Time
	stop    clock.Time
	plan    clock.Time      // boundary of the planned checkpoint, Never = none
	faults  []Fault         // not handed over yet, by (instant, number)
	seen    int             // entries of run.Faults read
	known   int             // so many are part of a restored state,
	held    map[uint64]bool // but for these, by number
	fenced  bool
	stopped bool
}

func newGate(rep *Replica, run string, slot int, inc uint64, fab Fabric, starve func(start, end clock.Time)) *gate {
	return &gate{rep: rep, run: run, slot: slot, inc: inc, fab: fab, starve: starve, stop: clock.Never, plan: clock.Never, version: ^uint64(0)}
}

// refresh reads the ledger's state.
func (g *gate) refresh() {
	g.version = g.rep.Version()
	g.rep.View(func(s *State) {
		r := s.Run
		if r == nil || r.Spec.ID != g.run || g.slot >= len(r.Slots) || r.Slots[g.slot].Inc != g.inc {
			g.fenced = true
			return
		}
		g.grant, g.stop = max(g.grant, r.Grant), r.StopAt
		g.plan = clock.Never
		if r.Plan != nil {
			g.plan = r.Plan.B
		}
		for ; g.seen < len(r.Faults); g.seen++ {
			if f := r.Faults[g.seen]; g.seen >= g.known || g.held[f.Seq] {
				g.faults = append(g.faults, f)
			}
		}
	})
	sortFaults(g.faults)
}

// pending lists the numbers of the faults that were not handed over yet.
func (g *gate) pending() (l []uint64) {
	for i := range g.faults {
		l = append(l, g.faults[i].Seq)
	}
	return l
}

// sortFaults orders faults as they take effect: by instant, then ledger order.
func sortFaults(f []Fault) []Fault {
	sort.SliceStable(f, func(i, j int) bool { return f[i].Eff < f[j].Eff || f[i].Eff == f[j].Eff && f[i].Seq < f[j].Seq })
	return f
}

// next is the earliest fault among those that every process has seen once its
// grant covers end.
func (g *gate) next(end clock.Time) clock.Time {
	for i := range g.faults {
		if g.faults[i].Base < end {
			return g.faults[i].Eff
		}
	}
	return clock.Never
}

// Await implements actors.Gate (W0, W1).
func (g *gate) Await(ctx context.Context, e *actors.Engine, start, end clock.Time) (clock.Time, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		changed := g.rep.Changed
		if g.version != g.rep.Version() {
			ch := changed()
			g.refresh()
			changed = func() <-chan struct{} { return ch }
		}
		if g.fenced {
			return 0, errFenced
		}
		if done, next, err := g.pass(e, start, end); done || err != nil {
			return next, err
		}
		ch := changed()
		if g.version != g.rep.Version() {
			continue
		}
		if end != clock.Never {
			g.starve(start, end)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ch:
		case l := <-g.looks:
			g.look(e, l, start)
		case <-time.After(100 * time.Millisecond):
			if g.look != nil {
				g.look(e, nil, start)
			}
		}
	}
}

// pass decides with what is known now; done is false when the grant is short.
func (g *gate) pass(e *actors.Engine, start, end clock.Time) (done bool, next clock.Time, err error) {
	if end == clock.Never { // nothing is due: only a fault or a stop goes on
		if g.stop != clock.Never && !g.stopped {
			g.stopped = true
			e.Stop(g.stop)
			return true, g.next(end), nil
		}
		return g.next(end) != clock.Never, g.next(end), nil
	}
	if end > g.grant {
		// A paused run is granted no more: it stops within what it has.
		if g.stop <= g.grant && !g.stopped {
			g.stopped = true
			e.Stop(g.stop)
			return true, clock.Never, nil
		}
		return false, 0, nil
	}
	if g.next(end) < start {
		return true, g.next(end), nil
	}
	if g.stop < end && !g.stopped {
		g.stopped = true
		e.Stop(g.stop)
		return true, g.next(end), nil
	}
	for len(g.faults) > 0 && g.faults[0].Eff < end {
		if err := g.fab.Schedule(&g.faults[0]); err != nil {
			return true, 0, err
		}
		g.faults = g.faults[1:]
	}
	return true, g.next(end), nil
}
