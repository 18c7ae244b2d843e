package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/topology"
)

// A snapshot that was promised is there when the run has ended, also when a
// process was killed where the run leaps over it to its end; what goes on from
// it, with faults asked for in any order, a stop and a killed process, equals
// one process that had all that in its file.
func TestSnapshotsOfHarmedRuns(t *testing.T) {
	rounds := 3
	if os.Getenv("CHAOS") != "" {
		rounds = 40
	}
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 1))
	load := func(stop clock.Time) *topology.Plan {
		return planOf(t, "idle.yaml", idleFile, "run.until="+stop.String())
	}
	l := cluster(t, 2, nil)
	begin := func(s coord.RunSpec) string {
		s.Pause, s.CkptMS, s.Batch = true, 30+r.IntN(200), r.IntN(2) == 0
		id, err := l.c.Submit(within(t, 10*time.Second), s)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	stop := func(at clock.Time) {
		if got, err := l.c.Stop(within(t, 10*time.Second), at); err != nil || got != at {
			t.Fatal(got, err)
		}
	}
	goOn := func(id string) string {
		if err := l.c.Resume(within(t, 10*time.Second)); err != nil {
			t.Fatal(err)
		}
		if r.IntN(4) > 0 {
			time.Sleep(time.Duration(r.IntN(250)) * time.Millisecond)      // the drawn moment of the kill
			if pid := l.Pids()[fmt.Sprintf("p%d", 1+r.IntN(2))]; pid > 0 { // it may be on its way back
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		x, _, _ := l.result(id, nil)
		return x.Digest
	}
	us := func(lo, hi int64) clock.Time { return clock.Time((lo + r.Int64N(hi-lo)) * int64(clock.Microsecond)) }
	for i := range rounds {
		name := fmt.Sprintf("round%d", i%8) // over one of the name
		save, end := us(5_000, 20_000), us(20_001, 45_000)
		id := begin(coord.RunSpec{Files: []coord.File{{Name: "idle.yaml", Text: idleFile}}, Members: 2})
		if kept, err := l.c.Save(within(t, 10*time.Second), coord.Entry{Name: name, At: save}); err != nil || kept.At != save {
			t.Fatal(kept.At, err)
		}
		stop(end)
		if got, want := goOn(id), alone(t, load(end)).Digest; got != want {
			t.Errorf("round %d: digest %s, alone %s", i, got, want)
		}
		kept, err := l.c.Snapshots(within(t, 10*time.Second))
		found := false
		for _, k := range kept {
			found = found || k.Name == name && k.Run == id && k.At == save
		}
		if err != nil || !found {
			t.Fatalf("round %d: the snapshot at %v of the run that ended at %v is lost: %v %v", i, save, end, kept, err)
		}
		end = us(52_000, 60_000)
		p := load(end)
		id = begin(coord.RunSpec{Restore: name, Files: []coord.File{{Name: name}}})
		late, early := us(48_000, 51_000), us(20_001, 47_000)
		for _, f := range []struct {
			name, text string
			at         clock.Time
		}{{"late", "drop rnic4:1 dir=out kind=data count=3", late}, {"early", "link-down leaf1:uplink1 for=45ms", early}, {"first", "set switches.all.ecn.kmin to=5KB for=90ms", save}} {
			planned(t, p, f.name, f.text, f.at)
			if at, err := l.c.Fault(within(t, 10*time.Second), coord.Fault{Name: f.name, Text: f.text, Want: f.at, Firm: true}); err != nil || at != f.at {
				t.Fatal(at, err)
			}
		}
		stop(end)
		if got, want := goOn(id), alone(t, p).Digest; got != want {
			t.Errorf("round %d: from the snapshot at %v, faults at %v and %v, stop at %v: digest %s, alone %s", i, save, early, late, end, got, want)
		}
	}
}
