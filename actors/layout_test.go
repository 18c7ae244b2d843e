package actors

import (
	"testing"
	"unsafe"

	"github.com/rocemu/rocemu/actors/mem"
)

// What different workers write lies in different cache lines; and a channel's
// two sides do.
func TestLinesAreNotShared(t *testing.T) {
	for name, size := range map[string]uintptr{
		"scratch": unsafe.Sizeof(scratch{}), "dock": unsafe.Sizeof(dock{}), "Status": unsafe.Sizeof(Status{}), "rest": unsafe.Sizeof(rest{}), "Channel": unsafe.Sizeof(Channel{}),
	} {
		if size%mem.Line != 0 {
			t.Errorf("%s has %d bytes: its neighbour in an array begins in its last line", name, size)
		}
	}
	if n := unsafe.Offsetof(Channel{}.tail); n != mem.Line {
		t.Errorf("the sender's side of a channel begins at byte %d", n)
	}
}
