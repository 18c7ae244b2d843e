// Package sim composes a run in one process: plan → actors → engine → result.
// It is the only place below the commands that reads the real clock, and only
// for progress and cost figures, never for the model. Start at [Run]; a process
// of a cluster uses [Build] and drives the engine itself.
package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/fault"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// Node is what the composition needs of a device beyond running it.
type Node interface {
	actors.Actor
	// Fill adds the device's counters, samples and accounts as of end.
	Fill(p *report.Part, end clock.Time)
	// TakeRecords appends the records made since the last call and forgets them.
	TakeRecords(dst []record.Record) []record.Record
	// Schedule plans a fault in the device; its instant must not be executed yet.
	Schedule(f *topology.Fault, index int32) error
	// ClearFault ends a fault at t; FaultStatus visits the faults of the device.
	ClearFault(index int32, t clock.Time)
	FaultStatus(visit func(index int32, hits uint64, started bool, end clock.Time))
}

// Progress is told to Options.Progress a few times a second.
type Progress struct {
	Virtual     clock.Time
	Until       clock.Time // limit or asked end
	Hops        uint64
	Windows     uint64
	Outstanding int64
	Wall        time.Duration
}

// Options of a run.
type Options struct {
	Workers  int // 0 = automatic
	Progress func(Progress)
	// Records, when set, receives the exceptional notes of all devices in
	// batches, ordered by (time, device, number) within a batch.
	Records func([]record.Record)
	// Sample, when set, is called at the instants that Sampler chooses, with
	// exactly everything before them done; it may read the fabric but not change it.
	Sampler *Sampler
	Sample  func(t clock.Time, f *Fabric)
	// Between, when set, is called between windows with the next one's start,
	// after Records; it may read the fabric but not change it.
	Between func(start clock.Time, n uint64)
	// Stops are instants at which Do is called with exactly everything before
	// them done, in ascending order; instants that the run does not reach are
	// left out. The result does not depend on them.
	Stops []Pause
	// OnBuild is called once the fabric stands, before the first window.
	OnBuild func(*Fabric) error
}

// Pause is an instant at which a run is looked at or saved.
type Pause struct {
	At clock.Time
	Do func(*Fabric) error
}

// advance runs to the end, calling at the stops on the way.
func (f *Fabric) advance(ctx context.Context, stops []Pause) (actors.Result, error) {
	for _, s := range stops {
		held, res, err := f.RunTo(ctx, s.At)
		if err != nil || !held {
			return res, err
		}
		if err := s.Do(f); err != nil {
			return res, err
		}
	}
	return f.Engine.Run(ctx)
}

// Fabric is a built run.
type Fabric struct {
	Plan   *topology.Plan
	Engine *actors.Engine
	Nodes  []Node // by device id; nil where another process hosts the device
	// settings is what the changes of this run put in force when.
	settings *topology.Timeline
	start    time.Time
	rec      []record.Record
	asked    bool            // somebody takes the records
	keys     []uint64        // of sortRecords
	unsorted []record.Record // of sortRecords
	dead     *Deadlocks
	waits    *fabric.Waiting
	told     told
}

// Build makes the actors of the hosted devices and the engine over them. A nil
// hosted means all.
func Build(plan *topology.Plan, hosted func(dev int32) bool, workers int) (*Fabric, error) {
	f := &Fabric{Plan: plan, Nodes: make([]Node, len(plan.Devices)), start: time.Now()}
	cfg := actors.Config{
		Seed: plan.Seed, Window: plan.Window, Settle: plan.Settle,
		Limit: clock.Time(0).Add(plan.Run.Limit), Until: clock.Never, Stall: plan.Run.Stall,
		Names: make([]string, len(plan.Devices)), Cables: make([][]actors.Ports, len(plan.Devices)),
	}
	switch plan.Run.Until {
	case topology.UntilTime:
		cfg.Until = plan.Run.At
	case topology.UntilStopped:
		cfg.Live = true
	}
	if len(plan.Devices) >= hugeDevices {
		mem.Reserve(memSlack * standing(plan, hosted))
	}
	acts := make([]actors.Actor, len(plan.Devices))
	f.settings = topology.NewTimeline(plan)
	f.settings.Live = true // those of the file have been checked
	b := builder{plan: plan, time: f.settings}
	for i := range plan.Devices {
		d := &plan.Devices[i]
		cfg.Names[i] = d.Name
		cfg.Cables[i] = make([]actors.Ports, len(d.Ports))
		for p := range d.Ports {
			cfg.Cables[i][p] = actors.Ports{Peer: d.Ports[p].Peer, PeerPort: int32(d.Ports[p].PeerPort)}
		}
		if hosted != nil && !hosted(int32(i)) {
			continue
		}
		f.Nodes[i] = b.node(int32(i))
		acts[i] = f.Nodes[i]
	}
	e, err := actors.New(cfg, acts, workers)
	if err != nil {
		return nil, err
	}
	f.Engine = e
	f.dead, f.waits, f.told = NewDeadlocks(plan), f.waiting(), newTold(plan)
	for i := range plan.Faults {
		if err := f.Schedule(&plan.Faults[i], int32(i)); err != nil {
			e.Close()
			return nil, fmt.Errorf("fault %s: %w", plan.Faults[i].Name, err)
		}
	}
	return f, nil
}

// CheckFaults tells what is wrong with the faults of a plan beyond what its file
// shows: what they need of the fabric and its queue pairs.
func CheckFaults(plan *topology.Plan) error {
	var errs []error
	for i := range plan.Faults {
		if f := &plan.Faults[i]; len(f.Devs) == 0 {
			if _, err := fault.Compile(plan, f, int32(i)); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Schedule plans a fault in every hosted device it concerns: the named one and
// those at the far ends of its cables.
func (f *Fabric) Schedule(ft *topology.Fault, index int32) error {
	spec, err := fault.Compile(f.Plan, ft, index)
	if err != nil {
		return err
	}
	if spec.Kind == fault.Set {
		if err := f.settings.Add(ft, index); err != nil {
			return err
		}
	}
	last := int32(-1)
	for _, p := range spec.Places {
		d := p.Dev
		if d == last || f.Nodes[d] == nil {
			continue
		}
		last = d
		if err := f.Nodes[d].Schedule(ft, index); err != nil {
			return err
		}
		f.Engine.Wake(d, ft.At)
	}
	return nil
}

// hugeDevices is the number of devices from which a fabric does not fit the
// processor's caches of pages.
const hugeDevices = 512

// batchWindows is the most windows that are run without a look from outside.
const batchWindows = 64

// Batches is when records are handed over: every 64 windows of the longest span
// that the fabric allows, whatever run.window is. What a device keeps between two
// of them is bounded, and a record may be stamped with an instant that lies before
// the one at which it is made: which records there are, and their order, must be
// the same in every run.
func Batches(p *topology.Plan) *Sampler { return Every(16 * p.Settle) }

// maxStride bounds the same in virtual time.
const maxStride = 10 * clock.Millisecond

// Stride is how many windows of a plan may pass between two looks of processes
// that run it together; 1 where what they host is near anyway.
func Stride(p *topology.Plan) int {
	if len(p.Devices) < hugeDevices {
		return 1
	}
	return min(stride(p), sharedStride)
}

// sharedStride bounds the time until a process answers what it is asked.
const sharedStride = 16

// stride is how many windows of a plan may pass between two looks.
func stride(p *topology.Plan) int {
	n := batchWindows
	for n > 1 && clock.Duration(n)*p.Window > maxStride {
		n /= 2 // what looks every 256 windows must be called then
	}
	return n
}

// Digest folds the parts of a run, whichever processes they came from.
func Digest(plan *topology.Plan, parts []*report.Part) string {
	var g actors.Digest
	for _, p := range parts {
		g.Add(clock.HashString(plan.Seed, p.Device), actors.Chain{Hi: p.DigestHi, Lo: p.DigestLo})
	}
	return fmt.Sprintf("%016x%016x", g.Hi, g.Lo)
}

// Workers is the number of workers that pays for a plan on n cores: small
// fabrics use one.
func Workers(plan *topology.Plan, asked, cores int) int {
	if asked > 0 {
		return asked
	}
	if plan.Run.Workers > 0 {
		return plan.Run.Workers
	}
	if len(plan.Devices) < 64 {
		return 1
	}
	return max(1, cores)
}

// Run executes a plan and returns its result. Cancelling ctx stops the run at a
// window end with verdict limit; what there is by then is the result.
func Run(ctx context.Context, plan *topology.Plan, o Options) (*report.Result, error) {
	cost := startCost()
	budget, err := newBudget(plan)
	if err != nil {
		return nil, err
	}
	defer budget.close()
	ctx, budget.stop = context.WithCancel(ctx)
	defer budget.stop()
	gc := newCollector()
	defer gc.close()
	workers := Workers(plan, o.Workers, cores())
	f, err := Build(plan, nil, workers)
	if err != nil {
		return nil, err
	}
	defer f.Engine.Close()
	gc.built()
	f.keep(&o)
	if o.OnBuild != nil {
		if err := o.OnBuild(f); err != nil {
			return nil, err
		}
	}
	if o.Records != nil {
		if err := f.told.again(o.Records); err != nil {
			return nil, err
		}
	}
	f.Engine.Observe = budget.watch(f.observer(&o))
	if o.Between == nil {
		f.Engine.Stride = stride(plan)
	}
	res, err := f.advance(ctx, o.Stops)
	if err != nil {
		return nil, err
	}
	f.look(res.At)
	f.drain(&o)
	eng := cost.done()
	eng.Workers, eng.Processes, eng.Generations = workers, 1, 1
	eng.Windows = f.Engine.Windows()
	r := f.Finish(res, f.Parts(res.Instant()), eng)
	budget.tell(r)
	return r, nil
}

// Finish makes the result of a run in this process.
func (f *Fabric) Finish(res actors.Result, parts []*report.Part, eng report.Engine) *report.Result {
	f.look(res.At)
	return Finish(f.Plan, res, parts, f.dead, eng)
}

// Finish makes the result of a run from all parts and what is known of its
// deadlocks.
func Finish(plan *topology.Plan, res actors.Result, parts []*report.Part, dead *Deadlocks, eng report.Engine) *report.Result {
	dead.place(parts)
	r := report.Merge(parts, Meta(plan), verdict(plan, res), eng, Digest(plan, parts))
	victims(plan, r)
	return r
}

// verdict names the end of a run.
func verdict(plan *topology.Plan, res actors.Result) report.End {
	e := report.End{At: res.Instant()}
	switch res.End {
	case actors.Idle:
		e.Verdict, e.Reason = report.Complete, "all work ended"
	case actors.AtUntil:
		e.Verdict, e.Reason = report.Complete, "reached run.until "+res.At.String()
	case actors.AtLimit:
		e.Verdict, e.Reason = report.Limit, "reached run.limit "+res.At.String()
	case actors.Stalled:
		e.Verdict = report.Stalled
		e.Reason = fmt.Sprintf("%d requests outstanding and nothing is due", res.Summary.Outstanding)
		if res.Summary.NextWork != clock.Never {
			e.Reason = fmt.Sprintf("no request completed and no PSN advanced since %v (run.stall %v), %d requests outstanding: livelock",
				res.Summary.LastProgress, plan.Run.Stall, res.Summary.Outstanding)
		}
	case actors.Cancelled:
		e.Verdict, e.Reason = report.Limit, "stopped at "+res.At.String()
		if plan.Run.Until == topology.UntilStopped {
			e.Verdict = report.Complete
		}
	default:
		e.Verdict, e.Reason = report.Failed, "the run ended without a reason"
	}
	return e
}
