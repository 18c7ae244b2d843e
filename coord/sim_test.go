package coord

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

var simLog = hclog.NewNullLogger()

// simResult is what a seed came to.
type simResult struct {
	sum   uint64
	lines int
	steps int
	took  time.Duration // fake
	moves int
	ckpts int
	kept  int // snapshots that were promised
	runs  int
	harms map[string]int
	err   string
}

// simulate executes one seed.
func simulate(t *testing.T, seed uint64, trace io.Writer) (res simResult) {
	synctest.Test(t, func(*testing.T) {
		w := newSimWorld(seed)
		w.trace.to = trace
		why := w.drive()
		res = simResult{took: w.now(), steps: w.steps, ckpts: w.ckpts, harms: w.harms}
		if why == "" {
			why = w.verdict(&res)
		}
		if len(w.bad) > 0 {
			why += ": " + strings.Join(w.bad, "; ")
		}
		if why != "" {
			res.err = fmt.Sprintf("seed %d: %s after %v and %d events; the last ones:\n%s", seed, why, w.now(), w.steps, w.trace.String())
		}
		res.sum, res.lines = w.trace.sum, w.trace.n
		for _, p := range w.procs {
			if p.life != nil {
				w.kill(p.life, "the end")
			}
		}
		time.Sleep(10 * time.Minute) // for time-outs of what was asked of the dead
	})
	return res
}

// verdict judges a run that has ended.
func (w *simWorld) verdict(res *simResult) (why string) {
	var run Run
	w.led.truth.View(func(s *State) { run = *s.Run })
	res.moves, res.kept, res.runs = w.saves.moves, w.saves.kept, len(w.saves.runs)
	if run.Phase != Ended && !w.excused(&run) {
		return fmt.Sprintf("run %s is %s: %s", run.Spec.ID, run.Phase, run.Why)
	}
	w.checkCopies()
	if len(w.bad) > 0 {
		return "an invariant broke"
	}
	return ""
}

func simNumber(name string, n uint64) uint64 {
	if x, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return x
	}
	return n
}

// simTraceTo is where the trace of a single seed goes.
func simTraceTo(t *testing.T) io.Writer {
	name := os.Getenv("SIM_TRACE")
	if name == "" {
		if testing.Verbose() {
			return os.Stdout
		}
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	b := bufio.NewWriter(f)
	t.Cleanup(func() {
		if err := errors.Join(b.Flush(), f.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestSimulatedCluster runs SIM_SEEDS seeds from SIM_FIRST on, or the one seed
// SIM_SEED, whose trace goes to the file SIM_TRACE or, with -v, to the output.
func TestSimulatedCluster(t *testing.T) {
	first, n := simNumber("SIM_FIRST", 1), simNumber("SIM_SEEDS", 40)
	if testing.Short() {
		n = min(n, 10)
	}
	var trace io.Writer
	if one := simNumber("SIM_SEED", 0); one > 0 {
		first, n, trace = one, 1, simTraceTo(t)
	}
	most := int(simNumber("SIM_FAILURES", 10))
	t0, failed, steps, ckpts, moves, runs, kept := time.Now(), 0, 0, 0, 0, 0, 0
	harms := map[string]int{}
	for seed := first; seed < first+n && failed < most; seed++ {
		r := simulate(t, seed, trace)
		steps, ckpts, moves, runs, kept = steps+r.steps, ckpts+r.ckpts, moves+r.moves, runs+r.runs, kept+r.kept
		for k, v := range r.harms {
			harms[k] += v
		}
		if n == 1 {
			t.Logf("seed %d: %v, %d events, %d lines of trace, hash %x, %d runs, %d checkpoints, %d snapshots owed, %d moves, harm %v", seed, r.took, r.steps, r.lines, r.sum, r.runs, r.ckpts, r.kept, r.moves, r.harms)
		}
		if r.err != "" {
			failed++
			t.Errorf("%s\nrepeat with SIM_SEED=%d", r.err, seed)
		}
	}
	var l []string
	for k, v := range harms {
		l = append(l, fmt.Sprintf("%s %d", k, v))
	}
	sort.Strings(l)
	t.Logf("%d seeds in %v: %d runs, %d events, %d checkpoints, %d snapshots owed, %d moves; harm: %s", n, time.Since(t0).Round(time.Millisecond), runs, steps, ckpts, kept, moves, strings.Join(l, ", "))
}

// TestSimulationRepeats: a seed is one execution, on one processor and on all.
func TestSimulationRepeats(t *testing.T) {
	first, n := simNumber("SIM_FIRST", 1), simNumber("SIM_REPEATS", 6)
	for seed := first; seed < first+n; seed++ {
		all := runtime.GOMAXPROCS(1)
		a := simulate(t, seed, nil)
		runtime.GOMAXPROCS(all)
		b := simulate(t, seed, nil)
		if a.sum != b.sum || a.lines != b.lines {
			t.Errorf("seed %d gives %x in %d lines and %x in %d lines", seed, a.sum, a.lines, b.sum, b.lines)
		}
	}
}
