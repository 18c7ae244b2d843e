package mem

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// Values of madvise(2); package syscall lacks the second.
const (
	madvHugepage = 14
	madvCollapse = 25
)

// Huge asks the system to hold the heap in pages of 2 MiB, as far as it is
// mapped by now: a fabric of thousands of devices touches more small pages in a
// window than the processor can remember translations of. It is advice only:
// where the system does not know it or has no room, nothing changes.
func Huge() {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer f.Close()
	heap := uintptr(unsafe.Pointer(new([Line]byte)))
	for s := bufio.NewScanner(f); s.Scan(); {
		var lo, hi uintptr
		var mode string
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x %s", &lo, &hi, &mode); n == 3 && mode == "rw-p" && lo>>32 == heap>>32 {
			advise(lo, hi)
		}
	}
}

// hugeBytes is the size of a huge page.
const hugeBytes = 2 << 20

// advise lets the kernel use huge pages in [lo, hi) from now on, and puts what
// is there already into such.
func advise(lo, hi uintptr) {
	lo, hi = (lo+hugeBytes-1)&^(hugeBytes-1), hi&^(hugeBytes-1)
	if lo >= hi {
		return
	}
	if _, _, e := syscall.Syscall(syscall.SYS_MADVISE, lo, hi-lo, madvHugepage); e != 0 {
		return
	}
	for p := lo; p < hi; p += hugeBytes {
		syscall.Syscall(syscall.SYS_MADVISE, p, hugeBytes, madvCollapse)
	}
}
