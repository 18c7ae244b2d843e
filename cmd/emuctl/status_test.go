package main

import (
	"testing"

	"github.com/rocemu/rocemu/coord"
)

func TestSlotState(t *testing.T) {
	for _, c := range []struct {
		phase       coord.Phase
		state, next string
		done        bool
		want        string
	}{
		{coord.Running, "running", "", false, "running"},
		{coord.Running, "running", "node2", false, "running, moves to node2"},
		{coord.Running, "", "node2", false, "moves to node2"},
		{coord.Running, "running", "node2", true, "done"},
		{coord.Ended, "", "node2", false, "done"},
	} {
		x := coord.SlotStatus{Next: c.next, Done: c.done}
		x.Report.State = c.state
		if got := slotState(&coord.RunStatus{Phase: c.phase}, &x); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
