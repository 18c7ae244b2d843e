// Package mem asks the processor to fetch memory that will be used soon. A POD
// of thousands of devices does not fit its caches, and a device's state is
// known some microseconds before it runs; without the hint every first touch
// waits for main memory.
package mem

import "unsafe"

// Line is the size of a cache line in bytes.
const Line = 64

// Prefetch hints that the n cache lines from p on will be read soon. It never
// faults; n is at most 64.
func Prefetch(p unsafe.Pointer, n int) {
	if p != nil {
		prefetch(p, n)
	}
}

// Own hints that they will be written as well. A line that another core wrote
// last then comes over once, not first to be read and again to be written.
func Own(p unsafe.Pointer, n int) {
	if p != nil {
		own(p, n)
	}
}

// PrefetchAt and OwnAt hint at n lines from off bytes behind p on: a field. Its
// address as Go takes it reads the struct first, to see that there is one, and so
// waits for the memory that is not there yet.
func PrefetchAt(p unsafe.Pointer, off uintptr, n int) {
	if p != nil {
		prefetch(unsafe.Add(p, off), n)
	}
}

// OwnAt: see PrefetchAt.
func OwnAt(p unsafe.Pointer, off uintptr, n int) {
	if p != nil {
		own(unsafe.Add(p, off), n)
	}
}

// Of hints at a whole value.
func Of[T any](p *T) {
	Prefetch(unsafe.Pointer(p), min(int(unsafe.Sizeof(*p)+Line-1)/Line, 64))
}
