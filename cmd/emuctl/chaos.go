package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/sim/chaos"
)

// drawChaos adds the seed's faults to the plan. The fabric runs once without
// them, to know how long there is something to break; the file's expectations
// are about that run and are left out.
func (a *app) drawChaos(ctx context.Context, l *loaded, f *runFlags) error {
	clean, err := sim.Run(ctx, l.plan, sim.Options{Workers: f.Workers})
	if err != nil {
		return err
	}
	if err := chaos.Judge(l.plan, clean); err != nil {
		return exitError{report.ExitFailed, fmt.Errorf("--chaos: the fabric does not converge even without faults: %w", err)}
	}
	faults, err := chaos.Draw(l.plan, *f.Chaos, clean)
	if err != nil {
		return err
	}
	l.plan.Faults, l.drawn = append(l.plan.Faults, faults...), faults
	l.plan.Expect = nil
	if l.expect, err = sim.Expectations(l.plan); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "chaos seed %d:\n%s", *f.Chaos, chaos.Text(faults))
	return nil
}

// judgeChaos tells of drawn faults that acted on nothing, and turns a run that
// did not converge into verdict failed, with the command that repeats it.
func (a *app) judgeChaos(l *loaded, res *report.Result, files []string, f *runFlags) {
	if f.Chaos == nil {
		return
	}
	chaos.Missed(l.drawn, res)
	err := chaos.Judge(l.plan, res)
	if err == nil {
		return
	}
	again := "emuctl run " + strings.Join(files, " ")
	for _, s := range f.Set {
		again += " --set " + s
	}
	if f.Seed != nil {
		again += fmt.Sprintf(" --seed %d", *f.Seed)
	}
	again += fmt.Sprintf(" --chaos %d", *f.Chaos)
	res.Raise(report.Failed, fmt.Sprintf("chaos seed %d did not converge: %v; repeat with: %s", *f.Chaos, err, again))
	fmt.Fprintln(a.err, "repeat with:", again)
}
