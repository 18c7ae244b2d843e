package mem

import (
	"runtime"
	"testing"
	"unsafe"
)

// TestPrefetchTouchesNothing: hints beyond the end of an allocation, at nil and
// at odd addresses must not fault, and change no byte.
func TestPrefetchTouchesNothing(t *testing.T) {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	Prefetch(unsafe.Pointer(&b[0]), 64)
	Prefetch(unsafe.Pointer(&b[3]), 1)
	Prefetch(nil, 4)
	Own(unsafe.Pointer(&b[0]), 64)
	Own(unsafe.Pointer(&b[3]), 1)
	Own(nil, 4)
	Of((*[100]byte)(b))
	for i := range b {
		if b[i] != byte(i) {
			t.Fatalf("byte %d changed", i)
		}
	}
}

// TestReserve: the heap has the room afterwards, a second time changes nothing,
// and what is put there stays.
func TestReserve(t *testing.T) {
	const n = 48 << 20
	Reserve(n)
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	if was.HeapIdle-was.HeapReleased < n/2 && was.HeapIdle < n {
		t.Errorf("idle %d, of which %d released", was.HeapIdle, was.HeapReleased)
	}
	Reserve(n)
	if runtime.ReadMemStats(&is); is.HeapSys > was.HeapSys+n/4 {
		t.Errorf("heap grew from %d to %d", was.HeapSys, is.HeapSys)
	}
	b := make([]byte, n/4)
	for i := range b {
		b[i] = byte(i * 7)
	}
	Reserve(2 * n)
	for i := range b {
		if b[i] != byte(i*7) {
			t.Fatalf("byte %d changed", i)
		}
	}
	if is.HeapSys < n {
		t.Errorf("heap of %d", is.HeapSys)
	}
}

func BenchmarkPrefetch(b *testing.B) {
	x := new([1024]byte)
	for b.Loop() {
		Of(x)
	}
}
