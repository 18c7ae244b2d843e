package main

import (
	"io"
	"os"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/telemetry"
	"github.com/rocemu/rocemu/topology"
)

// Without telemetry.interval, an output directory gets samples every
// firstInterval, and half as often after every samplesPerStep of them: fine at
// the start and never many.
const (
	firstInterval  = 10 * clock.Microsecond
	samplesPerStep = 500
)

// watcher observes one run: chains, series, exports.
type watcher struct {
	*telemetry.Session
	caps   *sim.Captures
	fabric *sim.Fabric
	snap   counters.Snapshot
	next   clock.Time
	every  clock.Duration
	fixed  bool
	count  int
}

// watch hooks a session into a run's options. Chains are always assembled: they
// are part of the result. Series are sampled for an output directory or when
// the file asks.
func watch(plan *topology.Plan, o *sim.Options, out bool) (*watcher, error) {
	so := telemetry.Options{Epoch: time.Now()}
	if plan.Telem.OTLP != "" {
		so.Endpoints = []string{plan.Telem.OTLP}
	}
	s, err := telemetry.NewSession(plan, so)
	if err != nil {
		return nil, err
	}
	w := &watcher{Session: s, every: firstInterval}
	if also := o.Records; also != nil {
		o.Records = func(b []record.Record) { also(b); w.Records(b) }
	} else {
		o.Records = w.Records
	}
	build := o.OnBuild
	o.OnBuild = func(f *sim.Fabric) (err error) {
		w.fabric = f
		if build != nil {
			err = build(f)
		}
		if err == nil && len(plan.Capture) > 0 {
			w.caps, err = sim.NewCaptures(f, plan.Capture, createFile)
		}
		return err
	}
	if len(plan.Capture) > 0 {
		w.hookCaptures(o)
	}
	if plan.Telem.Interval > 0 {
		w.every, w.fixed = plan.Telem.Interval, true
	}
	if out || w.fixed {
		o.SampleEvery, o.Sample = w.every, w.sample
	}
	return w, nil
}

// sample takes the counters at t unless the interval has grown beyond it.
func (w *watcher) sample(t clock.Time, f *sim.Fabric) {
	if t < w.next {
		return
	}
	f.Snapshot(t, &w.snap)
	w.Snapshot(&w.snap)
	if w.count++; !w.fixed && w.count%samplesPerStep == 0 {
		w.every *= 2
	}
	w.next = t.Add(w.every)
}

// hookCaptures feeds the captures, which exist once the fabric is built.
func (w *watcher) hookCaptures(o *sim.Options) {
	records := o.Records
	o.Records = func(b []record.Record) { records(b); w.caps.Records(b) }
	o.Between = func(start clock.Time, n uint64) { w.caps.Between(start, n) }
}

// createFile opens an output; "-" is standard output.
func createFile(name string) (io.WriteCloser, error) {
	if name == "-" {
		return stdout{}, nil
	}
	return os.Create(name)
}

// stdout is standard output, left open.
type stdout struct{}

func (stdout) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdout) Close() error                { return nil }

// finish takes the last sample, ends the captures and completes the result.
func (w *watcher) finish(r *report.Result) error {
	var err error
	if w.caps != nil {
		err = w.caps.Close()
	}
	if w.count > 0 {
		w.fabric.Snapshot(clock.Time(r.VirtualNS), &w.snap)
		w.Snapshot(&w.snap)
	}
	w.Finish(r)
	return err
}
