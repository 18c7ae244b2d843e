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
