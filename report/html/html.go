// Package html makes one self-contained page of an output directory: what a
// person wants to see of a run, readable without a network. It draws its plots
// itself as SVG. It knows files only: result.json, flows.csv, series.csv,
// chains.jsonl. Start at [Write].
package html

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/rocemu/rocemu/report"
)

//go:embed page.tmpl
var pageText string

//go:embed page.css
var css string

// page is read when one is asked for: most commands write none.
func page() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"span": report.Span, "bytes": report.Bytes, "rate": report.BitRate,
	}).Parse(pageText))
}

// How much of each kind the page shows; the files hold all.
const (
	maxFlows    = 50
	maxChains   = 24
	maxLines    = 6 // lines in one plot
	maxProblems = 12
)

// view is what the template shows.
type view struct {
	R        *report.Result
	CSS      template.CSS
	Problems []Problem
	Fabric   template.HTML
	Plots    []Plot
	Chains   []chainView
	NumChain int
	Flows    []flowRow
	MoreFlow int
	Lines    []lineRow
	Splits   []splitRow
	Drops    []drop
}

// Plot is a titled drawing with a sentence that says how to read it.
type Plot struct {
	Title, Note string
	SVG         template.HTML
}

type chainView struct {
	report.ChainLine
	SVG template.HTML
}

type flowRow struct {
	Flow
	FCTText, SlowText string
}

// newFlowRow shows dashes for a flow of which nothing has ended.
func newFlowRow(f Flow) flowRow {
	if !f.Ended {
		return flowRow{f, "–", "–"}
	}
	return flowRow{f, report.Span(f.FCT), slow(f.Slowdown)}
}

type lineRow struct {
	Name string
	*report.FlowLine
}

type drop struct {
	Reason string
	Count  uint64
}

// Write writes the page of in.
func Write(w io.Writer, in *Input) error {
	v := view{
		R: in.Result, CSS: template.CSS(css), Problems: problems(in), Fabric: drawFabric(in), Plots: plots(in),
		NumChain: len(in.Chains), Splits: splits(in),
	}
	for _, c := range worst(in.Chains, maxChains) {
		v.Chains = append(v.Chains, chainView{c, drawChain(&c)})
	}
	for _, f := range in.Flows {
		if len(v.Flows) == maxFlows {
			break
		}
		v.Flows = append(v.Flows, newFlowRow(f))
	}
	v.MoreFlow = len(in.Flows) - len(v.Flows)
	for _, n := range sortedKeys(in.Result.Flows) {
		v.Lines = append(v.Lines, lineRow{n, in.Result.Flows[n]})
	}
	for _, n := range sortedKeys(in.Result.Totals.DropsByReason) {
		if c := in.Result.Totals.DropsByReason[n]; c > 0 {
			v.Drops = append(v.Drops, drop{n, c})
		}
	}
	return page().Execute(w, &v)
}
