package gallery

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// TestSwitch runs the cases of the switch and of the public reports on it,
// S-Cnn and R-Cnn, one file each.
func TestSwitch(t *testing.T) { testDir(t, "switch") }

// group is the counters of a priority group of leaf1 after a run of a file.
func group(t *testing.T, file string, port int, sets ...string) *report.PGCounters {
	t.Helper()
	res := run(t, filepath.Join(examples, "switch", file), 1, sets...)
	g := res.Switches["leaf1"].Ports[fmt.Sprint(port)].PG["3"]
	if g == nil {
		t.Fatalf("%s: leaf1:%d has no group 3", file, port)
	}
	return g
}

// TestSC01Steps: the eleven steps of alpha as runs.
func TestSC01Steps(t *testing.T) {
	want := map[string]int64{"1/128": 776, "1/64": 1539, "1/32": 3031, "1/16": 5883, "1/8": 11112, "1/4": 20000, "1/2": 33334, "1": 50000, "2": 66667, "4": 80000, "8": 88889}
	for alpha, cells := range want {
		t.Run("alpha="+alpha, func(t *testing.T) {
			t.Parallel()
			g := group(t, "SC01-alpha.yaml", 1, "switches.all.pfc.alpha="+alpha, "expect=[]")
			// Frame k is admitted 10 us + k slots of 6.72 ns + cable and half a
			// pipeline after the start.
			k := (float64(g.FirstXOFFNS)/1000 - 10515) / 6.72
			if math.Abs(k-float64(cells)) > 1e-6 || g.XOFFCount != 1 {
				t.Errorf("frame %.3f raised XOFF, %d times, want %d once", k, g.XOFFCount, cells)
			}
		})
	}
}

// TestSC14to16: headroom that the article's figures need, by length and rate;
// the watermark of a run with plenty is the figure.
func TestSC14to16(t *testing.T) {
	for _, c := range []struct {
		rate, length string
		ahead        string // the stream starts so much after the jumbo frame, so that XOFF falls right behind its start
		cells        int64
	}{
		{"100G", "5m", "10726.44ns", 267},
		{"100G", "40m", "10726.44ns", 319},
		{"100G", "100m", "10726.44ns", 408},
		{"100G", "300m", "10726.44ns", 706},
		{"100G", "500m", "10726.44ns", 1003},
		{"100G", "1km", "10726.44ns", 1747},
		{"100G", "2km", "10726.44ns", 3235},
		{"10G", "100m", "17255.4ns", 140},
		{"25G", "100m", "12902.76ns", 185},
		{"40G", "100m", "11814.6ns", 229},
		{"50G", "100m", "11451.88ns", 259},
		{"200G", "100m", "10363.22ns", 706},
		{"400G", "100m", "10181.86ns", 1301},
	} {
		t.Run(c.rate+" "+c.length, func(t *testing.T) {
			t.Parallel()
			g := group(t, "SC14-article-408.yaml", 1, "expect=[]", "switches.all.pfc.headroom=1MB", "topology.links.server.rate="+c.rate,
				"topology.links.server.length="+c.length, "workload.stream.start="+c.ahead)
			if g.HeadroomWatermark != c.cells*208 || g.Drops != 0 {
				t.Errorf("headroom %d cells, %d drops, want %d and none", g.HeadroomWatermark/208, g.Drops, c.cells)
			}
		})
	}
	for headroom, drops := range map[string]uint64{"83200B": 8, "0B": 408} {
		if g := group(t, "SC14-article-408.yaml", 1, "expect=[]", "switches.all.pfc.headroom="+headroom); g.Drops != drops {
			t.Errorf("headroom %s: %d drops, want %d", headroom, g.Drops, drops)
		}
	}
}

// TestFloodDigest: the flooded run is the same for any windows and workers.
func TestFloodDigest(t *testing.T) {
	file := filepath.Join(examples, "switch", "RDMA16-flood-deadlock.yaml")
	want := run(t, file, 1)
	for _, window := range []string{"auto", "90ns"} {
		got := run(t, file, 4, "run.window="+window)
		if got.Digest != want.Digest || got.Deadlocks[0].AtNS != want.Deadlocks[0].AtNS {
			t.Errorf("window %s: digest %s, deadlock at %v; want %s, %v", window, got.Digest, got.Deadlocks[0].AtNS, want.Digest, want.Deadlocks[0].AtNS)
		}
	}
}

// TestRefused: what no fabric should do is refused before it runs.
func TestRefused(t *testing.T) {
	for _, c := range [][3]string{
		{"SC40a-core-lossy.yaml", "topology.cross_pod_rdma=refuse", "RDMA between PODs is refused: the core is not lossless"},
		{"RC16-headroom.yaml", "switches.all.buffer.size=200KB", "headroom + reserved 346320 > buffer 200000"},
		{"RDMA16-flood-deadlock.yaml", `topology.routes=[{at: T0, to: s2, flood: true, via: "T0:1"}]`, "give via or flood"},
	} {
		_, _, err := topology.Load(topology.LoadOptions{Files: []string{filepath.Join(examples, "switch", c[0])}, Sets: []string{c[1]}})
		if err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s with %s: %v, want %q", c[0], c[1], err, c[2])
		}
	}
}

// TestLintsOfReports: the mistakes that the reports show are told before the
// run, with figures.
func TestLintsOfReports(t *testing.T) {
	for file, want := range map[string]string{
		"RC16b-headroom-half.yaml": "headroom of priority 3 is short by",
		"RC16d-jumbo.yaml":         "headroom of priority 3 is short by",
		"RC26-dscp.yaml":           "uses lossy queue 0 at leaf1 (DSCP 0 -> TC 0)",
		"RC28-ecn-above-pfc.yaml":  "Kmin 2000000 B of queue 3 lies above the XOFF point of priority 3 (333333 B",
		"RC29-wred.yaml":           "WRED drop below XOFF on lossless queue 3",
		"RC31-polarised.yaml":      "are consecutive and hash with murmur3 and the same seed 7",
		"RC31c-crc.yaml":           "different seeds do not help",
	} {
		plan, _, err := topology.Load(topology.LoadOptions{Files: []string{filepath.Join(examples, "switch", file)}})
		if err != nil {
			t.Error(err)
			continue
		}
		var all []string
		for _, f := range topology.Lint(plan) {
			all = append(all, f.String())
		}
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("%s: findings %q lack %q", file, all, want)
		}
	}
	for _, file := range []string{"RC16-headroom.yaml", "RC29b-marks.yaml", "SC40b-latency.yaml"} {
		plan, _, err := topology.Load(topology.LoadOptions{Files: []string{filepath.Join(examples, "switch", file)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range topology.Lint(plan) {
			if f.Code != "ecn-above-pfc" {
				t.Errorf("%s: %v", file, f)
			}
		}
	}
}
