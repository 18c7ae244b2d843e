package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/topology"
)

// picture is what `emuctl top` shows at one instant: the change since the one
// before.
type picture struct {
	plan        *topology.Plan
	before, now *counters.Snapshot
	hops        uint64
	trouble     []trouble
}

// trouble is a queue pair that recovered from something, or did not.
type trouble struct {
	name                                 string
	timeouts, naks, rnrs, resends, fatal int
}

// count books a record under its queue pair: requester, responder, QPN.
func (t *topRun) count(r *record.Record) {
	plan := t.plan
	if r.Src == 0 || r.Dst == 0 || int(max(r.Src, r.Dst)) > len(plan.RNICs) {
		return
	}
	name := fmt.Sprintf("%s>%s qp %d", plan.Devices[plan.RNICs[r.Src-1]].Name, plan.Devices[plan.RNICs[r.Dst-1]].Name, r.QPN)
	q := t.trouble[name]
	if q == nil {
		q = &trouble{name: name}
		t.trouble[name] = q
	}
	switch r.Kind {
	case record.Timeout:
		q.timeouts++
	case record.NakRecv, record.ImpliedNak:
		q.naks++
	case record.RnrRecv:
		q.rnrs++
	case record.QPError:
		q.fatal++
	default:
		q.resends++
	}
}

// worst lists queue pairs in trouble: fatal ones, then by packets sent again.
func (t *topRun) worst() []trouble {
	var out []trouble
	for _, n := range slices.Sorted(maps.Keys(t.trouble)) {
		out = append(out, *t.trouble[n])
	}
	slices.SortStableFunc(out, func(a, b trouble) int {
		return cmp.Or(cmp.Compare(b.fatal, a.fatal), cmp.Compare(b.resends, a.resends))
	})
	return out[:min(len(out), 8)]
}

// item is a line of a list: a share of something.
type item struct {
	name  string
	value float64
	share float64 // 0 to 1, drawn as a bar
	text  string
}

// part is a titled list of a picture.
type part struct {
	title string
	lines []string
}

// draw writes the picture for a terminal of w × h characters: the lists share
// the lines there are, and what is wider is cut.
func (p picture) draw(w, h int, status string) string {
	if p.now == nil {
		return "no sample yet\n"
	}
	parts := []part{{"LINKS by load", bars(p.links(), w)}, {"QUEUES by depth", bars(p.queues(), w)}, {"PAUSES", p.pauseTree()}}
	if len(p.trouble) > 0 {
		t := part{title: "QPs IN TROUBLE          timeouts  NAKs  RNRs  resent  errors"}
		for _, q := range p.trouble {
			t.lines = append(t.lines, fmt.Sprintf("%-22s %7d %5d %5d %7d %7d", q.name, q.timeouts, q.naks, q.rnrs, q.resends, q.fatal))
		}
		parts = append(parts, t)
	}
	lines := []string{fmt.Sprintf("%s  %v virtual  %s  %s frame hops", p.plan.Name, p.now.At, status, report.Number(float64(p.hops)))}
	for i, n := range share(parts, h-1-len(parts)) {
		lines = append(lines, parts[i].title)
		for _, l := range parts[i].lines[:n] {
			lines = append(lines, "  "+l)
		}
	}
	var b strings.Builder
	for _, l := range lines[:min(len(lines), h)] {
		r := []rune(l)
		b.WriteString(string(r[:min(len(r), w)]) + "\n")
	}
	return b.String()
}

// share deals lines out to the parts in turn, to each what it has at most. One
// that has none says so.
func share(parts []part, left int) []int {
	out := make([]int, len(parts))
	for i := range parts {
		if len(parts[i].lines) == 0 {
			parts[i].lines = []string{"none"}
		}
	}
	for dealt := true; dealt && left > 0; {
		dealt = false
		for i := range parts {
			if left > 0 && out[i] < len(parts[i].lines) {
				out[i], left, dealt = out[i]+1, left-1, true
			}
		}
	}
	return out
}

// bars draws items, the largest first; a narrow terminal has shorter bars.
func bars(items []item, w int) (lines []string) {
	slices.SortStableFunc(items, func(x, y item) int { return cmp.Compare(y.value, x.value) })
	bar := max(min(w-47, max(w-60, 10)), 0)
	for _, it := range items {
		n := min(int(it.share*float64(bar)+0.5), bar)
		lines = append(lines, fmt.Sprintf("%-26s %14s  %s%s", it.name, it.text, strings.Repeat("█", n), strings.Repeat("·", bar-n)))
	}
	return lines
}

// was is a value of the picture before; positions are equal in a run.
func (p picture) was(i int) int64 {
	if p.before == nil || len(p.before.Points) != len(p.now.Points) {
		return 0
	}
	return p.before.Points[i].Value
}

// span is the virtual time that the picture covers, in picoseconds.
func (p picture) span() float64 {
	if p.before == nil {
		return max(float64(p.now.At), 1)
	}
	return max(float64(p.now.At-p.before.At), 1)
}

// links are the busy directions of cables.
func (p picture) links() []item {
	var out []item
	for i, pt := range p.now.Points {
		if pt.ID != counters.TxBytes && pt.ID != counters.RNICTxBytes {
			continue
		}
		port := &p.plan.Devices[pt.Dev].Ports[max(int(pt.Port), 1)-1]
		bps := float64(pt.Value-p.was(i)) * 8e12 / p.span()
		if bps == 0 {
			continue
		}
		name := fmt.Sprintf("%s:%d > %s", p.now.Devices[pt.Dev], port.Num, p.now.Devices[port.Peer])
		out = append(out, item{name, bps / float64(port.Rate), bps / float64(port.Rate), report.BitRate(int64(bps))})
	}
	return out
}

// queues are the egress queues that hold something, against the buffer.
func (p picture) queues() []item {
	var out []item
	for _, pt := range p.now.Points {
		if pt.ID != counters.QueueOccupancy || pt.Value == 0 {
			continue
		}
		share := 0.0
		if s := p.plan.Devices[pt.Dev].Switch; s != nil && s.BufferBytes > 0 {
			share = float64(pt.Value) / float64(s.BufferBytes)
		}
		out = append(out, item{p.now.Name(pt) + " queue " + pt.IndexName(), float64(pt.Value), share, report.Bytes(pt.Value)})
	}
	return out
}

// pauseTree shows who holds whom paused, from those that are not paused
// themselves down.
func (p picture) pauseTree() []string {
	holds, held := map[int32]map[int32]float64{}, map[int32]bool{}
	for i, pt := range p.now.Points {
		if pt.ID != counters.PFCRxPaused || pt.Value == p.was(i) {
			continue
		}
		by := p.plan.Devices[pt.Dev].Ports[pt.Port-1].Peer
		if holds[by] == nil {
			holds[by] = map[int32]float64{}
		}
		holds[by][pt.Dev] += float64(pt.Value-p.was(i)) / p.span()
		held[pt.Dev] = true
	}
	var out []string
	seen := map[int32]bool{}
	var tell func(dev int32, depth int, share float64)
	tell = func(dev int32, depth int, share float64) {
		line := strings.Repeat("   ", depth) + p.now.Devices[dev]
		if depth > 0 {
			line += fmt.Sprintf(" paused %.0f %% of the time", share*100)
		}
		if seen[dev] {
			return
		}
		seen[dev] = true
		out = append(out, line)
		for _, d := range slices.Sorted(maps.Keys(holds[dev])) {
			tell(d, depth+1, holds[dev][d])
		}
	}
	for _, pass := range []bool{false, true} { // then what hangs in a cycle
		for _, d := range slices.Sorted(maps.Keys(holds)) {
			if held[d] == pass && !seen[d] {
				tell(d, 0, 0)
			}
		}
	}
	return out
}
