//go:build !amd64

package mem

import "unsafe"

func prefetch(unsafe.Pointer, int) {}

func own(unsafe.Pointer, int) {}
