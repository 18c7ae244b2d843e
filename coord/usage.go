package coord

import (
	"runtime"
	"syscall"
)

// usage is what a process takes: CPU time in nanoseconds, peak memory in bytes
// and goroutines.
type usage struct {
	cpu, rss int64
	routines int
}

// used measures this process.
func used() usage {
	x := usage{routines: runtime.NumGoroutine()}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		x.cpu, x.rss = u.Utime.Nano()+u.Stime.Nano(), u.Maxrss*1024
	}
	return x
}
