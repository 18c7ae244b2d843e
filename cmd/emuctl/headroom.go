package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

type headroomFlags struct {
	Rate     string `flag:"rate" help:"link rate"`
	Length   string `flag:"length" help:"cable length (5 ns a metre)"`
	Packet   string `flag:"packet" help:"packet size in flight (default: the worst for the cell)"`
	Cell     string `flag:"cell" help:"cell size"`
	MTU      string `flag:"mtu" help:"largest frame of any class on the link"`
	Response string `flag:"response" help:"the peer's receive-to-stop time"`
	Latency  string `flag:"latency" help:"own pipeline latency; half of it lies before the buffer"`
	Profile  string `flag:"profile" help:"auto, or article-408: the published 408-cell example taken apart"`
}

// headroomOut is what `emuctl headroom --json` prints, one a cable end.
type headroomOut struct {
	Where    string         `json:"where,omitempty"`
	Profile  string         `json:"profile"`
	Terms    []headroomTerm `json:"terms"`
	TotalNS  report.NS      `json:"total_ns"`
	Packet   int            `json:"packet_bytes"`
	InFlight int64          `json:"in_flight_cells"`
	Raiser   int64          `json:"raiser_cells"`
	Reserve  int64          `json:"reserve_cells"`
	Cells    int64          `json:"cells"`
	CellSize int64          `json:"cell_bytes"`
	Bytes    int64          `json:"bytes"`
}

type headroomTerm struct {
	Name  string    `json:"name"`
	NS    report.NS `json:"ns"`
	Cells int64     `json:"cells,omitempty"`
}

func (a *app) headroom() *cobra.Command {
	f := headroomFlags{Rate: "100Gbps", Length: "100m", Cell: "208B", MTU: "9216B", Response: "1us", Latency: "1us", Profile: "auto"}
	return a.command(verb{
		use: "headroom [FILE] [--rate 100Gbps --length 100m --packet 64B] [--profile article-408]", short: "PFC headroom of a link, term by term",
		long:    "What arrives between XOFF and the last unwanted frame, in cells. With FILE, the\nheadroom that every lossless port of the fabric gets, and its sum by switch.",
		example: "  emuctl headroom --rate 100Gbps --length 100m --packet 64B --profile article-408\n  emuctl headroom examples/pod.yaml",
		args:    cobra.MaximumNArgs(1), flags: &f,
		run: func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return a.headroomOfFile(args[0])
			}
			h, cell, err := f.compute()
			if err != nil {
				return err
			}
			return a.showHeadroom(newHeadroomOut("", f.Profile, h, cell))
		},
	})
}

// compute reads the flags and calls the calculator.
func (f *headroomFlags) compute() (topology.Headroom, int64, error) {
	var none topology.Headroom
	rate, err := topology.ParseRate(f.Rate)
	if err != nil {
		return none, 0, fmt.Errorf("--rate %q: %w", f.Rate, err)
	}
	mm, err := topology.ParseLength(f.Length)
	if err != nil {
		return none, 0, fmt.Errorf("--length %q: %w", f.Length, err)
	}
	sizes := map[string]int64{}
	for name, text := range map[string]string{"cell": f.Cell, "mtu": f.MTU, "packet": f.Packet} {
		if text == "" {
			continue
		}
		if sizes[name], err = topology.ParseSize(text); err != nil {
			return none, 0, fmt.Errorf("--%s %q: %w", name, text, err)
		}
	}
	if sizes["cell"] < 1 || rate < 1 {
		return none, 0, fmt.Errorf("headroom: rate %s and cell %s must be above 0", f.Rate, f.Cell)
	}
	if f.Packet != "" && sizes["packet"] < 64 {
		return none, 0, fmt.Errorf("--packet %s: a frame has at least 64B", f.Packet)
	}
	prop := clock.Duration(mm * 5) // 5 ps a millimetre
	switch f.Profile {
	case "article-408":
		return topology.Article408(rate, prop, sizes["cell"], int(sizes["packet"])), sizes["cell"], nil
	case "auto":
	default:
		return none, 0, fmt.Errorf("--profile %q: allowed: auto, article-408", f.Profile)
	}
	response, err := topology.ParseDuration(f.Response)
	if err != nil {
		return none, 0, fmt.Errorf("--response %q: %w", f.Response, err)
	}
	latency, err := topology.ParseDuration(f.Latency)
	if err != nil {
		return none, 0, fmt.Errorf("--latency %q: %w", f.Latency, err)
	}
	return topology.HeadroomAuto(topology.HeadroomInput{
		Rate: rate, Prop: prop, MTU: int(sizes["mtu"]), Response: response, Half: latency / 2, Cell: sizes["cell"], Packet: int(sizes["packet"]),
	}), sizes["cell"], nil
}

func newHeadroomOut(where, profile string, h topology.Headroom, cell int64) headroomOut {
	o := headroomOut{
		Where: where, Profile: profile, TotalNS: report.NS(h.Span), Packet: h.Packet, InFlight: h.InFlight,
		Raiser: h.Raiser, Reserve: h.Reserve, Cells: h.Cells, CellSize: cell, Bytes: h.Bytes,
	}
	for _, t := range h.Terms {
		o.Terms = append(o.Terms, headroomTerm{t.Name, report.NS(t.Span), t.Cells})
	}
	return o
}

func (a *app) showHeadroom(o headroomOut) error {
	if a.json {
		return a.printJSON(o)
	}
	t := report.NewTable("term", "time", "cells")
	for _, x := range o.Terms {
		if x.Cells > 0 {
			t.AppendRow([]any{x.Name, "", x.Cells})
			continue
		}
		t.AppendRow([]any{x.Name, x.NS.String(), ""})
	}
	t.AppendRow([]any{"total", o.TotalNS.String(), o.Cells})
	return a.printf("%s\n\n%d cells of %d B = %d B, at packets of %d B\n", t.Render(), o.Cells, o.CellSize, o.Bytes, o.Packet)
}

// portHeadroom is a row of `emuctl headroom FILE`.
type portHeadroom struct {
	Port     string `json:"port"`
	Peer     string `json:"peer"`
	Rate     string `json:"rate"`
	PropNS   string `json:"propagation_ns"`
	Priority int    `json:"priority"`
	Cells    int64  `json:"cells"`
	Bytes    int64  `json:"bytes"`
}

func (a *app) headroomOfFile(path string) error {
	plan, _, err := topology.Load(topology.LoadOptions{Files: []string{path}})
	if err != nil {
		return err
	}
	rows := []portHeadroom{}
	sums := report.NewTable("device", "groups", "cells", "bytes", "buffer")
	for i := range plan.Devices {
		d := &plan.Devices[i]
		from := len(rows)
		for p := range d.Ports {
			rows = append(rows, portRows(plan, d, &d.Ports[p])...)
		}
		var cells, bytes int64
		for _, r := range rows[from:] {
			cells, bytes = cells+r.Cells, bytes+r.Bytes
		}
		if d.Switch != nil {
			sums.AppendRow([]any{d.Name, len(rows) - from, cells, bytes, d.Switch.BufferBytes})
		}
	}
	if a.json {
		return a.printJSON(rows)
	}
	t := report.NewTable("port", "peer", "rate", "cable", "priority", "cells", "bytes")
	for _, r := range rows {
		t.AppendRow([]any{r.Port, r.Peer, r.Rate, r.PropNS + "ns", r.Priority, r.Cells, r.Bytes})
	}
	return a.printf("%s\n\n%s\n", t.Render(), sums.Render())
}

func portRows(plan *topology.Plan, d *topology.Device, p *topology.Port) []portHeadroom {
	if d.Switch == nil || p.PFC == nil {
		return nil
	}
	var out []portHeadroom
	for prio, on := range p.PFC.Lossless {
		if !on {
			continue
		}
		cells := p.Headroom[prio]
		out = append(out, portHeadroom{
			Port: d.Name + ":" + strconv.Itoa(p.Num), Peer: plan.Devices[p.Peer].Name + ":" + strconv.Itoa(p.PeerPort),
			Rate: p.Rate.String(), PropNS: p.Prop.NS(), Priority: prio, Cells: cells, Bytes: cells * d.Switch.Cell,
		})
	}
	return out
}
