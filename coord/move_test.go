package coord_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rocemu/rocemu/coord"
)

// A slot moves by command at a checkpoint, twice and back; the result is that
// of a run without moves. What cannot be is refused with the reason.
func TestPlannedMove(t *testing.T) {
	t.Parallel()
	want := oracle(small)
	c := newCluster(t, relays{slow: 4 * time.Millisecond}, true)
	c.start("e1", true, 1, nil)
	c.start("e2", false, 0, nil)
	c.until("two processes", func(s *coord.Status) bool { return len(s.Nodes) == 2 })
	id := c.submit(small, func(s *coord.RunSpec) { s.Members, s.CkptMS = 2, -1 })
	c.start("e3", false, 0, nil)
	c.start("z", false, 0, func(cfg *coord.Config) { cfg.Build = "other" })
	c.until("windows and four processes", func(s *coord.Status) bool {
		return s.Run != nil && s.Run.ID == id && s.Run.Windows > 20 && len(s.Nodes) == 4
	})
	for _, x := range []struct {
		slot    int
		to, why string
	}{{0, "nobody", "no process"}, {7, "e2", "must be 0 to 1"}, {0, "z", "build"}} {
		if _, err := c.cl.Move(deadline(t), x.slot, x.to); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("slot %d to %s: %v, want %q", x.slot, x.to, err, x.why)
		}
	}
	for i, to := range []string{"e3", "e1"} {
		if _, err := c.cl.Move(deadline(t), 0, to); err != nil {
			t.Fatal(err)
		}
		s := c.until("moved to "+to, func(s *coord.Status) bool { return s.Run.Slots[0].Owner == to || s.Run.Phase != coord.Running })
		if s.Run.Phase != coord.Running || s.Run.Moves != i+1 || s.Run.Ckpt == 0 {
			t.Fatalf("run is %s (%s), %d moves, checkpoint %v", s.Run.Phase, s.Run.Why, s.Run.Moves, s.Run.Ckpt)
		}
	}
	if got := c.wait(id).Digest(); got != want {
		t.Errorf("digest %s, oracle %s", got, want)
	}
}

// A snapshot of two slots goes on on one process and on three.
func TestSnapshotOnOtherProcesses(t *testing.T) {
	t.Parallel()
	want := oracle(small)
	c := newCluster(t, relays{slow: 2 * time.Millisecond}, true)
	c.wait(c.half())
	c.start("e3", false, 0, nil)
	c.until("three processes", func(s *coord.Status) bool { return len(s.Nodes) == 3 })
	for _, n := range []int{1, 3} {
		again := c.submit(small, func(s *coord.RunSpec) { s.Restore, s.CkptMS, s.Members, s.ID = "half", -1, n, fmt.Sprint("on-", n) })
		if got := c.wait(again).Digest(); got != want {
			t.Errorf("on %d processes: digest %s, oracle %s", n, got, want)
		}
	}
}
