package mem

import (
	"syscall"
	"unsafe"
)

// Of pages of 2 MiB; package syscall lacks the value of madvise(2).
const (
	madvHugepage = 14
	hugeBytes    = 2 << 20
)

// advise lets the system back b with huge pages as it is used. Where it does not
// know them or has none, nothing changes.
func advise(b []byte) {
	lo := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	hi := (lo + uintptr(len(b))) &^ (hugeBytes - 1)
	if lo = (lo + hugeBytes - 1) &^ (hugeBytes - 1); lo < hi {
		syscall.Syscall(syscall.SYS_MADVISE, lo, hi-lo, madvHugepage) //nolint:errcheck // advice
	}
}
