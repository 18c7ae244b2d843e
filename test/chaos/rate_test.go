package chaos

import (
	"fmt"
	"testing"
)

// thin is a fabric of nearly empty windows.
var thin = fabric{file: "pod.yaml", sets: []string{"run.window=10ns"}}

// What a window between processes costs: TestRates prints windows a second and
// processor time a window, for the table in docs/cluster.md.
func TestRates(t *testing.T) {
	dear(t)
	want := alone(t, thin.plan(t))
	t.Logf("%9s %8s %10s %14s %9s", "processes", "windows", "windows/s", "cpu µs/window", "bytes")
	for _, n := range []int{2, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := cluster(t, n, nil)
			got, run, cost := l.result(l.submit(thin.plan(t), n, nil), nil)
			if got.Digest != want.Digest {
				t.Errorf("digest %s, alone %s", got.Digest, want.Digest)
			}
			cpu := int64(0)
			for _, s := range run.Slots {
				cpu += s.Done.Cost.CPUNS
			}
			t.Logf("%9d %8d %10.0f %14.1f %9.0f", n, cost.Windows, cost.WindowsPerS, float64(cpu)/1000/float64(cost.Windows), cost.BytesPerWindow)
		})
	}
}
