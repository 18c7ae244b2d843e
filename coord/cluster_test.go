package coord_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
)

var small = relayFile{Spec: actortest.Spec{Seed: 21, Relays: 12, Cables: 16, Burst: 120}}

func members(n int) func(*coord.RunSpec) {
	return func(s *coord.RunSpec) { s.Members, s.Batch = n, true }
}

func TestOneAndThreeProcesses(t *testing.T) {
	t.Parallel()
	want := oracle(small)
	c := newCluster(t, relays{}, false)
	c.start("e1", true, 1, nil)
	if got := c.wait(c.submit(small, members(1))).Digest(); got != want {
		t.Errorf("one process: digest %s, oracle %s", got, want)
	}
	c.start("e2", false, 0, nil)
	c.start("e3", false, 0, nil)
	r := c.wait(c.submit(small, members(3)))
	if got := r.Digest(); got != want || len(r.Slots) != 3 {
		t.Errorf("%d slots: digest %s, oracle %s", len(r.Slots), got, want)
	}
	for i, s := range r.Slots {
		b, err := c.cl.Blob(deadline(t), s.Done.Parts)
		if err != nil && s.Owner == "e1" {
			t.Errorf("slot %d: %v", i, err)
		}
		if err == nil && len(b) != 32 {
			t.Errorf("slot %d: %d bytes of parts", i, len(b))
		}
	}
}

// A killed process's slot is run again elsewhere, from zero.
func TestKillFromZero(t *testing.T) {
	t.Parallel()
	want := oracle(small)
	c := newCluster(t, relays{slow: 2 * time.Millisecond}, true)
	c.start("e1", true, 1, nil)
	c.start("e2", false, 0, nil)
	c.start("e3", false, 0, nil)
	id := c.submit(small, func(s *coord.RunSpec) { s.Members, s.Batch, s.CkptMS = 3, true, -1 })
	c.until("100 windows", func(s *coord.Status) bool { return s.Run != nil && s.Run.ID == id && s.Run.Windows > 100 })
	c.kill("e3")
	r := c.wait(id)
	if got := r.Digest(); got != want || r.Moves == 0 {
		t.Errorf("digest %s, oracle %s; %d moves", got, want, r.Moves)
	}
}

// The same from checkpoints, twice.
func TestKillFromCheckpoint(t *testing.T) {
	t.Parallel()
	want := oracle(small)
	c := newCluster(t, relays{slow: 2 * time.Millisecond}, true)
	c.start("e1", true, 1, nil)
	for i := 2; i <= 4; i++ {
		c.start(fmt.Sprint("e", i), false, 0, nil)
	}
	id := c.submit(small, func(s *coord.RunSpec) { s.Members, s.CkptMS = 3, 150 })
	c.until("a checkpoint", func(s *coord.Status) bool { return s.Run != nil && s.Run.ID == id && s.Run.Ckpt > 0 })
	c.kill("e3")
	c.until("a move", func(s *coord.Status) bool { return s.Run.Moves > 0 || s.Run.Phase != coord.Running })
	c.kill("e2")
	r := c.wait(id)
	if got := r.Digest(); got != want || r.Moves < 2 || len(r.Ckpts) == 0 {
		t.Errorf("digest %s, oracle %s; %d moves, %d checkpoints", got, want, r.Moves, len(r.Ckpts))
	}
}

// The leader is killed: grants in force keep virtual time going.
func TestKillLeader(t *testing.T) {
	t.Parallel()
	want := oracle(small)
	c := newCluster(t, relays{slow: 2 * time.Millisecond}, true)
	for i := 1; i <= 3; i++ {
		c.start(fmt.Sprint("c", i), true, 3, nil)
	}
	id := c.submit(small, func(s *coord.RunSpec) { s.Members, s.CkptMS = 3, 150 })
	s := c.until("windows", func(s *coord.Status) bool {
		return s.Run != nil && s.Run.ID == id && s.Run.Windows > 60 && s.Run.Ckpt > 0
	})
	c.kill(s.Leader)
	r := c.wait(id)
	if got := r.Digest(); got != want {
		t.Errorf("digest %s, oracle %s", got, want)
	}
}

// A fault injected while the run goes on has the same effect as the same fault
// known from the start.
func TestLiveFault(t *testing.T) {
	t.Parallel()
	c := newCluster(t, relays{slow: 2 * time.Millisecond}, true)
	c.start("e1", true, 1, nil)
	c.start("e2", false, 0, nil)
	id := c.submit(small, func(s *coord.RunSpec) { s.Members, s.CkptMS = 2, 200 })
	c.until("windows", func(s *coord.Status) bool { return s.Run != nil && s.Run.ID == id && s.Run.Windows > 30 })
	f := coord.Fault{Name: "d", Text: "disturb 3 99"}
	at, err := c.cl.Fault(deadline(t), f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.cl.Fault(deadline(t), coord.Fault{Text: "nonsense"}); err == nil {
		t.Error("a malformed fault was accepted")
	}
	got := c.wait(id).Digest()
	fab := actortest.New(small.Spec)
	fab.Relays[3].Disturb(at, 99)
	g, _ := fab.Oracle()
	if got != g.String() || got == oracle(small) {
		t.Errorf("digest %s, oracle with the fault at %v %s, without %s", got, at, g, oracle(small))
	}
}

// Pause holds everybody at the same window; step and stop go to an instant.
func TestPauseStepStop(t *testing.T) {
	t.Parallel()
	live := small
	live.Live = true
	c := newCluster(t, relays{}, false)
	c.start("e1", true, 1, nil)
	c.start("e2", false, 0, nil)
	id := c.submit(live, func(s *coord.RunSpec) { s.Members, s.Pause = 2, true })
	c.until("paused", func(s *coord.Status) bool { return s.Run != nil && s.Run.State == "paused" })
	at, err := c.cl.Step(deadline(t), 10*clock.Microsecond)
	if err != nil || at != clock.Time(10*clock.Microsecond) {
		t.Fatalf("step: %v %v", at, err)
	}
	s := c.until("both wait past the step", func(s *coord.Status) bool {
		return len(s.Run.Slots) == 2 && s.Run.Slots[0].Report.Want > at && s.Run.Slots[1].Report.Want > at
	})
	if a, b := s.Run.Slots[0].Report, s.Run.Slots[1].Report; a.M != b.M || s.Run.Grant != at {
		t.Errorf("paused at windows %v and %v, grant %v", a.M, b.M, s.Run.Grant)
	}
	if err := c.cl.Resume(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.cl.Stop(deadline(t), clock.Time(5*clock.Millisecond)); err != nil {
		t.Fatal(err)
	}
	r := c.wait(id)
	if d := r.Slots[0].Done; d.At != clock.Time(5*clock.Millisecond) {
		t.Errorf("stopped at %v", d.At)
	}
}

// A run's processor time is its own, not all that its process has taken.
func TestCostOfOneRun(t *testing.T) {
	c := newCluster(t, relays{}, false)
	c.start("e1", true, 1, nil)
	cpu := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	for n := range 3 {
		before := cpu()
		r := c.wait(c.submit(small, func(s *coord.RunSpec) { s.Members = 1 }))
		if got, most := r.Slots[0].Done.Cost.CPUNS, cpu()-before; got < 0 || got > most {
			t.Errorf("run %d took %d ns of processor time, the process %d ns meanwhile", n, got, most)
		}
	}
}

// half starts two processes and a run, and takes a snapshot named half of it.
func (c *cluster) half() (id string) {
	c.t.Helper()
	c.start("e1", true, 1, nil)
	c.start("e2", false, 0, nil)
	id = c.submit(small, func(s *coord.RunSpec) { s.Members, s.CkptMS = 2, -1 })
	c.until("windows", func(s *coord.Status) bool { return s.Run != nil && s.Run.ID == id && s.Run.Windows > 50 })
	if _, err := c.cl.Save(deadline(c.t), coord.Entry{Name: "half"}); err != nil {
		c.t.Fatal(err)
	}
	return id
}

// A snapshot taken in a run continues in another, to the same digest.
func TestSnapshotRestore(t *testing.T) {
	t.Parallel()
	want := oracle(small)
	c := newCluster(t, relays{slow: 2 * time.Millisecond}, true)
	id := c.half()
	if got := c.wait(id).Digest(); got != want {
		t.Errorf("digest %s, oracle %s", got, want)
	}
	l, err := c.cl.Snapshots(deadline(t))
	if err != nil || len(l) != 1 || l[0].Name != "half" || l[0].At == 0 {
		t.Fatalf("snapshots: %+v %v", l, err)
	}
	again := c.submit(small, func(s *coord.RunSpec) { s.Restore, s.CkptMS = "half", -1 })
	if got := c.wait(again).Digest(); got != want {
		t.Errorf("restored: digest %s, oracle %s", got, want)
	}
}
