package fabric

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/nodes/wire"
)

// chunkFrames makes a chunk exactly 1 KiB.
const chunkFrames = 14

// stored is what a queued frame was charged: ingress PG and cells.
type stored struct {
	pg    int32
	cells int32
}

// qchunk is a piece of a queue.
type qchunk struct {
	next *qchunk
	f    [chunkFrames]wire.Frame
	meta [chunkFrames]stored
}

// chunkPool recycles a device's chunks. It keeps at most as many free ones as
// are in use plus spareChunks, so memory follows the queued frames down again.
type chunkPool struct {
	free      *qchunk
	nFree     int
	nUsed     int
	allocated uint64
}

const spareChunks = 64

func (p *chunkPool) get() *qchunk {
	p.nUsed++
	if c := p.free; c != nil {
		p.free, c.next = c.next, nil
		p.nFree--
		return c
	}
	p.allocated++
	return new(qchunk)
}

func (p *chunkPool) put(c *qchunk) {
	p.nUsed--
	if p.nFree >= p.nUsed+spareChunks { // this one and one more to the garbage collector
		if p.free != nil {
			p.free = p.free.next
			p.nFree--
		}
		return
	}
	c.next = p.free
	p.free = c
	p.nFree++
}

// queue is one egress queue: frames in order of admission. bytes is the sum of
// their lengths L, the queue length that ECN sees.
type queue struct {
	head, tail *qchunk
	hi, ti     uint16
	n          int32
	bytes      int64
	sent       uint64 // frames dequeued for the cable
	markAbove  int64  // at dequeue nothing is marked up to here
	aqm        uint8
	_          [15]byte
}

// What the AQM of a queue has to look at.
const (
	aqmEnqueue = 1 << iota // frames that come
	aqmDequeue             // frames that leave
)

// setAQM notes what of w a frame has to look at.
func (q *queue) setAQM(w *WRED) {
	q.aqm, q.markAbove = 0, 0
	if w.Enqueue || w.dropNotECT || w.dropECT {
		q.aqm |= aqmEnqueue
	}
	if !w.Enqueue && w.marking {
		q.aqm |= aqmDequeue
		if q.markAbove = w.mark.min; w.weight != 0 {
			q.markAbove = -1 // the average moves with every frame
		}
	}
}

// marks reports whether a frame that leaves may be marked.
func (q *queue) marks() bool { return q.aqm&aqmDequeue != 0 && q.bytes > q.markAbove }

func (q *queue) push(p *chunkPool, f *wire.Frame, m stored) {
	if q.tail == nil || q.ti == chunkFrames {
		c := p.get()
		if q.tail == nil {
			q.head, q.hi = c, 0
		} else {
			q.tail.next = c
		}
		q.tail, q.ti = c, 0
	}
	q.tail.f[q.ti] = *f
	q.tail.meta[q.ti] = m
	q.ti++
	if q.ti < chunkFrames {
		mem.Of(&q.tail.f[q.ti]) // the next one's place: long queues are not in the caches
	}
	q.n++
	q.bytes += int64(f.Len)
}

// front returns the head frame; the queue must not be empty.
func (q *queue) front() *wire.Frame { return &q.head.f[q.hi] }

// pop removes the head. The returned frame stays valid until the next push or pop.
func (q *queue) pop(p *chunkPool) (*wire.Frame, stored) {
	c := q.head
	f, m := &c.f[q.hi], c.meta[q.hi]
	q.hi++
	q.n--
	q.bytes -= int64(f.Len)
	if q.n > aheadFrames {
		q.askAhead(c)
	}
	switch {
	case q.n == 0:
		q.head, q.tail, q.hi, q.ti = nil, nil, 0, 0
		p.put(c)
	case q.hi == chunkFrames:
		q.head, q.hi = c.next, 0
		p.put(c)
	}
	return f, m
}

// aheadFrames is how many frames behind the head are asked for at a dequeue.
const aheadFrames = 2

// askAhead hints at the frame that leaves in two turns.
func (q *queue) askAhead(c *qchunk) {
	i := int(q.hi) + aheadFrames - 1
	if i >= chunkFrames {
		c, i = c.next, i-chunkFrames
	}
	mem.Of(&c.f[i])
	mem.Prefetch(unsafe.Pointer(&c.meta[i]), 1)
}

// each visits the queued frames in order.
func (q *queue) each(visit func(*wire.Frame, stored)) {
	c, i := q.head, q.hi
	for range q.n {
		if i == chunkFrames {
			c, i = c.next, 0
		}
		visit(&c.f[i], c.meta[i])
		i++
	}
}
