package hpcc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/topology"
)

// TestConWeave reads rows without a port, of several files, as one trace.
func TestConWeave(t *testing.T) {
	o := Options{
		Tool: ConWeave, Topology: File{Name: "t.txt", Text: []byte(star)},
		Flows: File{Name: "a.txt", Text: []byte("2\n1 2 3 1000 0.2\n2 3 3 2000 0.1\n")}, More: []File{{Name: "b.txt", Text: []byte("1\n3 1 3 3000 0.15\n")}},
	}
	r, err := Import(o)
	if err != nil {
		t.Fatal(err)
	}
	p := mustLoad(t, r)
	if p.Name != "conweave" || len(p.Flows) != 3 {
		t.Fatalf("%s with %d flows", p.Name, len(p.Flows))
	}
	for i, size := range []int64{2000, 3000, 1000} {
		if p.Flows[i].Size != size {
			t.Errorf("flow %d has %d bytes, want %d", i, p.Flows[i].Size, size)
		}
	}
	o.Flows.Text = []byte("1\n1 2 3 100 1000 0.2\n")
	if _, err := Import(o); err == nil || !strings.Contains(err.Error(), "a.txt:2:1: flow: value \"1 2 3 100 1000 0.2\": must be: src dst priority bytes start") {
		t.Errorf("a row of the other simulator: %v", err)
	}
}

// TestConWeaveLeafSpine loads the peer's own topology of 128 hosts.
func TestConWeaveLeafSpine(t *testing.T) {
	r, err := Import(Options{Tool: ConWeave, Topology: shared(t, "conweave_leaf_spine_128_100G_OS2.txt"), Flows: File{Name: "f.txt", Text: []byte("1\n0 127 3 1000000 2.0\n")}})
	if err != nil {
		t.Fatal(err)
	}
	p := mustLoad(t, r)
	if len(p.RNICs) != 128 || len(p.Devices) != 144 || len(p.Cables) != 192 {
		t.Errorf("%d RNICs, %d devices, %d cables; want 128, 144, 192", len(p.RNICs), len(p.Devices), len(p.Cables))
	}
	leaves := 0
	for i := range p.Devices {
		if p.Devices[i].Kind == topology.Leaf {
			leaves++
		}
	}
	if leaves != 8 {
		t.Errorf("%d leaves, want 8", leaves)
	}
}

const simAI = "4 1 %d 1 3 H100\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 0.001ms 0\n0 3 %s 0.001ms 0\n"

// TestSimAI is report case C38's share of the importers: no NVSwitch is legal,
// thresholds that fall with the rate are a warning, a rate without thresholds
// is an error in every build.
func TestSimAI(t *testing.T) {
	o := Options{Topology: File{Name: "t.txt", Text: []byte(fmt.Sprintf(simAI, 0, "100Gbps"))}, Flows: File{Name: "f.txt", Text: []byte("1\n1 2 3 100 1000 0\n")}}
	if _, err := Import(o); err != nil {
		t.Fatalf("0 NVSwitches: %v", err)
	}
	o.Config = shared(t, "SimAI.conf")
	r, err := Import(o)
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{"KMAX_MAP does not rise with the rate: 1200 at 200Gbps after 1600", "KMIN_MAP does not rise", "payload 9000", "0 NVSwitches"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
	if p := mustLoad(t, r); p.Device("s0").Ports[0].ECN[3].KMax != 1_600_000 || p.RNIC(1).NIC.MTU != 4096 {
		t.Errorf("settings: %+v", p.Device("s0").Ports[0].ECN[3])
	}
	o.Topology.Text = []byte(fmt.Sprintf(simAI, 0, "800Gbps"))
	if _, err := Import(o); err == nil || !strings.Contains(err.Error(), "no ECN thresholds for this rate, which t.txt:5 uses") {
		t.Errorf("a rate without thresholds: %v", err)
	}
}
