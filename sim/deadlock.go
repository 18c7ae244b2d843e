package sim

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/report"
)

// maxDeadlocks bounds the cycles that a result lists.
const maxDeadlocks = 1000

// deadlocks watches the hosted switches for closed cycles of pauses.
type deadlocks struct {
	watch *fabric.DeadlockWatch
	found []report.Deadlock
}

func (f *Fabric) newDeadlocks() *deadlocks {
	var sws []*fabric.Switch
	for _, n := range f.Nodes {
		if s, ok := n.(*switchNode); ok {
			sws = append(sws, s.Switch)
		}
	}
	return &deadlocks{watch: fabric.NewDeadlockWatch(f.Plan, sws)}
}

// look is called at the start of a window: every event before it is done.
func (d *deadlocks) look(now clock.Time) {
	for _, c := range d.watch.Look(now) {
		if len(d.found) < maxDeadlocks {
			d.found = append(d.found, report.Deadlock{AtNS: report.NS(now), Cycle: c})
		}
	}
}
