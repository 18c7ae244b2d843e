package port

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// macRing remembers the frames between dequeue and the end of their
// transmission at the MAC, so that a PFC frame finds the next frame boundary.
type macRing struct {
	span []macSpan
	head int
	n    int
}

type macSpan struct{ start, end clock.Time }

func (m *macRing) init() { m.span = make([]macSpan, 4) }

// push adds a frame and forgets those that have left.
func (m *macRing) push(now, start, end clock.Time) {
	mask := len(m.span) - 1
	for m.n > 0 && m.span[m.head&mask].end <= now {
		m.head++
		m.n--
	}
	if m.n > mask {
		m.grow()
		mask = len(m.span) - 1
	}
	m.span[(m.head+m.n)&mask] = macSpan{start, end}
	m.n++
}

func (m *macRing) grow() {
	big := make([]macSpan, 2*len(m.span))
	for i := range m.n {
		big[i] = m.span[(m.head+i)&(len(m.span)-1)]
	}
	m.span, m.head = big, 0
}

// boundary returns the first instant >= now at which no frame is in the midst
// of its transmission.
func (m *macRing) boundary(now clock.Time) clock.Time {
	for i := range m.n {
		s := m.span[(m.head+i)&(len(m.span)-1)]
		if s.start < now && now < s.end {
			return s.end
		}
		if s.start >= now {
			break
		}
	}
	return now
}

func (m *macRing) snapshot(w *snap.Writer) {
	w.Len(m.n)
	for i := range m.n {
		s := m.span[(m.head+i)&(len(m.span)-1)]
		w.Time(s.start)
		w.Time(s.end)
	}
}

func (m *macRing) restore(r *snap.Reader) {
	n := r.Len()
	m.head, m.n = 0, 0
	for range n {
		s, e := r.Time(), r.Time()
		if r.Err != nil {
			return
		}
		if m.span == nil {
			m.init()
		}
		m.push(-1, s, e)
	}
}
