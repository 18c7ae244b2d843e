package rnic

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
)

// Lines that a frame touches: of an RNIC from its begin to its port, of a queue
// pair that sends from its begin, of a responder.
const (
	hintRNIC = 9
	hintReq  = 4
	hintResp = 2
)

// Hint asks for the memory that the next Advance touches (actors.Hinter).
func (r *RNIC) Hint(level int) {
	switch level {
	case 0:
		mem.Prefetch(unsafe.Pointer(&r.out), hintRNIC)
		mem.Prefetch(unsafe.Pointer(&r.fx), 1)
		mem.Prefetch(unsafe.Pointer(&r.two[0]), 1)
		mem.Prefetch(unsafe.Pointer(&r.two[1]), 1)
		mem.Prefetch(unsafe.Pointer(&r.np), 1)
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
			mem.Prefetch(unsafe.Pointer(&p.q.Resp), hintResp)
		}
	}
}
