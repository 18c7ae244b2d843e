package counters

import (
	"maps"
	"slices"
	"strconv"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
)

// Snapshot is all values of a fabric at one instant. The order of the points is
// the same in all snapshots of a run, so two can be compared by position.
type Snapshot struct {
	At      clock.Time
	Devices []string
	Points  []Point
}

// Name writes where a point was taken: "leaf1:3".
func (s *Snapshot) Name(p Point) string {
	if p.Port == 0 {
		return s.Devices[p.Dev]
	}
	return s.Devices[p.Dev] + ":" + strconv.Itoa(int(p.Port))
}

// IndexName writes a point's index: a number, a pool or a drop reason.
func (p Point) IndexName() string {
	switch p.Metric().Scope {
	case Device, Port:
		return ""
	case Pool:
		return PoolNames[p.Index]
	case Reason:
		return report.Reason(p.Index).String()
	}
	return strconv.Itoa(int(p.Index))
}

// FromResult makes a snapshot of a result, as of its end. Device names are in
// alphabetical order.
func FromResult(r *report.Result) *Snapshot {
	s := &Snapshot{At: clock.Time(r.VirtualNS)}
	s.Devices = slices.Sorted(maps.Keys(r.Switches))
	s.Devices = append(s.Devices, slices.Sorted(maps.Keys(r.RNICs))...)
	held := r.HeldByRNICs()
	for i, name := range s.Devices {
		if c := r.RNICs[name]; c != nil {
			s.Points = RNIC(s.Points, int32(i), c)
			if h := held[name]; h != nil {
				for p, span := range h.Span {
					s.Points = append(s.Points, Point{Dev: int32(i), Port: 1, Index: int8(p), ID: PFCTxPaused, Value: int64(span)})
				}
			}
			continue
		}
		s.Points = fromSwitch(s.Points, int32(i), r.Switches[name])
	}
	return s
}

// fromSwitch appends the counters of a switch as results have them.
func fromSwitch(dst []Point, dev int32, c *report.SwitchCounters) []Point {
	for _, n := range sortedNumbers(c.Ports) {
		p := c.Ports[strconv.Itoa(n)]
		add := func(id ID, index int, v int64) {
			dst = append(dst, Point{Dev: dev, Port: int16(n), Index: int8(index), ID: id, Value: v})
		}
		for id, v := range [...]uint64{RxFrames: p.RxFrames, TxFrames: p.TxFrames, RxBytes: p.RxBytes, TxBytes: p.TxBytes, CRCErrors: p.CRC, InDrops: p.InDrops} {
			add(ID(id), -1, int64(v))
		}
		for _, i := range sortedNumbers(p.PFC) {
			pfcPoints(p.PFC[strconv.Itoa(i)], func(id ID, v int64) { add(id, i, v) })
		}
		for _, i := range sortedNumbers(p.Watchdog) {
			w := p.Watchdog[strconv.Itoa(i)]
			for k, v := range [...]uint64{w.Detected, w.Restored, w.TxDropped, w.RxDropped} {
				add(WdDetected+ID(k), i, int64(v))
			}
		}
		for _, i := range sortedNumbers(p.PG) {
			g := p.PG[strconv.Itoa(i)]
			for k, v := range [...]int64{g.Occupancy, g.SharedWatermark, g.HeadroomWatermark, int64(g.XOFFCount), int64(g.Drops)} {
				add(PGOccupancy+ID(k), i, v)
			}
		}
		for _, i := range sortedNumbers(p.Queue) {
			q := p.Queue[strconv.Itoa(i)]
			for k, v := range [...]int64{int64(q.TxFrames), int64(q.Drops), q.Occupancy, q.Watermark, int64(q.ECNMarked)} {
				add(QueueTx+ID(k), i, v)
			}
		}
	}
	for i, name := range PoolNames {
		if p := c.Pools[name]; p != nil {
			dst = append(dst, Point{Dev: dev, Index: int8(i), ID: PoolOccupancy, Value: p.Occupancy},
				Point{Dev: dev, Index: int8(i), ID: PoolMark, Value: p.Watermark})
		}
	}
	for i := range report.NumReasons {
		if n := c.Drops[i.String()]; n > 0 {
			dst = append(dst, Point{Dev: dev, Index: int8(i), ID: Drops, Value: int64(n)})
		}
	}
	return dst
}

func pfcPoints(f *report.PFCCounters, add func(ID, int64)) {
	for id, v := range [...]uint64{f.RxPause, f.RxResume, f.TxPause, f.TxResume} {
		add(PFCRxPause+ID(id), int64(v))
	}
	add(PFCRxPaused, int64(f.RxPauseNS))
	add(PFCTxPaused, int64(f.TxPauseNS))
	add(PFCIgnored, int64(f.Ignored))
}

// sortedNumbers returns the numeric keys of m in order.
func sortedNumbers[T any](m map[string]T) []int {
	var out []int
	for k := range m {
		if n, err := strconv.Atoi(k); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
