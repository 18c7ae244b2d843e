package sim

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// maxDeadlocks bounds the cycles that a result lists.
const maxDeadlocks = 1000

// Deadlocks is what is known of a run's deadlocks. It is told what switches wait
// for, at the instants of [Looks], whichever processes they run in: one process
// tells it all by itself, several note it and it is put together by window.
type Deadlocks struct {
	plan  *topology.Plan
	watch *fabric.DeadlockWatch
	found []fabric.Deadlock
	told  int // found[:told] went into the records
}

// NewDeadlocks is for a run of which nothing is known yet.
func NewDeadlocks(plan *topology.Plan) *Deadlocks {
	return &Deadlocks{plan: plan, watch: fabric.NewDeadlockWatch(plan)}
}

// Looks is when a run is searched for deadlocks: at instants that follow from
// the plan alone, so that what is found of those that a fault or a watchdog
// breaks does not depend on how the run is cut into windows.
func Looks(p *topology.Plan) *Sampler { return Every(4 * p.Settle) }

// Look takes what changed in the waits of switches, all of one instant, and
// notes the deadlocks that stand then.
func (d *Deadlocks) Look(changed []fabric.WaitState) {
	for _, s := range changed {
		d.watch.Set(s)
	}
	if len(changed) > 0 && len(d.found) < maxDeadlocks {
		d.found = append(d.found, d.watch.Look()...)
	}
}

// Records appends a note for each deadlock not told yet; X is the number of
// queues in the cycle, the place its first.
func (d *Deadlocks) Records(dst []record.Record) []record.Record {
	for _, x := range d.found[d.told:] {
		n := x.Cycle[0]
		dst = append(dst, record.Record{At: x.At, Kind: record.Deadlock, Dev: n.Dev, Port: n.Port, Prio: n.Prio, X: int64(len(x.Cycle))})
	}
	d.told = len(d.found)
	return dst
}

// waiting makes what tells the waits of the hosted switches.
func (f *Fabric) waiting() *fabric.Waiting {
	var sws []*fabric.Switch
	for _, n := range f.Nodes {
		if s, ok := n.(*switchNode); ok {
			sws = append(sws, s.Switch)
		}
	}
	return fabric.NewWaiting(f.Plan, sws)
}

// Waits returns what the hosted switches wait for at now, where it changed since
// the last call; anew where that is not known: after a restore.
func (f *Fabric) Waits(now clock.Time, anew bool) []fabric.WaitState {
	if anew {
		f.waits.Forget()
	}
	return f.waits.Changed(now)
}

// look notes the deadlocks that stand at now, all switches being here.
func (f *Fabric) look(now clock.Time) { f.dead.Look(f.Waits(now, false)) }

// place puts what was found into the parts of the devices where the cycles
// start.
func (d *Deadlocks) place(parts []*report.Part) {
	for i := range d.found {
		x := &d.found[i]
		names := x.Names(d.plan)
		p := partOf(parts, d.plan.Devices[x.Cycle[0].Dev].Name)
		if p == nil {
			continue
		}
		p.Deadlocks = append(p.Deadlocks, report.Deadlock{AtNS: report.NS(x.At), Cycle: names})
		p.Findings = append(p.Findings, report.Finding{
			Code: "deadlock", Where: names[0],
			Text: fmt.Sprintf("PFC deadlock since %v: each of %s -> %s waits for the next; only dropping frames (a watchdog) ends it", x.At, strings.Join(names, " -> "), names[0]),
		})
	}
}

func partOf(parts []*report.Part, device string) *report.Part {
	for _, p := range parts {
		if p.Device == device {
			return p
		}
	}
	return nil
}
