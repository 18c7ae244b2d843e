package actors

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// merge is a loser tree over the lines of a window. A line stands in it as one
// word: the arrival of its head since the first of the window, and below that
// its number. Words that differ in time compare as the arrivals do; those that
// do not are a tie, and looked at closely.
type merge struct {
	line []line   // belongs to the worker, as does tree
	tree []uint64 // the loser of each match; those at 2i and 2i+1 lead to i, line k begins at (len+k)/2
	top  uint64   // who won them all
	base clock.Time
	seed uint64
}

// line is what is left of a channel's frames of the window, or of its late
// frames.
type line struct {
	at   clock.Time // of the head, Never = none left
	ch   *Channel
	late []wire.Frame // nil: the channel's own
}

// lineBits number the lines, two a port at most; what is left of a word holds
// 35 s. Later arrivals of a window all tie.
const (
	lineBits = 18
	lineMask = 1<<lineBits - 1
	timeMask = 1<<(63-lineBits) - 1
)

// key is the word of line k. A line without frames has its number in place of a
// time, behind all that have: no tie.
func (m *merge) key(at clock.Time, k uint64) uint64 {
	if at == clock.Never {
		return 1<<63 | k<<lineBits | k
	}
	return min(uint64(at-m.base), timeMask)<<lineBits | k
}

// draw plays all matches and returns the first arrival.
func (m *merge) draw(w *scratch) clock.Time {
	n := len(m.line)
	m.tree, m.top = nil, 0
	if n == 0 {
		return clock.Never
	}
	m.base = m.line[0].at
	for i := 1; i < n; i++ {
		m.base = min(m.base, m.line[i].at)
	}
	if n == 1 {
		return m.base
	}
	if cap(w.tree) < 3*n {
		w.tree = make([]uint64, 6*n)
	}
	m.tree = w.tree[:n]
	win := w.tree[n : 3*n]
	for i := range m.line {
		win[n+i] = m.key(m.line[i].at, uint64(i))
	}
	for i := n - 1; i > 0; i-- {
		win[i], m.tree[i] = m.play(win[2*i], win[2*i+1])
	}
	m.top = win[1]
	return m.base
}

// replay plays the matches of line k, whose head arrives at another instant
// now. Who wins is no branch; the first tie leaves the rest to replayTied.
func (m *merge) replay(k uint64, at clock.Time) {
	t := m.tree
	i := (uint64(len(t)) + k) >> 1
	key := m.key(at, k)
	for ; i-1 < uint64(len(t)); i >>= 1 {
		o := t[i]
		if (o^key)>>lineBits == 0 {
			m.replayTied(i, key)
			return
		}
		lose := o
		if key > o {
			lose = key
		}
		t[i] = lose
		key ^= o ^ lose
	}
	m.top = key
}

// replayTied goes on at match i.
func (m *merge) replayTied(i, key uint64) {
	for t := m.tree; i > 0; i >>= 1 {
		o := t[i]
		lose := max(key, o)
		if (o^key)>>lineBits == 0 {
			if lose = o; m.ahead(o&lineMask, key&lineMask) {
				lose = key
			}
		}
		t[i] = lose
		key ^= o ^ lose
	}
	m.top = key
}

func (m *merge) play(a, b uint64) (win, lose uint64) {
	if (a^b)>>lineBits != 0 && a < b || (a^b)>>lineBits == 0 && m.ahead(a&lineMask, b&lineMask) {
		return a, b
	}
	return b, a
}

// ahead is the total order of arrivals: by time; at one instant the channels in
// the order of a hash keyed by the instant, so that none is favoured for long;
// inside a channel in the order of sending, late frames last.
func (m *merge) ahead(a, b uint64) bool {
	x, y := &m.line[a], &m.line[b]
	if x.at != y.at || x.ch == y.ch {
		return x.at < y.at || x.at == y.at && x.late == nil
	}
	h, g := clock.Mix(m.seed, x.ch.key, uint64(x.at)), clock.Mix(m.seed, y.ch.key, uint64(y.at))
	if h == g && x.ch.key == y.ch.key {
		panic("actors: two arrivals of one name")
	}
	return h < g || h == g && x.ch.key < y.ch.key
}
