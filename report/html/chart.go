package html

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// Size of a plot in its own units, and the margins of its axes.
const (
	plotW, plotH           = 560.0, 230.0
	left, right, top, foot = 62.0, 12.0, 10.0, 34.0
	maxPoints              = 700
)

// line is one curve; the points are in order of X.
type line struct {
	name string
	x, y []float64
	step bool // a value holds until the next point
}

// chart is a plot of curves over one axis.
type chart struct {
	lines []line
	xUnit func(float64) string
	yUnit func(float64) string
	logX  bool
	yMax  float64 // 0 = from the data
	marks []mark
}

// mark is a horizontal line with a name.
type mark struct {
	y    float64
	name string
}

// empty reports whether there is nothing to draw.
func (c *chart) empty() bool {
	for _, l := range c.lines {
		if len(l.x) > 0 {
			return false
		}
	}
	return true
}

// bounds of the data; x is in the axis's own scale.
func (c *chart) bounds() (x0, x1, y1 float64) {
	x0, x1 = math.Inf(1), math.Inf(-1)
	for _, l := range c.lines {
		for i := range l.x {
			x0, x1, y1 = math.Min(x0, c.sx(l.x[i])), math.Max(x1, c.sx(l.x[i])), math.Max(y1, l.y[i])
		}
	}
	for _, m := range c.marks {
		y1 = math.Max(y1, m.y)
	}
	if c.yMax > 0 {
		y1 = c.yMax
	}
	if y1 == 0 {
		y1 = 1
	}
	if x1 <= x0 {
		x0, x1 = x0-0.5, x1+0.5
	}
	return x0, x1, y1
}

func (c *chart) sx(x float64) float64 {
	if c.logX {
		return math.Log10(math.Max(x, 1))
	}
	return x
}

// svg draws the chart.
func (c *chart) svg() template.HTML {
	if c.empty() {
		return ""
	}
	x0, x1, y1 := c.bounds()
	y1 = niceCeil(y1)
	px := func(x float64) float64 { return left + (c.sx(x)-x0)/(x1-x0)*(plotW-left-right) }
	py := func(y float64) float64 { return plotH - foot - y/y1*(plotH-top-foot) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %g %g" role="img">`, plotW, plotH)
	for i := 0; i <= 4; i++ {
		y := y1 * float64(i) / 4
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			left, plotW-right, py(y), py(y), left-6, py(y)+3.5, html.EscapeString(c.yUnit(y)))
	}
	for i := 0; i <= 4; i++ {
		s := x0 + (x1-x0)*float64(i)/4
		x := s
		if c.logX {
			x = math.Pow(10, s)
		}
		anchor := [...]string{"start", "middle", "middle", "middle", "end"}[i]
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, px(x), plotH-foot+16, anchor, html.EscapeString(c.xUnit(x)))
	}
	for _, m := range c.marks {
		fmt.Fprintf(&b, `<line class="mark" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			left, plotW-right, py(m.y), py(m.y), plotW-right-2, py(m.y)-3, html.EscapeString(m.name))
	}
	for i, l := range c.lines {
		fmt.Fprintf(&b, `<polyline class="c%d" points="%s"><title>%s</title></polyline>`, i%maxLines, points(l, px, py), html.EscapeString(l.name))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String() + c.legend()) //nolint:gosec // all text is escaped
}

// legend names the curves when there are several.
func (c *chart) legend() string {
	if len(c.lines) < 2 {
		return ""
	}
	var b strings.Builder
	b.WriteString(`<div class="legend">`)
	for i, l := range c.lines {
		fmt.Fprintf(&b, `<span><i class="b%d"></i>%s</span>`, i%maxLines, html.EscapeString(l.name))
	}
	b.WriteString("</div>")
	return b.String()
}

// points writes a curve, thinned to the largest of each group of neighbours so
// that peaks stay.
func points(l line, px, py func(float64) float64) string {
	group := (len(l.x) + maxPoints - 1) / maxPoints
	var b strings.Builder
	last := math.NaN()
	for i := 0; i < len(l.x); i += group {
		k := i
		for j := i; j < min(i+group, len(l.x)); j++ {
			if l.y[j] > l.y[k] {
				k = j
			}
		}
		if l.step && !math.IsNaN(last) {
			fmt.Fprintf(&b, "%.1f,%.1f ", px(l.x[k]), py(last))
		}
		last = l.y[k]
		fmt.Fprintf(&b, "%.1f,%.1f ", px(l.x[k]), py(last))
	}
	return b.String()
}

// niceCeil returns the next of 1, 1.5, 2, 3, 4, 5, 6, 8 × 10^n.
func niceCeil(v float64) float64 {
	e := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if v <= m*e*1.0000001 {
			return m * e
		}
	}
	return 10 * e
}

func percent(v float64) string { return fmt.Sprintf("%.0f%%", v*100) }
func plain(v float64) string   { return trim(v, "") }

// trim prints v with an SI prefix.
func trim(v float64, unit string) string {
	for _, s := range []struct {
		f float64
		p string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "K"}} {
		if v >= s.f {
			return fmt.Sprintf("%.4g %s%s", v/s.f, s.p, unit)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%.3g %s", v, unit))
}

func bps(v float64) string  { return trim(v, "b/s") }
func size(v float64) string { return trim(v, "B") }

// nanos prints nanoseconds in the unit that reads best.
func nanos(v float64) string {
	for _, s := range []struct {
		f float64
		u string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}} {
		if math.Abs(v) >= s.f {
			return fmt.Sprintf("%.4g %s", v/s.f, s.u)
		}
	}
	return fmt.Sprintf("%.4g ns", v)
}

func slow(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}
