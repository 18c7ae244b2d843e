package main

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/topology"
)

// TestTopPicture draws a spine that pauses a leaf that pauses an RNIC.
func TestTopPicture(t *testing.T) {
	port := func(peer int32, rate clock.Rate) topology.Port { return topology.Port{Num: 1, Peer: peer, Rate: rate} }
	plan := &topology.Plan{Name: "t", Devices: []topology.Device{
		{Name: "spine1", Ports: []topology.Port{port(1, 100*clock.Gbps)}},
		{ID: 1, Name: "leaf1", Switch: &topology.Switch{BufferBytes: 1000}, Ports: []topology.Port{port(0, 100*clock.Gbps)}},
		{ID: 2, Name: "rnic1", Kind: topology.RNIC, Ports: []topology.Port{port(1, 25*clock.Gbps)}},
	}}
	at := func(us, tx, paused int64) *counters.Snapshot {
		return &counters.Snapshot{At: clock.Time(us * int64(clock.Microsecond)), Devices: []string{"spine1", "leaf1", "rnic1"}, Points: []counters.Point{
			{Dev: 1, Port: 1, Index: -1, ID: counters.TxBytes, Value: tx},
			{Dev: 1, Port: 1, Index: 3, ID: counters.QueueOccupancy, Value: 500},
			{Dev: 1, Port: 1, Index: 3, ID: counters.PFCRxPaused, Value: paused},
			{Dev: 2, Port: 1, Index: 3, ID: counters.PFCRxPaused, Value: 2 * paused},
		}}
	}
	p := picture{plan: plan, before: at(10, 1000, 0), now: at(20, 63500, 2_500_000), trouble: []trouble{{name: "rnic1>rnic2 qp 18", timeouts: 2, resends: 7}}}
	got := p.draw(100, 40, "held")
	for _, want := range []string{
		"leaf1:1 > spine1                   50Gbps  ████████████████████····················", "leaf1:1 queue 3", "500 B",
		"  spine1\n     leaf1 paused 25 % of the time\n        rnic1 paused 50 % of the time\n", "rnic1>rnic2 qp 18            2     0     0       7       0", "held",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("picture lacks %q:\n%s", want, got)
		}
	}
}

// However small a terminal is, the picture fits: each list has its share of the
// lines, and nothing is wider.
func TestTopPictureFits(t *testing.T) {
	plan := &topology.Plan{Name: "t", Devices: []topology.Device{{Name: "leaf1", Switch: &topology.Switch{BufferBytes: 1000}}}}
	now := &counters.Snapshot{At: 5, Devices: []string{"leaf1"}}
	for q := range 8 {
		plan.Devices[0].Ports = append(plan.Devices[0].Ports, topology.Port{Num: int(q) + 1, Rate: clock.Gbps})
		now.Points = append(now.Points, counters.Point{Port: int16(q + 1), Index: -1, ID: counters.TxBytes, Value: 9},
			counters.Point{Port: int16(q + 1), Index: 3, ID: counters.QueueOccupancy, Value: 9})
	}
	p := picture{plan: plan, now: now, trouble: []trouble{{name: "a"}, {name: "b"}}}
	for _, size := range [][2]int{{1, 1}, {20, 4}, {40, 9}, {60, 14}, {200, 60}} {
		lines := strings.Split(strings.TrimSuffix(p.draw(size[0], size[1], "running"), "\n"), "\n")
		if len(lines) > size[1] {
			t.Errorf("%d lines on a terminal of %d", len(lines), size[1])
		}
		for _, l := range lines {
			if n := len([]rune(l)); n > size[0] {
				t.Errorf("a line of %d characters on a terminal of %d: %s", n, size[0], l)
			}
		}
	}
	// 13 lines: the head, four titles; two of each list that has as many, and none.
	got := strings.Split(p.draw(60, 13, "running"), "\n")
	for i, want := range []string{"t  ", "LINKS", "  leaf1:1", "  leaf1:2", "  leaf1:3", "QUEUES", "  leaf1:1", "  leaf1:2", "PAUSES", "  none", "QPs", "  a", "  b", ""} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("line %d is %q, want %s…", i, got[i], want)
		}
	}
}

// Rates are written in units that can be read.
func TestPerSecond(t *testing.T) {
	for _, x := range []struct {
		rate float64
		unit string
		want string
	}{{0, "By", "-"}, {3.068e9, "By", "3.068 GB"}, {2.827e6, "{frame}", "2.827 M frame"}, {2.5e11, "ps", "25 % of it"}} {
		if got := perSecond(x.rate, x.unit); got != x.want {
			t.Errorf("%v %s: %s, want %s", x.rate, x.unit, got, x.want)
		}
	}
}
