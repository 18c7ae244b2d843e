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
type Inbox struct {
	ch   []*Channel // by port number - 1
	act  []uint64   // ports with published frames
	next clock.Time // arrival of the earliest frame of the window, Never = none left
	end  clock.Time // of the window
	merge
	w *scratch
	_ [48]byte // Take writes here: no line is also a neighbour's, which may run elsewhere
}

// scratch is what a worker needs while it runs one actor after the other.
type scratch struct {
	line  []line
	tree  []uint64
	late  []wire.Frame // late frames of this actor's window
	dirty []*Channel   // channels with frames of this window
	pool  chunks
	post  []post   // of rounds, by [rounds.of]
	ran   int      // actors that had something to do in this visit
	_     [48]byte // no line is also another worker's
}

func (in *Inbox) mark(port int) { in.act[(port-1)>>6] |= 1 << ((port - 1) & 63) }

// begin lines up what arrives before end.
func (in *Inbox) begin(end clock.Time) {
	in.line, in.end, in.w.late = in.w.line[:0], end, in.w.late[:0]
	if len(in.ch) > hintPorts {
		in.hint()
	}
	for w, b := range in.act {
		for ; b != 0; b &= b - 1 {
			c := in.ch[w<<6+bits.TrailingZeros64(b)]
			if f := c.front(); f != nil && f.At < end {
				in.line = append(in.line, line{at: f.At, ch: c})
				c.hint()
			}
			if c.nLate > 0 && c.lateQ[0].f.At < end {
				in.takeLate(c, end)
			}
		}
	}
	in.w.line = in.line
	in.next = in.draw(in.w)
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
			if c := in.ch[w<<6+bits.TrailingZeros64(b)]; c.popped != c.pub { // else its sender may be changing it
				mem.Own(unsafe.Pointer(c.head), 8)
			}
		}
	}
}

// takeLate lines up the late frames of a channel that arrive before end.
func (in *Inbox) takeLate(c *Channel, end clock.Time) {
	n, w := 0, in.w
	for n < len(c.lateQ) && c.lateQ[n].f.At < end {
		n++
	}
	if len(w.late)+n > cap(w.late) { // old frames stay where they are referred to
		w.late = make([]wire.Frame, 0, max(8, 2*(len(w.late)+n)))
	}
	k := len(w.late)
	for i := range n {
		w.late = append(w.late, c.lateQ[i].f)
	}
	in.line = append(in.line, line{at: w.late[k].At, ch: c, late: w.late[k:]})
	c.lateQ = c.lateQ[:copy(c.lateQ, c.lateQ[n:])]
	c.nLate = int32(len(c.lateQ))
}

// rest returns the earliest arrival left and the earliest that is work, gives
// back what was read, and drops idle ports from the active set. alone says that
// no sender runs at the same time.
func (in *Inbox) rest(alone bool) (next, work clock.Time) {
	next, work = clock.Never, clock.Never
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

func isWork(f *wire.Frame) bool { return f.Kind != wire.KindPFC && f.Kind != wire.KindPause }

// Next is the arrival time of the earliest frame before the window's end, Never
// when there is none.
func (in *Inbox) Next() clock.Time { return in.next }

// Take takes the frame that Next tells of, and its port. The pointer is valid
// until the window's end and the frame may be changed in place. It panics when
// there is none.
func (in *Inbox) Take() (f *wire.Frame, port int) {
	k := in.top & lineMask
	l := &in.line[k]
	c := l.ch
	next := clock.Never
	switch {
	case l.at == clock.Never:
		panic("actors: no arrival is left in the window")
	case l.late != nil:
		f, l.late = &l.late[0], l.late[1:]
		if len(l.late) > 0 {
			next = l.late[0].At
		}
	default:
		f = &c.head.f[c.hi]
		c.pop()
		if n := c.front(); n != nil && n.At < in.end {
			next = n.At
		}
	}
	l.at = next
	in.replay(k, next)
	in.next = in.line[in.top&lineMask].at
	return f, int(c.dstPort)
}
