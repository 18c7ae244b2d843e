package fabric

import (
	"testing"
	"unsafe"
)

// What frames touch lies in the cache lines that portState promises.
func TestPortLayout(t *testing.T) {
	const line = 64
	var p portState
	if n := unsafe.Offsetof(p.tx) + unsafe.Sizeof(p.tx); n != line {
		t.Errorf("what every frame touches ends at byte %d, not %d", n, line)
	}
	for name, at := range map[string]uintptr{"port": unsafe.Offsetof(p.port), "queues": unsafe.Offsetof(p.q), "a queue": unsafe.Sizeof(p.q[0])} {
		if at%line != 0 {
			t.Errorf("%s: byte %d begins no cache line", name, at)
		}
	}
	if n := unsafe.Sizeof(p); n%line != 0 || n/line%2 == 0 {
		t.Errorf("a port has %d bytes, which is no odd number of lines", n)
	}
}
