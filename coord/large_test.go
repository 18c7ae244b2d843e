package coord_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/coord"
)

// A submission of three messages' size arrives whole at three coordinators and
// a process that does not vote; one that is larger than the ledger takes is
// refused with both figures.
func TestLargeSubmission(t *testing.T) {
	t.Parallel()
	want := oracle(small)
	c := newCluster(t, relays{}, true)
	for _, n := range []string{"e1", "e2", "e3"} {
		c.start(n, true, 3, nil)
	}
	c.start("e4", false, 0, nil)
	c.until("all are up", func(s *coord.Status) bool { return s.Quorum && len(s.Nodes) == 4 })
	text, _ := json.Marshal(small)
	spec := coord.RunSpec{Files: []coord.File{{Name: "relays.json", Text: string(text) + strings.Repeat(" ", 3<<20)}}, Members: 4}
	id, err := c.cl.Submit(deadline(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.wait(id).Digest(); got != want {
		t.Errorf("digest %s, oracle %s", got, want)
	}
	spec.Files[0].Text += strings.Repeat(" ", 16<<20)
	if _, err := c.cl.Submit(deadline(t), spec); err == nil || !strings.Contains(err.Error(), "at most 16777216") {
		t.Errorf("a submission over the limit: %v", err)
	}
}
