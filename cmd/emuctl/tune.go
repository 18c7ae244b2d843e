package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sweep"
	"github.com/spf13/cobra"
)

type tuneFlags struct {
	fileFlags
	Scope  string `flag:"scope" help:"whose settings: switches.all, switches.leaf or switches.spine"`
	Goal   string `flag:"goal" help:"lowest-p99, highest-goodput, least-pause or shortest-completion (of the longest workload line, a collective as a whole), all under no loss"`
	Seeds  int    `flag:"seeds" help:"runs a setting"`
	Budget int    `flag:"budget" help:"runs of the search; the final check comes on top"`
	Write  string `flag:"write" help:"write the recommendation as an overlay file (emuctl run FILE -f THIS)"`
}

// tuneOut is what `emuctl tune --json` prints.
type tuneOut struct {
	Name      string       `json:"name"`
	Goal      sweep.Goal   `json:"goal"`
	Scope     string       `json:"scope"`
	Runs      int          `json:"runs"`
	NoLoss    bool         `json:"no_loss"`         // the recommendation lost nothing and left nothing undone, in search and check
	Undone    int          `json:"unfinished_runs"` // of the check: not at their end, or with flows that did not complete
	Changed   bool         `json:"changed"`
	Params    []tuneParam  `json:"parameters"`
	Before    sweep.Spread `json:"before"` // the goal's figure on fresh seeds
	After     sweep.Spread `json:"after"`
	GainPct   float64      `json:"gain_percent"`
	Wins      int          `json:"seeds_won"` // fresh seeds on which the recommendation is better
	Checked   int          `json:"seeds_checked"`
	MarginB   int64        `json:"headroom_margin_bytes"` // least headroom left in any run of the check
	Why       []string     `json:"why"`
	Certainty string       `json:"certainty"`
	Overlay   string       `json:"overlay"`
}

// tuneParam is one parameter: the file's value, the recommended one, and what
// a step away from it cost.
type tuneParam struct {
	Path  string  `json:"path"`
	File  string  `json:"file"` // of the first lossless port in scope
	Value string  `json:"value"`
	Down  *effect `json:"down,omitempty"`
	Up    *effect `json:"up,omitempty"`
}

// effect is a neighbour's figure against the recommendation's.
type effect struct {
	Value   string  `json:"value"`
	WorsePc float64 `json:"worse_percent"`
	Drops   uint64  `json:"dropped_frames"`
}

func (a *app) tune() *cobra.Command {
	f := tuneFlags{Scope: "switches.all", Goal: string(sweep.LowestP99), Seeds: 3, Budget: 150}
	return a.command(verb{
		use: "tune FILE [--goal lowest-p99] [--scope switches.all] [--seeds N] [--budget N]", short: "Find alpha, XON offset, Kmin, Kmax and Pmax for the file's workload",
		long: `Searches the five watermarks for the workload of the file, under "no loss": a
pattern search over factors of two and their roots, each setting under several
seeds. Recommendation and file are then compared on seeds that the search did not
see: that is how sure it is. A static XOFF point, and marking that is off, stay.`,
		example: "  emuctl tune examples/sweeps/pod-incast.yaml\n  emuctl tune examples/incast.yaml --goal highest-goodput --write tuned.yaml",
		flags:   &f,
		run: func(ctx context.Context, args []string) error {
			return a.runTune(ctx, append(f.File, args...), &f)
		},
	})
}

func (f *tuneFlags) tuner(files []string) (*sweep.Tuner, error) {
	goal, err := sweep.ParseGoal(f.Goal)
	switch {
	case err != nil || goal == sweep.SmallestBuffer || goal == "":
		return nil, fmt.Errorf("--goal %q: allowed lowest-p99, highest-goodput, least-pause, shortest-completion", f.Goal)
	case len(files) == 0:
		return nil, fmt.Errorf("no fabric file; `emuctl init` writes one to start from")
	case f.Seeds < 1 || f.Seeds > 100:
		return nil, fmt.Errorf("--seeds %d: allowed 1..100", f.Seeds)
	case f.Budget < 11*f.Seeds:
		return nil, fmt.Errorf("--budget %d: one round of five parameters with %d seeds takes %d runs", f.Budget, f.Seeds, 11*f.Seeds)
	case !slices.Contains([]string{"switches.all", "switches.leaf", "switches.spine"}, f.Scope):
		return nil, fmt.Errorf("--scope %q: allowed switches.all, switches.leaf, switches.spine", f.Scope)
	}
	t := &sweep.Tuner{Load: loader(files, f.Set, f.Seed), Scope: f.Scope, Goal: goal, Seeds: f.Seeds, Budget: f.Budget}
	plan, err := t.Load(nil, nil)
	if err != nil {
		return nil, err
	}
	if len(plan.Flows) == 0 {
		return nil, fmt.Errorf("%s: has no workload to tune for", files[0])
	}
	if goal == sweep.ShortestCompletion && !sweep.Ends(plan) {
		return nil, fmt.Errorf("%s: --goal %s needs a workload line with an end, and all go on for ever", files[0], goal)
	}
	t.Params, err = sweep.Params(plan, f.Scope)
	return t, err
}

func (a *app) runTune(ctx context.Context, files []string, f *tuneFlags) error {
	t, err := f.tuner(files)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if a.errTTY {
		t.Progress = func(n, all int) { fmt.Fprintf(a.err, "\r%d of at most %d runs\x1b[K", n, all) }
	}
	notes, err := t.Reach()
	if err != nil {
		return err
	}
	for _, n := range notes {
		fmt.Fprintln(a.err, "note:", n)
	}
	start, best, near, err := t.Search(ctx)
	if err == nil {
		var before, after *sweep.Trial
		before, after, err = t.Check(ctx, start, best, max(2*f.Seeds, 4))
		if a.errTTY {
			fmt.Fprint(a.err, "\r\x1b[K")
		}
		if err == nil {
			return a.recommend(t, f, start, best, near, before, after)
		}
	}
	return exitError{report.ExitFailed, err}
}

func (a *app) recommend(t *sweep.Tuner, f *tuneFlags, start, best *sweep.Trial, near []*sweep.Trial, before, after *sweep.Trial) error {
	o := &tuneOut{
		Goal: t.Goal, Scope: t.Scope, Runs: t.Runs + 2*len(after.Runs), Changed: !slices.Equal(start.Values, best.Values),
		NoLoss: best.OK && best.Drops == 0 && after.OK && after.Drops == 0, Checked: len(after.Runs), MarginB: after.Runs[0].Margin,
	}
	plan, err := t.Load(nil, nil)
	if err != nil {
		return err
	}
	o.Name = plan.Name
	o.Before, o.After = t.Over(before), t.Over(after)
	o.GainPct = 100 * (o.Before.Mean - o.After.Mean) / nonZero(o.Before.Mean)
	for i := range after.Runs {
		o.MarginB = min(o.MarginB, after.Runs[i].Margin)
		if !after.Runs[i].OK() {
			o.Undone++
		}
		if t.Figure(&after.Runs[i].Metrics) < t.Figure(&before.Runs[i].Metrics) && after.Runs[i].Drops <= before.Runs[i].Drops {
			o.Wins++
		}
	}
	for i := range t.Params {
		o.Params = append(o.Params, tuneParamOf(t, i, start, best, near))
	}
	o.explain(t, start, best, before, after)
	o.Overlay = overlayText(o)
	if f.Write != "" {
		if err := os.WriteFile(f.Write, []byte(o.Overlay), 0o644); err != nil {
			return exitError{report.ExitFailed, err}
		}
	}
	return a.showTune(o, f.Write)
}

func nonZero(x float64) float64 {
	if x == 0 {
		return 1
	}
	return max(x, -x)
}

// tuneParamOf looks up what the neighbours of the recommendation cost.
func tuneParamOf(t *sweep.Tuner, i int, start, best *sweep.Trial, near []*sweep.Trial) tuneParam {
	p := tuneParam{Path: t.Params[i].Path, File: start.Values[i], Value: best.Values[i]}
	base := t.Over(best).Mean
	for _, n := range near {
		same := n.At[i] != best.At[i]
		for k := range n.At {
			same = same && (k == i || n.At[k] == best.At[k])
		}
		if !same {
			continue
		}
		e := &effect{n.Values[i], 100 * (t.Over(n).Mean - base) / nonZero(base), n.Drops}
		if n.At[i] < best.At[i] {
			p.Down = e
		} else {
			p.Up = e
		}
	}
	return p
}

// explain says why, and how sure.
func (o *tuneOut) explain(t *sweep.Tuner, start, best, before, after *sweep.Trial) {
	say := func(format string, a ...any) { o.Why = append(o.Why, fmt.Sprintf(format, a...)) }
	if start.Drops > 0 {
		say("the file's setting loses %d frames in %d runs; the recommendation loses %d", start.Drops, t.Seeds, after.Drops)
	}
	if t.Goal == sweep.ShortestCompletion {
		say("from first start to last end %s -> %s", report.Span(report.NS(before.Completion.Mean)), report.Span(report.NS(after.Completion.Mean)))
	}
	if o.Undone == o.Checked && before.P99.Max == 0 && after.P99.Max == 0 {
		say("no flow completed in %d fresh runs: there is no figure to compare", o.Checked)
	} else {
		say("FCT p99 %s -> %s, goodput %s -> %s, time paused %.2f %% -> %.2f %%, marks %d -> %d (means over %d fresh seeds)",
			report.Span(report.NS(before.P99.Mean)), report.Span(report.NS(after.P99.Mean)), report.BitRate(int64(before.Goodput.Mean)), report.BitRate(int64(after.Goodput.Mean)),
			100*before.Pause.Mean, 100*after.Pause.Mean, before.Marks/uint64(o.Checked), after.Marks/uint64(o.Checked), o.Checked)
	}
	if after.Pause.Mean > 2*before.Pause.Mean && after.Pause.Mean > 0.02 {
		say("it pauses more: whoever else shares those ports and class would wait; --goal least-pause looks the other way")
	}
	say("the fullest headroom had %s left in %d runs", report.Bytes(max(o.MarginB, 0)), o.Checked)
	for _, p := range o.Params {
		if e := worst(p); e != nil && (e.WorsePc >= 1 || e.Drops > 0) {
			say("%s matters: %s is %.1f %% worse, with %d drops", short(p.Path), e.Value, e.WorsePc, e.Drops)
		}
	}
	gap, noise := o.Before.Mean-o.After.Mean, max(o.Before.Half(), o.After.Half())
	switch {
	case !o.NoLoss && after.Drops == 0:
		o.Certainty = fmt.Sprintf("not at all: nothing was lost, but %d of %d fresh runs did not end with every flow completed (%s): give them time with run.limit or run.until, or see with emuctl run what fails",
			o.Undone, o.Checked, cmp.Or(after.Note, best.Note))
	case !o.NoLoss:
		o.Certainty = fmt.Sprintf("no setting of these parameters was without loss: %d frames lost in %d fresh runs; look at headroom and buffer first (emuctl validate, emuctl headroom)", after.Drops, o.Checked)
	case !o.Changed:
		o.Certainty = fmt.Sprintf("no neighbour was more than 0.5 %% better in %d runs: the file's setting stands", o.Runs)
	case o.Wins == o.Checked && gap > noise:
		o.Certainty = fmt.Sprintf("sure: better on %d of %d seeds that the search did not see, by more than their spread", o.Wins, o.Checked)
	case o.Wins*4 >= o.Checked*3:
		o.Certainty = fmt.Sprintf("likely: better on %d of %d seeds that the search did not see; the gain is within their spread", o.Wins, o.Checked)
	default:
		o.Certainty = fmt.Sprintf("unsure: better on only %d of %d seeds that the search did not see: keep the file's setting, or give more --seeds and --budget", o.Wins, o.Checked)
	}
}

func worst(p tuneParam) *effect {
	if p.Down == nil || p.Up != nil && p.Up.WorsePc > p.Down.WorsePc {
		return p.Up
	}
	return p.Down
}

// short is a path without its scope.
func short(path string) string {
	parts := strings.SplitN(path, ".", 3)
	return parts[len(parts)-1]
}

// overlayText is the recommendation as a fabric file to lay over the other.
func overlayText(o *tuneOut) string {
	_, role, _ := strings.Cut(o.Scope, ".")
	groups := map[string][]string{}
	for _, p := range o.Params {
		sec, key, _ := strings.Cut(short(p.Path), ".")
		if p.Value != p.File {
			groups[sec] = append(groups[sec], key+": "+p.Value)
		}
	}
	if len(groups) == 0 {
		return "schema: 1\n" // the file's own setting stands
	}
	s := "schema: 1\nswitches:\n  " + role + ":\n"
	for _, sec := range []string{"pfc", "ecn"} {
		if len(groups[sec]) > 0 {
			s += "    " + sec + ": {" + strings.Join(groups[sec], ", ") + "}\n"
		}
	}
	return s
}

func (a *app) showTune(o *tuneOut, file string) error {
	if a.json {
		return a.printJSON(o)
	}
	t := report.NewTable("parameter", "file", "recommended", "a step down", "a step up")
	cell := func(e *effect) string {
		if e == nil {
			return "-"
		}
		s := fmt.Sprintf("%s: %+.1f %%", e.Value, e.WorsePc)
		if e.Drops > 0 {
			s += fmt.Sprintf(", %d drops", e.Drops)
		}
		return s
	}
	for _, p := range o.Params {
		t.AppendRow([]any{p.Path, p.File, p.Value, cell(p.Down), cell(p.Up)})
	}
	err := a.printf("%s: %s under no loss, %d runs\n%s\n(steps: change of the goal's figure, + is worse)\n\nWhy\n  %s\nHow sure\n  %s\n\nTo use it:\n%s",
		o.Name, o.Goal, o.Runs, t.Render(), strings.Join(o.Why, "\n  "), o.Certainty, o.Overlay)
	if err == nil && file != "" {
		return a.printf("written to %s\n", file)
	}
	return err
}
