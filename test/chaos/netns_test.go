package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rocemu/rocemu/coord"
)

// lan is three network namespaces that stand for machines, on one bridge in a
// fourth, and an address for this process: every cable shaped to 10 Gb/s, with
// 50 µs each way where the kernel can delay.
type lan struct {
	t    testing.TB
	tag  string
	addr []string
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// newLAN skips the test where namespaces are not permitted.
func newLAN(t testing.TB) *lan {
	t.Helper()
	l := &lan{t: t, tag: fmt.Sprintf("rce%d", os.Getpid()%10000)}
	if err := ip("netns", "add", l.hub()); err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	t.Cleanup(func() { _ = ip("netns", "del", l.hub()) })
	must := func(args ...string) {
		t.Helper()
		if err := ip(args...); err != nil {
			t.Fatal(err)
		}
	}
	must("-n", l.hub(), "link", "add", "name", "bridge0", "type", "bridge")
	must("-n", l.hub(), "link", "set", "bridge0", "up")
	for i := range 3 {
		must("netns", "add", l.ns(i))
		t.Cleanup(func() { _ = ip("netns", "del", l.ns(i)) })
		must("-n", l.ns(i), "link", "set", "lo", "up")
		must("-n", l.ns(i), "link", "add", "eth", "type", "veth", "peer", "name", l.port(i), "netns", l.hub())
		l.addr = append(l.addr, fmt.Sprintf("10.231.77.%d", i+1))
		must("-n", l.ns(i), "addr", "add", l.addr[i]+"/24", "dev", "eth")
		must("-n", l.ns(i), "link", "set", "eth", "up")
		must("-n", l.hub(), "link", "set", l.port(i), "master", "bridge0", "up")
		l.shape(l.ns(i), "eth")
		l.shape(l.hub(), l.port(i))
	}
	must("link", "add", l.tag, "type", "veth", "peer", "name", "here", "netns", l.hub())
	t.Cleanup(func() { _ = ip("link", "del", l.tag) })
	must("addr", "add", "10.231.77.254/24", "dev", l.tag)
	must("link", "set", l.tag, "up")
	must("-n", l.hub(), "link", "set", "here", "master", "bridge0", "up")
	return l
}

func (l *lan) hub() string       { return l.tag + "h" }
func (l *lan) ns(i int) string   { return fmt.Sprint(l.tag, "m", i+1) }
func (l *lan) port(i int) string { return fmt.Sprint("p", i+1) }

// shape limits what an interface sends.
func (l *lan) shape(ns, dev string) {
	tc := func(args ...string) error {
		return exec.Command("ip", append([]string{"netns", "exec", ns, "tc", "qdisc", "replace", "dev", dev, "root"}, args...)...).Run()
	}
	if tc("netem", "delay", "50us", "rate", "10gbit") == nil {
		return
	}
	if err := tc("tbf", "rate", "10gbit", "burst", "4mb", "latency", "10ms"); err != nil {
		l.t.Logf("%s %s is not shaped: %v", ns, dev, err)
	} else {
		l.t.Logf("%s %s: 10 Gb/s without the delay, for which this kernel has no netem", ns, dev)
	}
}

// cut parts machine i from all others, or joins it again.
func (l *lan) cut(i int, state string) {
	l.t.Helper()
	if err := ip("-n", l.hub(), "link", "set", l.port(i), state); err != nil {
		l.t.Fatal(err)
	}
}

// Three machines with a NATS server and a coordinator each: the digest is that
// of one process, also when one machine is cut off for 5 s.
func TestNamespaces(t *testing.T) {
	dear(t)
	t0 := time.Now()
	want := alone(t, long.plan(t))
	one := time.Since(t0)
	l := newLAN(t)
	m := startMachines(t, 3, 3, 0, func(m *machines) {
		m.hosts = l.addr
		m.inside = func(i int) []string { return []string{"ip", "netns", "exec", l.ns(i)} }
	})
	for _, c := range []struct {
		name   string
		victim int
	}{{"whole", -1}, {"a follower cut off for 5 s", 1}, {"the leader cut off for 5 s", 2}} {
		t.Run(c.name, func(t *testing.T) {
			t0 := time.Now()
			id := m.submit(long.plan(t), 3, func(s *coord.RunSpec) { s.CkptMS = 500 })
			if c.victim >= 0 {
				m.progressed(id, 500)
				victim := l.victim(m, c.victim == 2)
				l.cut(victim, "down")
				time.Sleep(5 * time.Second)
				l.cut(victim, "up")
			}
			got, run, cost := m.result(id, nil)
			same(t, got, want)
			virtual := float64(run.Slots[0].Done.At) / 1e12
			t.Logf("%-28s %8s %10s %12s %12s %6s", "", "windows", "windows/s", "virtual s", "virtual/wall", "moves")
			t.Logf("%-28s %8d %10.0f %12.6f %12.2e %6d", c.name, cost.Windows, cost.WindowsPerS, virtual, virtual/time.Since(t0).Seconds(), run.Moves)
			t.Logf("%-28s %8d %10.0f %12.6f %12.2e", "one process", want.Engine.Windows, float64(want.Engine.Windows)/one.Seconds(), virtual, virtual/one.Seconds())
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
