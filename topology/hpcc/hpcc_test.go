package hpcc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/topology"
)

const star = "4 1 3\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 0.001ms 0\n0 3 25Gbps 0.001ms 0.01\n"

func run(t *testing.T, topo, flows, conf string, lenient bool) (*Result, error) {
	t.Helper()
	return Import(Options{Topology: File{Name: "t.txt", Text: []byte(topo)}, Flows: File{Name: "f.txt", Text: []byte(flows)}, Config: File{Name: "c.txt", Text: []byte(conf)}, Lenient: lenient})
}

func mustLoad(t *testing.T, r *Result) *topology.Plan {
	t.Helper()
	p, _, err := topology.ParseBytes("imported.yaml", r.YAML)
	if err != nil {
		t.Fatalf("imported file does not load: %v\n%s", err, r.YAML)
	}
	return p
}

// TestGoodPair checks devices, sizes, starts and settings of a small pair.
func TestGoodPair(t *testing.T) {
	conf := "ENABLE_QCN 1\nCC_MODE 1\nPACKET_PAYLOAD_SIZE 1000 {bytes}\nEWMA_GAIN 0.00390625\nRATE_AI 50Mb/s\nBUFFER_SIZE 32\n" +
		"KMAX_MAP 2 25000000000 400 100000000000 1600\nKMIN_MAP 2 25000000000 100 100000000000 400\nPMAX_MAP 2 25000000000 0.2 100000000000 0.2\nHAS_WIN 1\n"
	r, err := run(t, star, "3\n1 2 3 100 1000 0.2\n2 3 3 100 2000 0.1\n3 1 1 100 3000 0.3\n", conf, false)
	if err != nil {
		t.Fatal(err)
	}
	p := mustLoad(t, r)
	if len(p.RNICs) != 3 || len(p.Flows) != 3 || p.Flows[0].Size != 2000 || p.Flows[0].Start != 1e11 || p.Flows[2].DSCP != 8 {
		t.Fatalf("flows: %+v", p.Flows)
	}
	sw := p.Device("s0")
	if sw.Kind != topology.Leaf || sw.Switch.BufferBytes != 32<<20 || sw.Ports[0].ECN[3].KMin != 400000 || sw.Ports[2].ECN[3].KMax != 400000 {
		t.Errorf("switch settings: %+v", sw.Ports[2].ECN[3])
	}
	nic := p.RNIC(1).NIC
	if nic.MTU != 1024 || nic.DCQCN.GNum != 4 || nic.DCQCN.AIRate != 50e6 {
		t.Errorf("rnic settings: %+v", nic.DCQCN)
	}
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{"sorted by (start, line)", "HAS_WIN", "payload 1000"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
	if len(p.Faults) != 1 || p.Faults[0].Kind != "loss" {
		t.Errorf("error rate of a link: %+v", p.Faults)
	}
}

// TestSortedIsUnsorted demands the same plan of both orders.
func TestSortedIsUnsorted(t *testing.T) {
	a, err1 := run(t, star, "2\n1 2 3 1 1000 0.1\n2 1 3 1 1000 0.2\n", "", false)
	b, err2 := run(t, star, "2\n2 1 3 1 1000 0.2\n1 2 3 1 1000 0.1\n", "", false)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	p, q := mustLoad(t, a), mustLoad(t, b)
	for i := range p.Flows {
		if p.QPs[i].A != q.QPs[i].A || p.QPs[i].AQPN != q.QPs[i].AQPN || p.Flows[i].Start != q.Flows[i].Start {
			t.Errorf("flow %d differs", i)
		}
	}
}

// TestBroken names each mistake with its line.
func TestBroken(t *testing.T) {
	flows := "1\n1 2 3 100 1000 0\n"
	for _, c := range []struct{ topo, flows, conf, want string }{
		{"4 2 3\n0\n0 1 100Gbps 1us 0\n0 2 100Gbps 1us 0\n0 3 1Gbps 1us 0\n", flows, "", `t.txt:2:1: switches: value "1": the header says 2 switches`},
		{star, "1\n1 9 3 100 1000 0\n", "", "f.txt:2:1: hosts: hosts 9 are not in a 4-node topology"},
		{star, "1\n0 1 3 100 1000 0\n", "", "is a switch"},
		{strings.Replace(star, "25Gbps", "25Gb", 1), flows, "", `t.txt:5:1: rate: value "25Gb"`},
		{strings.Replace(star, "0.001ms", "0.001", 1), flows, "", `t.txt:3:1: delay: value "0.001"`},
		{star, "3\n1 2 3 100 1000 0\n", "", "the header says 3 flows, the file has 1 rows"},
		{star, flows, "KMIN_MAP 1 100000000000 400\nKMAX_MAP 1 100000000000 1600\nPMAX_MAP 1 100000000000 0.2\n", `c.txt:1:1: KMIN_MAP: value "25Gbps": no ECN thresholds`},
		{star, flows, "CC_MODE 3\n", "only 1 (DCQCN) is modelled"},
	} {
		_, err := run(t, c.topo, c.flows, c.conf, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	r, err := run(t, star, flows, "KMIN_MAP 2 25000000000 400 100000000000 100\nKMAX_MAP 2 25000000000 1600 100000000000 1700\nPMAX_MAP 2 25000000000 0.2 100000000000 0.2\n", false)
	if err != nil || !strings.Contains(strings.Join(r.Notes, "\n"), "does not rise") {
		t.Errorf("threshold map not rising: %v", err)
	}
}

func shared(t *testing.T, name string) File {
	dir := os.Getenv("ROCEMU_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	text, err := os.ReadFile(filepath.Join(dir, "files", name))
	if err != nil {
		t.Skipf("stock input %s is not here", name)
	}
	return File{Name: name, Text: text}
}

// TestStockPair is report case C36: the pair as published contradicts itself.
func TestStockPair(t *testing.T) {
	o := Options{Topology: shared(t, "hpcc_topology.txt"), Flows: shared(t, "hpcc_flow.txt")}
	_, err := Import(o)
	if err == nil {
		t.Fatal("the stock pair must be refused")
	}
	for _, want := range []string{
		"the header says 2 flows, the file has 256 rows",
		"hosts 66..257 are not in a 66-node topology",
		"hpcc_flow.txt:259:1: trailing text",
		"the header says 65 links, the file has 256",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	o.Lenient = true
	r, err := Import(o)
	if err != nil {
		t.Fatal(err)
	}
	p := mustLoad(t, r)
	if len(p.Flows) != 2 || len(p.RNICs) != 65 {
		t.Errorf("%d flows, %d RNICs; want 2 and 65", len(p.Flows), len(p.RNICs))
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "first 2 run, 254 skipped") {
		t.Errorf("notes: %v", r.Notes)
	}
}

// FuzzImport: no text crashes the importer, and what it writes loads.
func FuzzImport(f *testing.F) {
	f.Add(star, "2\n1 2 3 100 1000 0.2\n2 3 3 100 2000 0.1\n", "KMIN_MAP 1 25000000000 100\nLINK_DOWN 1 0 1\nEWMA_GAIN 0.1\n")
	f.Add("2 0 1\n0 1 1G 1us 0\n", "1\n0 1 0 0 0 0\n", "")
	f.Fuzz(func(t *testing.T, topo, flows, conf string) {
		if len(topo)+len(flows)+len(conf) > 4096 || strings.Contains(topo, "0000") {
			return
		}
		for _, lenient := range []bool{false, true} {
			r, err := Import(Options{Topology: File{Name: "t", Text: []byte(topo)}, Flows: File{Name: "f", Text: []byte(flows)}, Config: File{Name: "c", Text: []byte(conf)}, Lenient: lenient})
			if err != nil || len(r.YAML) == 0 {
				continue
			}
			_, _, _ = topology.ParseBytes("imported.yaml", r.YAML)
		}
	})
}
