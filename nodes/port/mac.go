package port

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// macRing remembers the frames between dequeue and the end of their
// transmission at the MAC, so that a PFC frame finds the next frame boundary.
// Entries are written round and round; one that is still needed makes it grow.
type macRing struct {
	on     bool
	paused uint8 // of the port: mask of priorities whose until is set
	cuts   bool  // of the port: the peer cuts through
	pos    uint32
	many   []macSpan  // a power of two; nil = few
	few    [4]macSpan // until more are needed at a time: a cache line of a Port
}

type macSpan struct{ start, end clock.Time }

func (m *macRing) spans() []macSpan {
	if m.many != nil {
		return m.many
	}
	return m.few[:]
}

// crowd adds a frame where the oldest has not left.
func (m *macRing) crowd(start, end clock.Time) {
	s, i := m.grow()
	s[i], m.pos = macSpan{start, end}, i
}

// grow doubles the ring, oldest first, and returns it with the first free place.
func (m *macRing) grow() ([]macSpan, uint32) {
	s := m.spans()
	n := uint32(len(s))
	big := make([]macSpan, 2*n)
	for i := range n {
		big[i] = s[(m.pos+1+i)&(n-1)]
	}
	m.many = big
	return big, n
}

// boundary returns the first instant >= now at which no frame is in the midst
// of its transmission.
func (m *macRing) boundary(now clock.Time) clock.Time {
	if !m.on {
		return now
	}
	for _, s := range m.spans() {
		if s.start < now && now < s.end {
			return s.end
		}
	}
	return now
}

func (m *macRing) snapshot(w *snap.Writer) {
	if !m.on {
		w.Len(0)
		w.U32(0)
		return
	}
	w.Len(len(m.spans()))
	w.U32(m.pos)
	for _, s := range m.spans() {
		w.Time(s.start)
		w.Time(s.end)
	}
}

func (m *macRing) restore(r *snap.Reader) {
	n, pos := r.Len(), r.U32()
	if n&(n-1) != 0 || n > 0 && (n < len(m.few) || int(pos) >= n) {
		r.Expect("MAC ring position", int(pos), -1)
		return
	}
	m.on, m.pos, m.many, m.few = n > 0, pos, nil, [4]macSpan{}
	if n > len(m.few) {
		m.many = make([]macSpan, n)
	}
	for i := range n {
		m.spans()[i] = macSpan{r.Time(), r.Time()}
	}
}
