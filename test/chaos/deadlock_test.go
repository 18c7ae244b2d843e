package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/report"
)

// A deadlock whose switches run in different processes is found like in one.
func TestDeadlockAcrossProcesses(t *testing.T) {
	for _, file := range []string{"disasters/deadlock-ring.yaml", "disasters/deadlock-after-link-failure.yaml"} {
		t.Run(filepath.Base(file), func(t *testing.T) { deadlockIn(t, fabric{file: file}) })
	}
}

func deadlockIn(t *testing.T, f fabric) {
	want := alone(t, f.plan(t))
	if len(want.Deadlocks) == 0 {
		t.Fatal("the example has no deadlock any more")
	}
	l := cluster(t, 3, nil)
	got, run, _ := l.result(l.submit(f.plan(t), 3, nil), nil)
	owners, moved := map[string]bool{}, false
	for _, s := range run.Slots {
		owners[s.Owner], moved = true, moved || s.Inc > 1
	}
	if len(run.Slots) != 3 || len(owners) != 3 && !moved { // a process that a busy machine stops for 2 s is taken for lost
		t.Fatalf("%d slots on %d processes", len(run.Slots), len(owners))
	}
	a, _ := json.Marshal(got.Deadlocks)
	b, _ := json.Marshal(want.Deadlocks)
	if string(a) != string(b) || got.Digest != want.Digest {
		t.Errorf("deadlocks %s, alone %s; digest %s, alone %s", a, b, got.Digest, want.Digest)
	}
}

// runLimit bounds one run from the command line.
const runLimit = 4 * time.Minute

// A deadlock that does not last to the end is found like in one process, and
// everything that a run writes is the same: on any number of processes.
func TestBrokenDeadlock(t *testing.T) {
	f := fabric{file: "disasters/deadlock-ring.yaml", sets: []string{
		"faults=[{name: y, kind: device-down, target: s2, at: 25us, for: 5ms}]", "run.limit=400us", `expect=["size(deadlocks) == 1"]`,
	}}
	one := filepath.Join(t.TempDir(), "one")
	code := f.run(t, 0, one, nil)
	if r := resultIn(t, one); len(r.Deadlocks) != 1 || r.Deadlocks[0].AtNS > report.NS(25*clock.Microsecond) {
		t.Fatalf("deadlocks %+v", r.Deadlocks)
	}
	if b, err := os.ReadFile(filepath.Join(one, "events.jsonl")); err != nil || strings.Count(string(b), `"kind":"deadlock"`) != 1 {
		t.Fatalf("%v; events %s", err, b)
	}
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			if got := f.run(t, n, dir, nil); got != code {
				t.Errorf("exit code %d, alone %d", got, code)
			}
			sameDir(t, dir, one)
		})
	}
}

// The same when a process is killed on the way, with a watchdog that breaks
// deadlock after deadlock and expectations that hold only if all are found.
func TestBrokenDeadlockAfterKill(t *testing.T) {
	dear(t)
	f := fabric{file: "switch/RC23b-ring-watchdog.yaml"}
	one, dir := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "out")
	if code := f.run(t, 0, one, nil); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	killed := 0
	code := f.run(t, 2, dir, func(c *exec.Cmd) {
		for end := time.Now().Add(time.Minute); windows(c) < 2000 && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
		if l := emudsOf(c); len(l) == 2 {
			killed = l[1]
			_ = syscall.Kill(killed, syscall.SIGKILL)
		}
	})
	if r := resultIn(t, dir); code != 0 || killed == 0 || r.Engine.Generations < 2 {
		t.Errorf("exit code %d, process %d killed, %d generations", code, killed, r.Engine.Generations)
	}
	sameDir(t, dir, one)
}

// The same from checkpoints that lie within a deadlock.
func TestBrokenDeadlockFromCheckpoint(t *testing.T) {
	dear(t)
	f := fabric{file: "switch/RC23b-ring-watchdog.yaml"}
	want := alone(t, f.plan(t))
	l := cluster(t, 2, nil)
	id := l.submit(f.plan(t), 2, func(s *coord.RunSpec) { s.CkptMS = 200 })
	l.progressed(id, 4000)
	l.signal("p2", syscall.SIGKILL)
	l.progressed(id, 8000)
	got, run, _ := l.result(id, nil)
	same(t, got, want)
	if run.Moves == 0 || len(run.Ckpts) == 0 || len(got.Deadlocks) < 2 {
		t.Errorf("%d moves, %d checkpoints, %d deadlocks", run.Moves, len(run.Ckpts), len(got.Deadlocks))
	}
}

// windows is how many a run from the command line has executed, as a second
// terminal is told.
func windows(c *exec.Cmd) uint64 {
	q := exec.Command(c.Path, "status", "--json")
	q.Env = c.Env
	var s coord.Status
	if b, err := q.Output(); err != nil || json.Unmarshal(b, &s) != nil || s.Run == nil {
		return 0
	}
	return s.Run.Windows
}

// emudsOf are the processes of a run from the command line.
func emudsOf(c *exec.Cmd) (out []int) {
	for _, pid := range children(c.Process.Pid) {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(b), "--name") {
			out = append(out, pid)
		}
	}
	return out
}
