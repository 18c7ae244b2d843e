package sweep

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/topology"
)

const fanIn = `
schema: 1
name: fan-in
topology: {leaves: 1, servers: 4}
switches: {all: {buffer: {size: 1MiB}}}
workload: [{name: burst, pattern: incast, from: [rnic1, rnic2, rnic3], to: rnic4, verb: write, size: 200KB}]
`

func fanInLoader(t *testing.T) Loader {
	t.Helper()
	return func(sets []string, seed *uint64) (*topology.Plan, error) {
		plan, _, err := topology.Resolve([]topology.Source{{Name: "fan-in.yaml", Text: []byte(fanIn)}}, sets, seed, nil)
		return plan, err
	}
}

func axes(t *testing.T, args ...string) []Axis {
	t.Helper()
	var out []Axis
	for _, a := range args {
		ax, err := ParseAxis(a)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ax)
	}
	return out
}

// TestGridResumes stops a sweep, goes on, and compares with one that ran
// through, on one core and on three.
func TestGridResumes(t *testing.T) {
	load := fanInLoader(t)
	ax := axes(t, "switches.all.pfc.headroom=auto,0B", "switches.all.pfc.alpha=1/32,1/8")
	whole := Grid{Load: load, Axes: ax, Seeds: 2, Workers: 1}
	want, err := whole.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want[0].Drops != 0 || want[0].Headroom == 0 || want[2].Drops == 0 || want[2].Values[0] != "0B" {
		t.Errorf("headroom auto: %+v\nheadroom 0B: %+v", want[0], want[2])
	}
	file := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := OpenJournal(file, "b1", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	part := Grid{Load: load, Axes: ax, Seeds: 2, Workers: 1, Journal: j, Progress: func(done, _ int) {
		if done == 3 {
			stop()
		}
	}}
	if _, err := part.Do(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled grid: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, `{"plan":"torn`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(file, "b1", false); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a journal was overwritten: %v", err)
	}
	if _, err := OpenJournal(file, "b2", true); err == nil || !strings.Contains(err.Error(), "build") {
		t.Errorf("runs of another build were taken: %v", err)
	}
	if j, err = OpenJournal(file, "b1", true); err != nil || j.Found < 3 || j.Found > 4 {
		t.Fatalf("journal: %v, %d runs", err, j.Found)
	}
	rest := Grid{Load: load, Axes: ax, Seeds: 2, Workers: 3, Journal: j}
	got, err := rest.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := errors.Join(WriteCSV(&a, ax, want), WriteCSV(&b, ax, got), j.Close()); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Errorf("resumed:\n%s\nthrough:\n%s", b.String(), a.String())
	}
	if n := strings.Count(a.String(), "\n"); n != 9 {
		t.Errorf("%d lines in the CSV, want 9", n)
	}
}

func TestGridRefusesBadValues(t *testing.T) {
	g := Grid{Load: fanInLoader(t), Axes: axes(t, "switches.all.pfc.alpha=1/8,x8")}
	if _, err := g.Do(context.Background()); err == nil || !strings.Contains(err.Error(), "x8") {
		t.Errorf("%v", err)
	}
}

// TestGridSeedAxis: each value of a varying seed is the seed of its point, and
// the table has one column for it.
func TestGridSeedAxis(t *testing.T) {
	g := Grid{Load: fanInLoader(t), Axes: axes(t, "seed=1,0x20,3", "switches.all.pfc.alpha=1/8,1/4")}
	points, err := g.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]bool{}
	for i, want := range []uint64{1, 1, 32, 32, 3, 3} {
		r := points[i].Runs[0]
		if plan, err := g.Load(g.sets(points[i].Values), nil); err != nil || r.Seed != want || plan.Seed != want {
			t.Errorf("point %v ran with seed %d, want %d (%v)", points[i].Values, r.Seed, want, err)
		}
		digests[r.Digest] = true
	}
	if len(digests) < 3 {
		t.Errorf("%d different runs of 3 seeds", len(digests))
	}
	var b bytes.Buffer
	if err := WriteCSV(&b, g.Axes, points); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "switches.all.pfc.alpha,seed,verdict,") || !strings.Contains(b.String(), "\n1/4,32,complete,") {
		t.Error(b.String())
	}
	g.Axes = axes(t, "seed=1,x")
	if _, err := g.Check(); err == nil || !strings.Contains(err.Error(), "seed=x") {
		t.Errorf("%v", err)
	}
}

// TestGridLeavesOutInvalidPoints: values that exclude each other are a point that
// did not run, not the end of the grid.
func TestGridLeavesOutInvalidPoints(t *testing.T) {
	g := Grid{Load: fanInLoader(t), Axes: axes(t, "switches.all.ecn.kmin=800KB,100KB", "switches.all.ecn.kmax=400KB,1600KB"), Seeds: 2}
	points, err := g.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i := range points {
		p := &points[i]
		bad := i == 0
		if p.OK == bad || strings.Contains(p.Invalid, "kmin 800KB") != bad || bad != (p.Runs[1].Digest == "") || strings.Contains(p.Invalid, "\n") {
			t.Errorf("%v: ok %v, invalid %q, %+v", p.Values, p.OK, p.Invalid, p.Runs[1])
		}
	}
	if err := Mark(points, g.Axes, LowestP99); err != nil || points[0].Front || points[0].Best {
		t.Errorf("an invalid point on the front: %v", err)
	}
	var b bytes.Buffer
	if err := errors.Join(WriteCSV(&b, g.Axes, points), Picture(&bytes.Buffer{}, g.Axes, points)); err != nil || strings.Count(b.String(), "invalid: ") != 2 {
		t.Errorf("%v\n%s", err, b.String())
	}
	g.Axes = axes(t, "switches.all.ecn.kmin=800KB,900KB", "switches.all.ecn.kmax=400KB,500KB")
	if _, err := g.Do(context.Background()); err == nil || !strings.Contains(err.Error(), "none of 4 combinations is valid") {
		t.Errorf("%v", err)
	}
	g = Grid{Axes: g.Axes, Load: func([]string, *uint64) (*topology.Plan, error) { return nil, errors.New("broken base") }}
	if _, err := g.Do(context.Background()); err == nil || err.Error() != "broken base" {
		t.Errorf("%v", err)
	}
}

func TestFrontAndGoals(t *testing.T) {
	ax := []Axis{{"switches.all.buffer.size", []string{"1MB", "2MB", "3MB", "4MB"}}}
	p := func(size string, good, p99, pause float64, drops uint64, ok bool) Point {
		return Point{Values: []string{size}, OK: ok, Goodput: Spread{Mean: good}, P99: Spread{Mean: p99}, Pause: Spread{Mean: pause}, Drops: drops}
	}
	points := []Point{
		p("1MB", 20, 50, 0, 9, true),    // loses: pausing less is no merit, but the smallest
		p("2MB", 10, 40, 0.3, 0, true),  // smallest without loss
		p("3MB", 10, 30, 0.2, 0, true),  // lowest p99
		p("4MB", 9, 35, 0.25, 0, true),  // beaten by 3MB
		p("3MB", 99, 1, 0, 0, false),    // did not finish
		p("4MB", 11, 45, 0.01, 0, true), // best goodput without loss, least pause
	}
	for i, span := range []float64{1, 300, 200, 100, 1, 150} {
		points[i].Completion.Mean = span
	}
	for goal, best := range map[Goal]int{SmallestBuffer: 1, LowestP99: 2, HighestGoodput: 5, LeastPause: 5, ShortestCompletion: 3} {
		for i := range points {
			points[i].Best = false
		}
		if err := Mark(points, ax, goal); err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, true, true, false, false, true} {
			if points[i].Front != want || points[i].Best != (i == best) {
				t.Errorf("%s: point %d front %v best %v", goal, i, points[i].Front, points[i].Best)
			}
		}
	}
	if err := Mark(points, []Axis{{"rnics.all.qp.timeout", []string{"1"}}}, SmallestBuffer); err == nil {
		t.Error("smallest buffer without a buffer axis")
	}
	if _, err := ParseGoal("fastest"); err == nil || !strings.Contains(err.Error(), "lowest-p99") {
		t.Errorf("%v", err)
	}
}

func TestPictures(t *testing.T) {
	g := Grid{Load: fanInLoader(t), Axes: axes(t, "switches.all.pfc.alpha=1/64,1/8", "switches.all.pfc.headroom=auto,10KB")}
	points, err := g.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := Mark(points, g.Axes, ""); err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := errors.Join(Picture(&a, g.Axes, points), FrontPicture(&b, points)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "goodput, Gbit/s", "frames dropped", "10KB"} {
		if !strings.Contains(a.String(), want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if !strings.Contains(b.String(), "Pareto") {
		t.Error("no front")
	}
}

// TestCompletionOfWhatDidNotEnd: a line that the run's end cut off took the run.
func TestCompletionOfWhatDidNotEnd(t *testing.T) {
	load := fanInLoader(t)
	var got []Metrics
	for _, set := range []string{"run.until=20us", "run.until=10ms"} {
		plan, err := load([]string{set}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Simulate(context.Background(), plan)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
	}
	if cut, whole := got[0].Completion, got[1].Completion; cut != got[0].VirtualNS || whole <= cut || whole >= got[1].VirtualNS {
		t.Errorf("cut off after %v: %v, whole %v", got[0].VirtualNS, cut, whole)
	}
}
