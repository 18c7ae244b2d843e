package report

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Change is one figure of two results.
type Change struct {
	Where  string  `json:"where"` // workload line, or "totals"
	Metric string  `json:"metric"`
	A      float64 `json:"a"`
	B      float64 `json:"b"`
	// Percent is the change from A to B in percent of A; absent when A is 0.
	Percent *float64 `json:"percent,omitempty"`
	Failed  bool     `json:"failed,omitempty"` // a --fail-if condition met
}

// Diff is the comparison of two results.
type Diff struct {
	SameDigest bool     `json:"same_digest"`
	VerdictA   string   `json:"verdict_a"`
	VerdictB   string   `json:"verdict_b"`
	OnlyA      []string `json:"only_a"` // workload lines that one side lacks
	OnlyB      []string `json:"only_b"`
	Changes    []Change `json:"changes"`
	Failures   []string `json:"failures"`
}

// Metrics lists what Compare knows; the names are those of --fail-if.
func Metrics() []string {
	var out []string
	for _, m := range lineMetrics {
		out = append(out, m.name)
	}
	for _, m := range totalMetrics {
		out = append(out, m.name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// speedMetric is the one figure that depends on the machine.
const speedMetric = "hops_per_s"

type metric[T any] struct {
	name string
	get  func(T) (float64, bool)
}

func fctMetric(name string, get func(*Dist) NS) metric[*FlowLine] {
	return metric[*FlowLine]{name, func(f *FlowLine) (float64, bool) {
		if f.FCT == nil {
			return 0, false
		}
		return get(f.FCT).Float(), true
	}}
}

var lineMetrics = []metric[*FlowLine]{
	fctMetric("min", func(d *Dist) NS { return d.Min }),
	fctMetric("mean", func(d *Dist) NS { return d.Mean }),
	fctMetric("p50", func(d *Dist) NS { return d.P50 }),
	fctMetric("p95", func(d *Dist) NS { return d.P95 }),
	fctMetric("p99", func(d *Dist) NS { return d.P99 }),
	fctMetric("p999", func(d *Dist) NS { return d.P999 }),
	fctMetric("max", func(d *Dist) NS { return d.Max }),
	{"goodput", func(f *FlowLine) (float64, bool) { return float64(f.GoodputBPS), true }},
	{"completed", func(f *FlowLine) (float64, bool) { return float64(f.Completed), true }},
	{"failed", func(f *FlowLine) (float64, bool) { return float64(f.Failed), true }},
	{"retransmitted", func(f *FlowLine) (float64, bool) { return float64(f.Retransmitted), true }},
}

func total(name string, get func(*Result) uint64) metric[*Result] {
	return metric[*Result]{name, func(r *Result) (float64, bool) { return float64(get(r)), true }}
}

var totalMetrics = []metric[*Result]{
	{"virtual", func(r *Result) (float64, bool) { return r.VirtualNS.Float(), true }},
	total("drops", func(r *Result) uint64 { return r.Totals.DroppedFrames }),
	total("retransmitted", func(r *Result) uint64 { return r.Totals.Retransmitted }),
	total("pauses", func(r *Result) uint64 { return r.Totals.PauseFrames }),
	total("marks", func(r *Result) uint64 { return r.Totals.ECNMarked }),
	total("cnps", func(r *Result) uint64 { return r.Totals.CNPs }),
	{speedMetric, func(r *Result) (float64, bool) {
		return float64(r.Engine.FrameHops) / max(r.Engine.WallS, 1e-9), r.Engine.WallS > 0
	}},
}

// Condition is a parsed --fail-if: METRIC, > or <, a signed bound, and
// whether the bound is in percent of A. "p99>+5%" holds when p99 grew by more
// than 5 %, "goodput<-5%" when goodput fell by more than 5 %.
type Condition struct {
	Text, Metric string
	Above        bool
	Bound        float64
	Percent      bool
}

const conditionForm = `^\s*([a-z0-9_]+)\s*([<>])\s*([+-]?[0-9.]+)\s*(%?)\s*$`

// ParseCondition reads a --fail-if.
func ParseCondition(s string) (Condition, error) {
	m := regexp.MustCompile(conditionForm).FindStringSubmatch(s)
	if m == nil {
		return Condition{}, fmt.Errorf("--fail-if %q: want METRIC>+N%% or METRIC<-N%%, as in p99>+5%%", s)
	}
	if !slices.Contains(Metrics(), m[1]) {
		return Condition{}, fmt.Errorf("--fail-if %q: no metric %q; known: %s", s, m[1], strings.Join(Metrics(), ", "))
	}
	v, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return Condition{}, fmt.Errorf("--fail-if %q: %q is not a number", s, m[3])
	}
	return Condition{Text: s, Metric: m[1], Above: m[2] == ">", Bound: v, Percent: m[4] == "%"}, nil
}

// holds judges a change; growth from zero is beyond every percentage.
func (c *Condition) holds(x *Change) bool {
	d := x.B - x.A
	if c.Percent {
		switch {
		case x.Percent != nil:
			d = *x.Percent
		case d == 0:
			return false
		default:
			return (d > 0) == c.Above
		}
	}
	if c.Above {
		return d > c.Bound
	}
	return d < c.Bound
}

// Compare lists the figures that differ between a and b, and which conditions
// they meet.
func Compare(a, b *Result, conds []Condition) *Diff {
	d := &Diff{
		SameDigest: a.Digest == b.Digest, VerdictA: a.Verdict, VerdictB: b.Verdict,
		OnlyA: []string{}, OnlyB: []string{}, Changes: []Change{}, Failures: []string{},
	}
	for _, m := range totalMetrics {
		va, oka := m.get(a)
		vb, okb := m.get(b)
		if oka && okb {
			d.add("totals", m.name, va, vb, conds)
		}
	}
	for _, n := range sortedKeys(a.Flows) {
		fb := b.Flows[n]
		if fb == nil {
			d.OnlyA = append(d.OnlyA, n)
			continue
		}
		for _, m := range lineMetrics {
			va, oka := m.get(a.Flows[n])
			vb, okb := m.get(fb)
			if oka && okb {
				d.add(n, m.name, va, vb, conds)
			}
		}
	}
	for _, n := range sortedKeys(b.Flows) {
		if a.Flows[n] == nil {
			d.OnlyB = append(d.OnlyB, n)
		}
	}
	return d
}

func (d *Diff) add(where, name string, a, b float64, conds []Condition) {
	c := Change{Where: where, Metric: name, A: a, B: b}
	if a != 0 {
		p := round4((b-a)/a*100+1e6) - 1e6
		c.Percent = &p
	}
	for i := range conds {
		if conds[i].Metric == name && conds[i].holds(&c) {
			c.Failed = true
			d.Failures = append(d.Failures, fmt.Sprintf("%s: %s %s went from %g to %g", conds[i].Text, where, name, a, b))
		}
	}
	// Speed of the machine is no difference between results.
	if a != b && name != speedMetric || c.Failed {
		d.Changes = append(d.Changes, c)
	}
}
