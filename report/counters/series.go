package counters

import (
	"github.com/rocemu/rocemu/report"
)

// MaxRows bounds a series; further rows are counted.
const MaxRows = 2_000_000

// Series turns snapshots into rows of series.csv. A row is written when a value
// differs from the one before, so what is idle costs nothing; a value holds
// until its next row, and is 0 before its first.
type Series struct {
	Rows []report.SeriesRow
	Lost uint64 // rows beyond MaxRows
	last []Point
}

// Add appends what changed. Watermarks are left out: the occupancy tells more,
// and the result holds the largest.
func (s *Series) Add(n *Snapshot) {
	same := len(s.last) == len(n.Points)
	for i, p := range n.Points {
		var before int64
		if same {
			before = s.last[i].Value
		}
		if p.Value == before && same || p.Value == 0 && !same || isMark(p.ID) {
			continue
		}
		if len(s.Rows) == MaxRows {
			s.Lost++
			continue
		}
		m := p.Metric()
		s.Rows = append(s.Rows, report.SeriesRow{
			At: n.At, Device: n.Devices[p.Dev], Port: int(p.Port), Metric: m.Name, Index: p.IndexName(), Value: p.Value, Unit: m.Unit,
		})
	}
	s.last = append(s.last[:0], n.Points...)
}

func isMark(id ID) bool {
	return id == PGSharedMark || id == PGHeadroomMark || id == QueueMark || id == PoolMark
}
