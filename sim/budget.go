package sim

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// budget keeps a run within run.memory: what the estimate says does not fit is
// refused before anything is built; what grows beyond it is stopped.
type budget struct {
	limit  int64 // 0 = none
	over   bool
	stop   context.CancelFunc
	before int64 // the collector's limit, put back at the end
	sample []metrics.Sample
}

// budgetEvery is how many windows pass between two looks at the memory.
const budgetEvery = 512

// newBudget refuses a plan that needs more than its run.memory.
func newBudget(plan *topology.Plan) (*budget, error) {
	b := &budget{limit: plan.Run.Memory, before: math.MaxInt64}
	if b.limit == 0 {
		return b, nil
	}
	if e := Foresee(plan); e.Memory > b.limit {
		return nil, fmt.Errorf("%s needs about %s of memory (%d devices, %d queue pairs, %d flows), run.memory allows %s: "+
			"make the fabric or the workload smaller, spread it over processes, or raise run.memory",
			plan.Name, report.Bytes(e.Memory), len(plan.Devices), e.QPs, e.Flows, report.Bytes(b.limit))
	}
	b.sample = []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	b.before = debug.SetMemoryLimit(b.limit / 16 * 15)
	return b, nil
}

// watch puts the budget's look at the memory before an engine's observer.
func (b *budget) watch(next func(clock.Time, uint64)) func(clock.Time, uint64) {
	if b.limit == 0 {
		return next
	}
	return func(at clock.Time, n uint64) {
		if n%budgetEvery == 0 && !b.over {
			b.look()
		}
		if next != nil {
			next(at, n)
		}
	}
}

// look stops the run when the process has grown beyond the budget.
func (b *budget) look() {
	metrics.Read(b.sample)
	if used := b.sample[0].Value.Uint64() - b.sample[1].Value.Uint64(); used > uint64(b.limit) {
		b.over = true
		b.stop()
	}
}

// close puts the collector's limit back.
func (b *budget) close() {
	if b.limit != 0 {
		debug.SetMemoryLimit(b.before)
	}
}

// tell says in the result that the budget ended the run.
func (b *budget) tell(r *report.Result) {
	if !b.over {
		return
	}
	why := fmt.Sprintf("run.memory: the process grew beyond %s at %v", report.Bytes(b.limit), clock.Time(r.VirtualNS))
	r.Raise(report.Limit, why)
	if r.Verdict == report.Limit {
		r.VerdictReason = why
	}
}
