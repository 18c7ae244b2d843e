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
	"github.com/rocemu/rocemu/telemetry/metrics"
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
	log   *eventLog // nil: no events
	faced int       // live faults named so far
	fresh time.Time // when the last sample came
	end   *counters.Snapshot
}

// watchSpread observes a run of that many slots.
func watchSpread(known *topology.Plan, w *watcher, slots int, events bool) *spreadWatch {
	s := &spreadWatch{watcher: w, known: known, notes: emu.NewNotes(known, slots)}
	if events {
		s.log = &eventLog{plan: known}
	}
	s.notes.Records = func(b []record.Record) {
		if s.log != nil {
			s.log.add(b)
		}
		w.Records(b)
	}
	s.notes.Sample = func(n *counters.Snapshot, last bool) {
		if last { // its instant is the result's
			s.end = n
			return
		}
		w.Snapshot(n)
		w.offer(n, metrics.Health{WallSeconds: time.Since(w.start).Seconds()})
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
	s.offer(snap, metrics.Health{Windows: st.Windows, WallSeconds: time.Since(s.start).Seconds()})
	return nil
}

// complete takes the rest of an ended run's notes and completes its result.
func (s *spreadWatch) complete(run *coord.Run, res *report.Result, fetch func(sum string) ([]byte, error)) error {
	err := errors.Join(s.name(run.Faults), s.notes.Collect(run, fetch))
	if s.end != nil {
		s.end.At = clock.Time(res.VirtualNS)
		s.Snapshot(s.end)
		s.offer(s.end, metrics.Health{FrameHops: uint64(res.Engine.FrameHops), Events: uint64(res.Engine.Events), Windows: res.Engine.Windows, WallSeconds: res.Engine.WallS})
	}
	s.watcher.end()
	if s.log != nil {
		res.Detail.Events = s.log.events
	}
	s.Finish(res)
	return err
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

// WriteDir writes the chains.
func (s *spreadWatch) WriteDir(path string) error { return s.Session.WriteDir(path) }
