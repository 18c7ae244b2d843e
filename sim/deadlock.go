package sim

import (
	"bytes"
	"encoding/gob"
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

// deadlocks is what a run knows of deadlocks. A process that hosts every
// switch watches them between windows and so also sees those that a watchdog
// breaks. In a run of several processes each part carries its switch's waits
// at the end, and the deadlocks that stand then are found when the parts meet.
type deadlocks struct {
	watch *fabric.DeadlockWatch // nil when some switch runs elsewhere
	found []fabric.Deadlock
	told  int // found[:told] went into the records
}

// watchDeadlocks starts the watch if all switches are here.
func (f *Fabric) watchDeadlocks() {
	var sws []*fabric.Switch
	for i := range f.Plan.Devices {
		if f.Plan.Devices[i].Switch == nil {
			continue
		}
		n, ok := f.Nodes[i].(*switchNode)
		if !ok {
			return
		}
		sws = append(sws, n.Switch)
	}
	f.dead.watch = fabric.NewDeadlockWatch(f.Plan, sws)
}

// looks is when a run is searched for deadlocks: at instants that follow from
// the plan alone, so that what is found of those that a fault or a watchdog
// breaks does not depend on how the run is cut into windows.
func (f *Fabric) looks() *Sampler { return Every(4 * f.Plan.Settle) }

// look notes the deadlocks that stand at now.
func (f *Fabric) look(now clock.Time) {
	if d := &f.dead; d.watch != nil && len(d.found) < maxDeadlocks {
		d.found = append(d.found, d.watch.Look(now)...)
	}
}

// deadlockRecords appends a note for each deadlock not told yet; X is the
// number of queues in the cycle, the place its first.
func (f *Fabric) deadlockRecords(dst []record.Record) []record.Record {
	for _, d := range f.dead.found[f.dead.told:] {
		n := d.Cycle[0]
		dst = append(dst, record.Record{At: d.At, Kind: record.Deadlock, Dev: n.Dev, Port: n.Port, Prio: n.Prio, X: int64(len(d.Cycle))})
	}
	f.dead.told = len(f.dead.found)
	return dst
}

// addDeadlocks puts what was found into the parts of the devices where the
// cycles start; without a watch, the waits into every switch's part.
func (f *Fabric) addDeadlocks(parts []*report.Part, end clock.Time) {
	f.look(end)
	if f.dead.watch != nil {
		placeDeadlocks(f.Plan, parts, f.dead.found)
		return
	}
	for i, n := range f.Nodes {
		s, ok := n.(*switchNode)
		if !ok {
			continue
		}
		w := s.Waits(end)
		if len(w.Groups) == 0 {
			continue
		}
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(&w); err != nil {
			panic(fmt.Sprintf("sim: waits of %s: %v", f.Plan.Devices[i].Name, err))
		}
		if p := partOf(parts, f.Plan.Devices[i].Name); p != nil {
			p.Waits = b.Bytes()
		}
	}
}

// joinWaits finds the deadlocks that stand at the end in the parts of several
// processes.
func joinWaits(plan *topology.Plan, parts []*report.Part) error {
	var ws []fabric.WaitState
	for _, p := range parts {
		if len(p.Waits) == 0 {
			continue
		}
		var w fabric.WaitState
		if err := gob.NewDecoder(bytes.NewReader(p.Waits)).Decode(&w); err != nil {
			return fmt.Errorf("waits of %s: %w", p.Device, err)
		}
		ws = append(ws, w)
	}
	placeDeadlocks(plan, parts, fabric.Deadlocks(plan, ws))
	return nil
}

func placeDeadlocks(plan *topology.Plan, parts []*report.Part, found []fabric.Deadlock) {
	for i := range found {
		d := &found[i]
		names := d.Names(plan)
		p := partOf(parts, plan.Devices[d.Cycle[0].Dev].Name)
		if p == nil {
			continue
		}
		p.Deadlocks = append(p.Deadlocks, report.Deadlock{AtNS: report.NS(d.At), Cycle: names})
		p.Findings = append(p.Findings, report.Finding{
			Code: "deadlock", Where: names[0],
			Text: fmt.Sprintf("PFC deadlock since %v: each of %s -> %s waits for the next; only dropping frames (a watchdog) ends it", d.At, strings.Join(names, " -> "), names[0]),
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
