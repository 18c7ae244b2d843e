package html

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/internal/natural"
	"github.com/rocemu/rocemu/report"
)

// node is a device in the drawing.
type node struct {
	key  string // orders the row
	name string
	tier int // 0 core, 1 spine, 2 leaf, 3 RNIC
	x, y float64
}

// link is a cable in the drawing, with what went over it in both directions.
type link struct {
	a, b     string // device:port
	bytes    uint64
	paused   report.NS
	pausedBy string
}

// Limits of the drawing: beyond, RNICs are drawn as one box a leaf.
const (
	maxDrawn = 64
	drawW    = 1120.0
	rowH     = 96.0
)

// drawFabric draws devices by tier and cables coloured by load, those that were
// paused in red.
func drawFabric(in *Input) template.HTML {
	links := cables(in.Result)
	if len(links) == 0 {
		return ""
	}
	nodes := place(in.Result, links)
	var most uint64
	for _, l := range links {
		most = max(most, l.bytes)
	}
	var b strings.Builder
	rows := 0.0
	for _, n := range nodes {
		rows = max(rows, n.y)
	}
	fmt.Fprintf(&b, `<svg class="fabric" viewBox="0 0 %g %g" role="img">`, drawW, rows+44)
	for _, l := range links {
		drawLink(&b, in, nodes, l, most)
	}
	for _, name := range sortedKeys(nodes) {
		n := nodes[name]
		w := max(34, float64(len(n.name))*6.6+10)
		fmt.Fprintf(&b, `<g><rect class="t%d" x="%.1f" y="%.1f" width="%.1f" height="22" rx="4"/><text class="dev" x="%.1f" y="%.1f" text-anchor="middle">%s</text></g>`,
			n.tier, n.x-w/2, n.y-11, w, n.x, n.y+4, html.EscapeString(n.name))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // all text is escaped
}

func drawLink(b *strings.Builder, in *Input, nodes map[string]*node, l link, most uint64) {
	x, y := nodes[device(l.a)], nodes[device(l.b)]
	if x == nil || y == nil {
		return
	}
	load := 0.0
	if most > 0 {
		load = float64(l.bytes) / float64(most)
	}
	class := "idle"
	switch {
	case l.paused > 0:
		class = "paused"
	case l.bytes > 0:
		class = "busy"
	}
	text := fmt.Sprintf("%s – %s: %s", l.a, l.b, report.Bytes(int64(l.bytes)))
	if ns := in.Result.VirtualNS; ns > 0 {
		text += fmt.Sprintf(", %s on average", bps(float64(l.bytes)*8e12/float64(ns)))
	}
	if l.paused > 0 {
		text += fmt.Sprintf("; paused %s by %s", report.Span(l.paused), l.pausedBy)
	}
	fmt.Fprintf(b, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke-width="%.2f" stroke-opacity="%.2f"><title>%s</title></line>`,
		class, x.x, x.y, y.x, y.y, 1+4*load, 0.25+0.7*load, html.EscapeString(text))
}

func device(port string) string {
	d, _, _ := strings.Cut(port, ":")
	return d
}

// cables finds the cables from the switches' ports, each once.
func cables(r *report.Result) []link {
	seen := map[string]int{}
	var out []link
	for _, dev := range sortedKeys(r.Switches) {
		for _, num := range sortedPorts(r.Switches[dev]) {
			p := r.Switches[dev].Ports[num]
			here := dev + ":" + num
			if p.Peer == "" {
				continue
			}
			i, ok := seen[p.Peer]
			if !ok {
				i = len(out)
				seen[here] = i
				out = append(out, link{a: here, b: p.Peer})
			}
			l := &out[i]
			l.bytes += p.TxBytes
			if !ok && r.Switches[device(p.Peer)] == nil {
				l.bytes += p.RxBytes // the other end is an RNIC
			}
			for _, c := range p.PFC {
				if c.TxPauseNS > l.paused {
					l.paused, l.pausedBy = c.TxPauseNS, here
				}
			}
		}
	}
	return out
}

func sortedPorts(s *report.SwitchCounters) []string {
	keys := sortedKeys(s.Ports)
	slices.SortFunc(keys, func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return cmp.Compare(x, y)
	})
	return keys
}

// place gives every device its tier and its place in the row.
func place(r *report.Result, links []link) map[string]*node {
	out := map[string]*node{}
	for d := range r.Switches {
		out[d] = &node{name: d, tier: tierOf(d)}
	}
	if len(r.RNICs) <= maxDrawn {
		for d := range r.RNICs {
			out[d] = &node{name: d, tier: 3}
		}
	} else {
		groupHosts(out, links)
	}
	var rows [4][]*node
	for _, name := range sortedKeys(out) {
		n := out[name]
		n.key = name
		rows[n.tier] = append(rows[n.tier], n)
	}
	y := 24.0
	for t := range rows {
		if len(rows[t]) == 0 {
			continue
		}
		slices.SortFunc(rows[t], func(a, b *node) int { return natural.Compare(a.key, b.key) })
		for i, n := range rows[t] {
			n.x, n.y = drawW*(float64(i)+0.5)/float64(len(rows[t])), y
			if len(rows[t]) > 16 && i%2 == 1 {
				n.y += 28 // two lines, so that names stay readable
			}
		}
		y += rowH
	}
	return out
}

// groupHosts stands for the RNICs of a leaf with one box.
func groupHosts(out map[string]*node, links []link) {
	count := map[string]int{}
	for i := range links {
		l := &links[i]
		if out[device(l.b)] == nil {
			leaf := device(l.a)
			count[leaf]++
			l.b = leaf + " hosts:1"
		}
	}
	for leaf, n := range count {
		name := leaf + " hosts"
		out[name] = &node{name: fmt.Sprintf("%d RNICs", n), tier: 3}
	}
}

// tierOf goes by the name: pod2-spine1 is a spine.
func tierOf(dev string) int {
	for t, s := range []string{"core", "spine"} {
		if strings.Contains(dev, s) {
			return t
		}
	}
	return 2
}
