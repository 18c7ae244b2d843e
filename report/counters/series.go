package counters

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
)

// MaxRows bounds a series; further rows are counted.
const MaxRows = 2_000_000

// chunkSize is what a series grows by: what was packed is never copied.
const chunkSize = 1 << 16

// Series turns snapshots into rows of series.csv. A row is written when a value
// differs from the one before, so what is idle costs nothing; a value holds
// until its next row, and is 0 before its first. Rows are kept packed, about
// five bytes each and without pointers; names are put to them by [Series.All].
type Series struct {
	Lost uint64 // rows beyond MaxRows
	rows int
	runs []*seriesRun
}

// seriesRun holds the rows of snapshots that have the same points: of a whole
// run, as a rule. A snapshot is packed as the time since the one before, then
// for each row the number of points from the last row's and the difference of
// the value; 0 points end it. No number lies across two chunks.
type seriesRun struct {
	devices []string
	points  []Point // as last added; of watermarks, which have no rows, 0
	at      clock.Time
	chunks  [][]byte
}

// Add takes over what changed. Watermarks are left out: the occupancy tells
// more, and the result holds the largest.
func (s *Series) Add(n *Snapshot) {
	if k := len(s.runs); k == 0 || len(s.runs[k-1].points) != len(n.Points) {
		s.runs = append(s.runs, newSeriesRun(n))
	}
	r := s.runs[len(s.runs)-1]
	row := -1
	for i := range n.Points {
		p, last := &n.Points[i], &r.points[i]
		if p.Value == last.Value || isMark(p.ID) {
			continue
		}
		if s.rows == MaxRows {
			s.Lost++
		} else {
			if row < 0 {
				r.put(int64(n.At.Sub(r.at)))
				r.at = n.At
			}
			r.put(int64(i - row))
			r.put(p.Value - last.Value)
			row = i
			s.rows++
		}
		last.Value = p.Value
	}
	if row >= 0 {
		r.put(0)
	}
}

func newSeriesRun(n *Snapshot) *seriesRun {
	r := &seriesRun{devices: n.Devices, points: slices.Clone(n.Points)}
	for i := range r.points {
		r.points[i].Value = 0
	}
	return r
}

// put packs one number.
func (r *seriesRun) put(v int64) {
	k := len(r.chunks) - 1
	if k < 0 || cap(r.chunks[k])-len(r.chunks[k]) < binary.MaxVarintLen64 {
		r.chunks = append(r.chunks, make([]byte, 0, chunkSize))
		k++
	}
	r.chunks[k] = binary.AppendVarint(r.chunks[k], v)
}

// All yields the rows in order of time.
func (s *Series) All() iter.Seq[report.SeriesRow] {
	return func(yield func(report.SeriesRow) bool) {
		for _, r := range s.runs {
			if !r.each(yield) {
				return
			}
		}
	}
}

// numbers yields what was put.
func (r *seriesRun) numbers(yield func(int64) bool) {
	for _, b := range r.chunks {
		for len(b) > 0 {
			v, k := binary.Varint(b)
			if !yield(v) {
				return
			}
			b = b[k:]
		}
	}
}

// each yields the rows until yield returns false.
func (r *seriesRun) each(yield func(report.SeriesRow) bool) bool {
	const time, point, value = 0, 1, 2 // what the next number is
	next, at, i := time, clock.Time(0), 0
	values := make([]int64, len(r.points))
	for v := range r.numbers {
		switch next {
		case time:
			at, i, next = at.Add(clock.Duration(v)), -1, point
		case point:
			i += int(v)
			if next = value; v == 0 {
				next = time
			}
		case value:
			values[i] += v
			next = point
			p := r.points[i]
			m := p.Metric()
			row := report.SeriesRow{At: at, Device: r.devices[p.Dev], Port: int(p.Port), Metric: m.Name, Index: p.IndexName(), Value: values[i], Unit: m.Unit}
			if !yield(row) {
				return false
			}
		}
	}
	return true
}

func isMark(id ID) bool {
	return id == PGSharedMark || id == PGHeadroomMark || id == QueueMark || id == PoolMark
}
