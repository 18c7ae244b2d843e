package htsim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology/internal/intake"
)

var topoKeys = []string{
	"Nodes", "Tiers", "Podsize", "Tier", "Downlink_speed_Gbps", "Radix_Down", "Radix_Up", "Bundle", "Oversubscribed",
	"Downlink_Latency_ns", "Switch_Latency_ns", "Queue_Down", "Queue_Up",
}

// topo reads KEY VALUE lines: Nodes, Tiers, Podsize, then one block a tier.
func (im *importer) topo() {
	name := im.opt.Topology.Name
	want, at := 0, -1
	for _, r := range intake.Split(im.opt.Topology.Text, "#") {
		key := r.F[0]
		if len(r.F) != 2 {
			im.Fail(name, r.Line, 1, key, strings.Join(r.F[1:], " "), "must be a key and one value", "")
			continue
		}
		bad := func(lo, hi int) {
			im.Fail(name, r.Line, len(key)+2, key, r.F[1], fmt.Sprintf("must be a whole number %d..%d", lo, hi), "")
		}
		num := func(to *int, lo, hi int) {
			if v, ok := intake.Count(r.F[1], lo, hi); ok {
				*to = v
				return
			}
			bad(lo, hi)
		}
		switch strings.ToLower(key) {
		case "nodes":
			num(&im.nodes, 2, maxNodes)
		case "tiers":
			num(&want, 2, 3)
		case "podsize":
			num(&im.pod, 1, maxNodes)
		case "tier":
			at = len(im.tiers)
			if v, ok := intake.Count(r.F[1], 0, 2); !ok || v != at {
				im.Fail(name, r.Line, 1, key, r.F[1], fmt.Sprintf("tiers come in order; the next is %d", at), strconv.Itoa(at))
				return
			}
			im.tiers = append(im.tiers, tier{line: r.Line, bundle: 1})
		default:
			if at < 0 {
				im.Fail(name, r.Line, 1, key, r.F[1], "is not known before the first Tier; known are "+strings.Join(topoKeys, ", "), "")
				continue
			}
			im.tierKey(name, r, &im.tiers[at], num)
		}
	}
	im.checkTopo(name, want)
}

// tierKey takes a line of a tier's block.
func (im *importer) tierKey(name string, r intake.Row, t *tier, num func(*int, int, int)) {
	var n int
	switch strings.ToLower(r.F[0]) {
	case "downlink_speed_gbps":
		num(&n, 1, 10000)
		t.rate = clock.Rate(n) * clock.Gbps
	case "radix_down":
		num(&t.down, 1, maxRadix)
	case "radix_up":
		num(&t.up, 1, maxRadix)
	case "bundle":
		num(&t.bundle, 1, 64)
	case "oversubscribed":
		num(&t.over, 1, maxRadix)
	case "downlink_latency_ns":
		num(&n, 1, 1_000_000_000)
		t.delay = clock.Duration(n) * clock.Nanosecond
	case "switch_latency_ns":
		num(&n, 0, 1_000_000_000)
		t.pipe = clock.Duration(n) * clock.Nanosecond
	case "queue_down", "queue_up":
		im.Note(name, r.Line, "%s: the shared buffer of the switch is used instead", r.F[0])
	default:
		im.Fail(name, r.Line, 1, r.F[0], r.F[1], "is not known; known are "+strings.Join(topoKeys, ", "), "")
	}
}

// checkTopo compares the figures with one another.
func (im *importer) checkTopo(name string, want int) {
	if len(im.Errs) > 0 {
		return
	}
	bad := func(line int, field string, v int, msg string) {
		im.Fail(name, line, 1, field, strconv.Itoa(v), msg, "")
	}
	switch {
	case im.nodes == 0:
		bad(1, "Nodes", 0, "missing")
		return
	case want == 0 || len(im.tiers) != want:
		bad(1, "Tiers", want, fmt.Sprintf("must be 2 or 3; the file describes %d", len(im.tiers)))
		return
	}
	if im.pod == 0 || want == 2 {
		im.pod = im.nodes
	}
	for i := range im.tiers {
		t := &im.tiers[i]
		if t.rate == 0 || t.down == 0 || t.delay == 0 || i < want-1 && t.up == 0 {
			bad(t.line, "Tier", i, "needs Downlink_speed_Gbps, Radix_Down, Downlink_Latency_ns and, below the top, Radix_Up")
			return
		}
	}
	t0, t1 := &im.tiers[0], &im.tiers[1]
	tors := im.pod / t0.down
	switch {
	case im.nodes%im.pod != 0:
		bad(1, "Podsize", im.pod, fmt.Sprintf("must divide the %d nodes", im.nodes))
	case im.pod%t0.down != 0:
		bad(t0.line, "Radix_Down", t0.down, fmt.Sprintf("must divide the %d hosts of a POD", im.pod))
	case t0.up%t1.bundle != 0:
		bad(t1.line, "Bundle", t1.bundle, fmt.Sprintf("must divide the %d uplinks of tier 0", t0.up))
	case t1.down != tors*t1.bundle:
		bad(t1.line, "Radix_Down", t1.down, fmt.Sprintf("must be %d: %d switches below, %d links each", tors*t1.bundle, tors, t1.bundle))
	case want == 3 && t1.up%im.tiers[2].bundle != 0:
		bad(im.tiers[2].line, "Bundle", im.tiers[2].bundle, fmt.Sprintf("must divide the %d uplinks of tier 1", t1.up))
	case want == 3 && im.tiers[2].down != im.nodes/im.pod*im.tiers[2].bundle:
		bad(im.tiers[2].line, "Radix_Down", im.tiers[2].down, fmt.Sprintf("must be %d: %d PODs, %d links each", im.nodes/im.pod*im.tiers[2].bundle, im.nodes/im.pod, im.tiers[2].bundle))
	}
	for i := range im.tiers[:want-1] {
		t := &im.tiers[i]
		below, above := clock.Rate(t.down)*t.rate, clock.Rate(t.up)*im.tiers[i+1].rate
		if t.over > 0 && below != clock.Rate(t.over)*above {
			im.Note(name, t.line, "Oversubscribed %d, but the links give %s below and %s above; the links count", t.over, below, above)
		}
	}
}
