package htsim

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/rocemu/rocemu/clock"
)

// render writes the fabric by hand: a fat tree's aggregation switch j is joined
// only to the cores of group j, which the generated form cannot say.
func (im *importer) render() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Imported from htsim's %s and %s. Hosts are hN, N as there.\nschema: 1\nname: htsim\nseed: 1\ntopology:\n  cross_pod_rdma: lossy\n",
		filepath.Base(im.opt.Topology.Name), filepath.Base(im.opt.Matrix.Name))
	im.renderNodes(&b)
	im.renderCables(&b)
	fmt.Fprintf(&b, "switches:\n  all: {ports: {core: {pfc: {priorities: [3]}}}}\n")
	for i, role := range []string{"leaf", "spine", "core"} {
		if i < len(im.tiers) {
			fmt.Fprintf(&b, "  %s: {latency: %s}\n", role, im.tiers[i].pipe)
		}
	}
	fmt.Fprintf(&b, "rnics: {all: {ack: every}}\nworkload:\n  - name: matrix\n    rows:\n      - [name, from, to, verb, size, start]\n")
	for i, c := range im.conns {
		fmt.Fprintf(&b, "      - [c%d, h%d, h%d, write, %dB, %s]\n", i+1, c.src, c.dst, c.size, time(c.start))
	}
	return b.Bytes()
}

func time(d clock.Duration) string {
	if d == 0 {
		return "0us"
	}
	return d.String()
}

// figures of the tree.
func (im *importer) sizes() (pods, tors, aggs, group int) {
	pods, tors, aggs = im.nodes/im.pod, im.pod/im.tiers[0].down, im.tiers[0].up/im.tiers[1].bundle
	if len(im.tiers) == 3 {
		group = im.tiers[1].up / im.tiers[2].bundle
	}
	return pods, tors, aggs, group
}

func (im *importer) renderNodes(b *bytes.Buffer) {
	pods, tors, aggs, group := im.sizes()
	fmt.Fprintf(b, "  nodes:\n")
	for c := range group * aggs {
		fmt.Fprintf(b, "    - {name: core%d, kind: core}\n", c)
	}
	for p := range pods {
		for a := range aggs {
			fmt.Fprintf(b, "    - {name: agg%d, kind: spine, pod: %d}\n", p*aggs+a, p+1)
		}
		for t := range tors {
			fmt.Fprintf(b, "    - {name: tor%d, kind: leaf, pod: %d}\n", p*tors+t, p+1)
		}
	}
	for h := range im.nodes {
		fmt.Fprintf(b, "    - {name: h%d, kind: rnic, pod: %d}\n", h, h/im.pod+1)
	}
}

func (im *importer) renderCables(b *bytes.Buffer) {
	pods, tors, aggs, group := im.sizes()
	fmt.Fprintf(b, "  cables:\n")
	cable := func(lo string, lp int, hi string, hp int, t *tier) {
		fmt.Fprintf(b, "    - {ends: [\"%s:%d\", \"%s:%d\"], rate: %s, delay: %s}\n", lo, lp, hi, hp, t.rate, t.delay)
	}
	down, up := im.tiers[0].down, im.tiers[1].bundle
	for h := range im.nodes {
		cable(fmt.Sprintf("h%d", h), 1, fmt.Sprintf("tor%d", h/down), h%down+1, &im.tiers[0])
	}
	for p := range pods {
		for t := range tors {
			for a := range aggs {
				for k := range up {
					cable(fmt.Sprintf("tor%d", p*tors+t), down+a*up+k+1, fmt.Sprintf("agg%d", p*aggs+a), t*up+k+1, &im.tiers[1])
				}
			}
		}
		for a := range aggs {
			for g := range group {
				for k := range im.tiers[2].bundle {
					n := im.tiers[2].bundle
					cable(fmt.Sprintf("agg%d", p*aggs+a), im.tiers[1].down+g*n+k+1, fmt.Sprintf("core%d", a*group+g), p*n+k+1, &im.tiers[2])
				}
			}
		}
	}
}
