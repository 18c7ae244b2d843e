package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/internal/natural"
)

// How much of each kind a summary shows; the files of --out hold all.
const (
	maxFlowRows = 20
	maxItems    = 5
)

// WriteSummary prints r for a person: verdict, flows, what was lost, resent,
// paused and marked, the fullest queues, the engine's cost and the digest.
// Colours only when asked: a terminal wants them, a file does not.
func WriteSummary(w io.Writer, r *Result, colour bool) error {
	var b strings.Builder
	b.WriteString(headline(r, colour))
	b.WriteString(flowTable(r))
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-11s %s\n", name, value)
		}
	}
	fact("stuck", stuck(r))
	fact("resent", resent(r))
	fact("pauses", pauses(r))
	fact("marks", fmt.Sprintf("%d frames ECN-marked, %d CNPs", r.Totals.ECNMarked, r.Totals.CNPs))
	fact("drops", drops(r))
	fact("hot queues", hotQueues(r))
	fact("deadlocks", deadlocks(r))
	fact("faults", faults(r))
	fact("findings", findings(r))
	fact("telemetry", undelivered(r.Telemetry))
	fact("engine", engine(&r.Engine))
	fact("digest", r.Digest)
	_, err := io.WriteString(w, b.String())
	return err
}

func headline(r *Result, colour bool) string {
	v := r.Verdict
	if colour {
		c := text.FgRed
		if r.Verdict == Complete {
			c = text.FgGreen
		}
		v = c.EscapeSeq() + v + text.Reset.EscapeSeq()
	}
	s := fmt.Sprintf("%s: %s at %v virtual", r.Name, v, clock.Time(r.VirtualNS))
	if r.VerdictReason != "" {
		s += " (" + r.VerdictReason + ")"
	}
	t := &r.Totals
	s += fmt.Sprintf("\n%d of %d flows completed, %d failed, %s\n", t.Completed, t.Flows, t.Failed, Bytes(t.Bytes))
	if t.Failed > 0 && r.Verdict == Complete && r.Exit == ExitOK {
		s += "failed flows fail no run by themselves: expect: [\"totals.failed == 0\"] does\n"
	}
	return s + "\n"
}

// flowTable shows a row a workload line, in name order.
func flowTable(r *Result) string {
	if len(r.Flows) == 0 {
		return ""
	}
	t := NewTable("flow", "verb", "done", "FCT min", "p50", "p99", "max", "goodput", "resent", "status")
	names := sortedKeys(r.Flows)
	for i, n := range names {
		if i == maxFlowRows {
			break
		}
		f := r.Flows[n]
		row := table.Row{n, f.Verb, fmt.Sprintf("%d/%d", f.Completed, f.Requests), "-", "-", "-", "-", BitRate(f.GoodputBPS), f.Retransmitted, f.Status}
		if d := f.FCT; d != nil {
			row[3], row[4], row[5], row[6] = Span(d.Min), Span(d.P50), Span(d.P99), Span(d.Max)
		}
		t.AppendRow(row)
	}
	s := t.Render() + "\n"
	if n := len(names) - maxFlowRows; n > 0 {
		s += fmt.Sprintf("and %d more lines\n", n)
	}
	return s + "\n"
}

// NewTable returns a table without lines, as summaries and calculators use.
func NewTable(header ...any) table.Writer {
	t := table.NewWriter()
	st := table.StyleDefault
	st.Options = table.OptionsNoBordersAndSeparators
	st.Box.PaddingLeft, st.Box.PaddingRight = "", "  "
	st.Format.Header = text.FormatDefault
	t.SetStyle(st)
	t.SuppressTrailingSpaces()
	t.AppendHeader(header)
	return t
}

// undelivered tells what collectors did not get, and nothing when they got all.
func undelivered(t *Telemetry) string {
	if t == nil {
		return ""
	}
	var out []string
	add := func(dropped, made uint64, what, endpoint, why string) {
		if dropped == 0 {
			return
		}
		s := fmt.Sprintf("%d of %d %s did not reach %s", dropped, made, what, endpoint)
		if why != "" {
			s += ": " + why
		}
		out = append(out, s)
	}
	for _, e := range t.Exports {
		add(e.ChainsDropped, t.ChainsMade, "chains", e.Endpoint, e.LastError)
	}
	for _, m := range []*Pushed{t.Samples, t.DialOut} {
		if m == nil {
			continue
		}
		why := m.LastError
		if why == "" {
			why = "it was slower than the run, which does not wait"
		}
		add(m.Dropped, m.Made, "samples", m.Endpoint, why)
	}
	return some(out)
}

func stuck(r *Result) string {
	var out []string
	for _, n := range sortedKeys(r.Flows) {
		if why := r.Flows[n].Why; why != "" {
			out = append(out, why)
		}
	}
	return some(out)
}

func resent(r *Result) string {
	var timeout, seq, rnr, implied uint64
	for _, c := range r.RNICs {
		timeout += c.LocalAckTimeoutErr
		seq += c.PacketSeqErr
		rnr += c.RNRNakRetryErr
		implied += c.ImpliedNakSeqErr
	}
	if r.Totals.Retransmitted == 0 && timeout+seq+rnr+implied == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d packets after %d timeouts, %d sequence NAKs, %d RNR NAKs, %d implied NAKs",
		r.Totals.Retransmitted, timeout, seq, rnr, implied)
}

// pauses tells who held whom paused, longest first.
func pauses(r *Result) string {
	if r.Totals.PauseFrames == 0 {
		return "none"
	}
	type pause struct {
		span NS
		text string
	}
	var all []pause
	for dev, s := range r.Switches {
		for num, p := range s.Ports {
			for prio, c := range p.PFC {
				if c.TxPause > 0 {
					all = append(all, pause{c.TxPauseNS, fmt.Sprintf("%s:%s paused %s prio %s %d times (%s)",
						dev, num, orElse(p.Peer, "its peer"), prio, c.TxPause, Span(c.TxPauseNS))})
				}
			}
		}
	}
	held := r.HeldByRNICs()
	for dev, c := range r.RNICs {
		for prio, n := range c.TxPause {
			if h := held[dev]; n > 0 && h != nil {
				all = append(all, pause{h.Span[prio], fmt.Sprintf("%s paused %s prio %d %d times (%s)", dev, strings.Join(h.Ports, " and "), prio, n, Span(h.Span[prio]))})
			} else if n > 0 {
				all = append(all, pause{0, fmt.Sprintf("%s paused its switch prio %d %d times", dev, prio, n)})
			}
		}
	}
	slices.SortFunc(all, func(a, b pause) int { return cmp.Or(cmp.Compare(b.span, a.span), cmp.Compare(a.text, b.text)) })
	out := []string{fmt.Sprintf("%d XOFF frames", r.Totals.PauseFrames)}
	for _, p := range all {
		out = append(out, p.text)
	}
	return some(out)
}

func drops(r *Result) string {
	if r.Totals.DroppedFrames == 0 {
		return "none"
	}
	var out []string
	for _, k := range sortedKeys(r.Totals.DropsByReason) {
		if n := r.Totals.DropsByReason[k]; n > 0 {
			out = append(out, fmt.Sprintf("%s %d", k, n))
		}
	}
	return fmt.Sprintf("%d frames: %s", r.Totals.DroppedFrames, strings.Join(out, ", "))
}

// hotQueues names the egress queues that were fullest.
func hotQueues(r *Result) string {
	type hot struct {
		mark int64
		text string
	}
	var all []hot
	for dev, s := range r.Switches {
		for num, p := range s.Ports {
			for q, c := range p.Queue {
				if c.Watermark > 0 {
					all = append(all, hot{c.Watermark, fmt.Sprintf("%s:%s queue %s %s", dev, num, q, Bytes(c.Watermark))})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b hot) int { return cmp.Or(cmp.Compare(b.mark, a.mark), cmp.Compare(a.text, b.text)) })
	var out []string
	for i := range min(len(all), 3) {
		out = append(out, all[i].text)
	}
	return strings.Join(out, ", ")
}

func deadlocks(r *Result) string {
	var out []string
	for _, d := range r.Deadlocks {
		out = append(out, fmt.Sprintf("at %v: %s", d.AtNS, strings.Join(d.Cycle, " -> ")))
	}
	return some(out)
}

// CountsHits reports whether faults of a kind count what they act on. The others
// change settings: what they do shows in the counters of what is set.
func CountsHits(kind string) bool {
	switch kind {
	case "rate", "hash", "pfc-off", "ecn-off", "buffer", "slow-receiver", "pcie-stall", "drain", "set":
		return false
	}
	return true
}

func faults(r *Result) string {
	var out []string
	for _, n := range sortedKeys(r.Faults) {
		f := r.Faults[n]
		what := fmt.Sprintf("%d hits", f.Hits)
		switch last, late := r.afterWork(f); {
		case r.neverBegan(f):
			what = "never began, the run had ended"
		case late:
			what = fmt.Sprintf("0 hits, it began after the last request had ended at %v", last)
		case f.Kind == "pause-storm":
			what = fmt.Sprintf("%d XOFF frames sent", f.Hits)
		case !CountsHits(f.Kind):
			what = "changed settings"
		}
		out = append(out, fmt.Sprintf("%s (%s %s at %v): %s", n, f.Kind, f.Target, f.AtNS, what))
	}
	return some(out)
}

func findings(r *Result) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s %s: %s", f.Code, f.Where, f.Text))
	}
	return some(out)
}

func engine(e *Engine) string {
	s := fmt.Sprintf("%s hops, %s windows, %.2f s wall, %.2f s CPU", Number(float64(e.FrameHops)), Number(float64(e.Windows)), e.WallS, e.CPUS)
	if e.WallS > 0 {
		s += fmt.Sprintf(", %s hops/s", Number(float64(e.FrameHops)/e.WallS))
	}
	s += fmt.Sprintf(", %d workers", e.Workers)
	if e.Processes > 1 {
		s += fmt.Sprintf(", %d processes", e.Processes)
	}
	return s
}

// some joins the first items, one a line, and counts the rest.
func some(items []string) string {
	more := len(items) - maxItems
	if more > 0 {
		items = append(slices.Clone(items[:maxItems]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(items, "\n            ")
}

func orElse(s, alt string) string {
	if s == "" {
		return alt
	}
	return s
}

// sortedKeys returns a map's keys in order, digits by value ("9" before "10").
func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, natural.Compare)
	return out
}
