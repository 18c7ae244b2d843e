package main

import (
	"fmt"
	"html"
	"strings"

	"github.com/rocemu/rocemu/topology"
)

// Geometry of the drawing, in pixels; a tier of many devices is drawn with
// narrower boxes until they would be unreadable.
const (
	svgWidth    = 1200
	svgTier     = 130
	svgBox      = 26
	svgLabelMin = 34 // narrower boxes carry no name, only a title to hover
)

// topologySVG draws the tiers one above the other: cores on top, RNICs below,
// the cables as lines that are the wider the faster.
func topologySVG(p *topology.Plan) string {
	tiers := [][]int32{}
	for _, k := range []topology.Kind{topology.Core, topology.Spine, topology.Leaf, topology.RNIC} {
		var ids []int32
		for i := range p.Devices {
			if p.Devices[i].Kind == k {
				ids = append(ids, int32(i))
			}
		}
		if len(ids) > 0 {
			tiers = append(tiers, ids)
		}
	}
	x, y := make([]float64, len(p.Devices)), make([]float64, len(p.Devices))
	for t, ids := range tiers {
		for i, id := range ids {
			x[id] = svgWidth * (float64(i) + 0.5) / float64(len(ids))
			y[id] = float64(40 + t*svgTier)
		}
	}
	var s strings.Builder
	height := 80 + (len(tiers)-1)*svgTier
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", svgWidth, height, svgWidth, height)
	fmt.Fprintf(&s, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", html.EscapeString(p.Name))
	for _, c := range p.Cables {
		w := 0.5 + float64(c.Rate)/100e9
		fmt.Fprintf(&s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#8aa" stroke-width="%.2f"><title>%s:%d - %s:%d %v %v</title></line>`+"\n",
			x[c.A], y[c.A], x[c.B], y[c.B], min(w, 5), html.EscapeString(p.Devices[c.A].Name), c.APort, html.EscapeString(p.Devices[c.B].Name), c.BPort, c.Rate, c.Delay)
	}
	for _, ids := range tiers {
		box := min(float64(svgWidth)/float64(len(ids))-2, 90)
		for _, id := range ids {
			drawDevice(&s, p, id, x[id], y[id], max(box, 1))
		}
	}
	s.WriteString("</svg>\n")
	return s.String()
}

var tierFill = map[topology.Kind]string{topology.Core: "#d7bde2", topology.Spine: "#aed6f1", topology.Leaf: "#a9dfbf", topology.RNIC: "#f9e79f"}

func drawDevice(s *strings.Builder, p *topology.Plan, id int32, x, y, w float64) {
	d := &p.Devices[id]
	name := html.EscapeString(d.Name)
	fmt.Fprintf(s, `<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="3" fill="%s" stroke="#555"/>`,
		name, x-w/2, y-svgBox/2, w, svgBox, tierFill[d.Kind])
	if w >= svgLabelMin {
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, y+4, name)
	}
	s.WriteString("</g>\n")
}
