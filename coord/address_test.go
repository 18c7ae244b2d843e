package coord_test

import (
	"testing"

	"github.com/rocemu/rocemu/coord"
)

// Coordinators that all start again, each at another Raft port, find each other
// by what they say, not by what the ledger's configuration remembers.
func TestCoordinatorsAtNewPorts(t *testing.T) {
	coord.SkipRaftRace(t)
	t.Parallel()
	want := oracle(small)
	c := newCluster(t, relays{}, false)
	names := []string{"c1", "c2", "c3"}
	for _, n := range names {
		c.start(n, true, 3, nil)
	}
	c.until("a leader and three voters", func(s *coord.Status) bool { return s.Quorum && len(s.Voters) == 3 })
	if got := c.wait(c.submit(small, members(3))).Digest(); got != want {
		t.Errorf("before: digest %s, oracle %s", got, want)
	}
	for _, n := range names {
		c.kill(n)
	}
	for _, n := range names {
		c.start(n, true, 3, nil)
	}
	if got := c.wait(c.submit(small, members(3))).Digest(); got != want {
		t.Errorf("after: digest %s, oracle %s", got, want)
	}
}
