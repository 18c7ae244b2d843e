package fabric

import (
	"math"

	"github.com/rocemu/rocemu/nodes/record"
)

// Mode says how a threshold is given.
type Mode uint8

// Threshold modes. Dynamic is Choudhury-Hahne: alpha × (pool − used); Static a
// constant in bytes; Unlimited only the pool itself (SAI static_th 0).
const (
	Unlimited Mode = iota
	Static
	Dynamic
)

// Limit is a threshold: Num/Den is alpha when Dynamic, Bytes the size when
// Static. It is compared as an exact rational, never rounded.
type Limit struct {
	Mode     Mode
	Num, Den int64
	Bytes    int64
}

// Alpha returns the dynamic limit 2^n, n in -8..7 (SAI dynamic_th).
func Alpha(n int) Limit {
	if n < 0 {
		return Limit{Mode: Dynamic, Num: 1, Den: 1 << -n}
	}
	return Limit{Mode: Dynamic, Num: 1 << n, Den: 1}
}

// PGConfig is one ingress priority group. Cells unless said.
type PGConfig struct {
	Lossless  bool
	Min       int32 // guaranteed
	Headroom  int32 // private headroom, or the cap in the headroom pool
	Limit     Limit // of shared use; XOFF point
	XONOffset int64 // bytes below the limit at which XON is sent
}

// QueueConfig is one egress queue. A lossless queue is never limited on
// egress; a lossy one by Limit.
type QueueConfig struct {
	Lossless bool
	Limit    Limit
}

// MMUConfig sizes an [MMU]. PGs and queues are numbered port × 8 + class, ports from 0.
type MMUConfig struct {
	Cell         int32 // bytes
	Slices       int   // equal, independent parts of the memory
	Shared       int32 // cells of the shared pool, per slice
	HeadroomPool int32 // cells of the headroom pool, per slice; 0 = private headroom
	PGs          []PGConfig
	Queues       []QueueConfig
}

// pgState is one PG; exactly one cache line, so that an admission touches one.
type pgState struct {
	used, hdrm     int32 // min + shared, and headroom cells in use
	min, cap       int32
	sharedMark     int32 // watermarks
	hdrmMark       int32
	slice          uint16
	lossless, xoff bool
	mode           Mode
	pow2           bool // Num is 1<<shift
	shift          uint8
	plain          bool  // lossless and pow2
	num, den       int64 // alpha; static: bytes, cell
	xonOffset      int64
	of             *slice // that of number slice
}

// queueState is one egress queue; its limit is apart, in MMU.lim.
type queueState struct {
	cells, mark int32
	lossless    bool
	_           [7]byte
}

// slice is one independent part of the memory. hi is an upper bound of the
// free space at which a PG not in XOFF would raise it, lo a lower bound of the
// free space at which a PG in XOFF may send XON: so re-evaluating all PGs
// whenever shared use changes costs one comparison (model-rules: Buffer).
type slice struct {
	size, used, mark int32
	hdrm, hdrmMark   int32
	hdrmSize         int32
	hi, lo           int64
	pgs              []int32 // lossless PGs, ascending
}

// MMU is the shared packet memory of a switch: pure accounting, no time, no
// frames. Each stored frame is charged to an ingress PG (which decides PFC and
// loss of lossless frames) and to an egress queue (which limits lossy ones);
// both count the same cells (switch §1.2).
//
// After each operation [MMU.Changed] lists the PGs whose XOFF state flipped.
type MMU struct {
	cell    int32
	pool    bool // headroom comes from the pool
	pg      []pgState
	q       []queueState
	lim     []Limit // of the queues
	sl      []slice
	changed []int32
	stored  int64 // cells of all stored frames
}

// NewMMU returns an empty memory. Ports map to slices in contiguous blocks.
func NewMMU(c MMUConfig) *MMU {
	n := max(c.Slices, 1)
	m := &MMU{
		cell: c.Cell, pool: c.HeadroomPool > 0,
		pg: make([]pgState, len(c.PGs)), q: make([]queueState, len(c.Queues)), lim: make([]Limit, len(c.Queues)),
		sl: make([]slice, n), changed: make([]int32, 0, len(c.PGs)),
	}
	for i := range m.sl {
		m.sl[i] = slice{size: c.Shared, hdrmSize: c.HeadroomPool, hi: -1, lo: math.MaxInt64}
	}
	ports := max(len(c.PGs)/8, 1)
	for i, p := range c.PGs {
		s := &m.pg[i]
		*s = pgState{min: p.Min, cap: p.Headroom, lossless: p.Lossless, xonOffset: p.XONOffset}
		s.slice = uint16((i / 8) * n / ports)
		s.of = &m.sl[s.slice]
		s.setLimit(p.Limit, c.Cell)
		if p.Lossless {
			l := &m.sl[s.slice]
			l.pgs = append(l.pgs, int32(i))
		}
	}
	for i, q := range c.Queues {
		m.q[i].lossless, m.lim[i] = q.Lossless, q.Limit
	}
	return m
}

func (p *pgState) setLimit(l Limit, cell int32) {
	p.mode, p.num, p.den = l.Mode, l.Num, l.Den
	if l.Mode == Static {
		p.num, p.den = l.Bytes, int64(cell)
	}
	p.pow2 = l.Mode == Dynamic && p.num > 0 && p.num&(p.num-1) == 0
	p.shift = 0
	for p.pow2 && p.num>>p.shift > 1 {
		p.shift++
	}
	p.plain = p.lossless && p.pow2
}

// Cells returns how many cells a frame of n bytes takes: ceil(n/cell), at least 1.
func (m *MMU) Cells(n int) int32 {
	return max((int32(n)+m.cell-1)/m.cell, 1)
}

// shared returns the PG's cells in the shared pool.
func (p *pgState) shared() int32 { return max(p.used-p.min, 0) }

// fits reports whether shared use of n cells is within the limit when free
// cells of the pool are left.
func (p *pgState) fits(n, free int32) bool {
	switch p.mode {
	case Dynamic:
		return int64(n)*p.den <= p.num*int64(free)
	case Static:
		return int64(n)*p.den <= p.num
	}
	return true
}

// xoffAt returns the largest free space at which the PG is at or above its
// limit: shared ≥ alpha·free ⟺ free ≤ floor(shared/alpha).
func (p *pgState) xoffAt() int64 {
	n := int64(p.shared())
	switch {
	case n == 0:
		return -1
	case p.pow2:
		return (n * p.den) >> p.shift
	case p.mode == Dynamic:
		return n * p.den / p.num
	case p.mode == Static && n*p.den >= p.num:
		return math.MaxInt64 - 1
	}
	return -1
}

// xonAt returns the smallest free space at which the PG may resume, MaxInt64
// while headroom is in use. An empty PG always may.
func (p *pgState) xonAt(cell int32) int64 {
	if p.hdrm > 0 {
		return math.MaxInt64
	}
	if p.used == 0 {
		return 0
	}
	n := int64(p.shared())
	switch p.mode {
	case Dynamic:
		need := (n*int64(cell) + p.xonOffset) * p.den
		unit := p.num * int64(cell)
		return max((need+unit-1)/unit, p.xoffAt()+1)
	case Static:
		if n*p.den+p.xonOffset > p.num || (n > 0 && n*p.den >= p.num) {
			return math.MaxInt64
		}
	}
	return 0
}

// free returns the slice's free shared cells, never below 0 (report C18: a
// pool shrunk below its use gives threshold 0, not a huge one).
func (s *slice) free() int32 { return max(s.size-s.used, 0) }

// queueFits applies the egress limit of lossy frames.
func (m *MMU) queueFits(q int, n, free int32) bool {
	total, lim := int64(m.q[q].cells+n), &m.lim[q]
	switch lim.Mode {
	case Dynamic:
		return total*lim.Den <= lim.Num*int64(free)
	case Static:
		return total*int64(m.cell) <= lim.Bytes
	}
	return true
}

// Admit charges n cells to ingress PG pg and egress queue q, or returns why
// the frame must be dropped (switch §1.5, steps 1–4).
func (m *MMU) Admit(pg, q int, n int32) record.Reason {
	p, e := &m.pg[pg], &m.q[q]
	s := p.of
	if sh := p.used + n - p.min; p.plain && e.lossless && sh > 0 && !p.xoff {
		// As below where nothing flips: what is left above the XOFF point of this
		// PG is within its limit too, for the limit is that point.
		ds, at := sh-p.shared(), int64(sh)*p.den>>(p.shift&63)
		if at = max(at, s.hi); int64(s.free()-ds) > at {
			s.hi = at
			p.used += n
			s.used += ds
			s.mark, p.sharedMark = max(s.mark, s.used), max(p.sharedMark, sh)
			m.stored += int64(n)
			e.cells += n
			e.mark = max(e.mark, e.cells)
			return record.NoReason
		}
	}
	return m.admit(pg, q, n)
}

// admit is Admit in full.
func (m *MMU) admit(pg, q int, n int32) record.Reason {
	p, e := &m.pg[pg], &m.q[q]
	s := p.of
	free := s.free()
	if (!p.lossless || !e.lossless) && !m.queueFits(q, n, free) {
		return record.EgressLimit
	}
	switch sh := p.used + n - p.min; {
	case sh <= 0:
		p.used += n
	case p.fits(sh, free) && sh-p.shared() <= free:
		m.chargeShared(pg, p, s, n)
	case !p.lossless:
		return record.BufferShared
	default:
		if r := m.chargeHeadroom(pg, p, s, n); r != record.NoReason {
			return r
		}
	}
	m.stored += int64(n)
	e.cells += n
	e.mark = max(e.mark, e.cells)
	return record.NoReason
}

func (m *MMU) chargeShared(pg int, p *pgState, s *slice, n int32) {
	before := p.shared()
	p.used += n
	after := p.shared()
	s.used += after - before
	s.mark = max(s.mark, s.used)
	p.sharedMark = max(p.sharedMark, after)
	if p.lossless && !p.xoff {
		s.hi = max(s.hi, p.xoffAt())
	}
	if int64(s.free()) <= s.hi {
		m.scanXOFF(s)
	}
}

func (m *MMU) chargeHeadroom(pg int, p *pgState, s *slice, n int32) record.Reason {
	if r := m.refuse(p, s, n); r != record.NoReason {
		// The limit was reached although nothing more was stored: without XOFF
		// a PG with too little headroom would drop for ever. An empty PG is left
		// alone, no departure would ever resume it.
		if !p.xoff && p.used+p.hdrm > 0 {
			m.flip(pg, p, true)
		}
		return r
	}
	p.hdrm += n
	s.hdrm += n
	p.hdrmMark = max(p.hdrmMark, p.hdrm)
	s.hdrmMark = max(s.hdrmMark, s.hdrm)
	if !p.xoff {
		m.flip(pg, p, true)
	}
	return record.NoReason
}

func (m *MMU) refuse(p *pgState, s *slice, n int32) record.Reason {
	switch {
	case p.hdrm+n > p.cap:
		return record.BufferHeadroom
	case m.pool && s.hdrm+n > s.hdrmSize:
		return record.HeadroomPool
	}
	return record.NoReason
}

// Pass charges and releases a frame that leaves at the instant it came, when
// that flips no PG: only the watermarks move. It returns false, with nothing
// done, when the long way (Admit, Release) must be taken.
func (m *MMU) Pass(pg, q int, n int32) bool {
	p, e := &m.pg[pg], &m.q[q]
	s := p.of
	if sh := p.used + n - p.min; p.plain && e.lossless && sh > 0 && !p.xoff {
		free, ds := s.free(), sh-p.shared() // as in Admit; above the XOFF point is within the limit
		if at := int64(sh) * p.den >> (p.shift & 63); int64(free) < s.lo && int64(free-ds) > max(at, s.hi) {
			p.sharedMark = max(p.sharedMark, sh)
			s.mark = max(s.mark, s.used+ds)
			e.mark = max(e.mark, e.cells+n)
			return true
		}
	}
	return m.pass(pg, q, n)
}

// pass is Pass in full.
func (m *MMU) pass(pg, q int, n int32) bool {
	p, e := &m.pg[pg], &m.q[q]
	s := p.of
	if p.xoff {
		return false
	}
	free := s.free()
	if (!p.lossless || !e.lossless) && !m.queueFits(q, n, free) {
		return false
	}
	if int64(free) >= s.lo && m.tighten(s, free) {
		return false
	}
	if sh := p.used + n - p.min; sh > 0 {
		ds := sh - p.shared()
		if p.plain { // above the XOFF point is within the limit
			if int64(free-ds) <= int64(sh)*p.den>>(p.shift&63) || int64(free-ds) <= s.hi && m.tighten(s, free-ds) {
				return false
			}
			p.sharedMark = max(p.sharedMark, sh)
			s.mark = max(s.mark, s.used+ds)
			e.mark = max(e.mark, e.cells+n)
			return true
		}
		if !p.fits(sh, free) || ds > free {
			return false
		}
		if int64(free-ds) <= s.hi && m.tighten(s, free-ds) {
			return false
		}
		if p.lossless {
			p.used += n
			at := p.xoffAt()
			p.used -= n
			if int64(free-ds) <= at {
				return false
			}
		}
		p.sharedMark = max(p.sharedMark, sh)
		s.mark = max(s.mark, s.used+ds)
	}
	e.mark = max(e.mark, e.cells+n)
	return true
}

// tighten makes the bounds of a slice exact and reports whether some PG would
// flip at free cells. Pass must decide by state alone: a stale bound would send
// a frame the long way in one run and not in a restored one.
func (m *MMU) tighten(s *slice, free int32) bool {
	m.boundsOf(s)
	return int64(free) <= s.hi || int64(free) >= s.lo
}

// Release gives back n cells: headroom first, then shared, then guaranteed.
func (m *MMU) Release(pg, q int, n int32) {
	p := &m.pg[pg]
	s := p.of
	m.stored -= int64(n)
	m.q[q].cells -= n
	if p.hdrm > 0 {
		h := min(p.hdrm, n)
		p.hdrm -= h
		s.hdrm -= h
		n -= h
	}
	before := p.shared()
	p.used -= n
	s.used -= before - p.shared()
	if p.xoff {
		s.lo = min(s.lo, p.xonAt(m.cell))
	}
	if int64(s.free()) >= s.lo {
		m.scanXON(s)
	}
}

// scanXOFF raises XOFF where due and makes the bound hi exact.
func (m *MMU) scanXOFF(s *slice) {
	free := int64(s.free())
	s.hi = -1
	for _, i := range s.pgs {
		p := &m.pg[i]
		if p.xoff {
			continue
		}
		if at := p.xoffAt(); free <= at {
			m.flip(int(i), p, true)
		} else {
			s.hi = max(s.hi, at)
		}
	}
}

// scanXON releases XOFF where due and makes the bound lo exact.
func (m *MMU) scanXON(s *slice) {
	free := int64(s.free())
	s.lo = math.MaxInt64
	for _, i := range s.pgs {
		p := &m.pg[i]
		if !p.xoff {
			continue
		}
		if at := p.xonAt(m.cell); free >= at {
			m.flip(int(i), p, false)
		} else {
			s.lo = min(s.lo, at)
		}
	}
}

func (m *MMU) flip(pg int, p *pgState, xoff bool) {
	p.xoff = xoff
	s := p.of
	if xoff {
		s.lo = min(s.lo, p.xonAt(m.cell))
	} else {
		s.hi = max(s.hi, p.xoffAt())
	}
	m.changed = append(m.changed, int32(pg))
}
