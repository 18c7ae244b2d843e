package counters

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
)

func testResult() *report.Result {
	return &report.Result{
		VirtualNS: 5000,
		RNICs:     map[string]*report.RNICCounters{"rnic1": {TxPackets: 7, RxPause: [8]uint64{3: 2}}},
		Switches: map[string]*report.SwitchCounters{"leaf1": {
			Ports: map[string]*report.PortCounters{
				"10": {TxFrames: 1},
				"2": {
					TxFrames: 4, RxBytes: 99,
					PFC:   map[string]*report.PFCCounters{"3": {TxPause: 5, RxPauseNS: 1234}},
					PG:    map[string]*report.PGCounters{"3": {SharedWatermark: 8, XOFFCount: 1}},
					Queue: map[string]*report.QueueCounter{"3": {ECNMarked: 6, Watermark: 77}},
				},
			},
			Pools: map[string]*report.PoolCounters{"headroom": {Watermark: 3}},
		}},
	}
}

func TestFromResult(t *testing.T) {
	s := FromResult(testResult())
	got := map[string]int64{}
	last := ""
	for _, p := range s.Points {
		key := s.Name(p) + " " + p.Metric().Name + " " + p.IndexName()
		if _, dup := got[key]; dup {
			t.Errorf("%s twice", key)
		}
		got[key], last = p.Value, key
	}
	want := map[string]int64{
		"leaf1:2 tx_frames ": 4, "leaf1:2 rx_bytes ": 99, "leaf1:10 tx_frames ": 1, "leaf1:2 pfc_tx_pause 3": 5,
		"leaf1:2 pfc_rx_paused 3": 1234, "leaf1:2 pg_shared_watermark 3": 8, "leaf1:2 pg_xoff 3": 1, "leaf1:2 queue_ecn_marked 3": 6,
		"leaf1:2 queue_watermark 3": 77, "leaf1 pool_watermark headroom": 3, "rnic1 tx_packets ": 7, "rnic1:1 pfc_rx_pause 3": 2,
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s = %d, want %d", k, got[k], v)
		}
	}
	if last != "rnic1:1 pfc_rx_paused 7" {
		t.Errorf("last point %q", last)
	}
}

func TestEveryMetricIsDescribed(t *testing.T) {
	seen := map[string]bool{}
	for i, m := range Metrics {
		if m.Name == "" || m.Unit == "" || m.Help == "" || seen[m.Name] {
			t.Errorf("metric %d: %+v", i, m)
		}
		seen[m.Name] = true
	}
}

func TestSeriesHoldsChangesOnly(t *testing.T) {
	var s Series
	at := func(us int64, v, w int64) *Snapshot {
		return &Snapshot{At: clock.Time(us * int64(clock.Microsecond)), Devices: []string{"leaf1"}, Points: []Point{
			{ID: TxFrames, Port: 1, Index: -1, Value: v}, {ID: QueueOccupancy, Port: 1, Index: 3, Value: w}, {ID: QueueMark, Port: 1, Index: 3, Value: 9 + v},
		}}
	}
	for _, n := range []*Snapshot{at(0, 0, 0), at(1, 5, 0), at(2, 5, 100), at(3, 5, 0), at(4, 5, 0)} {
		s.Add(n)
	}
	want := []report.SeriesRow{
		{At: 1e6, Device: "leaf1", Port: 1, Metric: "tx_frames", Value: 5, Unit: "{frame}"},
		{At: 2e6, Device: "leaf1", Port: 1, Metric: "queue_occupancy", Index: "3", Value: 100, Unit: "By"},
		{At: 3e6, Device: "leaf1", Port: 1, Metric: "queue_occupancy", Index: "3", Value: 0, Unit: "By"},
	}
	named := Series{}
	named.Add(&Snapshot{Devices: []string{"leaf1"}, Points: []Point{
		{ID: Drops, Index: int8(report.FaultDrop), Value: 2}, {ID: PoolOccupancy, Index: 1, Value: 3},
	}})
	if r := slices.Collect(named.All()); len(r) != 2 || r[0].Index != "fault" || r[1].Index != "headroom" {
		t.Errorf("drop reasons and pools are named, got %+v", r)
	}
	if got := slices.Collect(s.All()); !slices.Equal(got, want) {
		t.Errorf("rows %+v, want %+v", got, want)
	}
}

// What a series packs is what was added, whatever the values and however long,
// and when the points of a run change in between.
func TestSeriesUnpacksWhatWasAdded(t *testing.T) {
	var s Series
	var want []report.SeriesRow
	r, at := rand.New(rand.NewPCG(1, 2)), clock.Time(0)
	for step := range 3000 {
		points := 40 + step/2000 // a port more, from a time on
		n := &Snapshot{At: at, Devices: []string{"leaf1", "leaf2"}}
		for i := range points {
			v := int64(r.Uint64()) >> r.IntN(64)
			n.Points = append(n.Points, Point{ID: TxBytes, Dev: int32(i % 2), Port: int16(i), Index: -1, Value: v * r.Int64N(2)})
		}
		before := make([]int64, points)
		if step%2000 > 0 {
			for i, p := range s.runs[len(s.runs)-1].points {
				before[i] = p.Value
			}
		}
		s.Add(n)
		for i, p := range n.Points {
			if p.Value != before[i] {
				want = append(want, report.SeriesRow{At: at, Device: n.Devices[p.Dev], Port: i, Metric: "tx_bytes", Value: p.Value, Unit: "By"})
			}
		}
		at = at.Add(clock.Duration(r.Int64N(1 << (step % 40))))
	}
	if got := slices.Collect(s.All()); !slices.Equal(got, want) || len(s.runs) != 2 || len(s.runs[0].chunks) < 3 {
		t.Errorf("%d rows of %d runs, want %d", len(got), len(s.runs), len(want))
	}
	for range s.All() {
		break // a reader may stop
	}
}

func TestSeriesIsBounded(t *testing.T) {
	var s Series
	n := &Snapshot{Devices: []string{"leaf1"}, Points: make([]Point, 1000)}
	for step := range MaxRows/1000 + 2 {
		for i := range n.Points {
			n.Points[i] = Point{ID: TxFrames, Port: int16(i), Index: -1, Value: int64(step + 1)}
		}
		n.At = n.At.Add(clock.Microsecond)
		s.Add(n)
	}
	rows, bytes := 0, 0
	for range s.All() {
		rows++
	}
	for _, c := range s.runs[0].chunks {
		bytes += cap(c)
	}
	if rows != MaxRows || s.Lost != 2000 || bytes > 8*MaxRows {
		t.Errorf("%d rows in %d bytes, %d lost", rows, bytes, s.Lost)
	}
}
