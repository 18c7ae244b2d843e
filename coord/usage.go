package coord

import "syscall"

// usage is the process's CPU time in nanoseconds and peak memory in bytes.
func usage() (cpu, rss int64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return u.Utime.Nano() + u.Stime.Nano(), u.Maxrss * 1024
}
