package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// localContext is the name under which a second terminal finds a run; further
// ones at the same time get a number.
const localContext = "local"

// localHorizon is how much wall time, in ms, the processes of this machine are
// granted at once: what is granted is run before an interrupt takes effect. It is
// twice the span between heartbeats, so that nobody waits for a grant; their
// leader cannot be lost, for which longer ones are made.
const localHorizon = 400

// runSpread is `run --processes`.
func (a *app) runSpread(ctx context.Context, l *loaded, files []string, f *runFlags, dir *report.Dir) error {
	if len(f.Pcap) > 0 {
		return fmt.Errorf("--pcap works in one process; leave --processes out")
	}
	g := gathering{known: l.plan, expect: l.expect, events: dir != nil, collector: true}
	res, err := a.runProcesses(ctx, l.plan, f, &g)
	if err != nil {
		return err
	}
	warn(res, l.warns)
	a.judgeChaos(l, res, files, f)
	if dir != nil {
		if err := errors.Join(dir.Write(res), g.watch.WriteDir(f.Out)); err != nil {
			return exitError{report.ExitFailed, err}
		}
	}
	return a.showResult(res)
}

// runProcesses runs a plan on emud child processes of this machine, or in this
// one, with a coordinator that others can talk to.
func (a *app) runProcesses(ctx context.Context, plan *topology.Plan, f *runFlags, g *gathering) (*report.Result, error) {
	m := new(emu.Model)
	o := coord.LocalOptions{Model: m, Workers: f.Workers, Stderr: os.Stderr}
	if o.Inside = f.Processes == ""; o.Inside {
		o.Workers = sim.Workers(plan, f.Workers, runtime.GOMAXPROCS(0))
	} else if err := spread(plan, f.Processes, &o); err != nil {
		return nil, err
	}
	o.Lost = func(name string, err error) {
		fmt.Fprintf(a.err, "emuctl: process %s is lost (%v); its share runs again\n", name, err)
	}
	o.Stderr = nil // the processes' logs are of use only to who debugs them
	if os.Getenv("EMUD_LOG") != "" {
		o.Stderr = os.Stderr
	}
	l, err := coord.StartLocal(ctx, o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	x := client.Context{NATS: l.URL, PID: os.Getpid()}
	defer a.offer(x)()
	d, err := x.Dialer("emuctl-run", 5*time.Second)
	if err != nil {
		return nil, err
	}
	c, err := client.Dial(d)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if o.Inside && !a.json {
		fmt.Fprintln(a.err, "in another terminal: emuctl status, counters --watch, fault inject, set, pause, stop")
	}
	return a.drive(ctx, l, c, m, plan, f, max(1, o.Processes), g)
}

// offer names a run's cluster for other terminals until the returned function
// is called.
func (a *app) offer(x client.Context) (withdraw func()) {
	var name string
	err := client.EditContexts(func(c *client.Contexts) error { name = c.Enter(localContext, x); return nil })
	if err != nil {
		fmt.Fprintln(a.err, "warning: no context for a second terminal:", err)
		return func() {}
	}
	if name != localContext {
		fmt.Fprintf(a.err, "another run is going on here; this one's context is %s, for emuctl --context\n", name)
	}
	return func() {
		_ = client.EditContexts(func(c *client.Contexts) error {
			if c.Named[name].NATS == x.NATS {
				c.Remove(name)
			}
			return nil
		})
	}
}

// spread reads --processes: a number, or per-device.
func spread(plan *topology.Plan, s string, o *coord.LocalOptions) error {
	if s == "per-device" {
		for i := range plan.Devices {
			o.Devices = append(o.Devices, []string{plan.Devices[i].Name})
		}
		o.Processes = len(o.Devices)
		if o.Processes > 64 {
			return fmt.Errorf("--processes per-device: %d devices, at most 64 processes; give a number", o.Processes)
		}
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 64 {
		return fmt.Errorf("--processes %q: must be 1 to 64, or per-device", s)
	}
	o.Processes = n
	return nil
}

// drive submits, shows progress, stops on an interrupt and fetches the result.
func (a *app) drive(ctx context.Context, l *coord.Local, c *client.Client, m *emu.Model, plan *topology.Plan, f *runFlags, n int, g *gathering) (*report.Result, error) {
	s := specOf(plan)
	if s.Members, s.Batch = n, plan.Run.Until != topology.UntilStopped && !f.Interact; s.Batch {
		s.Horizon = localHorizon
	}
	s.ID, s.Series, s.Splits = client.NewID(), f.Out != "" || !f.sinks(plan).none(), f.Out != ""
	var extra []topology.Fault // drawn by --chaos: the text submitted has them not
	if f.Chaos != nil {
		extra, g.known = plan.Faults[planned(plan):], nil
	} else {
		m.Know(s.ID, plan)
	}
	s.Pause = len(extra) > 0
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the next one kills
	g.interrupted = func() bool { return ctx.Err() != nil }
	whole := context.WithoutCancel(ctx) // an interrupt stops what has begun
	sctx, cancel := context.WithTimeout(whole, 30*time.Second)
	id, err := c.Submit(sctx, s)
	cancel()
	if err == nil && s.Pause {
		err = injectPlanned(whole, c, extra)
	}
	if err != nil {
		return nil, err
	}
	if to := f.sinks(plan); !to.none() {
		w, err := newWatcher(plan, time.Now(), to)
		if err != nil {
			return nil, err
		}
		g.follow = follow(c, plan, w, id, g.events)
		defer g.follow.end()
	}
	over, said := make(chan struct{}), make(chan struct{})
	defer func() { close(over); <-said }()
	go func() { a.interrupted(ctx, over, c); close(said) }()
	if f.Kill != nil {
		go a.harm(over, l, *f.Kill)
	}
	var p *progress
	if a.errTTY {
		p = newProgress(a.err, plan)
		defer p.clear()
	}
	t0 := time.Now()
	g.run, g.tick = id, func(s *coord.Status) {
		if p != nil && s.Run != nil && s.Run.ID == id {
			x, w := sim.Progress{Virtual: s.Run.Virtual, Until: until(plan), Windows: s.Run.Windows, Wall: time.Since(t0)}, s.Run.Work
			if w != nil {
				x.Hops, x.Outstanding = w.Hops, w.Outstanding
			}
			p.line(x, w != nil)
		}
	}
	g.ended = l.Over(id)
	res, err := a.collect(whole, c, g)
	if cost := g.cost; err == nil && !a.json && f.Processes != "" {
		fmt.Fprintf(a.err, "%d processes: %d windows, %.0f/s; compute %.2f s, waiting %.2f s, %.0f bytes a window, %d batches sent again, %d moves\n",
			n, cost.Windows, cost.WindowsPerS, cost.ComputeS, cost.WaitS, cost.BytesPerWindow, cost.Resent, cost.Moves)
	}
	return res, err
}

// planned counts the faults of the resolved text; others were added to the plan.
func planned(plan *topology.Plan) int {
	p, _, err := topology.LoadBytes(plan.Name, plan.Resolved())
	if err != nil {
		return len(plan.Faults)
	}
	return min(len(p.Faults), len(plan.Faults))
}

// injectPlanned gives a paused run faults whose instants are in its future, and
// lets it go.
func injectPlanned(ctx context.Context, c *client.Client, faults []topology.Fault) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i := range faults {
		f := coord.Fault{Name: faults[i].Name, Text: faults[i].String(), Want: faults[i].At}
		if _, err := c.Fault(ctx, f); err != nil {
			return fmt.Errorf("fault %s: %w", f.Text, err)
		}
	}
	return c.Resume(ctx)
}

func until(plan *topology.Plan) clock.Time {
	if plan.Run.At > 0 {
		return plan.Run.At
	}
	return clock.Time(0).Add(plan.Run.Limit)
}

// interrupted turns an interrupt into a stop of the fabric.
func (a *app) interrupted(ctx context.Context, over chan struct{}, c *client.Client) {
	select {
	case <-over:
		return
	case <-ctx.Done():
	}
	sctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	at, err := c.Stop(sctx, 0)
	if err != nil {
		fmt.Fprintln(a.err, "emuctl: stop:", err)
		return
	}
	if a.errTTY {
		newProgress(a.err, nil).clear()
	}
	fmt.Fprintf(a.err, "emuctl: interrupted; the fabric stops at %v virtual, the end of what it has been granted; a second interrupt ends emuctl at once\n", at)
}

// harm kills a process now and then, from a seed: --kill. The result must not
// change.
func (a *app) harm(over chan struct{}, l *coord.Local, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0xC405))
	for range 8 {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(300+r.IntN(1200)) * time.Millisecond):
		}
		pids := l.Pids()
		if len(pids) == 0 {
			continue
		}
		name := fmt.Sprintf("p%d", 1+r.IntN(len(pids)))
		if pid := pids[name]; pid != 0 {
			fmt.Fprintf(a.err, "emuctl: chaos: kill -9 %s\n", name)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
