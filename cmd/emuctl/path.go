package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

type pathFlags struct {
	fileFlags
	QP    int `flag:"qp" help:"number of a QP of FROM: its source port and class; default the first QP of the file between the two, else 0x11"`
	SPort int `flag:"sport" help:"UDP source port, 1..65535, instead of the QP's"`
	DSCP  int `flag:"dscp" help:"DSCP, 0..63, instead of the QP's"`
	Len   int `flag:"length" help:"frame length in bytes, destination MAC through FCS; default a full SEND of the path MTU"`
}

// pathOut is what `emuctl path --json` prints.
type pathOut struct {
	From, To  string    `json:"-"`
	FromTo    [2]string `json:"from_to"`
	SPort     uint16    `json:"sport"`
	DSCP      uint8     `json:"dscp"`
	Length    int64     `json:"length_bytes"`
	LatencyNS report.NS `json:"idle_latency_ns"` // first dequeue to last bit at the receiver
	Hops      []pathHop `json:"hops"`
	Uplinks   []uplink  `json:"uplinks,omitempty"`
	Note      string    `json:"note,omitempty"`
}

// pathHop is one device of the way and its egress port.
type pathHop struct {
	Device    string    `json:"device"`
	In        int       `json:"ingress_port,omitempty"`
	Out       int       `json:"egress_port"`
	Peer      string    `json:"peer"`
	Hash      string    `json:"hash,omitempty"` // hexadecimal, when there is a choice
	Members   []int     `json:"members,omitempty"`
	Spray     bool      `json:"spray,omitempty"`
	TC        uint8     `json:"tc"`
	PG        uint8     `json:"pg"`
	Queue     uint8     `json:"queue"`
	Lossless  bool      `json:"lossless"`
	Mode      string    `json:"mode,omitempty"`
	Rate      string    `json:"rate"`
	DequeueNS report.NS `json:"dequeue_ns"`
	LastBitNS report.NS `json:"last_bit_ns"`
}

// uplink is one equal-cost port and what the file's workload puts on it.
type uplink struct {
	Port  string `json:"port"`
	Peer  string `json:"peer"`
	Flows int    `json:"flows"`
	Bytes int64  `json:"bytes"`
}

func (a *app) path() *cobra.Command {
	f := pathFlags{QP: -1, DSCP: -1}
	return a.command(verb{
		use: "path FROM TO [--qp N|--sport N] [-f FILE]", short: "The way of a frame, hop by hop, and what it takes on an idle fabric",
		long: `Prints each egress port with the ECMP hash and its members, the class (DSCP to
traffic class to priority group to queue), and the idle latency as an exact sum.
With a workload in the file, also the flows and bytes of each equal-cost port.
Without a file: two racks of four RNICs.`,
		example: "  emuctl path rnic1 rnic5\n  emuctl path rnic1 rnic5 -f examples/two-racks.yaml --qp 0x11",
		args:    cobra.ExactArgs(2), flags: &f,
		run: func(_ context.Context, args []string) error {
			plan, err := loadLab(f.File, f.Set, f.Seed)
			if err != nil {
				return err
			}
			o, err := f.follow(plan, args[0], args[1])
			if err != nil {
				return err
			}
			return a.showPath(o)
		},
	})
}

// probe is the frame that the flags describe.
func (f *pathFlags) probe(plan *topology.Plan, a, b uint32) (sim.Probe, error) {
	nic := plan.RNIC(a).NIC
	p := sim.Probe{From: a, To: b, DSCP: nic.DSCP, SPort: nic.SPort, Kind: wire.KindData, Len: int64(wire.RoCELen(wire.SendOnly, nic.MTU))}
	if p.SPort == 0 {
		p.SPort = topology.SPort(0x11, 0x11)
	}
	found := false
	for i := range plan.QPs {
		q := &plan.QPs[i]
		if q.A == a && q.B == b && (f.QP < 0 || q.AQPN == uint32(f.QP)) {
			p.SPort, p.DSCP, found = q.SPort, q.DSCP, true
			break
		}
	}
	switch {
	case f.QP >= 0 && !found && len(plan.QPs) > 0:
		return p, fmt.Errorf("--qp %d: %s has no QP of that number to %s; `emuctl qp %s -f FILE` lists them", f.QP, plan.RNIC(a).Name, plan.RNIC(b).Name, plan.RNIC(a).Name)
	case f.QP > 0xffffff:
		return p, fmt.Errorf("--qp %d: a QP number has 24 bits", f.QP)
	case f.QP >= 0 && !found:
		p.SPort = topology.SPort(uint32(f.QP), uint32(f.QP))
	}
	if f.SPort != 0 {
		if f.SPort < 1 || f.SPort > 65535 {
			return p, fmt.Errorf("--sport %d: allowed 1..65535", f.SPort)
		}
		p.SPort = uint16(f.SPort)
	}
	if f.DSCP >= 0 {
		if f.DSCP > 63 {
			return p, fmt.Errorf("--dscp %d: allowed 0..63", f.DSCP)
		}
		p.DSCP = uint8(f.DSCP)
	}
	if f.Len != 0 {
		if f.Len < wire.MinFrame || f.Len > 65535 {
			return p, fmt.Errorf("--length %d: allowed %d..65535", f.Len, wire.MinFrame)
		}
		p.Len = int64(f.Len)
	}
	return p, nil
}

func (f *pathFlags) follow(plan *topology.Plan, from, to string) (*pathOut, error) {
	a, b, err := twoRNICs(plan, from, to)
	if err != nil {
		return nil, err
	}
	p, err := f.probe(plan, a, b)
	if err != nil {
		return nil, err
	}
	stops, err := sim.Walk(plan, p)
	if err != nil {
		return nil, err
	}
	o := &pathOut{
		From: from, To: to, FromTo: [2]string{from, to}, SPort: p.SPort, DSCP: p.DSCP, Length: p.Len,
		LatencyNS: report.NS(stops[len(stops)-1].LastBit),
	}
	for i := range stops {
		o.Hops = append(o.Hops, hopOf(plan, &stops[i]))
	}
	if len(plan.Flows) > 0 {
		o.addLoads(plan, stops)
	}
	return o, nil
}

func hopOf(plan *topology.Plan, s *sim.Leg) pathHop {
	d := &plan.Devices[s.Dev]
	p := &d.Ports[s.Out-1]
	h := pathHop{
		Device: d.Name, In: s.In, Out: s.Out, Peer: plan.PortName(p.Peer, p.PeerPort), Spray: s.Spray,
		TC: s.TC, PG: s.PG, Queue: s.Queue, Rate: p.Rate.String(), DequeueNS: report.NS(s.Dequeue), LastBitNS: report.NS(s.LastBit),
	}
	for _, m := range s.Members {
		h.Members = append(h.Members, int(m))
	}
	if s.Hashed {
		h.Hash = fmt.Sprintf("0x%08x", s.Hash)
	}
	if d.Switch == nil {
		h.Lossless = d.NIC.Lossless[s.PG]
		return h
	}
	h.Lossless = d.Ports[s.In-1].PFC.Lossless[s.PG]
	if h.Mode = "store-and-forward"; s.CT {
		h.Mode = "cut-through"
	}
	return h
}

// addLoads lists what the workload puts on the members of each choice on the
// way, and says when the hash leaves some of them empty.
func (o *pathOut) addLoads(plan *topology.Plan, stops []sim.Leg) {
	loads := sim.Loads(plan)
	for i := range stops {
		s := &stops[i]
		if len(s.Members) < 2 {
			continue
		}
		total, idle := 0, 0
		for _, m := range s.Members {
			p, l := &plan.Devices[s.Dev].Ports[m-1], loads[s.Dev][m-1]
			o.Uplinks = append(o.Uplinks, uplink{plan.PortName(s.Dev, int(m)), plan.PortName(p.Peer, p.PeerPort), l.Flows, l.Bytes})
			total += l.Flows
			if l.Flows == 0 {
				idle++
			}
		}
		if idle > 0 && unlikely(len(s.Members), idle, total) && o.Note == "" {
			o.Note = fmt.Sprintf("%d of %d members of %s carry none of its %d flows, which an even hash does less than once in 100: polarised, or equal seeds in two tiers",
				idle, len(s.Members), plan.Devices[s.Dev].Name, total)
		}
	}
}

// unlikely bounds the chance that an even hash of n flows leaves k of m members
// empty, C(m,k)·((m-k)/m)^n, and compares it with 1 %.
func unlikely(m, k, n int) bool {
	p := math.Pow(float64(m-k)/float64(m), float64(n))
	for i := range k {
		p *= float64(m-i) / float64(i+1)
	}
	return p < 0.01
}

func (a *app) showPath(o *pathOut) error {
	if a.json {
		return a.printJSON(o)
	}
	t := report.NewTable("device", "in", "out", "to", "hash", "members", "TC>PG>queue", "class", "dequeue", "last bit")
	for i := range o.Hops {
		h := &o.Hops[i]
		class := "lossy"
		if h.Lossless {
			class = "lossless"
		}
		t.AppendRow([]any{h.Device, dash(h.In), h.Out, h.Peer, h.hashText(), h.memberText(), fmt.Sprintf("%d>%d>%d", h.TC, h.PG, h.Queue), class, h.DequeueNS, h.LastBitNS})
	}
	err := a.printf("%s to %s: UDP source port %d, DSCP %d, frame of %d B\n%s\nidle latency %s ns (first dequeue to last bit at %s)\n",
		o.From, o.To, o.SPort, o.DSCP, o.Length, t.Render(), clock.Duration(o.LatencyNS).NS(), o.To)
	if err != nil || len(o.Uplinks) == 0 {
		return err
	}
	u := report.NewTable("equal-cost port", "to", "flows", "bytes")
	for _, l := range o.Uplinks {
		u.AppendRow([]any{l.Port, l.Peer, l.Flows, report.Bytes(l.Bytes)})
	}
	if err := a.printf("\n%s\n", u.Render()); err != nil || o.Note == "" {
		return err
	}
	return a.printf("%s\n", o.Note)
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func (h *pathHop) hashText() string {
	switch {
	case h.Spray:
		return "per packet"
	case h.Hash == "":
		return "-"
	}
	return h.Hash
}

// memberText marks the chosen member: "5 [6] 7".
func (h *pathHop) memberText() string {
	var parts []string
	for _, m := range h.Members {
		s := fmt.Sprint(m)
		if m == h.Out && len(h.Members) > 1 && !h.Spray {
			s = "[" + s + "]"
		}
		parts = append(parts, s)
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, " ")
}
