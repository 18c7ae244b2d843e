package main

import (
	"context"
	"errors"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/telemetry/metrics"
	flowtime "github.com/rocemu/rocemu/telemetry/split"
	"github.com/rocemu/rocemu/topology"
)

// spreadWatch observes a run of several processes. What they note comes when
// the run has ended, or as it goes on where somebody wants to see it live; the
// order and the cut into batches are those of one process, so that chains,
// series and events are the same.
type spreadWatch struct {
	*watcher
	known *topology.Plan // of the files
	notes *emu.Notes
	log   *eventLog        // nil: no events
	faced int              // live faults named so far
	far   *coord.RunStatus // as the cluster last said
	fresh time.Time        // when the last sample came
	end   *counters.Snapshot

	unsplit error // why the flows' time is not split
}

// watchSpread observes a run of that many slots.
func watchSpread(known *topology.Plan, w *watcher, slots int, events bool) *spreadWatch {
	s := &spreadWatch{watcher: w, known: known, notes: emu.NewNotes(known, slots)}
	if events { // for an output directory
		s.log, s.notes.Split = &eventLog{plan: known}, flowtime.New(known)
	}
	s.notes.Records = func(b []record.Record) {
		if s.log != nil {
			s.log.add(b)
		}
		w.Records(b)
		if s.notes.Split != nil {
			s.notes.Split.Records(b)
		}
	}
	s.notes.Sample = func(n *counters.Snapshot, last bool) {
		if last { // its instant is the result's
			s.end = n
			return
		}
		w.Snapshot(n)
		w.offer(n, s.health())
		s.fresh = time.Now()
	}
	return s
}

// name learns of live faults, so that records of them say which.
func (s *spreadWatch) name(live []coord.Fault) error {
	if len(live) == s.faced {
		return nil
	}
	p, err := emu.WithFaults(s.known, live)
	if err != nil {
		return err
	}
	s.faced = len(live)
	s.SetFaults(p.Faults)
	if s.log != nil {
		s.log.plan = p
	}
	return nil
}

// sampleEvery is how often counters are read from a running fabric when no
// sample of its own comes.
const sampleEvery = time.Second

// follow takes what the processes have noted by now. Counters are asked for
// when the run's own samples are too rare for who reads them live.
func (s *spreadWatch) follow(ctx context.Context, c *client.Client, st *coord.RunStatus) error {
	if err := s.name(st.Faults); err != nil {
		return err
	}
	s.far = st
	n := len(st.Slots)
	seen, err := c.Look(ctx, n, s.notes.Ask(st.ID))
	if err == nil {
		err = s.notes.Take(seen, func(sum string) ([]byte, error) { return c.Blob(ctx, sum) })
	}
	if err != nil || !s.served() || time.Since(s.fresh) < sampleEvery {
		return err
	}
	snap, _, err := lookCounters(ctx, c, s.known, st)
	if err != nil {
		return err
	}
	s.fresh = time.Now()
	s.offer(snap, s.health())
	return nil
}

// health is how the engines do, by their last heartbeats.
func (s *spreadWatch) health() metrics.Health {
	h := metrics.Health{WallSeconds: time.Since(s.start).Seconds(), Unknown: true}
	if s.far != nil {
		h.Windows = s.far.Windows
	}
	if s.far != nil && s.far.Work != nil {
		w := s.far.Work
		h.FrameHops, h.Events, h.Outstanding, h.Unknown = w.Hops, w.Events, w.Outstanding, false
	}
	return h
}

// complete takes the rest of an ended run's notes and makes its result.
func (s *spreadWatch) complete(run *coord.Run, fetch func(sum string) ([]byte, error)) (*report.Result, *topology.Plan, emu.Cost, error) {
	defer s.watcher.end()
	if err := errors.Join(s.name(run.Faults), s.notes.Collect(run, fetch)); err != nil {
		return nil, nil, emu.Cost{}, err
	}
	parts, err := emu.Parts(run, fetch)
	if err != nil {
		return nil, nil, emu.Cost{}, err
	}
	if s.splits, s.unsplit = s.notes.Splits(sim.SamplesOf(parts)); !run.Spec.Splits {
		s.unsplit = errors.New("the run was submitted without noting the frames of flows")
	}
	res, plan, cost, err := emu.ResultOf(s.known, run, s.notes, parts)
	if err != nil {
		return nil, nil, cost, err
	}
	if s.end != nil {
		s.end.At = clock.Time(res.VirtualNS)
		s.Snapshot(s.end)
		s.offer(s.end, metrics.Health{
			FrameHops: uint64(res.Engine.FrameHops), Events: uint64(res.Engine.Events), Windows: res.Engine.Windows, WallSeconds: res.Engine.WallS,
			Outstanding: run.Slots[0].Done.Outstanding,
		})
	}
	s.watcher.end()
	if s.log != nil {
		res.Detail.Events = s.log.events
	}
	s.Finish(res)
	res.Telemetry.Samples, res.Telemetry.DialOut = s.pushed, s.dialed
	return res, plan, cost, nil
}

// epochOf is the instant from which a run's exported times count.
func epochOf(run *coord.Run) time.Time { return time.Unix(0, run.Spec.Epoch) }

// followEvery is the wall time between two looks at what was noted.
const followEvery = 300 * time.Millisecond

// follower observes a run while it lasts, from a goroutine of its own.
type follower struct {
	c      *client.Client
	plan   *topology.Plan
	w      *watcher
	run    string
	events bool
	watch  *spreadWatch
	stop   context.CancelFunc
	done   chan struct{}
}

// follow starts observing a run. What w has started is ended by complete.
func follow(c *client.Client, plan *topology.Plan, w *watcher, run string, events bool) *follower {
	ctx, stop := context.WithCancel(context.Background())
	f := &follower{c: c, plan: plan, w: w, run: run, events: events, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for ctx.Err() == nil {
			f.once(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(followEvery):
			}
		}
	}()
	return f
}

// once takes what there is. Not to reach a process is no error: what it noted
// comes later.
func (f *follower) once(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, err := f.c.Status(ctx)
	if err != nil || s.Run == nil || s.Run.ID != f.run || len(s.Run.Slots) == 0 || s.Run.Phase != coord.Running {
		return
	}
	if f.watch == nil {
		f.watch = watchSpread(f.plan, f.w, len(s.Run.Slots), f.events)
	}
	_ = f.watch.follow(ctx, f.c, s.Run)
}

// end stops observing and returns what was seen, nil when nothing was.
func (f *follower) end() *spreadWatch {
	f.stop()
	<-f.done
	return f.watch
}

// lookCounters reads the counters of a running fabric, in all processes right
// before the same window where they meet; else apart says so.
func lookCounters(ctx context.Context, c *client.Client, plan *topology.Plan, st *coord.RunStatus) (s *counters.Snapshot, apart bool, err error) {
	seen, err := c.LookTogether(ctx, len(st.Slots), coord.Look{Run: st.ID, What: emu.AskCounters})
	if err != nil {
		return nil, false, err
	}
	s, err = emu.Counters(plan, seen)
	return s, !client.Together(seen), err
}

// WriteDir writes the chains, and the splits of the flows' time where there are
// any.
func (s *spreadWatch) WriteDir(path string) error {
	if s.unsplit != nil {
		return s.Session.WriteDir(path)
	}
	return s.watcher.WriteDir(path)
}
