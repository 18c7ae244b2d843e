package rnic

import (
	"testing"
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
)

var (
	heldRNIC *RNIC
	heldQP   *qp.QP
)

// TestHotLines: what a frame touches begins cache lines, as the comments of
// RNIC, pair and qp.QP say. The addresses are the allocator's; another one may
// cost time, and nothing else.
func TestHotLines(t *testing.T) {
	for range 5 {
		heldRNIC, heldQP = new(RNIC), newQP()
		r := heldRNIC
		for name, p := range map[string]unsafe.Pointer{
			"RNIC.out": unsafe.Pointer(&r.out), "RNIC.port": unsafe.Pointer(&r.port[0].Port), "RNIC.fx": unsafe.Pointer(&r.fx),
			"RNIC.two": unsafe.Pointer(&r.two), "RNIC.np": unsafe.Pointer(&r.np), "QP": unsafe.Pointer(heldQP), "QP.Req": unsafe.Pointer(&heldQP.Req),
		} {
			if d := uintptr(p) % mem.Line; d != 0 {
				t.Errorf("%s begins %d bytes behind the begin of a cache line", name, d)
			}
		}
	}
	var r RNIC
	if n := unsafe.Offsetof(r.port) + unsafe.Offsetof(r.port[0].pausedSince) - unsafe.Offsetof(r.out); n > 13*mem.Line {
		t.Errorf("an RNIC's hot part takes %d bytes", n)
	}
	if n := unsafe.Sizeof(r.np); n > mem.Line {
		t.Errorf("what a mark touches takes %d bytes", n)
	}
	if n := unsafe.Sizeof(r) + 8; n > 20*mem.Line {
		t.Errorf("an RNIC takes %d bytes with the allocator's word: with more than 1,280 it is in its next size", n)
	}
	if n := unsafe.Sizeof(pair{}); n != 2*mem.Line {
		t.Errorf("a pair takes %d bytes", n)
	}
	if n := unsafe.Sizeof(qp.QP{}); n > 10*mem.Line {
		t.Errorf("a QP takes %d bytes: with 64 more it is in the allocator's next size", n)
	}
	if n := unsafe.Sizeof(qp.Context{}); n != mem.Line {
		t.Errorf("a QP's context takes %d bytes", n)
	}
}
