package mem

import (
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

// TestHugeIsAdvice: whatever the system makes of it, nothing moves or changes.
func TestHugeIsAdvice(t *testing.T) {
	b := make([]byte, 9<<20)
	for i := range b {
		b[i] = byte(i * 7)
	}
	Huge()
	for i := range b {
		if b[i] != byte(i*7) {
			t.Fatalf("byte %d changed", i)
		}
	}
}

func BenchmarkPrefetch(b *testing.B) {
	x := new([1024]byte)
	for b.Loop() {
		Of(x)
	}
}
