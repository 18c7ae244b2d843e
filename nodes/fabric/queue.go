package fabric

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/nodes/wire"
)

// chunkFrames makes a chunk 512 bytes, the largest size that the allocator
// keeps without a header: so every frame is one cache line, and what all of them
// were charged is the line before.
const chunkFrames = 7

// stored is what a queued frame was charged: ingress PG and cells.
type stored struct {
	pg    int32
	cells int32
}

// qchunk is a piece of a queue.
type qchunk struct {
	next *qchunk
	meta [chunkFrames]stored
	f    [chunkFrames]wire.Frame
}

// ask hints that all of the chunk will be touched soon: long queues are not in
// the caches.
func (c *qchunk) ask() { mem.Prefetch(unsafe.Pointer(c), int(unsafe.Sizeof(*c))/mem.Line) }

// chunkPool recycles a device's chunks, the last one used first. It keeps at most
// as many free ones as are in use plus spareChunks, so memory follows the queued
// frames down again. next of the last chunk of a queue says nothing.
type chunkPool struct {
	free      []*qchunk
	nUsed     int
	allocated uint64
}

const spareChunks = 64

func (p *chunkPool) get() *qchunk {
	p.nUsed++
	if n := len(p.free) - 1; n >= 0 {
		c := p.free[n]
		p.free = p.free[:n]
		return c
	}
	p.allocated++
	return new(qchunk)
}

func (p *chunkPool) put(c *qchunk) {
	p.nUsed--
	if n := len(p.free); n >= p.nUsed+spareChunks { // this one and one more to the garbage collector
		c.next, p.free[n-1].next, p.free[n-1] = nil, nil, nil // they keep no others
		p.free = p.free[:n-1]
		return
	}
	p.free = append(p.free, c)
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
	row        int32 // of waits, negative = not tracked
	_          [8]byte
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

// push adds a frame and returns the copy.
func (q *queue) push(p *chunkPool, f *wire.Frame, m stored) *wire.Frame {
	c, i := q.tail, q.ti
	if c == nil || i == chunkFrames {
		c, i = q.grow(p), 0
	}
	d := &c.f[i]
	*d = *f
	c.meta[i] = m
	q.ti = i + 1
	q.n++
	q.bytes += int64(f.Len)
	return d
}

// grow adds a chunk at the end.
func (q *queue) grow(p *chunkPool) *qchunk {
	c := p.get()
	if q.tail == nil {
		q.head, q.hi = c, 0
	} else {
		c.ask()
		q.tail.next = c
	}
	q.tail = c
	return c
}

// hint asks for what the next pops touch.
func (q *queue) hint() {
	if q.head != nil {
		n := min(int(q.n), chunkFrames-int(q.hi), 4)
		mem.Own(unsafe.Pointer(q.head), 1)
		mem.Own(unsafe.Pointer(&q.head.f[q.hi]), n)
	}
}

// front returns the head frame; the queue must not be empty.
func (q *queue) front() *wire.Frame { return &q.head.f[q.hi] }

// pop removes the head. The returned frame stays valid until the next push or pop.
func (q *queue) pop(p *chunkPool) (*wire.Frame, stored) {
	c, i := q.head, q.hi
	f, m := &c.f[i], c.meta[i]
	q.hi = i + 1
	q.n--
	q.bytes -= int64(f.Len)
	if q.n == 0 || i == chunkFrames-1 {
		q.shrink(p)
	}
	return f, m
}

// shrink gives the first chunk back, of which nothing is left.
func (q *queue) shrink(p *chunkPool) {
	c := q.head
	q.head, q.hi = c.next, 0
	if q.n == 0 {
		q.head, q.tail, q.ti = nil, nil, 0
	} else if q.head != q.tail {
		q.head.next.ask()
	}
	p.put(c)
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
