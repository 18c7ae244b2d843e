package actors

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/clock"
)

// Hinter is an actor that can say which memory it will touch soon. Hint(0) is
// called first and must not read the actor's state; Hint(1) may read its
// struct, Hint(2) what that points to. Hints change nothing.
type Hinter interface{ Hint(level int) }

// hintActors is the size of a fabric from which its actors do not stay in the
// processor's caches from window to window.
const hintActors = 512

// hintAhead is how many actors ahead memory is asked for: one for each level.
const hintAhead = 3

// hint asks for the memory of the actors that run after list[i]: the farther
// away, the nearer to the root. It is called from i = -hintAhead on.
func (e *Engine) hint(list []int32, i int) {
	if e.hints == nil {
		return
	}
	for level := range hintAhead {
		if k := i + hintAhead - level; k >= 0 && k < len(list) {
			e.hintAt(list[k], level)
		}
	}
}

// hintFirst is hint before the first of list runs.
func (e *Engine) hintFirst(list []int32) {
	for i := -hintAhead; i < 0; i++ {
		e.hint(list, i)
	}
}

func (e *Engine) hintAt(d int32, level int) {
	switch level {
	case 0:
		mem.Own(unsafe.Pointer(&e.docks[d]), 1)
		mem.Own(unsafe.Pointer(&e.st[d]), 1)
	case 1:
		e.hintChannels(d)
	case 2:
		e.hintFrames(d)
	}
	if h := e.hints[d]; h != nil {
		h.Hint(level)
	}
}

// soon asks for what hub or free device d begins with, before another one runs. With
// several workers it is not known yet whether it will run before end.
func (e *Engine) soon(d int32, end clock.Time) {
	if e.hints != nil && (e.pool != nil || e.next[d] < end) {
		e.hintAt(d, 0)
	}
}

// arrives asks for what that leads to, when d is about to run up to end: all at
// once, before one is read after the other.
func (e *Engine) arrives(d int32, end clock.Time) {
	if e.hints == nil || e.next[d] >= end {
		return
	}
	if c := e.docks[d].cables; len(c) > 2*hintPorts {
		mem.Prefetch(unsafe.Pointer(&c[0]), min(len(c)*8/mem.Line+1, hintCables))
	}
	if h := e.hints[d]; h != nil {
		h.Hint(1)
	}
}

// hintCables is how many lines of a device's list of channels are asked for at most.
const hintCables = 64

// hintPorts is the number of ports up to which an actor's channels are asked
// for before it runs; one with more asks for them itself, when it starts.
const hintPorts = 4

func (e *Engine) hintChannels(d int32) {
	k := &e.docks[d]
	if len(k.cables) > 2*hintPorts {
		return
	}
	for _, c := range k.in() {
		mem.Own(unsafe.Pointer(c), 1)
	}
	for _, c := range k.out() {
		mem.OwnAt(unsafe.Pointer(c), senderSide, 1)
	}
}

// hint asks for what a sender with many ports writes first on each of them: the
// receiver wrote there when it took what was sent before.
func (o *Outbox) hint() {
	for _, c := range o.ch {
		mem.OwnAt(unsafe.Pointer(c), senderSide, 1)
	}
}

// hintHead asks for the published frames of the first chunk, and for the place of
// the chunk behind it if there are more.
func (c *Channel) hintHead() {
	n := c.pub - c.popped
	if n == 0 {
		return // its sender may be changing what follows
	}
	here := uint64(chunkFrames - c.hi)
	if n > here {
		mem.Own(unsafe.Pointer(c.head), 1)
	}
	if here != 0 {
		mem.Own(unsafe.Pointer(c.head.at(uint64(c.hi))), int(min(n, here)))
	}
}

// Hint asks for the place of the next frames that Send puts on a port.
func (o *Outbox) Hint(port int) { o.ch[port-1].hintTail() }

func (c *Channel) hintTail() {
	if c.tail != nil && c.ti < chunkFrames {
		mem.Own(unsafe.Pointer(c.tail.at(uint64(c.ti))), int(min(chunkFrames-c.ti, hintSends)))
	}
}

// hintSends is how many of the places of frames to come are asked for at most.
const hintSends = 3

func (e *Engine) hintFrames(d int32) {
	k := &e.docks[d]
	if len(k.cables) > 2*hintPorts {
		return
	}
	for _, c := range k.in() {
		c.hintHead()
	}
	for _, c := range k.out() {
		c.hintTail()
	}
}
