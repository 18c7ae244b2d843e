package rnic

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
)

// Lines that a frame touches: of an RNIC from its begin to its port, of a queue
// pair that sends from its begin, of a responder.
const (
	hintRNIC = 8
	hintReq  = 4
	hintResp = 2
)

// Hint asks for the memory that the next Advance touches (actors.Hinter).
func (r *RNIC) Hint(level int) {
	switch level {
	case 0:
		p := unsafe.Pointer(r)
		mem.PrefetchAt(p, unsafe.Offsetof(r.out), hintRNIC)
		mem.PrefetchAt(p, unsafe.Offsetof(r.fx), 1)
		mem.PrefetchAt(p, unsafe.Offsetof(r.two), 1)
		mem.PrefetchAt(p, unsafe.Offsetof(r.two)+unsafe.Sizeof(r.two[0]), 1)
		mem.PrefetchAt(p, unsafe.Offsetof(r.np), 1)
	case 1:
		if len(r.pairs) > len(r.two) {
			mem.Prefetch(unsafe.Pointer(&r.pairs[0]), 4)
			return
		}
		r.hintPairs()
	case 2:
		if len(r.pairs) > len(r.two) {
			r.hintPairs()
			return
		}
		for i := range r.pairs {
			mem.Prefetch(unsafe.Pointer(r.pairs[i].ctl.dcqcn), 1)
		}
	}
}

func (r *RNIC) hintPairs() {
	for i := range r.pairs[:min(len(r.pairs), len(r.two))] {
		p := &r.pairs[i]
		switch {
		case p.q == nil:
		case p.asks:
			mem.Prefetch(unsafe.Pointer(p.q), hintReq)
		default:
			mem.Prefetch(unsafe.Pointer(p.q), 1)
			mem.PrefetchAt(unsafe.Pointer(p.q), unsafe.Offsetof(p.q.Resp), hintResp)
		}
	}
}
