package mem

import (
	"runtime"
	"runtime/metrics"
)

// Reserve makes the heap n bytes larger before they are needed, and lets the
// system use large pages there: a fabric of thousands of devices touches more
// small pages in a window than a processor remembers translations of, and asking
// for each of them takes longer than building what lies there. Nothing is used up
// yet. A heap that has half as much free is left as it is.
func Reserve(n int64) {
	free := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
	if metrics.Read(free); int64(free[0].Value.Uint64()) >= n/2 {
		return
	}
	b := make([]byte, n)
	advise(b)
	runtime.KeepAlive(b)
	runtime.GC() // it is free now
}
