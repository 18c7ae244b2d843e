package chaos

import (
	"fmt"
	"testing"
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
