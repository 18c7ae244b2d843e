package coord

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
)

// simSaves is what a seed does with named snapshots, stops and faults at wanted
// instants: what is asked of a run before it begins, which runs go on from the
// snapshots of those that have ended, and what is owed. It draws from a source
// of its own.
type simSaves struct {
	rng   *rand.Rand
	quiet bool                  // no faults but those of prepare: what is leapt over stays so
	run   string                // the ledger's run, or the first to come
	runs  []string              // all of them, oldest first
	next  string                // the run that is to be submitted, "" = none
	owed  map[string]clock.Time // boundaries promised in this run, by name
	kept  int                   // snapshots that were owed and are there
	moves int                   // of runs before this one
}

// simMostRuns is how many runs a seed has at most, each from a snapshot of one
// before.
const simMostRuns = 3

func newSimSaves(seed uint64) simSaves {
	v := simSaves{rng: rand.New(rand.NewPCG(seed, 0x52)), run: simRun, runs: []string{simRun}, owed: map[string]clock.Time{}}
	v.quiet = v.chance(0.35)
	return v
}

func (v *simSaves) chance(p float64) bool { return v.rng.Float64() < p }

// within is an instant in [a, b), on no raster that events are on.
func (v *simSaves) within(a, b clock.Time) clock.Time {
	const raster = 50 * clock.Nanosecond
	n := max(1, int64(b.Sub(a)/raster))
	return a.Add(clock.Duration(v.rng.Int64N(n)) * raster)
}

// instant is one that a run which is at from may come to, most often one that
// it leaps over; end is where that leap ends.
func (v *simSaves) instant(o *actortest.Outcome, from clock.Time) (at, end clock.Time) {
	var l [][2]clock.Time
	for _, x := range o.Leaps {
		if x[1] > from {
			l = append(l, [2]clock.Time{max(x[0], from), x[1]})
		}
	}
	if len(l) == 0 || v.chance(0.25) {
		end = max(o.End, from).Add(3 * clock.Microsecond)
		return v.within(from, end), end
	}
	x := l[v.rng.IntN(len(l))]
	return v.within(x[0], x[1]), x[1]
}

// entered looks at an entry that the ledger has taken.
func (w *simWorld) entered(e *Entry, r Result) {
	v := &w.saves
	var run Run
	fresh := false // not an old command once more
	w.led.truth.View(func(s *State) {
		if fresh = r.Seq == s.Seq && s.Run != nil; fresh {
			run = *s.Run
		}
	})
	if !fresh || r.Err != "" {
		return
	}
	switch e.Kind {
	case KindSubmit:
		if v.run = r.Run; v.next == r.Run {
			v.next = ""
			v.runs = append(v.runs, r.Run)
			w.running, w.began, w.tenders = false, false, min(w.tenders, 2)
		}
		v.owed = map[string]clock.Time{}
		w.prepare(&run)
	case KindCkptPlan:
		if e.Name != "" {
			v.owed[e.Name] = r.At
		}
	case KindDone:
		if run.Phase == Ended {
			w.judge(&run)
			w.restore()
		}
	}
}

// prepare asks a run for snapshots, faults and a stop, at instants, before it
// begins or in its first moments. One that is submitted paused goes on when all
// of that is answered.
func (w *simWorld) prepare(r *Run) {
	v := &w.saves
	if !r.Paused && v.chance(0.4) {
		return
	}
	before := len(w.client.cmds)
	ask := func(e Entry) {
		e.Run = r.Spec.ID
		w.command(time.Millisecond+time.Duration(v.rng.Int64N(int64(200*time.Millisecond))), e)
	}
	free := *r
	free.StopAt = clock.Never
	o := w.oracle(&free)
	save, end := v.instant(&o, r.Grant)
	asked := save
	if v.chance(0.2) {
		asked = 0 // as soon as can be
	}
	if v.chance(0.8) {
		ask(Entry{Kind: KindCkptPlan, Name: []string{"kept", "first", "second"}[v.rng.IntN(3)], At: asked})
	}
	switch v.rng.IntN(16) {
	case 0:
		ask(Entry{Kind: KindStop})
	case 1, 2, 3, 4, 5, 6, 7, 8:
		ask(Entry{Kind: KindStop, At: max(2, v.within(save, end))})
	case 9, 10:
		at, _ := v.instant(&o, r.Grant)
		ask(Entry{Kind: KindStop, At: max(2, at)})
	}
	n := max(0, v.rng.IntN(8)-3)
	if v.quiet {
		n /= 2
	}
	for range n {
		w.disturb(ask, &o, r.Grant, save)
	}
	if v.chance(0.08) {
		ask(Entry{Kind: KindPace, Pace: &Pace{Num: 5 + v.rng.Int64N(50), Den: 1_000_000}})
	}
	if r.Paused {
		w.resume(r.Spec.ID, before)
	}
}

// disturb asks for a fault: as soon as can be, near the snapshot, or anywhere.
func (w *simWorld) disturb(ask func(Entry), o *actortest.Outcome, from, save clock.Time) {
	v := &w.saves
	// Several of one command have numbers of their own, each what it is told by.
	text := func(i int) string {
		return fmt.Sprintf("disturb %d %d", v.rng.IntN(w.plan.spec.Relays), 10*(len(w.client.cmds)+1)+i)
	}
	f := &Fault{Text: text(0)}
	switch v.rng.IntN(4) {
	case 0:
	case 1:
		f.Want = v.within(max(from, save.Add(-clock.Microsecond)), save.Add(2*clock.Microsecond))
	case 2:
		f.Want = v.within(from, from.Add(2*clock.Microsecond))
	default:
		f.Want, _ = v.instant(o, from)
	}
	f.Firm = f.Want > 0 && v.chance(0.3)
	e := Entry{Kind: KindFault, Fault: f}
	for i := range max(0, v.rng.IntN(6)-3) {
		e.With = append(e.With, Fault{Text: text(i + 1)})
	}
	ask(e)
}

// resume lets a run go on when all that was asked for from a command on is
// answered, sometimes after a long while.
func (w *simWorld) resume(run string, from int) {
	wait := time.Duration(0)
	if w.saves.chance(0.04) {
		wait = stuckAfter + 5*time.Second
	}
	to := len(w.client.cmds)
	var look func()
	look = func() {
		for _, id := range sums(w.client.cmds)[from:to] {
			if !w.client.cmds[id].done {
				w.calm = max(w.calm, w.now())
				w.at(30*time.Millisecond, "", look)
				return
			}
		}
		w.calm = max(w.calm, w.now()+wait)
		w.command(wait, Entry{Kind: KindResume, Run: run})
	}
	w.at(30*time.Millisecond, "", look)
}

// restore submits, often, a run that goes on from a snapshot.
func (w *simWorld) restore() {
	v := &w.saves
	var names []string
	w.led.truth.View(func(s *State) { names = s.savedNames() })
	if len(names) == 0 || len(v.runs) == simMostRuns || v.chance(0.2) {
		return
	}
	name := names[v.rng.IntN(len(names))]
	v.next = fmt.Sprintf("%s%d", simRun, len(v.runs)+1)
	w.harms["restore"]++
	w.command(time.Duration(v.rng.Int64N(int64(2*time.Second))), Entry{Kind: KindSubmit, Run: v.next, Spec: &RunSpec{
		ID: v.next, Restore: name, Files: []File{{Name: name}}, Pause: v.chance(0.7), Batch: v.chance(0.4), CkptMS: 20 + v.rng.IntN(300),
	}})
	w.calm = max(w.calm, w.now()+2*time.Second)
}

// judge compares a run that has ended with one that was never disturbed, and
// wants the snapshots that were promised.
func (w *simWorld) judge(r *Run) {
	v := &w.saves
	v.moves += r.Moves
	w.checkCommands(r)
	o, end := w.oracle(r), r.Slots[0].Done.At
	if got, want := r.Digest(), o.Digest.String(); got != want || end != o.End {
		w.violate("run %s ends at %v with digest %s, oracle at %v with %s", r.Spec.ID, end, got, o.End, want)
	}
	for _, name := range sums(v.owed) {
		b := v.owed[name]
		if b > end || b == end && r.StopAt != end { // a stop right there came after it
			continue
		}
		v.kept++
		w.led.truth.View(func(s *State) {
			if x := s.saved(name); x == nil || x.Run != r.Spec.ID || x.Ckpt.B != b {
				w.violate("the snapshot %q at %v of run %s, which ended at %v, is lost: %v", name, b, r.Spec.ID, end, x)
			}
		})
	}
}

// excused reports whether a run had to fail: nobody has a state it began from.
func (w *simWorld) excused(r *Run) bool {
	if r.Start == nil || !strings.Contains(r.Why, "cannot be read") {
		return false
	}
	for _, b := range r.Start.Blobs {
		if !w.intact(b.Sum) {
			return true
		}
	}
	return false
}

// intact reports whether somebody who is not gone for good has a blob.
func (w *simWorld) intact(sum string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if SumOf(w.shared[sum]) == sum {
		return true
	}
	for _, p := range w.procs {
		if f, ok := p.files[sum]; ok && !p.gone && SumOf(f.b) == sum {
			return true
		}
	}
	return false
}

// oracle is what the run's fabric comes to with the faults and the stop of the
// ledger.
func (w *simWorld) oracle(r *Run) actortest.Outcome {
	f := actortest.New(w.plan.spec)
	for _, x := range r.Faults {
		d, id, _ := simFault(&x)
		f.Relays[d].Disturb(x.Eff, id)
	}
	return f.OracleTo(r.StopAt)
}

// known looks at a restored device: its slot must have been told of all faults
// that are in its state.
func (x *simShare) known(d int) {
	x.f.Relays[d].Pending(func(at clock.Time, id uint64) {
		for i := range x.faults {
			if e, n, _ := simFault(&x.faults[i]); e == d && n == id && x.faults[i].Eff == at {
				return
			}
		}
		x.m.w.violate("%s restores device %d with fault %d at %v, of which its slot does not know", x.m.l.id, d, id, at)
	})
}
