package sim

import (
	"runtime/debug"
	"testing"

	"github.com/rocemu/rocemu/topology"
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

// Runs of one process may take together what each may: the collector's limit is
// the sum as long as all have one, and is put back when the last has ended, in
// whatever order they end.
func TestBudgetsAddUp(t *testing.T) {
	const before = 1 << 40
	old := debug.SetMemoryLimit(before)
	defer debug.SetMemoryLimit(old)
	start := func(mib int64) *budget {
		t.Helper()
		p := &topology.Plan{Name: "empty"}
		p.Run.Memory = mib << 20
		b, err := newBudget(p)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	want := func(when string, limit, may int64) {
		t.Helper()
		if got := debug.SetMemoryLimit(-1); got != limit || allowed() != may {
			t.Errorf("%s: the collector's limit is %d, want %d; the process may take %d, want %d", when, got, limit, allowed(), may)
		}
	}
	a := start(160)
	want("one run", 150<<20, 160<<20)
	b := start(320)
	want("two runs", 450<<20, 480<<20)
	c := start(0)
	want("and one without a budget", before, 0)
	a.close()
	want("the first has ended", before, 0)
	c.close()
	want("the second is left", 300<<20, 320<<20)
	d := start(2 << 20)
	want("more than before", before, 320<<20+2<<40)
	d.close()
	b.close()
	want("none", before, 0)
}
