package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/report"
)

// apart starts an emud that votes and a NATS server on each of three machines
// of a lan, each emud with the server beside it.
func apart(t testing.TB, l *lan) *machines {
	return startMachines(t, 3, 3, 0, func(m *machines) {
		m.hosts, m.near = l.addr, true
		m.inside = func(i int) []string { return []string{"ip", "netns", "exec", l.ns(i)} }
	})
}

// Three machines with a NATS server and a coordinator each, 100 µs apart: the
// digest is that of one process, also when one machine is cut off for 5 s.
func TestNamespaces(t *testing.T) {
	dear(t)
	want := alone(t, long.plan(t))
	l := newLAN(t, 100*time.Microsecond)
	m := apart(t, l)
	for _, c := range []struct {
		name   string
		victim int
	}{{"whole", -1}, {"a follower cut off for 5 s", 1}, {"the leader cut off for 5 s", 2}} {
		t.Run(c.name, func(t *testing.T) {
			id := m.submit(long.plan(t), 3, func(s *coord.RunSpec) { s.CkptMS = 500 })
			if c.victim >= 0 {
				m.progressed(id, 500)
				victim := l.victim(m, c.victim == 2)
				l.cut(victim, true)
				time.Sleep(5 * time.Second)
				l.cut(victim, false)
			}
			got, run, cost := m.result(id, nil)
			same(t, got, want)
			t.Logf("%d windows, %.0f a second, %d moves", cost.Windows, cost.WindowsPerS, run.Moves)
		})
	}
}

// victim is the machine of the coordinator that leads, or of another one.
func (l *lan) victim(m *machines, leads bool) int {
	s := m.until("a leader", func(s *coord.Status) bool { return s.Leader != "" })
	for i := range l.addr {
		if (fmt.Sprint("c", i+1) == s.Leader) == leads {
			return i
		}
	}
	l.t.Fatalf("no such coordinator: leader %s", s.Leader)
	return 0
}

// Fabrics for the table of virtual against wall time, few frames a window to
// many, and one in which nothing happens most of the time.
var wide = []struct {
	name string
	fabric
}{
	{"incast", fabric{file: "incast.yaml"}},
	{"idle", fabric{file: "two-racks.yaml", sets: []string{
		"workload.bulk.size=64B", "workload.perm.size=64B", "workload.chat.count=200", "workload.chat.interval=5ms",
	}}},
	{"pod", fabric{file: "pod.yaml"}},
	{"pod-3072", fabric{file: "pod-3072.yaml"}},
}

// TestMachines prints the table of virtual against wall time in docs/cluster.md:
// one process, three machines without a delay, three 100 µs apart; and holds
// every digest to that of one process.
func TestMachines(t *testing.T) {
	dear(t)
	rows := make([][]string, len(wide))
	want := make([]*report.Result, len(wide))
	for i, w := range wide {
		want[i] = alone(t, w.plan(t))
		rows[i] = append(rows[i], row(w.name, "one process", want[i], want[i].Engine.Windows, 0))
	}
	for _, delay := range []time.Duration{0, 100 * time.Microsecond} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			l := newLAN(t, delay)
			quickest, median, gbps := l.measure()
			t.Logf("%v one way through %s: round trips of %v and more, half of them up to %v, %.1f Gb/s", delay, l.how, quickest, median, gbps)
			if quickest < 2*delay || gbps > maxGbps {
				t.Errorf("a round trip took %v, the rate was %.1f Gb/s", quickest, gbps)
			}
			m := apart(t, l)
			for i, w := range wide {
				got, _, cost := m.result(m.submit(w.plan(t), 3, nil), nil)
				same(t, got, want[i])
				rows[i] = append(rows[i], row(w.name, fmt.Sprintf("3 machines, %v", delay), got, cost.Windows, cost.BytesPerWindow))
			}
		})
	}
	t.Logf("| fabric | on | virtual | wall | windows | windows/s | wall/virtual | bytes a window |")
	t.Logf("|---|---|---|---|---|---|---|---|")
	for _, s := range slices.Concat(rows...) {
		t.Log(s)
	}
}

func row(fabric, on string, r *report.Result, windows uint64, bytes float64) string {
	virtual, wall := time.Duration(r.VirtualNS/1000), r.Engine.WallS
	return fmt.Sprintf("| %s | %s | %v | %.2f s | %d | %.0f | %.4g | %.0f |", fabric, on, virtual.Round(time.Microsecond), wall, windows, float64(windows)/wall, wall/virtual.Seconds(), bytes)
}
