package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/report"
)

// The same result on 1, 2, 3 and 5 processes.
func TestProcesses(t *testing.T) {
	f := fabric{file: "pod.yaml"}
	want := alone(t, f.plan(t))
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := cluster(t, n, nil)
			got, run, cost := l.result(l.submit(f.plan(t), n, nil), nil)
			same(t, got, want)
			t.Logf("%d slots, %d windows, %.0f/s, compute %.2f s, wait %.2f s, %.0f bytes a window", len(run.Slots), cost.Windows, cost.WindowsPerS, cost.ComputeS, cost.WaitS, cost.BytesPerWindow)
		})
	}
}

// An interrupt of `emuctl run --processes` lands when what was granted is run,
// 0.4 s; the quickest of some tells it from a busy machine.
func TestInterrupt(t *testing.T) {
	dear(t)
	best := runLimit
	for try := 0; try < 5 && best > time.Second; try++ {
		at := time.Time{}
		code := thin.run(t, 2, t.TempDir(), func(c *exec.Cmd) {
			wellUnderWay(t, c.Env)
			at = time.Now()
			if err := c.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		})
		if code != report.ExitLimit {
			t.Fatalf("exit code %d, want %d", code, report.ExitLimit)
		}
		best = min(best, time.Since(at))
	}
	if t.Logf("an interrupt takes %v", best); best > time.Second {
		t.Errorf("an interrupt takes %v", best)
	}
}

// wellUnderWay waits until the run of `emuctl run` with that environment has
// executed so much that its grants are as long as they get.
func wellUnderWay(t *testing.T, env []string) {
	t.Helper()
	const windows = 10_000
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		c := exec.CommandContext(within(t, 10*time.Second), emuctl(t), "status", "--json")
		c.Env = env
		var s coord.Status
		out, err := c.Output() // there may be no run yet
		if err == nil && json.Unmarshal(out, &s) == nil && s.Run != nil && s.Run.Windows >= windows {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("never at window %d: %v, %s", windows, err, out)
		}
	}
}
