package fabric

import (
	"fmt"
	"math"
)

// Changed lists the PGs whose XOFF state flipped since [MMU.Clear]; read the
// state with [MMU.XOFF]. A PG may be listed twice.
func (m *MMU) Changed() []int32 { return m.changed }

// Clear empties the list of changes.
func (m *MMU) Clear() { m.changed = m.changed[:0] }

// XOFF reports whether PG pg is in XOFF.
func (m *MMU) XOFF(pg int) bool { return m.pg[pg].xoff }

// Use returns the PG's guaranteed, shared and headroom cells in use.
func (m *MMU) Use(pg int) (guaranteed, shared, headroom int32) {
	p := &m.pg[pg]
	return min(p.used, p.min), p.shared(), p.hdrm
}

// PGBytes returns all memory the PG holds, in bytes.
func (m *MMU) PGBytes(pg int) int64 {
	p := &m.pg[pg]
	return int64(p.used+p.hdrm) * int64(m.cell)
}

// PGMarks returns the PG's watermarks in bytes.
func (m *MMU) PGMarks(pg int) (shared, headroom int64) {
	p := &m.pg[pg]
	return int64(p.sharedMark) * int64(m.cell), int64(p.hdrmMark) * int64(m.cell)
}

// QueueCells and QueueMark return a queue's cells now and its watermark in bytes.
func (m *MMU) QueueCells(q int) int32 { return m.q[q].cells }

// QueueMark returns the largest memory the queue ever held, in bytes.
func (m *MMU) QueueMark(q int) int64 { return int64(m.q[q].mark) * int64(m.cell) }

// PoolMarks returns the watermarks of the shared and the headroom pool in
// bytes. With slices it is the fullest slice (switch §1.6, per slice).
func (m *MMU) PoolMarks() (shared, headroom int64) {
	for i := range m.sl {
		shared = max(shared, int64(m.sl[i].mark)*int64(m.cell))
		headroom = max(headroom, int64(m.sl[i].hdrmMark)*int64(m.cell))
	}
	return shared, headroom
}

// SharedUsed and SharedFree return a slice's shared cells in use and free.
func (m *MMU) SharedUsed(sl int) int32 { return m.sl[sl].used }

// SharedFree returns the free shared cells of a slice.
func (m *MMU) SharedFree(sl int) int32 { return m.sl[sl].free() }

// Stored returns the cells of all stored frames.
func (m *MMU) Stored() int64 { return m.stored }

// SharedSize returns the cells of a slice's shared pool.
func (m *MMU) SharedSize() int32 { return m.sl[0].size }

// SetShared resizes every slice's shared pool (fault `buffer`) and re-evaluates all PGs.
func (m *MMU) SetShared(cells int32) {
	for i := range m.sl {
		m.sl[i].size = cells
	}
	m.Reevaluate()
}

// SetLimit replaces a PG's threshold and re-evaluates all PGs.
func (m *MMU) SetLimit(pg int, l Limit) {
	m.pg[pg].setLimit(l, m.cell)
	m.Reevaluate()
}

// Reevaluate applies the XOFF and XON rules to every PG and rebuilds the bounds.
func (m *MMU) Reevaluate() {
	for i := range m.sl {
		s := &m.sl[i]
		m.scanXOFF(s)
		m.scanXON(s)
	}
}

// Check compares the sums kept on the way with those of the parts: shared and
// headroom per slice, and min+shared+headroom against the stored cells and the
// queues' (invariant 7).
func (m *MMU) Check() error {
	var sum, qsum int64
	used := make([]int32, len(m.sl))
	hdrm := make([]int32, len(m.sl))
	for i := range m.pg {
		p := &m.pg[i]
		if p.used < 0 || p.hdrm < 0 {
			return fmt.Errorf("fabric: PG %d has used %d, headroom %d cells; both must be ≥ 0", i, p.used, p.hdrm)
		}
		sum += int64(p.used + p.hdrm)
		used[p.slice] += p.shared()
		hdrm[p.slice] += p.hdrm
	}
	for i := range m.q {
		qsum += int64(m.q[i].cells)
	}
	if sum != m.stored || qsum != m.stored {
		return fmt.Errorf("fabric: PGs hold %d cells, queues %d, stored frames %d; all must be equal", sum, qsum, m.stored)
	}
	for i := range m.sl {
		if used[i] != m.sl[i].used || hdrm[i] != m.sl[i].hdrm {
			return fmt.Errorf("fabric: slice %d counts shared %d headroom %d, its PGs %d and %d", i, m.sl[i].used, m.sl[i].hdrm, used[i], hdrm[i])
		}
	}
	return nil
}

// bounds recomputes hi and lo of all slices; used after a restore.
func (m *MMU) bounds() {
	for i := range m.sl {
		m.boundsOf(&m.sl[i])
	}
}

func (m *MMU) boundsOf(s *slice) {
	s.hi, s.lo = -1, math.MaxInt64
	for _, k := range s.pgs {
		if p := &m.pg[k]; p.xoff {
			s.lo = min(s.lo, p.xonAt(m.cell))
		} else {
			s.hi = max(s.hi, p.xoffAt())
		}
	}
}
