package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sweep"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

type sweepFlags struct {
	fileFlags
	Vary   []string `flag:"vary" help:"PATH=v1,v2,… or PATH=a..b[:steps]; any path of the file (repeatable: the grid of all)"`
	Seeds  int      `flag:"seeds" help:"runs a point, from the file's seed upwards"`
	Goal   string   `flag:"goal" help:"smallest-buffer-without-loss, lowest-p99, highest-goodput, least-pause or shortest-completion"`
	Out    string   `flag:"out,o" help:"directory for sweep.csv, sweep.svg, front.svg and the journal; default NAME-sweep, - for none"`
	Resume bool     `flag:"resume" help:"take finished runs from the journal in the directory"`
}

// sweepOut is what `emuctl sweep --json` prints.
type sweepOut struct {
	Name    string        `json:"name"`
	Seeds   int           `json:"seeds"`
	Goal    sweep.Goal    `json:"goal,omitempty"`
	Axes    []sweep.Axis  `json:"axes"`
	Points  []sweep.Point `json:"points"`
	Invalid int           `json:"invalid_points"` // that no fabric can be made of; each says why
	Files   []string      `json:"files,omitempty"`
}

func (a *app) sweep() *cobra.Command {
	f := sweepFlags{Seeds: 1}
	return a.command(verb{
		use: "sweep FILE --vary PATH=v1,v2,… [--vary PATH=a..b[:steps]] [--seeds N] [--goal GOAL] [--out DIR] [--resume]", short: "Run a grid of variants and show the trade",
		long: `Runs the fabric with every combination of values, on all cores, and prints a row
each; * marks the Pareto front (drops, goodput, p99 of the completion time, pause
time and, when a size of buffer varies, that size), > the point of the goal. The
directory gets a CSV file with a row a run, two pictures, and a journal with which
--resume goes on after an interruption or with a larger grid.

A range a..b is even in logarithm if it spans a factor of 8, else even; fractions
step by powers of two. Values that exclude each other leave their point out, which
its note says. --vary seed=1,2,3 makes the seed an axis, --seeds N folds N seeds into
each point. Expectations of the file are not judged.`,
		example: "  emuctl sweep examples/incast.yaml --vary switches.all.pfc.alpha=1/64..1 --goal lowest-p99\n  emuctl sweep examples/incast.yaml --vary switches.all.buffer.size=256KiB..4MiB --seeds 3 --goal smallest-buffer-without-loss",
		flags:   &f,
		run: func(ctx context.Context, args []string) error {
			return a.runSweep(ctx, append(f.File, args...), &f)
		},
	})
}

// loader resolves files anew for each variant, quietly.
func loader(files, sets []string, seed *uint64) sweep.Loader {
	return func(more []string, s *uint64) (*topology.Plan, error) {
		if s == nil {
			s = seed
		}
		plan, _, err := topology.Load(topology.LoadOptions{Files: files, Sets: append(append([]string{"expect=[]"}, sets...), more...), Seed: s})
		return plan, err
	}
}

// buildID tells builds apart whose models may differ.
func buildID() string {
	id := ""
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
				id += s.Value + " "
			}
		}
	}
	return strings.TrimSpace(id)
}

func (f *sweepFlags) grid(files []string) (*sweep.Grid, sweep.Goal, error) {
	goal, err := sweep.ParseGoal(f.Goal)
	switch {
	case err != nil:
		return nil, "", err
	case len(files) == 0:
		return nil, "", fmt.Errorf("no fabric file; `emuctl init` writes one to start from")
	case len(f.Vary) == 0:
		return nil, "", fmt.Errorf("nothing varies: give --vary PATH=v1,v2,…")
	case f.Seeds < 1 || f.Seeds > 1000:
		return nil, "", fmt.Errorf("--seeds %d: allowed 1..1000", f.Seeds)
	}
	g := &sweep.Grid{Load: loader(files, f.Set, f.Seed), Seeds: f.Seeds}
	for _, v := range f.Vary {
		ax, err := sweep.ParseAxis(v)
		if err != nil {
			return nil, "", err
		}
		g.Axes = append(g.Axes, ax)
		if ax.Path == sweep.SeedPath && (f.Seeds > 1 || f.Seed != nil) {
			return nil, "", fmt.Errorf("--vary seed sets the seed of every point; give it without --seed and --seeds, or --seeds N alone for N seeds a point")
		}
	}
	if err := sweep.Mark(nil, g.Axes, goal); err != nil {
		return nil, "", err
	}
	return g, goal, nil
}

func (a *app) runSweep(ctx context.Context, files []string, f *sweepFlags) error {
	g, goal, err := f.grid(files)
	if err != nil {
		return err
	}
	base, err := g.Check()
	if err != nil {
		return err
	}
	if goal == sweep.ShortestCompletion && !sweep.Ends(base) {
		return fmt.Errorf("--goal %s needs a workload line with an end, and all go on for ever", goal)
	}
	o := &sweepOut{Name: base.Name, Seeds: f.Seeds, Goal: goal, Axes: g.Axes}
	dir := f.Out
	if dir == "" {
		dir = orName(base.Name) + "-sweep"
	}
	if dir != "-" {
		if _, err := report.OpenDir(dir); err != nil {
			return err
		}
		if g.Journal, err = sweep.OpenJournal(filepath.Join(dir, "journal.jsonl"), buildID(), f.Resume); err != nil {
			return err
		}
	}
	if o.Points, err = a.doGrid(ctx, g); err != nil {
		return errors.Join(exitError{report.ExitFailed, err}, g.Journal.Close())
	}
	if err := g.Journal.Close(); err != nil {
		return exitError{report.ExitFailed, err}
	}
	for i := range o.Points {
		if o.Points[i].Invalid != "" {
			o.Invalid++
		}
	}
	if err := sweep.Mark(o.Points, g.Axes, goal); err != nil {
		return err
	}
	if dir != "-" {
		if err := o.write(dir); err != nil {
			return exitError{report.ExitFailed, err}
		}
	}
	return a.showSweep(o)
}

// doGrid runs the grid under an interrupt, with progress on a terminal.
func (a *app) doGrid(ctx context.Context, g *sweep.Grid) ([]sweep.Point, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if a.errTTY {
		g.Progress = func(done, all int) { fmt.Fprintf(a.err, "\r%d of %d runs\x1b[K", done, all) }
		defer fmt.Fprint(a.err, "\r\x1b[K")
	}
	return g.Do(ctx)
}

func orName(name string) string {
	if name == "" || strings.ContainsAny(name, "/\\") {
		return "fabric"
	}
	return name
}

// write puts table and pictures into the directory.
func (o *sweepOut) write(dir string) error {
	for _, x := range []struct {
		name string
		make func(io.Writer) error
	}{
		{"sweep.csv", func(w io.Writer) error { return sweep.WriteCSV(w, o.Axes, o.Points) }},
		{"sweep.svg", func(w io.Writer) error { return sweep.Picture(w, o.Axes, o.Points) }},
		{"front.svg", func(w io.Writer) error { return sweep.FrontPicture(w, o.Points) }},
	} {
		var b bytes.Buffer
		if err := x.make(&b); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		path := filepath.Join(dir, x.name)
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			return err
		}
		o.Files = append(o.Files, path)
	}
	return nil
}

func (a *app) showSweep(o *sweepOut) error {
	if a.json {
		return a.printJSON(o)
	}
	head := []any{""}
	for _, ax := range o.Axes {
		head = append(head, ax.Path)
	}
	t := report.NewTable(append(head, "goodput", "FCT p50", "FCT p99", "completion", "paused", "marks", "drops", "headroom", "queue", "note")...)
	for i := range o.Points {
		if o.Points[i].Invalid == "" {
			t.AppendRow(sweepRow(&o.Points[i], o.Seeds))
		}
	}
	if err := a.printf("%s: %d points, %d run(s) each\n%s\n* Pareto front", o.Name, len(o.Points), o.Seeds, t.Render()); err != nil {
		return err
	}
	if o.Invalid > 0 {
		if err := a.printf("%s", o.leftOut()); err != nil {
			return err
		}
	}
	if o.Goal != "" {
		if err := a.printf("; > %s%s", o.Goal, o.noBest()); err != nil {
			return err
		}
	}
	if len(o.Files) == 0 {
		return a.printf("\n")
	}
	return a.printf("\n%s written\n", list(o.Files))
}

// leftOut names the points that no fabric could be made of, and the first reason.
func (o *sweepOut) leftOut() string {
	s, why := "", ""
	for i := range o.Points {
		p := &o.Points[i]
		if p.Invalid == "" {
			continue
		}
		if s += "\n  "; why == "" {
			why = p.Invalid
		}
		for k, v := range p.Values {
			s += o.Axes[k].Path + "=" + v + " "
		}
		s = strings.TrimRight(s, " ")
	}
	return fmt.Sprintf("\n%d of %d points are invalid and did not run:%s\nthe first because of %s", o.Invalid, len(o.Points), s, why)
}

func (o *sweepOut) noBest() string {
	for i := range o.Points {
		if o.Points[i].Best {
			return ""
		}
	}
	return ": no point reaches it"
}

// sweepRow is a point's line; figures of several seeds carry half their range.
func sweepRow(p *sweep.Point, seeds int) []any {
	mark := ""
	if p.Front {
		mark = "*"
	}
	if p.Best {
		mark += ">"
	}
	row := []any{mark}
	for _, v := range p.Values {
		row = append(row, v)
	}
	span := func(s sweep.Spread) string {
		if seeds == 1 {
			return report.Span(report.NS(s.Mean))
		}
		return report.Span(report.NS(s.Mean)) + " ± " + report.Span(report.NS(s.Half()))
	}
	good := report.BitRate(int64(p.Goodput.Mean))
	if seeds > 1 {
		good += " ± " + report.BitRate(int64(p.Goodput.Half()))
	}
	return append(row, good, span(p.P50), span(p.P99), span(p.Completion), fmt.Sprintf("%.2f %%", 100*p.Pause.Mean), p.Marks, p.Drops,
		report.Bytes(p.Headroom), report.Bytes(p.Queue), p.Note)
}
