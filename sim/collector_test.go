package sim

import (
	"runtime/debug"
	"testing"
)

func TestSlack(t *testing.T) {
	for live, want := range map[int64]int{0: mostSlack, 1 << 20: mostSlack, 64 << 20: 400, 128 << 20: 200, 256 << 20: 100, 8 << 30: 100} {
		if got := slack(live, spareHeap); got != want {
			t.Errorf("%d bytes: %d %%, want %d", live, got, want)
		}
	}
}

// A run leaves the collector as it was, and GOGC of the environment alone.
func TestCollectorIsPutBack(t *testing.T) {
	t.Setenv("GOGC", "")
	old := debug.SetGCPercent(77)
	defer debug.SetGCPercent(old)
	c := newCollector()
	c.built()
	if got := debug.SetGCPercent(100); got < 100 || got > mostSlack {
		t.Errorf("while running %d %%", got)
	}
	c.close()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("afterwards %d %%", got)
	}
	a, b := newCollector(), newCollector() // one run begins before the other ends
	a.built()
	a.close()
	b.close()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("after two runs %d %%", got)
	}
	built, end := Ease(1, 64) // a small part of a fabric
	built()
	if got := debug.SetGCPercent(100); got < 100 || got > mostSlack {
		t.Errorf("while a part runs %d %%", got)
	}
	end()
	if got := debug.SetGCPercent(77); got != 77 || collecting.spare != 0 {
		t.Errorf("after a part %d %%, %d bytes to spare", got, collecting.spare)
	}
	t.Setenv("GOGC", "50")
	c = newCollector()
	c.built()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("%d %% although the environment has the say", got)
	}
}
