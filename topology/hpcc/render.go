package hpcc

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/rocemu/rocemu/clock"
)

// roles gives each switch its place: a leaf has hosts, a spine has leaves, a
// core neither.
func (im *importer) roles() {
	im.role = map[int]string{}
	hasHost, hasLeaf := map[int]bool{}, map[int]bool{}
	for _, l := range im.links {
		if im.isSw[l.a] && !im.isSw[l.b] {
			hasHost[l.a] = true
		}
		if im.isSw[l.b] && !im.isSw[l.a] {
			hasHost[l.b] = true
		}
	}
	for _, l := range im.links {
		if im.isSw[l.a] && im.isSw[l.b] {
			hasLeaf[l.a] = hasLeaf[l.a] || hasHost[l.b]
			hasLeaf[l.b] = hasLeaf[l.b] || hasHost[l.a]
		}
	}
	for id := range im.isSw {
		switch {
		case hasHost[id]:
			im.role[id] = "leaf"
		case hasLeaf[id]:
			im.role[id] = "spine"
		default:
			im.role[id] = "core"
		}
	}
}

func (im *importer) name(id int) string {
	if im.isSw[id] {
		return fmt.Sprintf("s%d", id)
	}
	return fmt.Sprintf("h%d", id)
}

func (im *importer) render() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Imported from the ns-3 %s pair %s and %s. Hosts are hN, switches sN, N as there.\n", map[Tool]string{HPCC: "HPCC", ConWeave: "ConWeave"}[im.opt.Tool], base(im.opt.Topology.Name), base(im.opt.Flows.Name))
	fmt.Fprintf(&b, "schema: 1\nname: %s\nseed: 1\n", im.opt.Tool)
	if im.conf.limit != "" {
		fmt.Fprintf(&b, "run: {limit: %s}\n", im.conf.limit)
	}
	im.renderTopology(&b)
	im.renderSettings(&b)
	im.renderFlows(&b)
	im.renderFaults(&b)
	return b.Bytes()
}

func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

func (im *importer) renderTopology(b *bytes.Buffer) {
	fmt.Fprintf(b, "topology:\n  cross_pod_rdma: lossy\n  nodes:\n")
	linked := map[int]bool{}
	for _, l := range im.links {
		linked[l.a], linked[l.b] = true, true
	}
	for id := range im.nodes {
		switch {
		case !linked[id]:
			im.Note(im.opt.Topology.Name, 1, "node %d has no link and is left out", id)
		case im.isSw[id]:
			fmt.Fprintf(b, "    - {name: %s, kind: %s}\n", im.name(id), im.role[id])
		default:
			fmt.Fprintf(b, "    - {name: %s, kind: rnic}\n", im.name(id))
		}
	}
	fmt.Fprintf(b, "  cables:\n")
	for _, l := range im.links {
		fmt.Fprintf(b, "    - {ends: [\"%s:%d\", \"%s:%d\"], rate: %s, delay: %s}\n", im.name(l.a), l.ap, im.name(l.b), l.bp, l.rate, l.delay)
	}
}

func (im *importer) renderSettings(b *bytes.Buffer) {
	c := &im.conf
	fmt.Fprintf(b, "switches:\n  all:\n")
	if c.bufferMiB != "" {
		fmt.Fprintf(b, "    buffer: {size: %sMiB}\n", c.bufferMiB)
	}
	fmt.Fprintf(b, "    ports: {core: {pfc: {priorities: [3]}}}\n")
	extra := map[int]bool{}
	for _, f := range im.rows {
		if f.pg != 3 {
			extra[f.pg] = true
		}
	}
	pgs := make([]int, 0, len(extra))
	for pg := range extra {
		pgs = append(pgs, pg)
	}
	sort.Ints(pgs)
	if len(pgs) > 0 {
		fmt.Fprintf(b, "    qos: {dscp_to_tc: {")
		for i, pg := range pgs {
			fmt.Fprintf(b, "%s%d: %d", map[bool]string{true: ", "}[i > 0], 8*pg, pg)
		}
		fmt.Fprintf(b, "}}\n")
	}
	im.renderECN(b)
	im.renderNICs(b)
}

// renderECN sets thresholds by the rate of each switch port.
func (im *importer) renderECN(b *bytes.Buffer) {
	if len(im.conf.ecn) == 0 {
		return
	}
	ports := map[int]map[int]clock.Rate{}
	put := func(sw, port int, r clock.Rate) {
		if !im.isSw[sw] {
			return
		}
		if ports[sw] == nil {
			ports[sw] = map[int]clock.Rate{}
		}
		ports[sw][port] = r
	}
	for _, l := range im.links {
		put(l.a, l.ap, l.rate)
		put(l.b, l.bp, l.rate)
	}
	fmt.Fprintf(b, "  devices:\n")
	for id := range im.nodes {
		if ports[id] == nil {
			continue
		}
		fmt.Fprintf(b, "    %s:\n      ports:\n", im.name(id))
		for p := 1; p <= len(ports[id]); p++ {
			e := im.conf.ecn[ports[id][p]]
			fmt.Fprintf(b, "        %d: {ecn: {kmin: %sKB, kmax: %sKB, pmax: %s}}\n", p, e[0], e[1], e[2])
		}
	}
}

func (im *importer) renderNICs(b *bytes.Buffer) {
	c := &im.conf
	fmt.Fprintf(b, "rnics:\n  all:\n    congestion: %s\n", map[bool]string{true: "none", false: "dcqcn"}[c.congestion == "none"])
	if c.mtu > 0 {
		fmt.Fprintf(b, "    mtu: %d\n", c.mtu)
	}
	if c.recovery != "" {
		fmt.Fprintf(b, "    recovery: %s\n", c.recovery)
	}
	if c.ackEvery {
		fmt.Fprintf(b, "    ack: every\n")
	}
	if len(c.dcqcn) > 0 {
		fmt.Fprintf(b, "    dcqcn:\n      preset: conweave\n")
		for _, kv := range c.dcqcn {
			fmt.Fprintf(b, "      %s: %s\n", kv[0], kv[1])
		}
	}
}

func (im *importer) renderFlows(b *bytes.Buffer) {
	if len(im.rows) == 0 {
		return
	}
	fmt.Fprintf(b, "workload:\n  - name: flows\n    rows:\n      - [name, from, to, verb, size, start, dscp]\n")
	for _, f := range im.rows {
		dscp := 26
		if f.pg != 3 {
			dscp = 8 * f.pg
		}
		fmt.Fprintf(b, "      - [line%d, %s, %s, write, %dB, %s, %d]\n", f.line, im.name(f.src), im.name(f.dst), f.size, f.start, dscp)
	}
}

func (im *importer) renderFaults(b *bytes.Buffer) {
	var out []string
	for _, l := range im.links {
		loss := l.loss
		if loss == "" {
			loss = im.conf.loss
		}
		if loss != "" {
			out = append(out, fmt.Sprintf("loss %s:%d name=loss-line%d at=0s probability=%s", im.name(l.a), l.ap, l.line, loss))
		}
	}
	for _, d := range im.conf.down {
		for _, l := range im.links {
			if l.a == d.a && l.b == d.b || l.a == d.b && l.b == d.a {
				out = append(out, fmt.Sprintf("link-down %s:%d name=down-line%d at=%s", im.name(l.a), l.ap, d.line, d.at))
			}
		}
	}
	if len(out) == 0 {
		return
	}
	fmt.Fprintf(b, "faults:\n")
	for _, s := range out {
		fmt.Fprintf(b, "  - %q\n", s)
	}
}
