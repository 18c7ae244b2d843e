package main

import (
	"context"
	"fmt"

	"github.com/rocemu/rocemu/report"
	"github.com/spf13/cobra"
)

func (a *app) diff() *cobra.Command {
	var f struct {
		FailIf []string `flag:"fail-if" help:"exit with 1 when a figure changed so from A to B: 'p99>+5%', 'goodput<-5%', 'drops>0' (repeatable)"`
	}
	return a.command(verb{
		use: "diff A B [--fail-if 'p99>+5%']", short: "Compare two results",
		long:    "A and B are output directories of `emuctl run --out` or result files. Shown is\nwhat differs, by workload line; FCT figures are in nanoseconds.",
		example: "  emuctl run examples/incast.yaml --out a\n  emuctl run examples/incast.yaml --seed 2 --out b\n  emuctl diff a b --fail-if 'p99>+5%'",
		args:    cobra.ExactArgs(2), flags: &f,
		run: func(_ context.Context, args []string) error { return a.runDiff(args[0], args[1], f.FailIf) },
	})
}

func (a *app) runDiff(pa, pb string, failIf []string) error {
	var conds []report.Condition
	for _, s := range failIf {
		c, err := report.ParseCondition(s)
		if err != nil {
			return err
		}
		conds = append(conds, c)
	}
	ra, err := report.ReadResult(pa)
	if err != nil {
		return err
	}
	rb, err := report.ReadResult(pb)
	if err != nil {
		return err
	}
	d := report.Compare(ra, rb, conds)
	if err := a.showDiff(d); err != nil {
		return err
	}
	if n := len(d.Failures); n > 0 {
		return exitError{report.ExitFailed, fmt.Errorf("%d condition(s) met: %s", n, d.Failures[0])}
	}
	return nil
}

func (a *app) showDiff(d *report.Diff) error {
	if a.json {
		return a.printJSON(d)
	}
	same := "digests differ"
	if d.SameDigest {
		same = "equal digests"
	}
	if err := a.printf("%s; verdict %s -> %s\n", same, d.VerdictA, d.VerdictB); err != nil {
		return err
	}
	for _, l := range [][2]any{{"A", d.OnlyA}, {"B", d.OnlyB}} {
		for _, n := range l[1].([]string) {
			if err := a.printf("only in %s: %s\n", l[0], n); err != nil {
				return err
			}
		}
	}
	if len(d.Changes) == 0 {
		return a.printf("no figure differs\n")
	}
	t := report.NewTable("where", "metric", "A", "B", "change")
	for _, c := range d.Changes {
		pct := "new"
		if c.Percent != nil {
			pct = fmt.Sprintf("%+.4g%%", *c.Percent)
		}
		if c.Failed {
			pct += " !"
		}
		t.AppendRow([]any{c.Where, c.Metric, fmt.Sprintf("%.12g", c.A), fmt.Sprintf("%.12g", c.B), pct})
	}
	return a.printf("%s\n", t.Render())
}
