package emu

import (
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// Cost is what distribution took, over all processes of a run.
type Cost struct {
	Windows        uint64  `json:"windows"`
	WindowsPerS    float64 `json:"windows_per_s"`
	ComputeS       float64 `json:"compute_s"` // wall time of the busiest process outside waits
	WaitS          float64 `json:"wait_s"`    // wall time the least waiting process waited for others
	BytesPerWindow float64 `json:"bytes_per_window"`
	Resent         uint64  `json:"resent_batches"`
	Moves          int     `json:"moves"`
}

// Result merges what the slots of an ended run stored. fetch returns a blob by
// its sum.
func Result(run *coord.Run, fetch func(sum string) ([]byte, error)) (*report.Result, *topology.Plan, Cost, error) {
	plan, err := new(Model).Plan(&run.Spec)
	if err != nil {
		return nil, nil, Cost{}, err
	}
	m := NewNotes(plan, len(run.Slots))
	if err := m.Collect(run, fetch); err != nil {
		return nil, nil, Cost{}, err
	}
	parts, err := Parts(run, fetch)
	if err != nil {
		return nil, nil, Cost{}, err
	}
	return ResultOf(plan, run, m, parts)
}

// Parts are what the devices of an ended run contribute to its result. Shares
// are fetched and read side by side.
func Parts(run *coord.Run, fetch func(sum string) ([]byte, error)) (parts []*report.Part, err error) {
	shares, errs := make([][]*report.Part, len(run.Slots)), make([]error, len(run.Slots))
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range run.Slots {
		d := run.Slots[i].Done
		if d == nil {
			return nil, fmt.Errorf("slot %d has not ended", i)
		}
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			b, err := fetch(d.Parts)
			if err == nil {
				shares[i], err = report.DecodeParts(b)
			}
			if err != nil {
				errs[i] = fmt.Errorf("slot %d: %w", i, err)
			}
		})
	}
	wg.Wait()
	return slices.Concat(shares...), errors.Join(errs...)
}

// ResultOf is Result for who has the run's plan at hand, which is not changed,
// its parts, and its notes, all collected: the deadlocks are in them.
func ResultOf(known *topology.Plan, run *coord.Run, m *Notes, parts []*report.Part) (*report.Result, *topology.Plan, Cost, error) {
	if h := hex.EncodeToString(known.Hash[:]); h != run.Hash {
		return nil, nil, Cost{}, fmt.Errorf("the run is of plan %.12s, this one is %.12s", run.Hash, h)
	}
	plan, err := WithFaults(known, run.Faults)
	if err != nil {
		return nil, nil, Cost{}, err
	}
	eng, cost := costs(run)
	res := sim.Finish(plan, ending(run), parts, m.dead, eng)
	if want := run.Digest(); res.Digest != want {
		return nil, nil, cost, fmt.Errorf("the parts have digest %s, the processes reported %s", res.Digest, want)
	}
	return res, plan, cost, nil
}

// WithFaults is a copy of a plan that has a run's live faults too, as its
// records number them.
func WithFaults(known *topology.Plan, live []coord.Fault) (*topology.Plan, error) {
	plan := *known
	plan.Faults = slices.Clip(plan.Faults)
	base := len(plan.Faults)
	for i := range live {
		f := &live[i]
		if f.Clear {
			x := &plan.Faults[base+f.Index]
			if d := f.Eff.Sub(x.At); x.For == 0 || d < x.For {
				x.For = max(d, clock.Picosecond)
			}
			continue
		}
		x, err := Fault(&plan, f)
		if err != nil {
			return nil, err
		}
		plan.Faults = append(plan.Faults, *x)
	}
	return &plan, nil
}

// ending is the engine's result as every slot reported it.
func ending(run *coord.Run) actors.Result {
	d := run.Slots[0].Done
	r := actors.Result{End: actors.End(d.End), At: d.At, LastWork: d.LastWork}
	r.Summary.NextWork, r.Summary.LastProgress, r.Summary.Outstanding = d.NextWork, d.Progress, d.Outstanding
	return r
}

func costs(run *coord.Run) (report.Engine, Cost) {
	e := report.Engine{Processes: len(run.Slots), Generations: 1 + run.Moves}
	c := Cost{Moves: run.Moves}
	bytes := uint64(0)
	for i := range run.Slots {
		d := run.Slots[i].Done
		wall, wait := float64(d.Cost.WallNS)/1e9, float64(d.Cost.WaitNS)/1e9
		e.Windows, c.Windows = d.Windows, d.Windows
		e.WallS = max(e.WallS, wall)
		e.CPUS += float64(d.Cost.CPUNS) / 1e9
		e.PeakRSSBytes += d.Cost.RSS
		e.Workers = max(e.Workers, d.Cost.Workers)
		c.ComputeS = max(c.ComputeS, wall-wait)
		if i == 0 || wait < c.WaitS {
			c.WaitS = wait
		}
		c.Resent += d.Cost.Resent
		bytes += d.Cost.BytesOut
	}
	if e.WallS > 0 {
		c.WindowsPerS = float64(c.Windows) / e.WallS
	}
	if c.Windows > 0 {
		c.BytesPerWindow = float64(bytes) / float64(c.Windows)
	}
	return e, c
}
