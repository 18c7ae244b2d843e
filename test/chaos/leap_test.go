package chaos

import (
	"testing"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/topology"
)

const idleFile = `
schema: 1
name: idle
run: {until: stopped, limit: 1000s}
topology: {spines: 2, leaves: 2, servers: 2}
workload:
  - {name: a, from: rnic1, to: rnic3, verb: write, size: 64KB, count: 2}
  - {name: b, from: rnic4, to: rnic2, verb: write, size: 64KB, count: 10, start: 50ms}
`

// A snapshot of an instant that the fabric leaps over, because nothing happens
// before the run is stopped, is kept; what goes on from it takes a fault within
// the leap and has forgotten the stop.
func TestSnapshotInALeap(t *testing.T) {
	load := func(set string) *topology.Plan { return planOf(t, "idle.yaml", idleFile, set) }
	ms := clock.Time(clock.Millisecond)
	l := cluster(t, 2, nil)
	run := func(s coord.RunSpec) string {
		s.Pause = true
		id, err := l.c.Submit(within(t, 10*time.Second), s)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	goOn := func(id string, stop clock.Time) string {
		if _, err := l.c.Stop(within(t, 10*time.Second), stop); err != nil {
			t.Fatal(err)
		}
		if err := l.c.Resume(within(t, 10*time.Second)); err != nil {
			t.Fatal(err)
		}
		r, _, _ := l.result(id, nil)
		return r.Digest
	}
	id := run(coord.RunSpec{Files: []coord.File{{Name: "idle.yaml", Text: idleFile}}, Members: 2})
	if kept, err := l.c.Save(within(t, 10*time.Second), coord.Entry{Name: "idle", At: 10 * ms}); err != nil || kept.At != 10*ms {
		t.Fatal(kept.At, err)
	}
	if got, want := goOn(id, 20*ms), alone(t, load("run.until=20ms")).Digest; got != want {
		t.Errorf("digest %s, alone %s", got, want)
	}
	const cut = "link-down leaf1:uplink1 for=45ms"
	p := load("run.until=60ms")
	planned(t, p, "cut", cut, 12*ms)
	want := alone(t, p).Digest
	if want == alone(t, load("run.until=60ms")).Digest {
		t.Fatal("the fault disturbs nothing")
	}
	id = run(coord.RunSpec{Restore: "idle", Files: []coord.File{{Name: "idle"}}})
	if at, err := l.c.Fault(within(t, 10*time.Second), coord.Fault{Name: "cut", Text: cut, Want: 12 * ms, Firm: true}); err != nil || at != 12*ms {
		t.Fatal(at, err)
	}
	if got := goOn(id, 60*ms); got != want {
		t.Errorf("with a fault after the snapshot: digest %s, alone %s", got, want)
	}
}
