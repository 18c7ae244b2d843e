package actors

import (
	"fmt"
	"sort"
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// chunkFrames keeps a chunk in one small allocation class, whose objects begin
// with a cache line: so does each frame. Chunks never move, so a sender may
// append while the receiver reads what was published.
const chunkFrames = 7

type chunk struct {
	next *chunk
	_    [wire.FrameBytes - 8]byte
	f    [chunkFrames]wire.Frame
}

// at is frame i of a chunk. An index would look whether there is a chunk at all,
// in its first line, which nothing else needs and which may be far away.
func (k *chunk) at(i uint64) *wire.Frame {
	return (*wire.Frame)(unsafe.Add(unsafe.Pointer(k), unsafe.Offsetof(k.f)+uintptr(i)*wire.FrameBytes))
}

// chunks are the free chunks of one worker, the last one used on top: what a
// receiver has just read is still in the caches when the next frame is sent. They
// are listed beside, because the first line of a chunk may be far away: next of the
// last one of a channel says nothing.
type chunks struct{ free []*chunk }

func (p *chunks) get() *chunk {
	n := len(p.free) - 1
	if n < 0 {
		return new(chunk)
	}
	c := p.free[n]
	p.free = p.free[:n]
	return c
}

func (p *chunks) put(c *chunk) { p.free = append(p.free, c) }

// Channel is one direction of a cable: frames in the order of their arrival.
// The sender appends during a window; the engine publishes at its end, and only
// then the receiver sees them, so the two need no lock.
type Channel struct {
	// Receiver's side: one cache line.
	head    *chunk
	popped  uint64 // ordinal of the head frame
	pub     uint64 // frames published since the start
	used    *chunk // the first of the chunks before head, which were read to the end in this window
	hi      int32
	nLate   int32 // len(lateQ)
	dstPort uint16
	srcPort uint16
	dst     int32
	key     uint64 // hash of seed, sender and port: breaks ties, independent of placement
	lateN   uint64 // ordinal of the next late frame, with the top bit set in ties

	// Sender's side: one cache line.
	tail   *chunk // nil: no frame is on the way
	pushed uint64
	lastAt clock.Time
	newAt  clock.Time // earliest arrival pushed this window
	workAt clock.Time // earliest arrival of a non-PFC frame pushed this window
	ti     int32
	src    int32
	dirty  bool
	remote bool   // the receiver runs in another process
	extra  bool   // lateW or tap has something
	shown  uint64 // pub, for the sender, who need not fetch the receiver's line then

	lateQ []late
	lateW []wire.Frame // late frames of this window
	tap   *Tap         // nil: nobody reads along in rounds
	_     [8]byte      // three whole lines, so that those above are such
}

// senderSide is where a channel's second line begins.
const senderSide = unsafe.Offsetof(Channel{}.tail)

type late struct {
	ord uint64
	f   wire.Frame
}

func newChannel(key uint64, src, dst int32, sp, dp uint16) *Channel {
	return &Channel{key: key, src: src, dst: dst, srcPort: sp, dstPort: dp, newAt: clock.Never, workAt: clock.Never, ti: chunkFrames}
}

// push appends a frame whose At does not run back.
func (c *Channel) push(f *wire.Frame, p *chunks) {
	if f.At < c.lastAt {
		c.runsBack(f.At)
	}
	c.lastAt = f.At
	i := c.ti
	if i == chunkFrames {
		c.grow(p)
		i = 0
	}
	c.tail.f[i] = *f
	c.ti = i + 1
	c.pushed++
}

func (c *Channel) runsBack(at clock.Time) {
	panic(fmt.Sprintf("actors: arrival runs back on %d:%d: %v after %v", c.src, c.srcPort, at, c.lastAt))
}

// grow adds a chunk. The receiver looks at head only when frames are published.
func (c *Channel) grow(p *chunks) {
	n := p.get()
	if c.tail == nil {
		c.head, c.hi = n, 0
	} else {
		c.tail.next = n
	}
	c.tail, c.ti = n, 0
}

// tidy gives back what the receiver has read to the end, and with alone, when
// the sender does not run at the same time, a last chunk of which nothing is
// left to read.
func (c *Channel) tidy(p *chunks, alone bool) {
	if c.used != nil {
		for n := c.used; n != c.head; n = c.used {
			c.used = n.next
			p.put(n)
		}
		c.used = nil
	}
	if alone && c.popped == c.pushed && c.tail != nil {
		p.put(c.tail)
		c.head, c.tail, c.hi, c.ti = nil, nil, 0, chunkFrames
	}
}

// open marks the channel as having frames of this window, the first of which
// arrives at; those after it do not arrive earlier.
func (c *Channel) open(at clock.Time) {
	c.newAt, c.workAt = min(c.newAt, at), min(c.workAt, at)
}

// front returns the head frame, nil when none is published.
func (c *Channel) front() *wire.Frame {
	if c.popped == c.pub {
		return nil
	}
	if c.hi == chunkFrames {
		c.turn()
	}
	return c.head.at(uint64(c.hi))
}

// turn goes on to the next chunk.
func (c *Channel) turn() {
	if c.used == nil {
		c.used = c.head
	}
	c.head, c.hi = c.head.next, 0
	c.hint()
}

// hint asks for the chunk after the head, of which some is published: a merge
// reads lines by turns, so that the processor does not see what comes next.
func (c *Channel) hint() {
	if n := c.pub - c.popped; n > uint64(chunkFrames-c.hi) {
		mem.Own(unsafe.Pointer(c.head.next), int(min(n-uint64(chunkFrames-c.hi), chunkFrames))+1)
	}
}

func (c *Channel) pop() { c.hi++; c.popped++ }

// publish makes this window's frames visible; the engine calls it between
// windows. It returns the earliest new arrival and the earliest that is work.
func (c *Channel) publish() (next, work clock.Time) {
	c.dirty = false
	c.pub, c.shown = c.pushed, c.pushed
	if c.extra {
		c.publishExtra()
	}
	next, work = c.newAt, c.workAt
	c.newAt, c.workAt = clock.Never, clock.Never
	return next, work
}

// publishExtra is what publish has to do for few channels, on a line of its own.
func (c *Channel) publishExtra() {
	for i := range c.lateW {
		c.insertLate(&c.lateW[i])
	}
	c.lateW = c.lateW[:0]
	c.extra = c.tap != nil
	if c.extra {
		c.tap.keep()
	}
}

// insertLate keeps lateQ in order of (At, ordinal).
func (c *Channel) insertLate(f *wire.Frame) {
	i := len(c.lateQ)
	for i > 0 && c.lateQ[i-1].f.At > f.At {
		i--
	}
	c.lateQ = append(c.lateQ, late{})
	copy(c.lateQ[i+1:], c.lateQ[i:])
	c.lateQ[i] = late{ord: c.lateN | 1<<63, f: *f}
	c.lateN++
	c.nLate++
}

// Outbox is where an actor puts frames for its ports.
type Outbox struct {
	first clock.Time // no frame may arrive earlier
	ch    []*Channel // by port number - 1
	w     *scratch
}

// Send puts a frame on the cable of a port. f.At is the arrival at the
// receiver's state; it must not lie before the window's end nor before the
// port's last frame.
func (o *Outbox) Send(port int, f *wire.Frame) { o.SendAt(port, f, f.At, f.TTL) }

// SendAt is Send of a frame that arrives at at with another TTL. It writes both to
// the copy: a processor that has just written them to f would have the copying wait
// until all that was written before has reached the cache.
func (o *Outbox) SendAt(port int, f *wire.Frame, at clock.Time, ttl uint8) {
	if at < o.first {
		o.tooEarly(port, at)
	}
	c := o.ch[port-1]
	if at < c.lastAt {
		c.runsBack(at)
	}
	if c.pushed == c.shown { // the first of the window
		o.open(c, at)
	}
	c.lastAt = at
	c.pushed++
	i := c.ti // as push does
	if i == chunkFrames {
		c.grow(&o.w.pool)
		i = 0
	}
	c.ti = i + 1
	d := c.tail.at(uint64(i))
	*d = *f
	d.At, d.TTL = at, ttl
}

func (o *Outbox) open(c *Channel, at clock.Time) {
	if !c.dirty {
		c.dirty = true
		o.w.dirty = append(o.w.dirty, c)
	}
	c.open(at)
}

func (o *Outbox) tooEarly(port int, at clock.Time) {
	panic(fmt.Sprintf("actors: port %d sends into the running window: %v < %v", port, at, o.first))
}

// SendLate puts a frame that may overtake others of its port: PFC, or a frame
// that a fault delayed.
func (o *Outbox) SendLate(port int, f *wire.Frame) {
	if f.At < o.first {
		o.tooEarly(port, f.At)
	}
	c := o.ch[port-1]
	if !c.dirty {
		c.dirty = true
		o.w.dirty = append(o.w.dirty, c)
	}
	c.lateW, c.extra = append(c.lateW, *f), true
	c.newAt = min(c.newAt, f.At)
	if isWork(f) {
		c.workAt = min(c.workAt, f.At)
	}
}

// snapshot writes what is in flight to the receiver.
func (c *Channel) snapshot(w *snap.Writer) {
	w.U64(c.popped)
	w.U64(c.lateN)
	w.Len(int(c.pub - c.popped))
	k, i := c.head, c.hi
	for n := c.popped; n < c.pub; n++ {
		if i == chunkFrames {
			k, i = k.next, 0
		}
		w.Frame(&k.f[i])
		i++
	}
	w.Len(len(c.lateQ))
	for i := range c.lateQ {
		w.U64(c.lateQ[i].ord)
		w.Frame(&c.lateQ[i].f)
	}
}

func (c *Channel) restore(r *snap.Reader, p *chunks) {
	fresh := newChannel(c.key, c.src, c.dst, c.srcPort, c.dstPort)
	fresh.remote = c.remote
	*c = *fresh
	popped := r.U64()
	c.lateN = r.U64()
	n := r.Len()
	var f wire.Frame
	for range n {
		r.Frame(&f)
		if r.Err != nil || f.At < c.lastAt {
			if r.Err == nil {
				r.Err = fmt.Errorf("actors: frames in flight are out of order")
			}
			return
		}
		c.push(&f, p)
	}
	c.popped, c.pushed = popped, popped+uint64(n)
	c.pub, c.shown = c.pushed, c.pushed
	m := r.Len()
	for range m {
		var l late
		l.ord = r.U64()
		r.Frame(&l.f)
		if r.Err != nil {
			return
		}
		c.lateQ = append(c.lateQ, l)
		c.nLate++
	}
	if !sort.SliceIsSorted(c.lateQ, func(i, j int) bool { return c.lateQ[i].f.At < c.lateQ[j].f.At }) && r.Err == nil {
		r.Err = fmt.Errorf("actors: late frames are out of order")
	}
	c.newAt, c.workAt = clock.Never, clock.Never
}

// inFlight counts published frames not yet taken and their bytes, PFC apart.
func (c *Channel) inFlight() (frames, bytes uint64) {
	k, i := c.head, c.hi
	for n := c.popped; n < c.pub; n++ {
		if i == chunkFrames {
			k, i = k.next, 0
		}
		frames++
		bytes += uint64(k.f[i].Len)
		i++
	}
	for i := range c.lateQ {
		if isWork(&c.lateQ[i].f) {
			frames++
			bytes += uint64(c.lateQ[i].f.Len)
		}
	}
	return frames, bytes
}
