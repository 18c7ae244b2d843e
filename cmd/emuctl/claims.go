package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/rocemu/rocemu/examples/claims"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/sweep"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

// claimOut is one claim, measured.
type claimOut struct {
	Name     string        `json:"name"`
	Says     string        `json:"says"`
	Article  string        `json:"article"`
	File     string        `json:"file"`
	Measure  string        `json:"measure"`
	Variants []claimFigure `json:"variants"`
	Ratio    float64       `json:"ratio"`         // how many times better the second variant is
	Wanted   float64       `json:"article_ratio"` // by the article
	Vary     string        `json:"vary"`
	Grid     []claimRow    `json:"grid"`
	Right    string        `json:"article_would_be_right"`
	Note     string        `json:"note"`
}

// claimFigure is a variant's figure: bit/s, or nanoseconds. A run that does not
// complete has none.
type claimFigure struct {
	Name   string  `json:"name"`
	Figure float64 `json:"figure"`
	Status string  `json:"status"`
}

// claimRow is one value of the varied parameter.
type claimRow struct {
	Value   string        `json:"value"`
	Figures []claimFigure `json:"figures"` // parallel to the variants
	Ratio   float64       `json:"ratio"`   // 0 when a run did not complete
}

func (a *app) claims() *cobra.Command {
	return a.command(verb{
		use: "claims [NAME…]", short: "Measure what an article says about RDMA retransmission",
		long: `Runs the claims that come with the program (examples/claims), each in two or more
variants, and prints the article's figure beside the measured one; then turns one
parameter and says under which value the article would be right.`,
		example: "  emuctl claims\n  emuctl claims implied-nak --json",
		run:     func(ctx context.Context, args []string) error { return a.runClaims(ctx, args) },
	})
}

func (a *app) runClaims(ctx context.Context, names []string) error {
	all, err := claims.All()
	if err != nil {
		return exitError{report.ExitFailed, err}
	}
	var known []string
	chosen := []claims.Claim{}
	for _, c := range all {
		known = append(known, c.Name)
		if len(names) == 0 {
			chosen = append(chosen, c)
		}
	}
	for _, n := range names {
		i := -1
		for k := range all {
			if all[k].Name == n {
				i = k
			}
		}
		if i < 0 {
			return fmt.Errorf("no claim is named %q; there are %s", n, list(known))
		}
		chosen = append(chosen, all[i])
	}
	out := []*claimOut{}
	for i := range chosen {
		o, err := measureClaim(ctx, &chosen[i])
		if err != nil {
			return exitError{report.ExitFailed, fmt.Errorf("%s: %w", chosen[i].Name, err)}
		}
		if out = append(out, o); !a.json {
			if err := a.showClaim(o, chosen[i].More()); err != nil {
				return err
			}
		}
	}
	if a.json {
		return a.printJSON(out)
	}
	return nil
}

// measureClaim runs every variant at the file's own value and at each value of
// the varied parameter, on all cores.
func measureClaim(ctx context.Context, c *claims.Claim) (*claimOut, error) {
	o := &claimOut{
		Name: c.Name, Says: c.Says, Article: c.Article, File: "examples/claims/" + c.File, Measure: c.Measure,
		Wanted: c.Ratio.Article, Vary: c.Vary.Path, Note: c.Note,
	}
	rows := make([]claimRow, len(c.Vary.Values)+1)
	for i := range rows {
		rows[i].Figures = make([]claimFigure, len(c.Variants))
		if i > 0 {
			rows[i].Value = c.Vary.Values[i-1]
		}
	}
	n := len(c.Variants)
	err := sweep.Parallel(ctx, 0, len(rows)*n, func(k int) error {
		row, v := &rows[k/n], &c.Variants[k%n]
		sets := append([]string(nil), v.Set...)
		if row.Value != "" && c.Varies(v.Name) {
			sets = append(sets, c.Vary.Path+"="+row.Value)
		}
		f, err := takeFigure(ctx, c, cmp.Or(v.Flow, c.Flow), sets)
		f.Name = v.Name
		row.Figures[k%n] = f
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].Ratio = ratioOf(c, rows[i].Figures)
	}
	o.Variants, o.Ratio, o.Grid = rows[0].Figures, rows[0].Ratio, rows[1:]
	if o.Right = whenRight(o); o.Wanted == 0 {
		o.Right = whereHalf(o)
	}
	return o, nil
}

// takeFigure runs the claim's file once, for "extra" also without faults.
func takeFigure(ctx context.Context, c *claims.Claim, flow string, sets []string) (claimFigure, error) {
	line, err := claimLine(ctx, c, flow, sets)
	if err != nil {
		return claimFigure{}, err
	}
	f := claimFigure{Status: line.Status}
	if line.Status != report.Success.String() || line.FCT == nil {
		return f, nil
	}
	switch c.Measure {
	case "goodput":
		f.Figure = float64(line.GoodputBPS)
	case "fct_mean":
		f.Figure = float64(line.FCT.Mean) / 1000
	case "fct_p50":
		f.Figure = float64(line.FCT.P50) / 1000
	case "fct_p99":
		f.Figure = float64(line.FCT.P99) / 1000
	case "last_end":
		f.Figure = float64(line.LastEndNS) / 1000
	case "extra":
		clean, err := claimLine(ctx, c, flow, append(sets, "faults=[]"))
		if err != nil {
			return f, err
		}
		f.Figure = float64(line.LastEndNS-clean.LastEndNS) / 1000
	}
	return f, nil
}

func claimLine(ctx context.Context, c *claims.Claim, flow string, sets []string) (*report.FlowLine, error) {
	text, err := claims.Files.ReadFile(c.File)
	if err != nil {
		return nil, err
	}
	plan, _, err := topology.Resolve([]topology.Source{{Name: c.File, Text: text}}, append([]string{"expect=[]"}, sets...), nil, nil)
	if err != nil {
		return nil, err
	}
	res, err := sim.Run(ctx, plan, sim.Options{Workers: 1})
	if err != nil {
		return nil, err
	}
	line := res.Flows[flow]
	if line == nil {
		return nil, fmt.Errorf("%s has no workload line %q", c.File, flow)
	}
	return line, ctx.Err()
}

func ratioOf(c *claims.Claim, f []claimFigure) float64 {
	var from, to float64
	for i := range f {
		switch f[i].Name {
		case c.Ratio.From:
			from = f[i].Figure
		case c.Ratio.To:
			to = f[i].Figure
		}
	}
	if from == 0 || to == 0 {
		return 0
	}
	if c.More() {
		return to / from
	}
	return from / to
}

// whenRight finds where the ratio passes the article's: between which values.
func whenRight(o *claimOut) string {
	var had *claimRow
	near, dist := "", math.Inf(1)
	for i := range o.Grid {
		r := &o.Grid[i]
		if r.Ratio <= 0 {
			continue
		}
		if d := math.Abs(math.Log(r.Ratio / o.Wanted)); d < dist {
			dist, near = d, fmt.Sprintf("%s = %s (%.3gx)", o.Vary, r.Value, r.Ratio)
		}
		if math.Abs(r.Ratio/o.Wanted-1) < 0.03 {
			return fmt.Sprintf("with %s = %s: %.3gx", o.Vary, r.Value, r.Ratio)
		}
		if had != nil && (had.Ratio < o.Wanted) != (r.Ratio < o.Wanted) {
			return fmt.Sprintf("with %s between %s (%.3gx) and %s (%.3gx)", o.Vary, had.Value, had.Ratio, r.Value, r.Ratio)
		}
		had = r
	}
	if near == "" {
		return "under none of the values: no run completed"
	}
	return "under none of the values; closest is " + near
}

// whereHalf tells, for each variant, where its figure has fallen to half of
// the first one.
func whereHalf(o *claimOut) string {
	var out []string
	for k := range o.Variants {
		at := "never falls to half"
		for i := range o.Grid {
			if f := o.Grid[i].Figures[k].Figure; f < o.Grid[0].Figures[k].Figure/2 {
				at = fmt.Sprintf("falls to half by %s = %s", o.Vary, o.Grid[i].Value)
				break
			}
		}
		out = append(out, o.Variants[k].Name+" "+at)
	}
	return strings.Join(out, "; ")
}

func figureText(f claimFigure, more bool) string {
	switch {
	case f.Figure == 0 && f.Status != report.Success.String():
		return f.Status
	case more:
		return report.BitRate(int64(f.Figure))
	}
	return report.Span(report.NS(f.Figure * 1000))
}

func (a *app) showClaim(o *claimOut, more bool) error {
	if err := a.printf("%s: %s\n  article   %s\n  measured  %s\n", o.Name, o.Says, o.Article, o.measured(more)); err != nil {
		return err
	}
	head := []any{o.Vary}
	for _, v := range o.Variants {
		head = append(head, v.Name)
	}
	t := report.NewTable(append(head, "ratio")...)
	for _, r := range o.Grid {
		row := []any{r.Value}
		for _, f := range r.Figures {
			row = append(row, figureText(f, more))
		}
		t.AppendRow(append(row, fmt.Sprintf("%.3g", r.Ratio)))
	}
	text := strings.ReplaceAll(t.Render(), "\n", "\n  ")
	return a.printf("  right     %s\n  %s\n  %s (%s)\n\n", o.Right, text, o.Note, o.File)
}

func (o *claimOut) measured(more bool) string {
	var parts []string
	for _, v := range o.Variants {
		parts = append(parts, v.Name+" "+figureText(v, more))
	}
	return fmt.Sprintf("%.3gx: %s", o.Ratio, strings.Join(parts, ", "))
}
