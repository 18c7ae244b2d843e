package actors

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
)

// post is the channels with frames that one worker has for one hub or free
// device. Whoever runs that device next publishes them, so no two workers write
// what belongs to it, and a channel's sides change hands once a visit.
type post struct {
	ch []*Channel
	_  [mem.Line - 24]byte
}

// send posts what a worker's actors sent. What goes to other processes stays in
// its list.
func (e *Engine) send(w *scratch) {
	k := 0
	for _, c := range w.dirty {
		if c.remote {
			w.dirty[k] = c
			k++
			continue
		}
		p := &w.post[e.rounds.of[c.dst]]
		p.ch = append(p.ch, c)
	}
	w.dirty, w.away = w.dirty[:k], k
}

// hear publishes what was posted to a hub or free device.
func (e *Engine) hear(d int32) {
	at := e.rounds.of[d]
	for i := range e.scratch {
		p := &e.scratch[i].post[at]
		if len(p.ch) == 0 {
			continue
		}
		for _, c := range p.ch {
			mem.OwnAt(unsafe.Pointer(c), senderSide, 1)
		}
		for _, c := range p.ch {
			e.show(c)
		}
		p.ch = p.ch[:0]
	}
}

// hearAll publishes everything that was posted.
func (e *Engine) hearAll() {
	if e.pool == nil {
		return
	}
	for _, u := range e.rounds.units {
		e.hear(u[0])
	}
	for _, d := range e.rounds.free {
		e.hear(d)
	}
	for i := range e.scratch {
		e.publish(&e.scratch[i])
	}
}
