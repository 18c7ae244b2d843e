package coord_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
)

// A coordinator that was started again says nothing of the ledger until it has
// it: a user who has seen nothing yet is never told that there is no run.
func TestRestartedCoordinatorKnowsTheRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t, relays{}, false)
	for _, n := range []string{"e1", "e2", "e3"} {
		c.start(n, true, 3, nil)
	}
	c.until("all are up", func(s *coord.Status) bool { return s.Quorum && len(s.Nodes) == 3 })
	id := c.submit(small, func(s *coord.RunSpec) { s.Pause = true })
	c.until("the run", func(s *coord.Status) bool { return s.Run != nil })
	for _, n := range []string{"e2", "e3"} {
		c.kill(n)
		c.start(n, true, 3, nil)
		for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
			if s := c.fresh(); s.Run == nil || s.Run.ID != id {
				t.Fatalf("after %s came back, %s answers %+v", n, s.Answerer, s.Run)
			}
		}
	}
}

// What one user did, the next one sees, whichever coordinator answers: copies of
// the ledger learn of an entry up to two commit timeouts after the leader.
func TestFreshClientSeesTheLedger(t *testing.T) {
	t.Parallel()
	c := newCluster(t, relays{}, false)
	for _, n := range []string{"e1", "e2", "e3"} {
		c.start(n, true, 3, nil)
	}
	id := c.submit(small, func(s *coord.RunSpec) { s.Members, s.Pause = 3, true })
	c.until("placed", func(s *coord.Status) bool { return s.Run != nil && s.Run.Phase == coord.Running })
	answerers := map[string]bool{}
	for i := range 30 {
		f := coord.Fault{Name: fmt.Sprint("f", i), Text: "disturb 1 1", Want: clock.Time(clock.Second)}
		if _, err := c.cl.Fault(deadline(t), f); err != nil {
			t.Fatal(err)
		}
		if i == 15 { // those who follow have it, and nobody to tell them so
			c.kill(c.until("a leader", func(s *coord.Status) bool { return s.Leader != "" }).Leader)
		}
		s := c.fresh()
		if answerers[s.Answerer] = true; s.Run == nil || s.Run.ID != id || len(s.Run.Faults) != i+1 {
			t.Fatalf("after %d faults %s answers %+v", i+1, s.Answerer, s.Run)
		}
	}
	if len(answerers) < 2 {
		t.Errorf("only %v answered", answerers)
	}
}

// fresh is the status that a client gets which has seen nothing yet.
func (c *cluster) fresh() *coord.Status {
	c.t.Helper()
	cl, err := client.Dial(natsbus.Dialer{URL: c.srv.ClientURL(), Name: "fresh", Wait: 5 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	s, err := cl.Status(deadline(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}
