package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/coord"
)

// A member and a coordinator lose their directories with their processes and
// come back empty under their names.
func TestWipedDisks(t *testing.T) {
	dear(t)
	want := alone(t, long.plan(t))
	m := newMachines(t, 3, 1)
	id := m.submit(long.plan(t), 4, func(s *coord.RunSpec) { s.CkptMS = 400 })
	m.during("a checkpoint", func(r *coord.RunStatus) bool { return r.Ckpt > 0 })
	for _, name := range []string{"e1", "c3"} {
		m.kill(name, syscall.SIGKILL)
		if err := os.RemoveAll(filepath.Join(m.dir, name)); err != nil {
			t.Fatal(err)
		}
		if name == "e1" {
			m.emud(0, name)
		} else {
			m.emud(2, name, "--coordinator", "--bootstrap-expect", "3")
		}
		t.Logf("%s without its disk: windows advance again after %v", name, m.recovered(id))
	}
	got, run, _ := m.result(id, nil)
	same(t, got, want)
	t.Logf("%d moves, %d checkpoints", run.Moves, len(run.Ckpts))
}

// flip turns over one bit in the middle of a file.
func flip(t testing.TB, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		b[len(b)/2] ^= 4
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unplanned returns the run's record once no checkpoint is under way, which one
// that lacks the state of a process that was killed stays: then after a second.
func (m *machines) unplanned(id string) *coord.Run {
	m.t.Helper()
	for end := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		run, err := m.c.Run(within(m.t, 5*time.Second), id)
		if err != nil {
			m.t.Fatal(err)
		}
		if run.Plan == nil || time.Now().After(end) {
			return run
		}
	}
}

// The only copy of a slot's last state has a flipped bit: everybody goes back
// to the checkpoint before.
func TestFlippedBit(t *testing.T) {
	dear(t)
	want := alone(t, long.plan(t))
	m := startMachines(t, 1, 1, 1, func(m *machines) { m.bare = true })
	id := m.submit(long.plan(t), 2, func(s *coord.RunSpec) { s.Batch, s.CkptMS = false, 200 })
	first := m.during("a checkpoint", func(r *coord.RunStatus) bool { return r.Ckpt > 0 }).Ckpt
	m.during("another checkpoint", func(r *coord.RunStatus) bool { return r.Ckpt > first })
	m.kill("e1", syscall.SIGKILL)
	run := m.unplanned(id)
	last := run.Ckpts[len(run.Ckpts)-1]
	for i, s := range run.Slots {
		if s.Owner == "e1" {
			flip(t, filepath.Join(m.dir, "e1", "blobs", last.Blobs[i].Sum))
		}
	}
	m.emud(0, "e1")
	m.during("the checkpoint is given up", func(r *coord.RunStatus) bool { return r.Moves >= 3 })
	got, run, _ := m.result(id, nil)
	same(t, got, want)
	for _, c := range run.Ckpts {
		if c.B == last.B {
			t.Errorf("the checkpoint at %v is still there", c.B)
		}
	}
	t.Logf("%d moves, %d checkpoints", run.Moves, len(run.Ckpts))
}

// tiny mounts a file system of some pages that is full but for a few.
func tiny(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 48<<10), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A member's disk is full. With an object store it is not missed; without one
// the run ends with a verdict that says so.
func TestFullDisk(t *testing.T) {
	dear(t)
	plan := fabric{file: "pod.yaml"}.plan(t)
	want := alone(t, plan)
	t.Run("with an object store", func(t *testing.T) {
		m := startMachines(t, 1, 1, 1, func(m *machines) { tiny(t, filepath.Join(m.dir, "e1")) })
		got, run, _ := m.result(m.submit(plan, 2, func(s *coord.RunSpec) { s.CkptMS = 200 }), nil)
		same(t, got, want)
		t.Logf("%d moves, %d checkpoints", run.Moves, len(run.Ckpts))
	})
	t.Run("without", func(t *testing.T) {
		m := startMachines(t, 1, 1, 1, func(m *machines) {
			m.bare = true
			tiny(t, filepath.Join(m.dir, "e1"))
		})
		run, err := m.c.Wait(within(t, time.Minute), m.submit(plan, 2, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		if run.Phase != coord.Failed || !strings.Contains(run.Why, "no space left") {
			t.Errorf("run is %s: %s", run.Phase, run.Why)
		}
		t.Log(run.Why)
	})
}
