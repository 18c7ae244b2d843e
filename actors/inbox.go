package actors

import (
	"math/bits"
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Inbox merges an actor's channels by arrival. Each channel is in order by
// itself, so a window is a merge of as many ordered lines as there are channels
// with frames. A loser tree over their heads tells the earliest, and a take
// plays the matches of one line anew ([merge]).
//
// A worker has one for all actors that it runs: of each it reads the dock alone.
type Inbox struct {
	ch   []*Channel // of the actor that runs, by port number - 1
	act  []uint64   // its ports with published frames
	next clock.Time // arrival of the earliest frame of the window, Never = none left
	merge
	w   *scratch
	far bool // see Far
}

// dock is where an actor's cables end: a cache line.
type dock struct {
	cables []*Channel // to its ports, then from them
	act    []uint64   // ports with published frames
	few    [1]uint64  // act of up to 64 ports
	_      [8]byte
}

// in and out are the channels to and from the ports, by number - 1.
func (k *dock) in() []*Channel  { return k.cables[:len(k.cables)/2] }
func (k *dock) out() []*Channel { return k.cables[len(k.cables)/2:] }

func (k *dock) mark(port int) { k.act[(port-1)>>6] |= 1 << ((port - 1) & 63) }

// init gives a dock its places for channels.
func (k *dock) init(cables []*Channel) {
	k.cables, k.act = cables, k.few[:]
	if n := (len(cables)/2 + 63) / 64; n != 1 {
		k.act = make([]uint64, n)
	}
}

// scratch is what a worker needs while it runs one actor after the other.
type scratch struct {
	in     Inbox
	out    Outbox
	line   []line
	tree   []uint64
	ties   []tie
	copied []*chunk   // late frames of this actor's window
	dirty  []*Channel // channels with frames of this window
	away   int        // so many of dirty lead out of the unit that runs
	busy   []int32    // of a unit, those that have something to do in this visit
	pool   chunks
	post   []post  // of rounds, by [rounds.of]
	ran    int     // actors that had something to do in this visit
	_      [8]byte // no line is also another worker's
}

// begin lines up what arrives at a dock before end.
func (in *Inbox) begin(k *dock, end clock.Time) {
	in.ch, in.act = k.in(), k.act
	in.line, in.end = in.w.line[:0], end
	if len(in.ch) > hintPorts {
		in.hint()
	}
	for w, b := range in.act {
		for ; b != 0; b &= b - 1 {
			c := in.ch[w<<6+bits.TrailingZeros64(b)]
			if f := c.front(); f != nil && f.At < end {
				in.line = append(in.line, newLine(c.head, c, c.hi, c.pub-c.popped))
				c.hint()
			}
			if c.nLate > 0 && c.lateQ[0].f.At < end {
				in.takeLate(c, end)
			}
		}
	}
	in.w.line = in.line
	in.draw(in.w)
	in.look()
}

// look finds the next arrival, where its word does not tell.
func (in *Inbox) look() {
	if t := in.top >> lineBits; t == timeMask {
		won := in.top
		f, l := in.pull()
		in.tie(f, l, won)
	} else if in.top != nobody {
		in.next = in.base + clock.Time(t)
		return
	}
	in.next = clock.Never
	if in.tied < len(in.ties) {
		in.next = in.ties[in.tied].f.At
	}
}

// hint asks for the heads of all active channels before they are read one by
// one.
func (in *Inbox) hint() {
	for w, b := range in.act {
		for ; b != 0; b &= b - 1 {
			mem.Own(unsafe.Pointer(in.ch[w<<6+bits.TrailingZeros64(b)]), 1)
		}
	}
	for w, b := range in.act {
		for ; b != 0; b &= b - 1 {
			in.ch[w<<6+bits.TrailingZeros64(b)].hintHead()
		}
	}
}

// takeLate lines up copies of the late frames of a channel that arrive before
// end.
func (in *Inbox) takeLate(c *Channel, end clock.Time) {
	n, w := 0, in.w
	first := len(w.copied)
	for ; n < len(c.lateQ) && c.lateQ[n].f.At < end; n++ {
		if n%chunkFrames == 0 {
			k := w.pool.get()
			if n > 0 {
				w.copied[len(w.copied)-1].next = k
			}
			w.copied = append(w.copied, k)
		}
		w.copied[len(w.copied)-1].f[n%chunkFrames] = c.lateQ[n].f
	}
	l := newLine(w.copied[first], c, 0, uint64(n))
	l.late = true
	in.line = append(in.line, l)
	c.lateQ = c.lateQ[:copy(c.lateQ, c.lateQ[n:])]
	c.nLate = int32(len(c.lateQ))
}

// rest returns the earliest arrival left and the earliest that is work, gives
// back what was read, and drops idle ports from the active set. alone says that
// no sender runs at the same time.
func (in *Inbox) rest(alone bool) (next, work clock.Time) {
	next, work = clock.Never, clock.Never
	in.back()
	for w, b := range in.act {
		for ; b != 0; b &= b - 1 {
			i := w<<6 + bits.TrailingZeros64(b)
			c := in.ch[i]
			f := c.front()
			c.tidy(&in.w.pool, alone)
			if f != nil {
				next, work = min(next, f.At), min(work, f.At)
			}
			for k := range c.nLate {
				next = min(next, c.lateQ[k].f.At)
				if isWork(&c.lateQ[k].f) {
					work = min(work, c.lateQ[k].f.At)
					break
				}
			}
			if f == nil && c.nLate == 0 {
				in.act[w] &^= 1 << (i & 63)
			}
		}
	}
	return next, work
}

// back tells the channels how far their lines were read, and frees the copies of
// late frames.
func (in *Inbox) back() {
	in.w.ties = in.ties
	for i := range in.line {
		l := &in.line[i]
		if l.late {
			continue
		}
		c := l.ch
		if c.head != l.k && c.used == nil {
			c.used = c.head
		}
		c.head, c.hi, c.popped = l.k, int32(l.at), c.pub-l.more-uint64(l.stop-l.at)
	}
	for _, k := range in.w.copied {
		in.w.pool.put(k)
	}
	in.w.copied = in.w.copied[:0]
}

func isWork(f *wire.Frame) bool { return f.Kind != wire.KindPFC && f.Kind != wire.KindPause }

// Next is the arrival time of the earliest frame before the window's end, Never
// when there is none.
func (in *Inbox) Next() clock.Time { return in.next }

// Take takes the frame that Next tells of, and its port. The pointer is valid
// until the window's end and the frame may be changed in place. It panics when
// there is none.
func (in *Inbox) Take() (f *wire.Frame, port int) {
	won := in.top
	k := won & lineMask
	if k >= uint64(len(in.line)) {
		return in.takeTied()
	}
	l := &in.line[k]
	i := l.at + 1
	if i >= l.stop {
		return in.takeLast()
	}
	l.at = i
	f = l.k.at(uint64(i - 1))
	in.replay(in.key(l.k.at(uint64(i)).At, k), k)
	if (in.top^won)>>lineBits == 0 {
		in.tie(f, l, won)
		return in.takeTied()
	}
	if t := in.top >> lineBits; t < timeMask {
		in.next = in.base + clock.Time(t)
	} else {
		in.look()
	}
	return f, int(l.port)
}

// Far says whether the fabric is too large to stay in the processor's caches
// from visit to visit, so that it pays to ask for memory ahead.
func (in *Inbox) Far() bool { return in.far }

// Peek returns the frame that Take will return next, and its port, where that is
// known already: nil among several that tie and when none is left. It is for
// hints at memory only.
func (in *Inbox) Peek() (f *wire.Frame, port int) {
	k := in.top & lineMask
	if k >= uint64(len(in.line)) {
		return nil, 0
	}
	l := &in.line[k]
	return l.k.at(uint64(l.at)), int(l.port)
}

// Each visits the ports that have arrivals in the window, once each as a rule.
func (in *Inbox) Each(visit func(port int)) {
	for i := range in.line {
		visit(int(in.line[i].port))
	}
}

// takeLast is Take of the last frame of a chunk.
func (in *Inbox) takeLast() (*wire.Frame, int) {
	won := in.top
	f, l := in.pull()
	if (in.top^won)>>lineBits == 0 {
		in.tie(f, l, won)
		return in.takeTied()
	}
	in.look()
	return f, int(l.port)
}

// takeTied is Take among several that tie.
func (in *Inbox) takeTied() (*wire.Frame, int) {
	if in.tied == len(in.ties) {
		panic("actors: no arrival is left in the window")
	}
	x := in.ties[in.tied] // a copy: look may put the next ones there
	if in.tied++; in.tied == len(in.ties) {
		in.top = in.held
	}
	in.look()
	return x.f, int(x.ch.dstPort)
}
