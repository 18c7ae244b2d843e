package chaos

import (
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/coord"
)

// long is a fabric whose run lasts seconds on several processes.
var long = fabric{file: "pod.yaml", sets: []string{"run.window=50ns"}}

// progressed waits until a run has executed n windows.
func (l *local) progressed(id string, n uint64) {
	l.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		s, err := l.c.Status(within(l.t, 5*time.Second))
		if err == nil && s.Run != nil && s.Run.ID == id && s.Run.Windows >= n {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("never at window %d: %+v", n, s)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (l *local) signal(name string, sig syscall.Signal) {
	l.t.Helper()
	pid := l.Pids()[name]
	if pid == 0 {
		l.t.Fatalf("%s does not run", name)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		l.t.Fatal(err)
	}
}

// recovered returns how long it takes until windows advance past where they
// were.
func (l *local) recovered(id string) time.Duration {
	t0 := time.Now()
	s, err := l.c.Status(within(l.t, 5*time.Second))
	if err != nil {
		l.t.Fatal(err)
	}
	l.progressed(id, s.Run.Windows+50)
	return time.Since(t0)
}

func TestKill(t *testing.T) {
	want := alone(t, long.plan(t))
	ckpt := func(ms int) func(*coord.RunSpec) {
		return func(s *coord.RunSpec) { s.CkptMS = ms }
	}
	t.Run("from zero", func(t *testing.T) {
		l := cluster(t, 2, nil)
		id := l.submit(long.plan(t), 2, ckpt(-1))
		l.progressed(id, 1000)
		l.signal("p2", syscall.SIGKILL)
		t.Logf("windows advance again after %v", l.recovered(id))
		got, run, _ := l.result(id, nil)
		same(t, got, want)
		if run.Moves == 0 {
			t.Error("the kill was not noticed")
		}
	})
	t.Run("two, from checkpoints", func(t *testing.T) {
		dear(t)
		l := cluster(t, 3, nil)
		id := l.submit(long.plan(t), 3, ckpt(400))
		l.progressed(id, 2500)
		l.signal("p2", syscall.SIGKILL)
		l.signal("p3", syscall.SIGKILL)
		t.Logf("windows advance again after %v", l.recovered(id))
		got, run, _ := l.result(id, nil)
		same(t, got, want)
		if run.Moves < 2 || len(run.Ckpts) == 0 {
			t.Errorf("%d moves, %d checkpoints", run.Moves, len(run.Ckpts))
		}
	})
	t.Run("stopped for a while", func(t *testing.T) {
		dear(t)
		l := cluster(t, 3, nil)
		id := l.submit(long.plan(t), 3, ckpt(400))
		l.progressed(id, 1500)
		l.signal("p2", syscall.SIGSTOP)
		t.Logf("windows advance again after %v", l.recovered(id))
		time.Sleep(4 * time.Second)
		l.signal("p2", syscall.SIGCONT)
		got, _, _ := l.result(id, nil)
		same(t, got, want)
	})
}
