package topology

import (
	"flag"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocemu/rocemu/clock"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestGoldenResolved keeps the resolved text of two racks, byte for byte.
func TestGoldenResolved(t *testing.T) {
	const file = "testdata/two-racks.resolved.yaml"
	got := load(t, twoRacks).Resolved()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("resolved text changed; if meant, run with -update:\n%s", got)
	}
}

// TestNamesAndPorts checks the numbering of interface.md on one POD.
func TestNamesAndPorts(t *testing.T) {
	p := load(t, "schema: 1\ntopology: {spines: 2, leaves: 3, servers: 2, cores: 2}\n")
	for name, peer := range map[string]string{
		"leaf2:1": "rnic3:1", "leaf2:2": "rnic4:1", "leaf2:3": "spine1:2", "leaf2:uplink2": "spine2:2",
		"spine2:3": "leaf3:4", "spine2:4": "core1:2", "spine2:5": "core2:2", "core2:1": "spine1:5", "rnic5": "leaf3:1",
	} {
		dev, port, err := p.FindPort(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		pt := &p.Devices[dev].Ports[port-1]
		if got := p.PortName(pt.Peer, pt.PeerPort); got != peer {
			t.Errorf("%s is cabled to %s, want %s", name, got, peer)
		}
	}
	var names []string
	for i := range p.Devices {
		names = append(names, p.Devices[i].Name)
	}
	if got := strings.Join(names, " "); got != "core1 core2 spine1 spine2 leaf1 leaf2 leaf3 rnic1 rnic2 rnic3 rnic4 rnic5 rnic6" {
		t.Errorf("order of devices: %s", got)
	}
	if p.Device("rnic6").Addr != 0x0a000006 || p.Device("leaf3").Rack != p.Device("rnic6").Rack {
		t.Error("address or rack of rnic6")
	}
}

// TestPods checks prefixes, numbering across PODs and routes over the core.
func TestPods(t *testing.T) {
	const text = "schema: 1\ntopology: {pods: 2, spines: 2, leaves: 2, servers: 2, cores: 2, cross_pod_rdma: %s}\nworkload:\n  - {name: x, from: rnic1, to: rnic8, verb: write, size: 1KB}\n"
	if _, _, err := ParseBytes("f", fmt.Appendf(nil, text, "refuse")); err == nil || !strings.Contains(err.Error(), "RDMA between PODs is refused") {
		t.Errorf("cross-POD RDMA: %v", err)
	}
	p := load(t, fmt.Sprintf(text, "lossy"))
	leaf := p.Device("pod2-leaf2")
	if leaf == nil || leaf.Pod != 2 || p.Devices[leaf.Ports[1].Peer].Name != "rnic8" {
		t.Fatalf("pod2-leaf2: %+v", leaf)
	}
	for dev, want := range map[string][]uint16{"pod1-leaf1": {3, 4}, "pod1-spine2": {3, 4}, "core1": {3, 4}, "pod2-spine1": {2}, "pod2-leaf2": {2}} {
		d := p.Device(dev)
		if got := d.Groups[d.Route[7]]; !slices.Equal(got, want) {
			t.Errorf("%s toward rnic8: ports %v, want %v", dev, got, want)
		}
	}
	core := p.Device("core1")
	if core.Ports[0].Class != ClassCore || core.Ports[0].PFC.Lossless[3] || core.Ports[0].Headroom[3] != 0 {
		t.Error("core-facing ports have no lossless class")
	}
	if sp := p.Device("pod1-spine1"); sp.Ports[2].PFC.Lossless[3] || !sp.Ports[0].PFC.Lossless[3] {
		t.Error("spine: lossless toward leaves only")
	}
}

// TestTwoPorts gives each RNIC a second port and its own route.
func TestTwoPorts(t *testing.T) {
	p := load(t, "schema: 1\ntopology: {spines: 1, leaves: 2, servers: 2, ports: 2}\nrnics: {all: {qp: {alt_path: {port: 2}}}}\n")
	leaf := p.Device("leaf1")
	if got := p.PortName(leaf.Ports[2].Peer, leaf.Ports[2].PeerPort); got != "rnic2:1" {
		t.Errorf("leaf1:3 is cabled to %s", got)
	}
	if g, a := leaf.Groups[leaf.Route[1]], leaf.Groups[leaf.AltRoute[1]]; !slices.Equal(g, []uint16{3}) || !slices.Equal(a, []uint16{4}) {
		t.Errorf("routes to rnic2: %v and %v", g, a)
	}
}

// TestStaticRoute overrides the shortest path.
func TestStaticRoute(t *testing.T) {
	p := load(t, "schema: 1\ntopology:\n  spines: 2\n  leaves: 2\n  servers: 1\n  routes: [{at: leaf1, to: rnic2, via: \"leaf1:uplink2\"}]\n")
	d := p.Device("leaf1")
	if got := d.Groups[d.Route[1]]; !slices.Equal(got, []uint16{3}) {
		t.Errorf("static route: %v", got)
	}
}

// TestMerging checks all, role, device, class and port number, and rivals.
func TestMerging(t *testing.T) {
	p := load(t, `schema: 1
topology: {spines: 1, leaves: 2, servers: 2}
switches:
  all: {pfc: {alpha: 1/4}, buffer: {size: 8MiB}, ports: {server: {mtu: 1518B}}}
  leaf: {asic: td3, buffer: {size: 16MiB}, pfc: {xoff: 200KB}}
  devices: {leaf2: {pfc: {alpha: 1/2}, ports: {2: {mtu: 4200B, pfc: {3: {headroom: 0B}}}}}}
`)
	l1, l2, s := p.Device("leaf1"), p.Device("leaf2"), p.Device("spine1")
	if l1.Switch.Cell != 256 || l1.Switch.BufferBytes != 16<<20 || s.Switch.Cell != 208 || s.Switch.BufferBytes != 8<<20 {
		t.Errorf("profile and size: %+v %+v", l1.Switch, s.Switch)
	}
	if l1.Ports[0].PFC.XOFF[3] != 200000 || l2.Ports[0].PFC.XOFF[3] != 0 || l2.Ports[0].PFC.Alpha[3] != (Alpha{1, 2}) || s.Ports[0].PFC.Alpha[3] != (Alpha{1, 4}) {
		t.Error("xoff and alpha displace each other by layer")
	}
	if l1.Ports[1].MTU != 1518 || l2.Ports[1].MTU != 4200 || l2.Ports[2].MTU != 9216 || l2.Ports[1].Headroom[3] != 0 || l2.Ports[0].Headroom[3] == 0 {
		t.Error("port classes and numbers")
	}
	if l1.Ports[0].PFC != l1.Ports[1].PFC || l1.Switch.ECMP.Seed == l2.Switch.ECMP.Seed {
		t.Error("equal ports share their settings; automatic seeds differ by device")
	}
}

// TestSetAndOverlay lays files and settings over each other.
func TestSetAndOverlay(t *testing.T) {
	over := "workload:\n  - {name: bulk, size: 2MB}\n  - {name: more, from: rnic2, to: rnic3, verb: send, size: 64B}\n"
	seed := uint64(7)
	p, _, err := Resolve([]Source{{"a", []byte(twoRacks)}, {"b", []byte(over)}},
		[]string{"switches.all.pfc.headroom=0B", "rnics.devices.rnic3.qp.timeout=10", "workload.burst.size=3MB", "faults.cut.for=1ms", "workload.0.count=9", "topology.links.server.delay=1us", "switches.all.pfc.priorities=[3, 4]"}, &seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Seed != 7 || p.Flows[0].Size != 2e6 || p.Flows[0].Count != 9 || p.Flows[1].Size != 3e6 || len(p.Lines) != 4 || p.Faults[0].For != clock.Millisecond {
		t.Errorf("overlay or set: %+v", p.Flows[0])
	}
	if p.RNIC(3).NIC.QP.Timeout != 10 || p.RNIC(1).NIC.QP.Timeout != 14 || p.Device("leaf1").Ports[0].Headroom[3] != 0 || !p.Device("leaf1").Ports[0].PFC.Lossless[4] || p.Device("leaf1").Ports[0].Prop != 1e6 {
		t.Error("settings by --set")
	}
	for set, want := range map[string]string{
		"switches.all.pfc.headrom=0B": `--set switches.all.pfc.headrom:1:26: switches.all.pfc.headrom: value "headrom": unknown key`,
		"workload.bulc.size=1MB":      `did you mean "bulk"?`,
		"workload.bulk.size=1":        `a bare number has no unit`,
		"nothing":                     `must be PATH=VALUE`,
	} {
		if _, _, err := ParseBytes("f", []byte(twoRacks), set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: %v, want %s", set, err, want)
		}
	}
}

// TestWorkload checks patterns, QPNs, source ports and shared QPs.
func TestWorkload(t *testing.T) {
	p := load(t, `schema: 1
topology: {spines: 1, leaves: 2, servers: 2}
workload:
  - {name: one, from: rnic1, to: rnic2, verb: write, size: 1KB, qps: 2, count: 3, window: 4}
  - {name: a, from: rnic1, to: rnic3, verb: write, size: 1KB, qp: q, start: 2us}
  - {name: b, from: rnic1, to: rnic3, verb: read, size: 2KB, qp: q, start: 1us, fence: true}
  - {name: all, pattern: all-to-all, verb: send, size: 64B}
  - {name: ring, pattern: ring-allreduce, verb: write, size: 1000B}
  - {name: u, from: rnic1, to: rnic4, transport: udp, frame: 9000B, size: 1MB, rate: 10Gbps}
`)
	if q := p.QPs[0]; q.AQPN != 0x11 || q.BQPN != 0x11 || p.QPs[1].AQPN != 0x12 || q.SPort != SPort(17, 17) {
		t.Errorf("QPNs: %+v", q)
	}
	q := p.QPs[2]
	if len(q.Flows) != 2 || p.Lines[p.Flows[q.Flows[0]].Line].Name != "b" || p.Flows[q.Flows[0]].Opt == nil || !p.Flows[q.Flows[0]].Opt.Fence {
		t.Errorf("shared QP: %+v", q)
	}
	if n := len(p.Lines[3].Flows); n != 12 {
		t.Errorf("all-to-all of 4: %d flows", n)
	}
	ring := p.Lines[4].Flows
	f := p.Flows[ring[1]]
	if len(ring) != 4 || f.Size != 250 || f.Count != 6 || f.Gate != ring[0] || p.Flows[ring[0]].Gate != ring[3] {
		t.Errorf("ring: %+v", f)
	}
	u := p.Flows[len(p.Flows)-1]
	if u.Transport != UDP || u.QP != -1 || u.Packet != 9000-46 || u.Rate != 10e9 || u.SPort < 0xC000 || u.DSCP != 0 {
		t.Errorf("udp: %+v", u)
	}
	if p.FlowName(&p.Flows[1]) != "one" && p.FlowName(&p.Flows[1]) != "one[rnic1>rnic2#2]" {
		t.Errorf("flow name %s", p.FlowName(&p.Flows[1]))
	}
	for in, want := range map[[2]uint32]uint16{{17, 18}: 49458, {256, 257}: 49412, {100000, 200000}: 49823} {
		if got := SPort(in[0], in[1]); got != want {
			t.Errorf("source port of %v: %d, want %d (switch case C40c)", in, got, want)
		}
	}
}

// TestPoissonLoad adds up what arrives and compares it with the load asked for.
func TestPoissonLoad(t *testing.T) {
	text := `schema: 1
seed: 3
topology: {spines: 2, leaves: 4, servers: 16}
workload:
  - {name: web, pattern: poisson, load: 0.5, until: 40ms, verb: write, cdf: [[0, 0], [10000, 50], [100000, 100]]}
`
	p := load(t, text)
	var sum int64
	to := map[uint32]int{}
	for i := range p.Flows {
		sum += p.Flows[i].Size
		to[p.Flows[i].To]++
		if p.Flows[i].From == p.Flows[i].To {
			t.Fatal("a flow to itself")
		}
	}
	// 64 links of 25 Gb/s at half load for 40 ms.
	want := int64(64 * 25e9 / 8 / 2 * 40 / 1000)
	if err := float64(sum-want) / float64(want); err > 0.02 || err < -0.02 {
		t.Errorf("load is off by %.1f %%: %d bytes, want %d", 100*err, sum, want)
	}
	if len(to) != 64 {
		t.Errorf("%d destinations of 64", len(to))
	}
	if c := p.Lines[0]; len(c.Flows) != len(p.Flows) || !slices.IsSortedFunc(p.Flows, func(a, b Flow) int { return int(a.Start - b.Start) }) {
		t.Error("flows are not in order of start")
	}
	if q := load(t, strings.Replace(text, "seed: 3", "seed: 4", 1)); len(q.Flows) == len(p.Flows) && q.Flows[0].Start == p.Flows[0].Start {
		t.Error("another seed gives the same arrivals")
	}
}

// TestInlinedFiles reads a trace and a distribution beside the fabric file.
func TestInlinedFiles(t *testing.T) {
	read := func(from, name string) ([]byte, error) {
		switch name {
		case "flows.csv":
			return []byte("name,from,to,verb,size,start\nlate,rnic1,rnic2,write,1KB,2us\nearly,rnic2,rnic1,read,2KB,1us\n"), nil
		case "web.cdf":
			return []byte("# bytes percent\n0 0\n1000 22.93\n2000 100\n"), nil
		}
		return nil, os.ErrNotExist
	}
	text := "schema: 1\ntopology: {spines: 1, leaves: 1, servers: 4}\nworkload:\n  - {name: trace, file: flows.csv}\n  - {name: web, pattern: poisson, load: 0.1, cdf: web.cdf, until: 1ms, verb: send}\n"
	p, _, err := Resolve([]Source{{"dir/f.yaml", []byte(text)}}, nil, nil, read)
	if err != nil {
		t.Fatal(err)
	}
	l := p.Lines[0]
	if len(l.Flows) != 2 || l.Labels[0] != "early" || p.Flows[0].Start != 1e6 || p.Flows[0].Verb != Read {
		t.Errorf("trace: %+v", l)
	}
	q, _, err := LoadBytes("r", p.Resolved())
	if err != nil || q.Hash != p.Hash || len(q.Flows) != len(p.Flows) {
		t.Errorf("resolved text does not stand by itself: %v", err)
	}
	bad := strings.Replace(text, "web.cdf", "no.cdf", 1)
	if _, _, err := Resolve([]Source{{"f", []byte(bad)}}, nil, nil, read); err == nil || !strings.Contains(err.Error(), `workload.web.cdf: value "no.cdf": cannot be read`) {
		t.Errorf("missing file: %v", err)
	}
	csv := func(_, name string) ([]byte, error) {
		return []byte("name,from,too,verb,size\nx,rnic1,rnic2,write,1\n"), nil
	}
	if _, _, err := Resolve([]Source{{"f", []byte(text)}}, nil, nil, csv); err == nil || !strings.Contains(err.Error(), `flows.csv:1:11: workload.trace.file: value "too": unknown column`) {
		t.Errorf("bad column: %v", err)
	}
}

// TestPublicCDFs reads the shapes of the public distributions.
func TestPublicCDFs(t *testing.T) {
	for _, text := range []string{"0 0\n10000 15\n20000 20\n30000000 100\n", "0 0\n4000 22.93\n2000000 100\n", "0 0\n100 1\n1000000 97.5\n10000000 100\n"} {
		r := &resolver{read: func(_, _ string) ([]byte, error) { return []byte(text), nil }}
		n := r.cdfPoints(&node{kind: nScalar, text: "x"}, "cdf")
		if c := r.cdf(n, "w"); c == nil || len(r.errs) > 0 || c.Mean().Cmp(big.NewRat(1000, 1)) < 0 {
			t.Errorf("%q: %v", text, r.errs)
		}
	}
}

// TestPanel is switch case C40a: a 65th leaf or a 9th uplink is rejected.
func TestPanel(t *testing.T) {
	const text = "schema: 1\ntopology: {spines: %d, leaves: %d, servers: 48}\nswitches: {leaf: {asic: article-leaf}, spine: {asic: article-spine}}\n"
	p := load(t, fmt.Sprintf(text, 8, 64))
	if len(p.RNICs) != 3072 || p.Device("leaf64").Switch.Cell != 256 || p.Device("spine8").Switch.BufferBytes != 42e6 {
		t.Error("the article's largest POD")
	}
	for _, c := range [][2]int{{9, 64}, {8, 65}} {
		if _, _, err := ParseBytes("f", fmt.Appendf(nil, text, c[0], c[1])); err == nil || !strings.Contains(err.Error(), "more than the profile's") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestLargeFabric resolves 16,384 servers in 8 PODs in seconds.
func TestLargeFabric(t *testing.T) {
	begin := time.Now()
	p := load(t, "schema: 1\ntopology: {pods: 8, spines: 8, leaves: 64, servers: 32, cores: 16}\nworkload:\n  - {name: p, pattern: permutation, from: rnic1..rnic2048, shift: 32, verb: write, size: 1MB}\n")
	if len(p.RNICs) != 16384 || len(p.Flows) != 2048 {
		t.Fatalf("%d RNICs, %d flows", len(p.RNICs), len(p.Flows))
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	t.Logf("16384 servers in %v", time.Since(begin))
}

// Switches with equal tables have one; a route given by hand to one of them makes
// that one's own, and no other's.
func TestEqualRoutesAreOne(t *testing.T) {
	const text = "schema: 1\ntopology:\n  spines: 3\n  leaves: 2\n  servers: 2\n"
	same := func(p *Plan, a, b string) bool { return &p.Device(a).Route[0] == &p.Device(b).Route[0] }
	p := load(t, text)
	if !same(p, "spine1", "spine2") || !same(p, "spine1", "spine3") || same(p, "leaf1", "leaf2") || same(p, "leaf1", "spine1") {
		t.Error("the three spines, and they alone, must have one table")
	}
	p = load(t, text+"  routes: [{at: spine2, to: rnic1, via: \"spine2:2\"}]\n")
	if !same(p, "spine1", "spine3") || same(p, "spine1", "spine2") {
		t.Error("spine2 must have a table of its own, the others one")
	}
	for dev, want := range map[string]uint16{"spine1": 1, "spine2": 2, "spine3": 1} {
		if d := p.Device(dev); !slices.Equal(d.Groups[d.Route[0]], []uint16{want}) {
			t.Errorf("%s toward rnic1: ports %v", dev, d.Groups[d.Route[0]])
		}
	}
}
