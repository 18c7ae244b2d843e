package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// Head-of-line blocking: a paused priority stops every flow of its class on
// the link, also those that do not go where the congestion is.

const (
	victimShare = 0.2   // a queue paused for less of the run is not told of
	victimFlows = 50000 // beyond, only the first flows are looked at
)

// egress names an egress queue by the PFC priority that stops it.
type egress struct {
	dev  int32
	port int
	prio int
}

// blocking is the result's counters read as a graph of pauses.
type blocking struct {
	plan   *topology.Plan
	res    *report.Result
	paused map[egress]float64 // share of the run
	roots  map[egress][]egress
	ways   [][]egress                 // by flow; nil where packets spread
	feeds  map[egress]map[egress]bool // queue → queues that its flows enter next
}

// victims adds a finding for each workload line that has flows which cross a
// queue paused for long, but none of the congested queues that caused it.
func victims(plan *topology.Plan, res *report.Result) {
	if res.VirtualNS == 0 {
		return
	}
	b := &blocking{plan: plan, res: res, paused: map[egress]float64{}, roots: map[egress][]egress{}, feeds: map[egress]map[egress]bool{}}
	b.collect()
	if len(b.paused) == 0 {
		return
	}
	b.follow()
	type tally struct {
		hit   int
		first string
	}
	lines := make([]tally, len(plan.Lines))
	for i := range plan.Flows[:min(len(plan.Flows), victimFlows)] {
		f := &plan.Flows[i]
		text := b.victim(b.ways[i])
		if text == "" {
			continue
		}
		l := &lines[f.Line]
		if l.hit++; l.hit == 1 {
			l.first = plan.FlowName(f) + " " + text
		}
	}
	for i := range lines {
		if l := &lines[i]; l.hit > 0 {
			text := l.first
			if n := len(plan.Lines[i].Flows); n > 1 {
				text = fmt.Sprintf("%d of %d flows; %s", l.hit, n, text)
			}
			res.Findings = append(res.Findings, report.Finding{Code: "head-of-line-victim", Where: plan.Lines[i].Name, Text: text})
		}
	}
	report.SortFindings(res.Findings)
}

// collect lists the queues that were paused for long.
func (b *blocking) collect() {
	for i := range b.plan.Devices {
		d := &b.plan.Devices[i]
		if c := b.res.RNICs[d.Name]; c != nil {
			for n := range 8 {
				if share := float64(c.RxPauseNS[n]) / float64(b.res.VirtualNS); share > victimShare {
					b.paused[egress{d.ID, 1, n}] = share
				}
			}
		}
		sw := b.res.Switches[d.Name]
		if sw == nil {
			continue
		}
		for num, p := range sw.Ports {
			port, err := strconv.Atoi(num)
			if err != nil {
				continue
			}
			for n := range 8 {
				c := p.PFC[strconv.Itoa(n)]
				if c == nil {
					continue
				}
				if share := float64(c.RxPauseNS) / float64(b.res.VirtualNS); share > victimShare {
					b.paused[egress{d.ID, port, n}] = share
				}
			}
		}
	}
}

// follow lists the queues on every flow's way.
func (b *blocking) follow() {
	for i := range b.plan.Flows[:min(len(b.plan.Flows), victimFlows)] {
		way := b.way(&b.plan.Flows[i])
		b.ways = append(b.ways, way)
		for k := 0; k+1 < len(way); k++ {
			if b.feeds[way[k]] == nil {
				b.feeds[way[k]] = map[egress]bool{}
			}
			b.feeds[way[k]][way[k+1]] = true
		}
	}
}

func (b *blocking) way(f *topology.Flow) (way []egress) {
	stops, err := Walk(b.plan, probeOf(b.plan, f))
	if err != nil {
		return nil
	}
	for _, s := range stops {
		d := &b.plan.Devices[s.Dev]
		if s.Spray {
			return nil
		}
		prio := int(s.Queue)
		if d.Switch != nil {
			prio = prioStopping(&d.Ports[s.Out-1], prio)
		}
		way = append(way, egress{s.Dev, s.Out, prio})
	}
	return way
}

// victim says how a flow was blocked, "" when it was not, or rightly.
func (b *blocking) victim(way []egress) string {
	for _, e := range way {
		share, ok := b.paused[e]
		if !ok {
			continue
		}
		roots := b.rootsOf(e, map[egress]bool{})
		if len(roots) == 0 || slices.ContainsFunc(roots, func(r egress) bool { return slices.Contains(way, r) }) {
			continue
		}
		r := roots[0]
		return fmt.Sprintf("crosses %s priority %d, paused for %.0f %% of the run, but not the congested %s: blocked behind others' frames",
			b.plan.PortName(e.dev, e.port), e.prio, 100*share, b.plan.PortName(r.dev, r.port))
	}
	return ""
}

// prioStopping is the lossless priority that stops a queue, -1 when none does.
func prioStopping(p *topology.Port, q int) int {
	for n := range 8 {
		if p.PFC.Lossless[n] && int(p.QoS.PFCToQueue[n]) == q {
			return n
		}
	}
	return -1
}

// rootsOf follows pauses to the queues that caused them: of a switch that
// paused, the long queues that were not paused themselves; an RNIC that paused
// makes the paused queue the root.
func (b *blocking) rootsOf(e egress, seen map[egress]bool) []egress {
	if r, ok := b.roots[e]; ok {
		return r
	}
	if seen[e] {
		return nil
	}
	seen[e] = true
	peer := &b.plan.Devices[b.plan.Devices[e.dev].Ports[e.port-1].Peer]
	var out []egress
	if peer.Switch == nil {
		out = []egress{e}
	} else {
		out = b.causes(b.long(e, peer), seen)
	}
	delete(seen, e)
	if len(seen) == 0 {
		b.roots[e] = out
	}
	return out
}

// causes finds the roots behind a switch's long queues. Where some were paused
// for long they are the reason: the others drained at their line's rate.
func (b *blocking) causes(long []egress, seen map[egress]bool) (out []egress) {
	paused := false
	for _, q := range long {
		if b.paused[q] > victimShare {
			paused = true
			out = append(out, b.rootsOf(q, seen)...)
		}
	}
	if paused {
		return out
	}
	return long
}

// long lists the queues of a switch that flows through e enter and whose
// watermark came near the longest of them, in port order.
func (b *blocking) long(e egress, d *topology.Device) []egress {
	sw := b.res.Switches[d.Name]
	if sw == nil {
		return nil
	}
	mark := func(q egress) int64 {
		p := sw.Ports[strconv.Itoa(q.port)]
		if p == nil || q.prio < 0 {
			return 0
		}
		if c := p.Queue[strconv.Itoa(int(d.Ports[q.port-1].QoS.PFCToQueue[q.prio]))]; c != nil {
			return c.Watermark
		}
		return 0
	}
	var most int64
	var out []egress
	for q := range b.feeds[e] {
		most = max(most, mark(q))
	}
	for q := range b.feeds[e] {
		if m := mark(q); m > 0 && 2*m >= most {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(x, y egress) int { return cmp.Or(cmp.Compare(x.port, y.port), cmp.Compare(x.prio, y.prio)) })
	return out
}
