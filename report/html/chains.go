package html

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/report"
)

// worst returns the chains to show: those that failed, then the longest.
func worst(all []report.ChainLine, n int) []report.ChainLine {
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b report.ChainLine) int {
		bad := func(c report.ChainLine) int {
			if c.Outcome == "recovered" {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(bad(b), bad(a)), cmp.Compare(b.EndNS-b.BeginNS, a.EndNS-a.BeginNS))
	})
	return out[:min(n, len(out))]
}

// Sizes of a timeline.
const (
	chainW    = 1120.0
	chainLeft = 110.0
	laneH     = 24.0
)

// drawChain draws a chain with a lane for each device, in order of appearance,
// from its first step to its last. The repair is usually a small part of the
// request's time, so the axis ends with the last packet sent again.
func drawChain(c *report.ChainLine) template.HTML {
	if len(c.Steps) == 0 {
		return ""
	}
	lanes := []string{}
	t0, t1 := c.Steps[0].SinceNS, c.Steps[0].UntilNS
	for i, s := range c.Steps {
		if !slices.Contains(lanes, s.Device) {
			lanes = append(lanes, s.Device)
		}
		if i > 0 && i == len(c.Steps)-1 && s.Name == "recovery" {
			break
		}
		t0, t1 = min(t0, s.SinceNS), max(t1, s.UntilNS)
	}
	if t1 == t0 {
		t1++
	}
	px := func(t report.NS) float64 { return chainLeft + float64(t-t0)/float64(t1-t0)*(chainW-chainLeft-16) }
	h := laneH*float64(len(lanes)) + 26
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chain" viewBox="0 0 %g %g" role="img">`, chainW, h)
	for i, d := range lanes {
		y := laneH*float64(i) + 14
		fmt.Fprintf(&b, `<text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text><line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`,
			chainLeft-8, y+4, html.EscapeString(d), chainLeft, chainW-16, y, y)
	}
	for _, s := range c.Steps {
		if s.SinceNS > t1 {
			continue
		}
		y := laneH*float64(slices.Index(lanes, s.Device)) + 14
		title := html.EscapeString(fmt.Sprintf("%s at %s ns: %s", s.Name, decimal(s.AtNS), s.Text))
		class := "s-" + strings.ReplaceAll(s.Name, " ", "-")
		x0, x1 := px(s.SinceNS), px(min(s.UntilNS, t1))
		if x1-x0 > 3 {
			fmt.Fprintf(&b, `<rect class="%s wait" x="%.1f" y="%.1f" width="%.1f" height="8"><title>%s</title></rect>`, class, x0, y-4, x1-x0, title)
			continue
		}
		fmt.Fprintf(&b, `<circle class="%s" cx="%.1f" cy="%.1f" r="4.5"><title>%s</title></circle>`, class, x0, y, title)
	}
	for i := 0; i <= 4; i++ {
		t := t0 + report.NS(int64(t1-t0)*int64(i)/4)
		anchor := [...]string{"start", "middle", "middle", "middle", "end"}[i]
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, px(t), h-4, anchor, html.EscapeString(nanos(float64(t)/1000)))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // all text is escaped
}

// decimal prints the exact nanoseconds.
func decimal(n report.NS) string {
	b, _ := n.MarshalJSON()
	return string(b)
}

// splitRow is a flow's time by where it went, as bars.
type splitRow struct {
	Flow  string
	Total report.NS
	Parts []splitPart
}

type splitPart struct {
	Part
	Percent float64
	Class   int
}

// splits turns the shares into bars.
func splits(in *Input) []splitRow {
	var out []splitRow
	for _, s := range in.Splits {
		if len(out) == maxFlows {
			break
		}
		r := splitRow{Flow: s.Flow, Total: s.Total}
		for i, p := range s.Parts {
			if p.Span > 0 && s.Total > 0 {
				r.Parts = append(r.Parts, splitPart{p, float64(p.Span) / float64(s.Total) * 100, i})
			}
		}
		out = append(out, r)
	}
	return out
}
