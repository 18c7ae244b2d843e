package rnic

import (
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
)

// Hint asks for the memory that the next Advance touches (actors.Hinter).
func (r *RNIC) Hint(level int) {
	switch level {
	case 0:
		mem.Of(r)
	case 1:
		mem.Of(&r.ports[0])
		if n := min(len(r.pairs), 2); n > 0 {
			mem.Prefetch(unsafe.Pointer(&r.pairs[0]), 3*n)
		}
	case 2:
		for i := range r.pairs[:min(len(r.pairs), 2)] {
			if q := r.pairs[i].q; q != nil {
				mem.Of(q)
			}
		}
	}
}
