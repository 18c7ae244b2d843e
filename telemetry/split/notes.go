package split

import (
	"math/bits"

	"github.com/rocemu/rocemu/clock"
)

// key names a frame of a queue pair; acknowledgements by their ordinal.
type key struct {
	psn, index uint32
	op, iter   uint8
	toward     bool // from requester to responder
}

// hop is one cable that a frame crossed, and when it reached the state of the
// other end.
type hop struct {
	at   clock.Time
	tap  int32 // number of the cable
	prev int32 // the one noted before it of the same frame, -1 = none
}

// frame is a frame and its way.
type frame struct {
	key
	len   uint16
	next  int32      // in its list of the table, -1 = none
	hops  int32      // the one noted last
	tap   int32      // of the first hop
	first clock.Time // when it was over
	last  clock.Time // when the last one was over: the arrival

	// Known in the end:
	sent clock.Time     // dequeue at its sender
	slot clock.Duration // serialisation at its sender
}

// notes are the frames of a queue pair. A frame is found by its number, which
// counts up, in a table of lists; so nothing is spread by chance in memory, and
// a hop costs sixteen bytes.
type notes struct {
	frames rows[frame]
	hops   rows[hop]
	table  []int32 // by the low bits of number: the last frame noted, -1 = none
}

// rows is a slice that grows by chunks: what it holds is never moved, which
// would take as long as all the rest of a note.
type rows[T any] struct {
	chunks [][]T
	n      int32
}

const chunkBits = 10

func (r *rows[T]) at(i int32) *T { return &r.chunks[i>>chunkBits][i&(1<<chunkBits-1)] }

// add appends v and returns its place.
func (r *rows[T]) add(v T) (i int32) {
	if int(r.n>>chunkBits) == len(r.chunks) {
		r.chunks = append(r.chunks, make([]T, 1<<chunkBits))
	}
	i = r.n
	r.n++
	*r.at(i) = v
	return i
}

// leastTable is the size of a table at first, a power of two.
const leastTable = 64

// number spreads the frames of a queue pair: those of its two directions count up
// side by side, by PSN or, acknowledgements, by ordinal, so that every place of a
// table is taken before one is taken twice.
func (k *key) number() uint32 {
	n := k.psn << 1
	if k.index != 0 {
		n = k.index << 1
	}
	if k.toward {
		n |= 1
	}
	return n
}

// find returns the frame with a key, nil when there is none.
func (n *notes) find(k *key) *frame {
	if len(n.table) == 0 {
		return nil
	}
	for i := n.table[k.number()&uint32(len(n.table)-1)]; i >= 0; {
		f := n.frames.at(i)
		if f.key == *k {
			return f
		}
		i = f.next
	}
	return nil
}

// note adds a hop of a frame. The order in which hops come does not matter.
func (n *notes) note(k *key, h hop, length uint16) {
	fr := n.find(k)
	if fr == nil {
		fr = n.add(k, h, length)
	}
	if h.before(&hop{at: fr.first, tap: fr.tap}) {
		fr.first, fr.tap = h.at, h.tap
	}
	fr.last = max(fr.last, h.at)
	h.prev = fr.hops
	fr.hops = n.hops.add(h)
}

func (h *hop) before(o *hop) bool { return h.at < o.at || h.at == o.at && h.tap < o.tap }

// add notes a frame that is new.
func (n *notes) add(k *key, h hop, length uint16) *frame {
	if int(n.frames.n) >= len(n.table) {
		n.grow(max(leastTable, 2*len(n.table)))
	}
	i := n.frames.add(frame{key: *k, len: length, hops: -1, tap: h.tap, first: h.at, last: h.at})
	n.list(i)
	return n.frames.at(i)
}

// list puts frame i into the table.
func (n *notes) list(i int32) {
	f := n.frames.at(i)
	at := &n.table[f.number()&uint32(len(n.table)-1)]
	f.next, *at = *at, i
}

// grow makes the table larger; size is a power of two.
func (n *notes) grow(size int) {
	n.table = make([]int32, size)
	for i := range n.table {
		n.table[i] = -1
	}
	for i := range n.frames.n {
		n.list(i)
	}
}

// way appends the hops of a frame to dst in order of time.
func (n *notes) way(dst []hop, f *frame) []hop {
	for i := f.hops; i >= 0; i = n.hops.at(i).prev {
		h := *n.hops.at(i)
		dst = append(dst, h)
		at := len(dst) - 1
		for ; at > 0 && h.before(&dst[at-1]); at-- {
			dst[at] = dst[at-1]
		}
		dst[at] = h
	}
	return dst
}

// ends finds the watched queue pair of a frame by where it goes.
type ends struct {
	slots []watched // a power of two, mostly empty
	shift int
}

// watched is one end of a queue pair.
type watched struct {
	end
	toward bool
	pair   *pair // nil = empty
}

// newEnds makes room for n ends.
func newEnds(n int) *ends {
	b := bits.Len(uint(4 * n))
	return &ends{slots: make([]watched, 1<<b), shift: 64 - b}
}

// slot returns the place of an end: its own, or an empty one.
func (e *ends) slot(at end) *watched {
	i := (uint64(at.rnic)<<24 ^ uint64(at.qpn)) * 0x9e3779b97f4a7c15 >> e.shift
	for ; ; i = (i + 1) & uint64(len(e.slots)-1) {
		if s := &e.slots[i]; s.pair == nil || s.end == at {
			return s
		}
	}
}

func (e *ends) set(at end, p *pair, toward bool) { *e.slot(at) = watched{at, toward, p} }
