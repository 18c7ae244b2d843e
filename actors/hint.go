package actors

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
)

// Hinter is an actor that can say which memory it will touch soon. Hint(0) is
// called first and must not read the actor's state; Hint(1) may read its
// struct, Hint(2) what that points to. Hints change nothing.
type Hinter interface{ Hint(level int) }

// hintActors is the size of a fabric from which its actors do not stay in the
// processor's caches from window to window.
const hintActors = 512

// hint asks for the memory of the actors that run after list[i]: the farther
// away, the nearer to the root.
func (e *Engine) hint(list []int32, i int) {
	if e.hints == nil {
		return
	}
	if k := i + 3; k < len(list) {
		d := list[k]
		mem.Of(&e.in[d])
		mem.Of(&e.out[d])
		mem.Of(&e.st[d])
		if h := e.hints[d]; h != nil {
			h.Hint(0)
		}
	}
	if k := i + 2; k < len(list) {
		d := list[k]
		e.hintChannels(d)
		if h := e.hints[d]; h != nil {
			h.Hint(1)
		}
	}
	if k := i + 1; k < len(list) {
		d := list[k]
		e.hintFrames(d)
		if h := e.hints[d]; h != nil {
			h.Hint(2)
		}
	}
}

// hintPorts is the number of ports up to which an actor's channels are asked
// for before it runs; one with more asks for them itself, when it starts.
const hintPorts = 4

func (e *Engine) hintChannels(d int32) {
	if len(e.in[d].ch) > hintPorts {
		return
	}
	for p := range e.in[d].ch {
		mem.Own(unsafe.Pointer(e.in[d].ch[p]), 1)
		mem.OwnAt(unsafe.Pointer(e.out[d].ch[p]), senderSide, 1)
	}
}

// hint asks for what a sender with many ports writes first on each of them: the
// receiver wrote there when it took what was sent before.
func (o *Outbox) hint() {
	for _, c := range o.ch {
		mem.OwnAt(unsafe.Pointer(c), senderSide, 1)
	}
}

func (e *Engine) hintFrames(d int32) {
	if len(e.in[d].ch) > hintPorts {
		return
	}
	for p := range e.in[d].ch {
		if c := e.in[d].ch[p]; c.popped != c.pub { // else its sender may be changing it
			mem.Own(unsafe.Pointer(c.head), 8)
		}
		mem.Own(unsafe.Pointer(e.out[d].ch[p].tail), 8)
	}
}
