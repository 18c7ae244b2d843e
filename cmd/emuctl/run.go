package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

type runFlags struct {
	Set       []string `flag:"set" help:"override one value: path=value, as in switches.all.pfc.headroom=0B (repeatable)"`
	File      []string `flag:"file,f" help:"fabric file, as the arguments; later ones overlay earlier ones (repeatable)"`
	Seed      *uint64  `flag:"seed" help:"override the file's seed"`
	Processes string   `flag:"processes" help:"spread over N emud processes through NATS, or per-device; the result does not depend on it"`
	Interact  bool     `flag:"interactive" help:"let a second terminal control the run: emuctl status, fault inject, set, pause, counters, stop …; so is every run with until: stopped"`
	Kill      *uint64  `flag:"kill" help:"with --processes: kill -9 processes now and then, from this seed; the result does not change"`
	Workers   int      `flag:"workers" help:"threads; 0 = by the fabric's size. The result does not depend on it"`
	Out       string   `flag:"out,o" help:"directory for result.json, flows.csv, series.csv, events.jsonl, chains.jsonl, splits.jsonl, fabric.resolved.yaml"`
	Chaos     *uint64  `flag:"chaos" help:"draw faults from this seed, heal them, and demand that everything completes"`
	Pcap      []string `flag:"pcap" help:"capture a port: DEVICE:PORT=FILE (repeatable)"`
	SaveAt    []string `flag:"save-at" help:"save the whole fabric at a virtual time: TIME=FILE (repeatable)"`
	Restore   string   `flag:"restore" help:"go on from a saved fabric; without FILE its own text, --set asks what if. The result and events are of the whole run; series, splits, captures and exports of counters begin there"`
	Metrics   string   `flag:"metrics" help:"serve a Prometheus endpoint at HOST:PORT while the run lasts"`
	GNMI      string   `flag:"gnmi" help:"serve gNMI at HOST:PORT and the ports after it, a switch each, while the run lasts"`
	Dialout   string   `flag:"dialout" help:"have each switch publish its counters to a gNMI dial-out listener: HOST:PORT as gnmic listen and telegraf take it, sonic:HOST:PORT by SONiC's method"`
}

func (a *app) run() *cobra.Command {
	var f runFlags
	return a.command(verb{
		use: "run FILE... [--set path=value]... [--seed N] [--workers N] [--processes N|per-device] [--out DIR] [--pcap DEVICE:PORT=FILE] [--chaos SEED] [--save-at T=SNAP] [--restore SNAP] [--json]", short: "Run a fabric and report what happened",
		long: `Runs the fabric in this process. A terminal shows progress; the first interrupt
stops it and reports what there is, with verdict "limit"; a second one kills.

Several files overlay one another, key by key: arguments, then --file; --set comes last.`,
		example: "  emuctl run examples/two-racks.yaml\n  emuctl run examples/incast.yaml --set switches.all.pfc.headroom=0B --json\n  emuctl run examples/incast.yaml --save-at 50us=half.snap\n  emuctl run --restore half.snap --set switches.all.ecn.kmin=20KB",
		flags:   &f,
		run:     func(ctx context.Context, args []string) error { return a.runFabric(ctx, append(args, f.File...), &f) },
	})
}

func (a *app) runFabric(ctx context.Context, files []string, f *runFlags) error {
	if f.Workers < 0 {
		return fmt.Errorf("--workers %d: must be 0 or more", f.Workers)
	}
	if err := f.check(); err != nil {
		return err
	}
	// Reading the file and writing the result are of the run too. Where the
	// process ends with it, putting the collector back would only start it.
	_, ended := sim.Ease(1, 1)
	l, err := f.load(files)
	if err != nil {
		return err
	}
	caps, err := captures(l.plan, f.Pcap)
	if err != nil {
		return err
	}
	l.plan.Capture = append(l.plan.Capture, caps...)
	var dir *report.Dir
	if f.Out != "" {
		if dir, err = report.OpenDir(f.Out); err != nil {
			return err
		}
	}
	for _, w := range l.warns {
		fmt.Fprintln(a.err, "warning:", w)
	}
	a.warnUnknown(ctx, f.Dialout)
	if f.Chaos != nil {
		if err := a.drawChaos(ctx, l, f); err != nil {
			return err
		}
	}
	if err := f.control(l.plan); err != nil {
		return err
	}
	if f.Processes != "" || f.Interact {
		ended()
		return a.runSpread(ctx, l, files, f, dir)
	}
	res, w, err := a.execRun(ctx, l, f, dir != nil)
	if errors.Is(err, sim.ErrUnlike) {
		return fmt.Errorf("--restore %s: %w", f.Restore, err)
	}
	if err != nil {
		return exitError{report.ExitFailed, err}
	}
	a.judgeChaos(l, res, files, f)
	if dir != nil {
		if err := errors.Join(dir.Write(res), w.WriteDir(f.Out)); err != nil {
			// The run may have taken hours: what it found is shown all the same.
			return exitError{report.ExitFailed, errors.Join(err, silent(a.showResult(res)))}
		}
	}
	return a.showResult(res)
}

// check refuses flags that are wrong by themselves.
func (f *runFlags) check() error {
	if _, err := saves(f.SaveAt, nil); err != nil {
		return err
	}
	return checkSinks(f.GNMI, f.Dialout)
}

// silent leaves out the verdict's exit code: another error has its own.
func silent(err error) error {
	var e exitError
	if errors.As(err, &e) && e.err == nil {
		return nil
	}
	return err
}

// control makes a fabric that is never idle controllable, where nothing is
// asked for that only a run by itself does.
func (f *runFlags) control(plan *topology.Plan) error {
	alone := ""
	switch {
	case len(f.Pcap) > 0:
		alone = "--pcap; emuctl pcap captures ports of a running fabric"
	case len(plan.Capture) > 0:
		alone = "capture: in the file; emuctl pcap captures ports of a running fabric"
	case len(f.SaveAt) > 0 || f.Restore != "":
		alone = "--save-at or --restore; emuctl snapshot saves a running fabric"
	}
	if f.Kill != nil && f.Processes == "" {
		return errors.New("--kill kills processes: it goes with --processes N")
	}
	if f.Processes != "" && (len(f.SaveAt) > 0 || f.Restore != "") {
		return errors.New("--processes does not go with --save-at or --restore; emuctl snapshot saves a running fabric")
	}
	if f.Interact && alone != "" {
		return fmt.Errorf("--interactive does not go with %s", alone)
	}
	f.Interact = f.Interact || f.Processes == "" && alone == "" && plan.Run.Until == topology.UntilStopped
	return nil
}

// execRun runs the plan under progress and interrupt and judges it.
func (a *app) execRun(ctx context.Context, l *loaded, f *runFlags, events bool) (*report.Result, *watcher, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // a second interrupt kills
	}()
	o := sim.Options{Workers: f.Workers}
	var p *progress
	if a.errTTY {
		p = newProgress(a.err, l.plan)
		o.Progress = p.show
	}
	var log eventLog
	if events {
		log.plan = l.plan
		o.Records = log.add
	}
	saved := map[string]bool{}
	if err := f.resume(&o, saved); err != nil {
		return nil, nil, err
	}
	w, err := watch(l.plan, &o, events, f)
	if err != nil {
		return nil, nil, err
	}
	res, err := sim.Run(ctx, l.plan, o)
	if p != nil {
		p.clear()
	}
	if err != nil {
		return nil, nil, err
	}
	res.Detail.Events, res.Detail.Resolved = log.events, l.plan.Resolved()
	if err := w.finish(res); err != nil {
		return nil, nil, err
	}
	for _, s := range f.unsaved(res, saved) {
		fmt.Fprintln(a.err, "warning:", s)
	}
	warn(res, l.warns, topology.Lint(l.plan))
	if ctx.Err() != nil && cutShort(res) {
		return res, w, nil
	}
	return res, w, l.expect.Judge(res)
}

// cutShort notes that an interrupt ended a run before its time, if one did:
// expectations speak of a run that was let to end.
func cutShort(res *report.Result) bool {
	if res.Verdict != report.Limit {
		return false
	}
	res.VerdictReason += ", interrupted; expectations not judged"
	return true
}

// showResult prints a result and turns its verdict into an exit code.
func (a *app) showResult(res *report.Result) error {
	var err error
	if a.json {
		err = report.WriteJSON(a.out, res)
	} else {
		err = report.WriteSummary(a.out, res, a.outTTY)
	}
	if err != nil {
		return err
	}
	if res.Exit != report.ExitOK {
		return exitError{code: res.Exit}
	}
	return nil
}
