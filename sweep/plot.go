package sweep

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// maxSeries bounds the lines of a panel; further combinations stay in the CSV.
const maxSeries = 8

// panel is one figure over the first axis.
type panel struct {
	title string
	of    func(*Point) float64
}

var panels = []panel{
	{"goodput, Gbit/s", func(p *Point) float64 { return p.Goodput.Mean / 1e9 }},
	{"FCT p99, us", func(p *Point) float64 { return p.P99.Mean / 1e6 }},
	{"time paused, %", func(p *Point) float64 { return p.Pause.Mean * 100 }},
	{"frames dropped", func(p *Point) float64 { return float64(p.Drops) }},
}

// Picture draws goodput, p99, pause time and drops over the first axis, one
// line for each combination of the others, as SVG.
func Picture(w io.Writer, axes []Axis, points []Point) error {
	if len(axes) == 0 {
		return fmt.Errorf("a picture needs an axis")
	}
	grid := make([][]*plot.Plot, 2)
	for i, pn := range panels {
		p, err := pn.draw(axes, points, i == 0)
		if err != nil {
			return err
		}
		grid[i/2] = append(grid[i/2], p)
	}
	c := vgsvg.New(22*vg.Centimeter, 16*vg.Centimeter)
	tiles := draw.Tiles{Rows: 2, Cols: 2, PadX: vg.Millimeter * 5, PadY: vg.Millimeter * 5, PadTop: vg.Millimeter * 2, PadBottom: vg.Millimeter * 2, PadLeft: vg.Millimeter * 2, PadRight: vg.Millimeter * 4}
	for r, row := range plot.Align(grid, tiles, draw.New(c)) {
		for k := range row {
			grid[r][k].Draw(row[k])
		}
	}
	_, err := c.WriteTo(w)
	return err
}

// draw makes one panel.
func (pn *panel) draw(axes []Axis, points []Point, legend bool) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = pn.title, axes[0].Path
	p.Y.Min = 0
	p.NominalX(axes[0].Values...)
	p.Add(plotter.NewGrid())
	lines := map[string]plotter.XYs{}
	var names []string
	for i := range points {
		if points[i].Invalid != "" {
			continue
		}
		name := strings.Join(points[i].Values[1:], ", ")
		if _, ok := lines[name]; !ok {
			names = append(names, name)
		}
		x := float64(slices.Index(axes[0].Values, points[i].Values[0]))
		lines[name] = append(lines[name], plotter.XY{X: x, Y: pn.of(&points[i])})
	}
	for i, name := range names[:min(len(names), maxSeries)] {
		l, dots, err := plotter.NewLinePoints(lines[name])
		if err != nil {
			return nil, err
		}
		l.Color, dots.Color, dots.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		p.Add(l, dots)
		if legend && name != "" {
			p.Legend.Add(name, l, dots)
		}
	}
	if p.Y.Max <= 0 {
		p.Y.Max = 1
	}
	return p, nil
}

// FrontPicture draws every finished point by pause time and goodput, the
// Pareto front filled and labelled, as SVG.
func FrontPicture(w io.Writer, points []Point) error {
	p := plot.New()
	p.Title.Text = "Pareto front (filled): pause time against goodput"
	p.X.Label.Text, p.Y.Label.Text = "time paused, %", "goodput, Gbit/s"
	var front, rest plotter.XYLabels
	for i := range points {
		q := &points[i]
		if !q.OK {
			continue
		}
		to := &rest
		if q.Front {
			to = &front
		}
		to.XYs = append(to.XYs, plotter.XY{X: q.Pause.Mean * 100, Y: q.Goodput.Mean / 1e9})
		to.Labels = append(to.Labels, strings.Join(q.Values, ", "))
	}
	for _, g := range []struct {
		set   plotter.XYLabels
		glyph draw.GlyphDrawer
		tell  bool
	}{{rest, draw.RingGlyph{}, false}, {front, draw.CircleGlyph{}, true}} {
		if len(g.set.XYs) == 0 {
			continue
		}
		s, err := plotter.NewScatter(g.set.XYs)
		if err != nil {
			return err
		}
		s.Shape, s.Color = g.glyph, color.RGBA{R: 30, G: 90, B: 160, A: 255}
		p.Add(s)
		if !g.tell {
			continue
		}
		labels, err := plotter.NewLabels(g.set)
		if err != nil {
			return err
		}
		labels.Offset = vg.Point{X: vg.Points(4), Y: vg.Points(2)}
		p.Add(labels)
	}
	c := vgsvg.New(18*vg.Centimeter, 12*vg.Centimeter)
	p.Draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}
