package coord_test

import (
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors/natsbus"
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
			fresh, err := client.Dial(natsbus.Dialer{URL: c.srv.ClientURL(), Name: "fresh", Wait: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			s, err := fresh.Status(deadline(t))
			fresh.Close()
			if err != nil || s.Run == nil || s.Run.ID != id {
				t.Fatalf("after %s came back, %s answers %+v (%v)", n, s.Answerer, s.Run, err)
			}
		}
	}
}
