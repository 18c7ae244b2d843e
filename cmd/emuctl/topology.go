package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

type topologyFlags struct {
	File   []string `flag:"file,f" help:"fabric file; later ones overlay earlier ones (repeatable)"`
	Set    []string `flag:"set" help:"override one value: path=value (repeatable)"`
	Format string   `flag:"format" help:"table, dot (Graphviz) or svg"`
}

func (a *app) topology() *cobra.Command {
	f := topologyFlags{Format: "table"}
	return a.command(verb{
		use: "topology FILE... [--format table|dot|svg]", short: "Show what would be built",
		long:    "The table lists every switch and each kind of its cables; --json lists every cable.",
		example: "  emuctl topology examples/pod.yaml\n  emuctl topology examples/two-racks.yaml --format svg > fabric.svg",
		flags:   &f,
		run: func(_ context.Context, args []string) error {
			l, err := load(append(args, f.File...), f.Set, nil)
			if err != nil {
				return err
			}
			return a.showTopology(l.plan, f.Format)
		},
	})
}

func (a *app) showTopology(p *topology.Plan, format string) error {
	switch {
	case a.json:
		return a.printJSON(newTopologyOut(p))
	case format == "dot":
		return a.printf("%s", topologyDOT(p))
	case format == "svg":
		return a.printf("%s", topologySVG(p))
	case format == "table":
		return a.printf("%s", topologyTable(p))
	}
	return fmt.Errorf("--format %q: allowed: table, dot, svg", format)
}

// cableOut is one cable of `emuctl topology --json`.
type cableOut struct {
	A       string    `json:"a"`
	B       string    `json:"b"`
	RateBPS int64     `json:"rate_bps"`
	DelayNS report.NS `json:"delay_ns"`
}

type deviceOut struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Pod   int    `json:"pod,omitempty"`
	Ports int    `json:"ports"`
}

type topologyOut struct {
	Name    string         `json:"name"`
	Count   map[string]int `json:"count"`
	Devices []deviceOut    `json:"devices"`
	Cables  []cableOut     `json:"cables"`
	// WindowNS is the smallest latency between two devices.
	WindowNS report.NS `json:"window_ns"`
}

var kindWord = map[topology.Kind]string{topology.RNIC: "rnic", topology.Leaf: "leaf", topology.Spine: "spine", topology.Core: "core"}

func newTopologyOut(p *topology.Plan) topologyOut {
	o := topologyOut{Name: p.Name, Count: map[string]int{}, WindowNS: report.NS(p.Window), Devices: []deviceOut{}, Cables: []cableOut{}}
	for i := range p.Devices {
		d := &p.Devices[i]
		o.Count[kindWord[d.Kind]]++
		o.Devices = append(o.Devices, deviceOut{d.Name, kindWord[d.Kind], d.Pod, len(d.Ports)})
	}
	for _, c := range p.Cables {
		o.Cables = append(o.Cables, cableOut{
			fmt.Sprintf("%s:%d", p.Devices[c.A].Name, c.APort), fmt.Sprintf("%s:%d", p.Devices[c.B].Name, c.BPort), int64(c.Rate), report.NS(c.Delay),
		})
	}
	return o
}

// topologyTable lists each switch with its cables grouped by peer kind, rate
// and delay, then the RNICs in one line.
func topologyTable(p *topology.Plan) string {
	t := report.NewTable("device", "kind", "ports", "cables", "buffer", "cell", "routes")
	rnics := 0
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.Kind == topology.RNIC {
			rnics++
			continue
		}
		t.AppendRow([]any{d.Name, kindWord[d.Kind], len(d.Ports), cableGroups(p, d), report.Bytes(d.Switch.BufferBytes), d.Switch.Cell, routes(d)})
	}
	return fmt.Sprintf("%s: %d devices, %d of them RNICs, %d cables; window %v\n\n%s\n", p.Name, len(p.Devices), rnics, len(p.Cables), p.Window, t.Render())
}

func cableGroups(p *topology.Plan, d *topology.Device) string {
	var order []string
	count := map[string]int{}
	for i := range d.Ports {
		q := &d.Ports[i]
		key := fmt.Sprintf("%v to %s, %v", q.Rate, kindWord[p.Devices[q.Peer].Kind], q.Prop)
		if count[key]++; count[key] == 1 {
			order = append(order, key)
		}
	}
	for i, k := range order {
		order[i] = fmt.Sprintf("%d x %s", count[k], k)
	}
	return strings.Join(order, "; ")
}

// routes tells how many equal-cost members a device's route groups have.
func routes(d *topology.Device) string {
	least, most := 0, 0
	for i, g := range d.Groups {
		if n := len(g); i == 0 || n < least {
			least = n
		}
		most = max(most, len(g))
	}
	if least == most {
		return fmt.Sprintf("%d-way", most)
	}
	return fmt.Sprintf("%d- to %d-way", least, most)
}

func topologyDOT(p *topology.Plan) string {
	var s strings.Builder
	fmt.Fprintf(&s, "graph %q {\n  rankdir=BT; node [shape=box];\n", p.Name)
	for _, k := range []topology.Kind{topology.RNIC, topology.Leaf, topology.Spine, topology.Core} {
		s.WriteString("  { rank=same;")
		for i := range p.Devices {
			if p.Devices[i].Kind == k {
				fmt.Fprintf(&s, " %q;", p.Devices[i].Name)
			}
		}
		s.WriteString(" }\n")
	}
	for _, c := range p.Cables {
		fmt.Fprintf(&s, "  %q -- %q [label=\"%v\", taillabel=\"%d\", headlabel=\"%d\"];\n",
			p.Devices[c.A].Name, p.Devices[c.B].Name, c.Rate, c.APort, c.BPort)
	}
	s.WriteString("}\n")
	return s.String()
}
