package gallery

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/rocemu/rocemu/report"
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
		{"100G", "5m", "10726.44ns", 267}, {"100G", "40m", "10726.44ns", 319}, {"100G", "100m", "10726.44ns", 408}, {"100G", "300m", "10726.44ns", 706},
		{"100G", "500m", "10726.44ns", 1003}, {"100G", "1km", "10726.44ns", 1747}, {"100G", "2km", "10726.44ns", 3235},
		{"10G", "100m", "17255.4ns", 140}, {"25G", "100m", "12902.76ns", 185}, {"40G", "100m", "11814.6ns", 229}, {"50G", "100m", "11451.88ns", 259},
		{"200G", "100m", "10363.22ns", 706}, {"400G", "100m", "10181.86ns", 1301},
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
