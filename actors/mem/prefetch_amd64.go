package mem

import "unsafe"

//go:noescape
func prefetch(p unsafe.Pointer, n int)

//go:noescape
func own(p unsafe.Pointer, n int)
