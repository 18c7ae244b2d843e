package sim

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// budget keeps a run within run.memory: what the estimate says does not fit is
// refused before anything is built; what grows beyond it is stopped.
type budget struct {
	limit  int64 // 0 = none
	over   int64 // what the process was allowed when it had grown beyond; 0 = it has not
	stop   context.CancelFunc
	sample []metrics.Sample
}

// budgetEvery is how many windows pass between two looks at the memory.
const budgetEvery = 512

// budgeting is what the runs of this process share of it. Memory cannot be told
// apart by run: together they may take the sum of their budgets, and as long as
// one of them has none, the process has none and nothing is stopped.
var budgeting struct {
	sync.Mutex
	sum    int64 // of the budgets
	free   int   // runs without one
	ours   bool  // the collector's limit is set from sum
	before int64 // what it was before, put back when it no longer is
}

// mostBudget bounds what a run adds to the sum.
const mostBudget = 1 << 50

// newBudget refuses a plan that needs more than its run.memory.
func newBudget(plan *topology.Plan) (*budget, error) {
	b := &budget{limit: min(plan.Run.Memory, mostBudget)}
	if b.limit != 0 {
		if e := Foresee(plan); e.Memory > b.limit {
			return nil, fmt.Errorf("%s needs about %s of memory (%d devices, %d queue pairs, %d flows), run.memory allows %s: "+
				"make the fabric or the workload smaller, spread it over processes, or raise run.memory",
				plan.Name, report.Bytes(e.Memory), len(plan.Devices), e.QPs, e.Flows, report.Bytes(b.limit))
		}
		b.sample = []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	}
	b.share(1)
	return b, nil
}

// share adds the budget to those of the process (1) or takes it off (-1), and
// tells the collector.
func (b *budget) share(sign int) {
	s := &budgeting
	s.Lock()
	defer s.Unlock()
	s.sum += int64(sign) * b.limit
	if b.limit == 0 {
		s.free += sign
	}
	switch {
	case s.sum > 0 && s.free == 0:
		if !s.ours {
			s.ours, s.before = true, debug.SetMemoryLimit(-1)
		}
		debug.SetMemoryLimit(min(s.before, s.sum/16*15))
	case s.ours:
		s.ours = false
		debug.SetMemoryLimit(s.before)
	}
}

// allowed is what the process may take now; 0 = as much as it wants.
func allowed() int64 {
	budgeting.Lock()
	defer budgeting.Unlock()
	if budgeting.free > 0 {
		return 0
	}
	return budgeting.sum
}

// watch puts the budget's look at the memory before an engine's observer.
func (b *budget) watch(next func(clock.Time, uint64)) func(clock.Time, uint64) {
	if b.limit == 0 {
		return next
	}
	return func(at clock.Time, n uint64) {
		if n%budgetEvery == 0 && b.over == 0 {
			b.look()
		}
		if next != nil {
			next(at, n)
		}
	}
}

// look stops the run when the process has grown beyond what it is allowed, also
// without what another run that has ended left behind.
func (b *budget) look() {
	if b.exceeded() == 0 {
		return
	}
	debug.FreeOSMemory()
	if b.over = b.exceeded(); b.over != 0 {
		b.stop()
	}
}

// exceeded is what the process is allowed if it takes more, else 0.
func (b *budget) exceeded() int64 {
	most := allowed()
	metrics.Read(b.sample)
	if most == 0 || b.sample[0].Value.Uint64()-b.sample[1].Value.Uint64() <= uint64(most) {
		return 0
	}
	return most
}

// close takes the run's share off.
func (b *budget) close() { b.share(-1) }

// tell says in the result that the budget ended the run.
func (b *budget) tell(r *report.Result) {
	if b.over == 0 {
		return
	}
	why := fmt.Sprintf("run.memory: the process grew beyond %s at %v", report.Bytes(b.over), clock.Time(r.VirtualNS))
	if b.over != b.limit {
		why += fmt.Sprintf(", which the runs in it may take together (this one %s)", report.Bytes(b.limit))
	}
	r.Raise(report.Limit, why)
	if r.Verdict == report.Limit {
		r.VerdictReason = why
	}
}
