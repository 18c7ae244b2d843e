package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

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
			time.Sleep(1500 * time.Millisecond) // grants are long once the speed is known
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
