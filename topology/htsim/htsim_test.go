package htsim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

const tiny = `# two tiers
Nodes 8
Tiers 2
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Oversubscribed 2

Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 500
Switch_Latency_ns 0
`

const three = `Nodes 16
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 1000
`

const pair = "Nodes 8\nConnections 2\n0->7 start 0 size 2000\n1->7 id 4 start 0 size 3000\n"

func load(t *testing.T, topo, cm, unit string) (*topology.Plan, *Result) {
	t.Helper()
	r, err := Import(Options{Topology: File{Name: "t.topo", Text: []byte(topo)}, Matrix: File{Name: "m.cm", Text: []byte(cm)}, Unit: unit})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := topology.ParseBytes("htsim.yaml", r.YAML)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.YAML)
	}
	return p, r
}

func TestTwoTiers(t *testing.T) {
	p, _ := load(t, tiny, pair, "")
	if len(p.RNICs) != 8 || len(p.Devices) != 8+2+2 || len(p.Cables) != 8+4 || len(p.Flows) != 2 {
		t.Errorf("%d RNICs, %d devices, %d cables, %d flows", len(p.RNICs), len(p.Devices), len(p.Cables), len(p.Flows))
	}
	if d := p.Device("tor0"); d.Switch.Latency != 300*clock.Nanosecond || d.Ports[0].Prop != clock.Microsecond || d.Ports[4].Prop != 500*clock.Nanosecond {
		t.Errorf("tor0: latency %v, cables %v and %v", d.Switch.Latency, d.Ports[0].Prop, d.Ports[4].Prop)
	}
	if f := p.Flows[1]; p.RNIC(f.From).Name != "h1" || p.RNIC(f.To).Name != "h7" || f.Size != 3000 {
		t.Errorf("flow %+v", f)
	}
}

// TestThreeTiers checks that aggregation switch j of every POD has its own
// cores, and that both ends of every path exist.
func TestThreeTiers(t *testing.T) {
	p, _ := load(t, three, "Nodes 16\nConnections 1\n0->15 start 0 size 1000\n", "")
	if len(p.Cables) != 16+4*4+4*4 {
		t.Errorf("%d cables, want 48", len(p.Cables))
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.Kind != topology.Core {
			continue
		}
		for _, pt := range d.Ports {
			if agg, core := p.Devices[pt.Peer].Name, d.Name; len(d.Ports) != 4 || (agg[3]-'0')&1 != (core[4]-'0')>>1 {
				t.Errorf("%s has a link to %s", core, agg)
			}
		}
	}
	if d := p.Device("tor0"); len(d.Groups[d.Route[15]]) != 2 {
		t.Errorf("tor0 has %d ways to h15, want 2", len(d.Groups[d.Route[15]]))
	}
}

// TestUnit demands the unit of start values as soon as one is not 0.
func TestUnit(t *testing.T) {
	cm := "Nodes 8\nConnections 3\n0->1 start 2 size 1000\n2->3 start 3 size 1000\n4->5 start 4 size 1000\n"
	_, err := Import(Options{Topology: File{Name: "t.topo", Text: []byte(tiny)}, Matrix: File{Name: "m.cm", Text: []byte(cm)}})
	if err == nil || !strings.Contains(err.Error(), "m.cm:3") || !strings.Contains(err.Error(), "--unit us or --unit ps") {
		t.Errorf("without a unit: %v", err)
	}
	for unit, want := range map[string]clock.Duration{"us": clock.Microsecond, "ps": clock.Picosecond} {
		p, _ := load(t, tiny, cm, unit)
		for i, n := range []clock.Duration{2, 3, 4} {
			if p.Flows[i].Start != clock.Time(n*want) {
				t.Errorf("%s: start %v, want %v", unit, p.Flows[i].Start, n*want)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ topo, cm, want string }{
		{strings.Replace(tiny, "Radix_Down 2", "Radix_Down 3", 1), pair, "t.topo:14"},
		{strings.Replace(tiny, "Radix_Down 4", "Radix_Down 3", 1), pair, "divide"},
		{strings.Replace(tiny, "Tiers 2", "Tiers 3", 1), pair, "Tiers"},
		{strings.Replace(tiny, "Radix_Up 2", "Radix_Upp 2", 1), pair, "t.topo:9"},
		{strings.Replace(tiny, "Tier 1", "Tier 2", 1), pair, "the next is 1"},
		{tiny, strings.Replace(pair, "Nodes 8", "Nodes 9", 1), "the topology has 8"},
		{tiny, strings.Replace(pair, "1->7", "1->8", 1), "hosts are 0..7"},
		{tiny, strings.Replace(pair, "1->7", "7->7", 1), "itself"},
		{tiny, strings.Replace(pair, "Connections 2", "Connections 3", 1), "the file has 2"},
		{tiny, strings.Replace(pair, "size 3000", "siz 3000", 1), "m.cm:4"},
		{tiny, strings.Replace(pair, "size 3000", "", 1), "size"},
		{tiny, strings.Replace(pair, "start 0 size 3000", "trigger 1 size 3000", 1), "triggers"},
	} {
		_, err := Import(Options{Topology: File{Name: "t.topo", Text: []byte(c.topo)}, Matrix: File{Name: "m.cm", Text: []byte(c.cm)}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// shared opens a peer's own file, or skips.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("ROCEMU_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	b, err := os.ReadFile(filepath.Join(dir, "files", name))
	if err != nil {
		t.Skip("peers' files are not here")
	}
	return string(b)
}

func TestPeersFiles(t *testing.T) {
	for _, topo := range []struct {
		name    string
		devices int
	}{{"htsim_leaf_spine_tiny.topo", 32 + 4 + 2}, {"htsim_fat_tree_1024.topo", 1024 + 128 + 128 + 64}} {
		p, _ := load(t, shared(t, topo.name), shared(t, "htsim_incast.cm"), "")
		if len(p.Devices) != topo.devices || len(p.Flows) != 15 {
			t.Errorf("%s: %d devices, %d flows", topo.name, len(p.Devices), len(p.Flows))
		}
	}
	p, _ := load(t, shared(t, "htsim_fat_tree_1024.topo"), shared(t, "htsim_outcast_incast.cm"), "ps")
	if len(p.Flows) != 21 {
		t.Errorf("%d flows, want 21", len(p.Flows))
	}
}

func FuzzImport(f *testing.F) {
	f.Add(tiny, pair, "us")
	f.Add(three, pair, "")
	f.Fuzz(func(t *testing.T, topo, cm, unit string) {
		if len(topo) > 2000 || len(cm) > 2000 {
			return
		}
		_, _ = Import(Options{Topology: File{Name: "t", Text: []byte(topo)}, Matrix: File{Name: "m", Text: []byte(cm)}, Unit: unit, Lenient: true})
	})
}
