package port

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// macRing remembers the frames between dequeue and the end of their
// transmission at the MAC, so that a PFC frame finds the next frame boundary.
// Entries are written round and round; one that is still needed makes it grow.
type macRing struct {
	span []macSpan // a power of two; nil = off
	pos  int
}

type macSpan struct{ start, end clock.Time }

func (m *macRing) init() { m.span = make([]macSpan, 4) }

// push adds a frame in place of the oldest, which has left as a rule.
func (m *macRing) push(now, start, end clock.Time) {
	i := (m.pos + 1) & (len(m.span) - 1)
	if m.span[i].end > now {
		i = m.grow()
	}
	m.span[i] = macSpan{start, end}
	m.pos = i
}

// grow doubles the ring, oldest first, and returns the first free place.
func (m *macRing) grow() int {
	n := len(m.span)
	big := make([]macSpan, 2*n)
	for i := range n {
		big[i] = m.span[(m.pos+1+i)&(n-1)]
	}
	m.span = big
	return n
}

// boundary returns the first instant >= now at which no frame is in the midst
// of its transmission.
func (m *macRing) boundary(now clock.Time) clock.Time {
	for i := range m.span {
		if s := &m.span[i]; s.start < now && now < s.end {
			return s.end
		}
	}
	return now
}

func (m *macRing) snapshot(w *snap.Writer) {
	w.Len(len(m.span))
	w.U32(uint32(m.pos))
	for i := range m.span {
		w.Time(m.span[i].start)
		w.Time(m.span[i].end)
	}
}

func (m *macRing) restore(r *snap.Reader) {
	n, pos := r.Len(), int(r.U32())
	if n&(n-1) != 0 || n > 0 && pos >= n {
		r.Expect("MAC ring position", pos, -1)
		return
	}
	m.span, m.pos = nil, pos
	if n > 0 {
		m.span = make([]macSpan, n)
	}
	for i := range m.span {
		m.span[i] = macSpan{r.Time(), r.Time()}
	}
}
