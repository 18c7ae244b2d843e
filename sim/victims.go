package sim

import (
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
}

// victims adds a finding for each workload line that has flows which cross a
// queue paused for long, but none of the congested queues that caused it.
func victims(plan *topology.Plan, res *report.Result) {
	if res.VirtualNS == 0 {
		return
	}
	b := &blocking{plan: plan, res: res, paused: map[egress]float64{}, roots: map[egress][]egress{}}
	b.collect()
	if len(b.paused) == 0 {
		return
	}
	type tally struct {
		hit   int
		first string
	}
	lines := make([]tally, len(plan.Lines))
	for i := range plan.Flows[:min(len(plan.Flows), victimFlows)] {
		f := &plan.Flows[i]
		text := b.victim(f)
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

// collect lists the switch queues that were paused for long.
func (b *blocking) collect() {
	for i := range b.plan.Devices {
		d := &b.plan.Devices[i]
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

// victim says how a flow was blocked, "" when it was not, or rightly.
func (b *blocking) victim(f *topology.Flow) string {
	stops, err := Walk(b.plan, probeOf(b.plan, f))
	if err != nil {
		return ""
	}
	var way []egress
	for _, s := range stops {
		d := &b.plan.Devices[s.Dev]
		if s.Spray {
			return ""
		}
		if d.Switch == nil {
			continue
		}
		way = append(way, egress{s.Dev, s.Out, prioStopping(&d.Ports[s.Out-1], int(s.Queue))})
	}
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
		for _, q := range b.long(peer, e.prio) {
			if b.paused[q] > victimShare {
				out = append(out, b.rootsOf(q, seen)...)
			} else {
				out = append(out, q)
			}
		}
	}
	delete(seen, e)
	if len(seen) == 0 {
		b.roots[e] = out
	}
	return out
}

// long lists a switch's queues of a priority whose watermark came near its
// longest, in port order.
func (b *blocking) long(d *topology.Device, prio int) []egress {
	sw := b.res.Switches[d.Name]
	if sw == nil {
		return nil
	}
	mark := func(i int) int64 {
		p := sw.Ports[strconv.Itoa(d.Ports[i].Num)]
		if p == nil {
			return 0
		}
		if q := p.Queue[strconv.Itoa(int(d.Ports[i].QoS.PFCToQueue[prio]))]; q != nil {
			return q.Watermark
		}
		return 0
	}
	var most int64
	for i := range d.Ports {
		most = max(most, mark(i))
	}
	var out []egress
	for i := range d.Ports {
		if m := mark(i); m > 0 && 2*m >= most {
			out = append(out, egress{d.ID, d.Ports[i].Num, prio})
		}
	}
	return out
}
