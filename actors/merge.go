package actors

import (
	"cmp"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// merge is a loser tree over the lines of a window. A line stands in it as one
// word: the arrival of its head since the first of the window, and below that
// its number. Which of two words wins is no branch. Words that differ in time
// compare as the arrivals do; those that do not are a tie, which shows when the
// next winner is as early as the one taken: then all that tie are put in order
// closely.
type merge struct {
	line []line   // belongs to the worker, as do tree and ties
	tree []uint64 // the loser of each match; those at 2i and 2i+1 lead to i, line k begins at (len+k)/2
	top  uint64   // who won them all
	base clock.Time
	end  clock.Time // of the window
	ties []tie      // arrivals before held, in order, while top is nobody; those before tied are taken
	tied int
	held uint64
	seed uint64
}

// line is what is left of a channel's frames, or of its late frames of the
// window.
type line struct {
	k    *chunk // of the head
	ch   *Channel
	more uint64 // frames in the chunks behind this one
	at   uint8  // place of the head in its chunk
	stop uint8  // the chunk's frames end here
	late bool   // copies of late frames
	port uint16
}

func newLine(k *chunk, c *Channel, at int32, n uint64) line {
	here := min(n, chunkFrames-uint64(at))
	return line{k: k, ch: c, more: n - here, at: uint8(at), stop: uint8(uint64(at) + here), port: c.dstPort}
}

// tie is one of several arrivals whose words do not differ.
type tie struct {
	f    *wire.Frame
	ch   *Channel
	hash uint64
	line uint64
}

// lineBits number the lines, two a port at most; what is left of a word holds
// 35 s. Later arrivals of a window all tie.
const (
	lineBits = 18
	lineMask = 1<<lineBits - 1
	timeMask = 1<<(63-lineBits) - 1
	nobody   = 1<<64 - 1 // the word of a line without frames
)

// key is the word of line k.
func (m *merge) key(at clock.Time, k uint64) uint64 {
	if at >= m.end {
		return nobody
	}
	return min(uint64(at-m.base), timeMask)<<lineBits | k
}

// draw plays all matches. Lines are made up to a power of two: each arrival
// plays as many matches then, which a processor foresees.
func (m *merge) draw(w *scratch) {
	m.tree, m.ties, m.tied = nil, w.ties[:0], 0
	n := len(m.line)
	if n == 0 {
		m.top = nobody
		return
	}
	m.base = m.line[0].first()
	for i := 1; i < n; i++ {
		m.base = min(m.base, m.line[i].first())
	}
	if n == 1 {
		m.top = m.key(m.base, 0)
		return
	}
	n = 1 << bits.Len(uint(n-1))
	if len(w.tree) < 3*n {
		w.tree = make([]uint64, 3*n)
	}
	m.tree = w.tree[:n]
	win := w.tree[n : 3*n]
	for i := range n {
		win[n+i] = nobody
		if i < len(m.line) {
			win[n+i] = m.key(m.line[i].first(), uint64(i))
		}
	}
	for i := n - 1; i > 0; i-- {
		a, b := win[2*i], win[2*i+1]
		win[i], m.tree[i] = min(a, b), max(a, b)
	}
	m.top = win[1]
}

// first is the arrival of a line's head.
func (l *line) first() clock.Time { return l.k.at(uint64(l.at)).At }

// turn goes on from the end of a chunk and returns the next arrival, Never when
// there is none. It asks for the chunk after that, of which some is published: a
// merge reads lines by turns, so that the processor does not see what comes
// next.
func (l *line) turn() clock.Time {
	if l.more == 0 {
		return clock.Never
	}
	l.k = l.k.next
	here := min(l.more, chunkFrames)
	l.at, l.stop, l.more = 0, uint8(here), l.more-here
	if l.more > 0 {
		mem.Prefetch(unsafe.Pointer(l.k.next), int(min(l.more, chunkFrames))+1)
	}
	return l.k.at(0).At
}

// pull takes the head of the line that leads.
func (m *merge) pull() (*wire.Frame, *line) {
	k := m.top & lineMask
	l := &m.line[k]
	f := l.k.at(uint64(l.at))
	if l.at++; l.at < l.stop {
		m.replay(m.key(l.k.at(uint64(l.at)).At, k), k)
	} else {
		m.replay(m.key(l.turn(), k), k)
	}
	return f, l
}

// replay plays the matches of line k, whose word is another now.
func (m *merge) replay(key, k uint64) {
	t := m.tree
	for i := (uint64(len(t)) + k) >> 1; i != 0 && i < uint64(len(t)); i >>= 1 {
		o := t[i]
		t[i] = max(o, key)
		key = min(o, key)
	}
	m.top = key
}

// tie puts all that ties with the frame f of line l, whose word was won, in
// order; top is what comes behind.
func (m *merge) tie(f *wire.Frame, l *line, won uint64) {
	w := m.ties[:0]
	for {
		x := tie{f, l.ch, clock.Mix(m.seed, l.ch.key, uint64(f.At)), won & lineMask}
		i := len(w)
		for w = append(w, x); i > 0 && i <= fewTies && x.cmp(&w[i-1]) < 0; i-- { // in its place at once
			w[i] = w[i-1]
		}
		w[i] = x
		if (m.top^won)>>lineBits != 0 {
			break
		}
		won = m.top
		f, l = m.pull()
	}
	if len(w) > fewTies+1 {
		slices.SortStableFunc(w, func(x, y tie) int { return x.cmp(&y) })
	}
	m.ties, m.tied, m.held, m.top = w, 0, m.top, nobody
}

// fewTies is how many arrivals at one instant are kept in order as they come.
const fewTies = 12

// cmp is the total order of arrivals: by time; at one instant the channels in
// the order of a hash keyed by the instant, so that none is favoured for long;
// inside a channel in the order of sending, late frames, whose line comes after
// the channel's own, last.
func (x *tie) cmp(y *tie) int {
	if x.f.At != y.f.At {
		return cmp.Compare(x.f.At, y.f.At)
	}
	if x.ch == y.ch {
		return cmp.Compare(x.line, y.line)
	}
	if x.hash != y.hash {
		return cmp.Compare(x.hash, y.hash)
	}
	r := cmp.Compare(x.ch.key, y.ch.key)
	if r == 0 {
		panic("actors: two arrivals of one name")
	}
	return r
}
