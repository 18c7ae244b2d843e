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

// Inbox merges an actor's channels by arrival. At the start of a window it
// takes every frame that arrives before its end and puts them in order at once,
// so that each look and each take is an index.
type Inbox struct {
	ch   []*Channel // by port number - 1
	act  []uint64   // ports with published frames
	ev   []arrival  // of this window, in order; belongs to the worker
	pos  int
	seed uint64
	w    *scratch
}

// scratch is what a worker needs while it runs one actor after the other.
type scratch struct {
	ev, tmp []arrival
	tied    []arrival // of one instant
	keys    []tie
	late    []wire.Frame // late frames of this actor's window
	dirty   []*Channel   // channels with frames of this window
	pool    chunks
	ran     int // actors that had something to do in this leg
}

// arrival is one frame of the window.
type arrival struct {
	at  clock.Time
	f   *wire.Frame
	ord uint64 // ordinal on its channel; late frames have the top bit set
	ch  *Channel
}

func (in *Inbox) mark(port int) { in.act[(port-1)>>6] |= 1 << ((port - 1) & 63) }

// begin collects and orders what arrives in [start, end).
func (in *Inbox) begin(start, end clock.Time) {
	in.ev, in.pos, in.w.late = in.w.ev[:0], 0, in.w.late[:0]
	if len(in.ch) > hintPorts {
		in.hint()
	}
	for w, b := range in.act {
		for ; b != 0; b &= b - 1 {
			c := in.ch[w<<6+bits.TrailingZeros64(b)]
			for f := c.front(); f != nil && f.At < end; f = c.front() {
				in.ev = append(in.ev, arrival{f.At, f, c.popped, c})
				c.pop()
			}
			if c.nLate > 0 && c.lateQ[0].f.At < end {
				in.takeLate(c, end)
			}
		}
	}
	switch n := len(in.ev); {
	case n < 2:
	case n <= smallSort:
		in.insertion(in.ev)
	default:
		in.buckets(start, end)
	}
	in.w.ev = in.ev
}

// hint asks for the heads of all active channels before they are read one by
// one.
func (in *Inbox) hint() {
	for w, b := range in.act {
		for ; b != 0; b &= b - 1 {
			mem.Prefetch(unsafe.Pointer(in.ch[w<<6+bits.TrailingZeros64(b)]), 1)
		}
	}
	for w, b := range in.act {
		for ; b != 0; b &= b - 1 {
			if c := in.ch[w<<6+bits.TrailingZeros64(b)]; c.popped != c.pub { // else its sender may be changing it
				mem.Prefetch(unsafe.Pointer(c.head), 8)
			}
		}
	}
}

// takeLate moves the late frames of a channel that arrive before end.
func (in *Inbox) takeLate(c *Channel, end clock.Time) {
	n := 0
	for n < len(c.lateQ) && c.lateQ[n].f.At < end {
		l := &c.lateQ[n]
		w := in.w
		if len(w.late) == cap(w.late) { // old frames stay where they are referred to
			w.late = make([]wire.Frame, 0, max(8, 2*cap(w.late)))
		}
		w.late = append(w.late, l.f)
		in.ev = append(in.ev, arrival{l.f.At, &w.late[len(w.late)-1], l.ord, c})
		n++
	}
	c.lateQ = c.lateQ[:copy(c.lateQ, c.lateQ[n:])]
	c.nLate = int32(len(c.lateQ))
}

// smallSort is the number of arrivals up to which plain insertion is quickest;
// sortBits bounds the logarithm of the number of time buckets above it.
const (
	smallSort = 12
	sortBits  = 9
)

// buckets orders many arrivals: spread over slices of the window by time, then
// one insertion pass, which finds nearly everything in place.
func (in *Inbox) buckets(start, end clock.Time) {
	var all [1<<sortBits + 1]int32
	size := min(bits.Len64(uint64(len(in.ev))), sortBits)
	count := all[:1<<size+1]
	shift := max(bits.Len64(uint64(end-start-1))-size, 0)
	for i := range in.ev {
		count[uint64(in.ev[i].at-start)>>shift+1]++
	}
	for i := 1; i < len(count); i++ {
		count[i] += count[i-1]
	}
	w := in.w
	if cap(w.tmp) < len(in.ev) {
		w.tmp = make([]arrival, len(in.ev), 2*len(in.ev))
	}
	w.tmp = w.tmp[:len(in.ev)]
	for i := range in.ev {
		b := uint64(in.ev[i].at-start) >> shift
		w.tmp[count[b]] = in.ev[i]
		count[b]++
	}
	in.ev, w.tmp = w.tmp, in.ev
	in.insertion(in.ev)
}

// insertion orders by time, then what is of one instant.
func (in *Inbox) insertion(ev []arrival) {
	ties := false
	for i := 1; i < len(ev); i++ {
		at := ev[i].at
		if ev[i-1].at <= at {
			ties = ties || ev[i-1].at == at
			continue
		}
		e := ev[i]
		k := i
		for k > 0 && ev[k-1].at > at {
			ev[k] = ev[k-1]
			k--
		}
		ev[k] = e
		ties = ties || k > 0 && ev[k-1].at == at
	}
	if ties {
		in.untie(ev)
	}
}

// untie finds the runs of one instant in what is ordered by time.
func (in *Inbox) untie(ev []arrival) {
	for i := 1; i < len(ev); i++ {
		if ev[i-1].at != ev[i].at {
			continue
		}
		n := i + 1
		for n < len(ev) && ev[n].at == ev[i].at {
			n++
		}
		in.order(ev[i-1 : n])
		i = n
	}
}

// order is the total order of arrivals of one instant: the channels in the
// order of a hash keyed by the instant, so that none is favoured for long;
// inside a channel in the order of sending, late frames last.
func (in *Inbox) order(ev []arrival) {
	keys := in.w.keys[:0]
	for i := range ev {
		keys = append(keys, tie{clock.Mix(in.seed, ev[i].ch.key, uint64(ev[i].at)), ev[i].ch.key, ev[i].ord, int32(i)})
	}
	in.w.keys = keys
	if len(keys) <= smallSort {
		for i := 1; i < len(keys); i++ {
			x := keys[i]
			k := i
			for k > 0 && x.compare(&keys[k-1]) < 0 {
				keys[k] = keys[k-1]
				k--
			}
			keys[k] = x
		}
	} else {
		slices.SortFunc(keys, func(a, b tie) int { return a.compare(&b) })
	}
	tied := in.w.tied[:0]
	for i := range keys {
		tied = append(tied, ev[keys[i].i])
	}
	in.w.tied = tied
	copy(ev, tied)
}

// tie is what decides between arrivals of one instant.
type tie struct {
	hash, ch, ord uint64
	i             int32
}

func (a *tie) compare(b *tie) int {
	switch {
	case a.hash != b.hash:
		return cmp.Compare(a.hash, b.hash)
	case a.ch != b.ch:
		return cmp.Compare(a.ch, b.ch)
	case a.ord == b.ord:
		panic("actors: two arrivals of one name")
	}
	return cmp.Compare(a.ord, b.ord)
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
func (in *Inbox) Next() clock.Time {
	if in.pos == len(in.ev) {
		return clock.Never
	}
	return in.ev[in.pos].at
}

// Take takes the frame that Next tells of, and its port. The pointer is valid
// until the window's end and the frame may be changed in place. It panics when
// there is none.
func (in *Inbox) Take() (f *wire.Frame, port int) {
	e := &in.ev[in.pos]
	in.pos++
	return e.f, int(e.ch.dstPort)
}
