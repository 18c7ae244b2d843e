package chaos

import (
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

const liveFile = `
schema: 1
name: live
run: {until: stopped, limit: 1000s}
topology: {spines: 2, leaves: 2, servers: 2}
workload:
  - {name: a, from: rnic1, to: rnic3, verb: write, size: 64KB, count: forever}
  - {name: b, from: rnic4, to: rnic2, verb: write, size: 64KB, count: forever}
`

func livePlan(t testing.TB, sets ...string) *topology.Plan {
	t.Helper()
	return planOf(t, "live.yaml", liveFile, sets...)
}

// planOf resolves a fabric file of a test.
func planOf(t testing.TB, name, text string, sets ...string) *topology.Plan {
	t.Helper()
	p, _, err := topology.Resolve([]topology.Source{{Name: name, Text: []byte(text)}}, sets, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// planned is the plan with a fault at an instant, as a file would have it.
func planned(t testing.TB, p *topology.Plan, name, text string, at clock.Time) {
	t.Helper()
	f, err := topology.ParseFault(text)
	if err == nil {
		err = p.BindFault(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Name, f.At = name, at
	p.Faults = append(p.Faults, *f)
}

// A fabric that runs for ever, disturbed live, killed in between, saved, and
// stopped, equals one process that had the faults in its file.
func TestLiveEqualsFile(t *testing.T) {
	l := cluster(t, 2, nil)
	id := l.submit(livePlan(t), 2, func(s *coord.RunSpec) { s.Batch, s.CkptMS = false, 300 })
	l.progressed(id, 500)
	faults := [][2]string{
		{"lose", "drop rnic1:1 dir=out kind=data count=2"},
		{"cut", "link-down leaf1:uplink1 for=300us"},
		{"ber", "loss leaf2:1 probability=1e-3 for=400us"},
		{"mark", "set switches.all.ecn.kmin to=5KB for=400us"},
	}
	var at []clock.Time
	for i, f := range faults {
		got, err := l.c.Fault(within(t, 10*time.Second), coord.Fault{Name: f[0], Text: f[1]})
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, got)
		if i == 1 {
			l.signal("p1", syscall.SIGKILL)
		}
	}
	kept, err := l.c.Save(within(t, 10*time.Second), coord.Entry{Name: "after", At: at[len(at)-1] + clock.Time(clock.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	end := kept.At + clock.Time(8*clock.Millisecond) // beyond what is granted by the time it is asked
	if got, err := l.c.Stop(within(t, 10*time.Second), end); err != nil || got != end {
		t.Fatalf("stop at %v: %v %v", end, got, err)
	}
	got, run, _ := l.result(id, nil)
	p := livePlan(t, "run.until="+end.String())
	for i, f := range faults {
		planned(t, p, f[0], f[1], at[i])
	}
	want := alone(t, p)
	if got.Digest != want.Digest || got.Faults["lose"].Hits != want.Faults["lose"].Hits || run.Moves == 0 {
		t.Errorf("digest %s, alone %s; %d hits, alone %d; %d moves", got.Digest, want.Digest, got.Faults["lose"].Hits, want.Faults["lose"].Hits, run.Moves)
	}
	if got.Verdict != report.Complete || got.Totals.DroppedFrames != want.Totals.DroppedFrames || want.Totals.DroppedFrames == 0 {
		t.Errorf("verdict %s, %d dropped, alone %d", got.Verdict, got.Totals.DroppedFrames, want.Totals.DroppedFrames)
	}
	again, err := l.c.Submit(within(t, 10*time.Second), coord.RunSpec{Restore: "after", Files: []coord.File{{Name: "after"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.c.Stop(within(t, 10*time.Second), end); err != nil {
		t.Fatal(err)
	}
	restored, _, _ := l.result(again, nil)
	if restored.Digest != want.Digest {
		t.Errorf("from the snapshot: digest %s, alone %s", restored.Digest, want.Digest)
	}
}
