package port

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// macRing remembers the frames between dequeue and the end of their
// transmission at the MAC, so that a PFC frame finds the next frame boundary.
// Those that are on their way at a time are few as a rule: they have some places
// in turn, on a cache line or two. Where the oldest of them is still on its way,
// or times are too far apart for a place, a frame goes to the spill.
type macRing struct {
	on     bool
	paused uint8 // of the port: mask of priorities whose until is set
	cuts   bool  // of the port: the peer cuts through
	next   uint8 // the place of few to be taken next
	mask   uint8 // so many places are in use, less one
	base   clock.Time
	more   *spill
	few    [macPlaces]macPlace // the first on the port's own line, the others on the next two
}

// macPlaces is how many places there are, and macFrame the size of the frames that
// find one on a port as fast as such need it.
const (
	macPlaces = 16
	macFrame  = 256
)

// places sets how many are in use for frames that take so long to the MAC: as few
// lines of memory as will do. One is enough where a frame is at the MAC at once.
func (m *macRing) places(egress, slot clock.Duration) {
	n := 1
	for n < macPlaces && clock.Duration(n)*slot < egress {
		n *= 2
	}
	m.mask = uint8(n - 1)
}

// macPlace is when a frame is at the MAC, in ps since base: from the lower half to
// the upper. One of zero is free.
type macPlace uint64

func newMacPlace(start, end uint64) macPlace { return macPlace(end<<32 | start) }

func (p macPlace) start() uint32 { return uint32(p) }
func (p macPlace) end() uint32   { return uint32(p >> 32) }

// macSpan is the same in full.
type macSpan struct{ start, end clock.Time }

// crowd keeps a frame that does not go into the place of the oldest as it is.
func (m *macRing) crowd(now clock.Time, s macSpan) {
	if uint64(s.end-m.base)>>32 != 0 {
		m.rebase(now)
	}
	i := m.next & (macPlaces - 1)
	if e := uint64(s.end - m.base); e>>32 == 0 && uint64(m.few[i].end()) <= uint64(now-m.base) {
		m.few[i], m.next = newMacPlace(uint64(s.start-m.base), e), (i+1)&m.mask
		return
	}
	m.spill(now, s)
}

// rebase lets times count from just before now, and forgets what has left.
func (m *macRing) rebase(now clock.Time) {
	old := m.base
	m.base = now - 1
	for i, p := range m.few {
		m.few[i] = 0
		if s := p.since(old); s.end > now { // it began by then, or will
			m.few[i] = newMacPlace(uint64(max(s.start-m.base, 0)), uint64(s.end-m.base))
		}
	}
}

// since is a place's span in full.
func (p macPlace) since(base clock.Time) macSpan {
	return macSpan{base + clock.Time(p.start()), base + clock.Time(p.end())}
}

// spill is frames for which there was no place, in no order.
type spill struct {
	s   []macSpan
	pos int // taken last
}

// spill keeps a frame in the place of one that has left: the first ones rather
// than others, so that few lines of memory are in use.
func (m *macRing) spill(now clock.Time, s macSpan) {
	if m.more == nil {
		m.more = new(spill)
	}
	x := m.more
	i := x.pos + 1
	switch {
	case len(x.s) > 0 && x.s[0].end <= now:
		i = 0
	case i < len(x.s) && x.s[i].end <= now:
	default:
		for i = 0; i < len(x.s) && x.s[i].end > now; i++ {
		}
	}
	if i == len(x.s) {
		x.s = append(x.s, macSpan{})
	}
	x.s[i], x.pos = s, i
}

// boundary returns the first instant >= now at which no frame is in the midst
// of its transmission.
func (m *macRing) boundary(now clock.Time) clock.Time {
	if !m.on {
		return now
	}
	for _, p := range m.few {
		if s := p.since(m.base); s.start < now && now < s.end {
			return s.end
		}
	}
	if m.more != nil {
		for _, s := range m.more.s {
			if s.start < now && now < s.end {
				return s.end
			}
		}
	}
	return now
}

func (m *macRing) snapshot(w *snap.Writer) {
	w.Bool(m.on)
	if !m.on {
		return
	}
	w.U8(m.next)
	w.Time(m.base)
	for _, p := range m.few[:m.mask+1] {
		w.U64(uint64(p))
	}
	if m.more == nil {
		w.Len(0)
		return
	}
	w.Len(len(m.more.s))
	w.U32(uint32(m.more.pos))
	for _, s := range m.more.s {
		w.Time(s.start)
		w.Time(s.end)
	}
}

func (m *macRing) restore(r *snap.Reader) {
	if m.on = r.Bool(); !m.on {
		return
	}
	m.next, m.base, m.more = r.U8(), r.Time(), nil
	for i := range m.few[:m.mask+1] {
		m.few[i] = macPlace(r.U64())
	}
	n := r.Len()
	if n == 0 {
		return
	}
	m.more = &spill{pos: int(r.U32())}
	if m.more.pos >= n {
		r.Expect("place of the last frame at the MAC", m.more.pos, n-1)
		return
	}
	for range n {
		m.more.s = append(m.more.s, macSpan{r.Time(), r.Time()})
	}
}
