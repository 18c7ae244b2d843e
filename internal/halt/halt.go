// Package halt lets a test stop its own process, as a terminal, a paused
// container or a machine without a free core does, at a moment that the test
// chooses.
package halt

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const inside = "ROCEMU_TEST_HALTS"

// Each runs the calling test once more, in a process of its own in which [Here]
// stops everything for d. It reports false in that process, where the test goes
// on, and true in the first one when that has passed.
func Each(t *testing.T, d time.Duration) (over bool) {
	t.Helper()
	if os.Getenv(inside) != "" {
		return false
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	c.Env = append(os.Environ(), inside+"="+d.String())
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var s syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(c.Process.Pid, &s, syscall.WUNTRACED, nil); err != nil && err != syscall.EINTR {
			t.Fatal(err)
		}
		if !s.Stopped() {
			break
		}
		time.Sleep(d) // the stop is what is tested
		_ = c.Process.Signal(syscall.SIGCONT)
	}
	if b, _ := os.ReadFile(out.Name()); s.ExitStatus() != 0 {
		t.Errorf("the process that was stopped ended with %d:\n%s", s.ExitStatus(), b)
	}
	return true
}

// Here stops this process and returns when it goes on.
func Here(t *testing.T) {
	t.Helper()
	d, err := time.ParseDuration(os.Getenv(inside))
	if err != nil {
		t.Fatal(err)
	}
	for { // until it was for long: somebody else may let it go on
		last := time.Now()
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for end := last.Add(20 * time.Millisecond); last.Before(end); { // other threads may be told before this one
			now := time.Now()
			if now.Sub(last) >= d/2 {
				return
			}
			last = now
		}
	}
}
