package coord

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// simMutant is a mistake that the simulation must find: other text in a few
// source files. The mistakes live here alone; a compiler overlay puts them in.
type simMutant struct {
	name  string
	edits []simEdit
}

type simEdit struct{ file, old, new string }

var simMutants = []simMutant{
	{"a window runs past the grant", []simEdit{{"gate.go", "if end > g.grant {", "if end > g.grant.Add(2*clock.Microsecond) {"}}},
	{"a fault takes effect now", []simEdit{{"state.go", "r.Grant, max(f.Want, r.Grant)", "r.Grant, max(f.Want, r.Grant.Add(-2*clock.Microsecond))"}}},
	{"a stop in the past takes the present", []simEdit{{"state.go", "case e.At > 0 && at != e.At:", "case e.At > 0 && at != e.At && false:"}}},
	{"a window skips over a fault", []simEdit{{"gate.go", "if g.faults[i].Base < end {", "if g.faults[i].Base < 0 {"}}},
	{"a new incarnation does not know the faults of its state", []simEdit{{"agent.go", "w.faults = append([]Fault(nil), r.Faults...)", "w.faults = nil"}}},
	{"a state does not say which faults it has", []simEdit{{"slot.go", "held: r.gate.pending()}", "held: nil}"}}},
	{"a state lacks the other slots' summary", []simEdit{{"slot.go", "c.merged, c.wide = e.Merged()", "_, c.wide = e.Merged()"}}},
	{"a state does not say that a round comes next", []simEdit{{"slot.go", "c.merged, c.wide = e.Merged()", "c.merged, _ = e.Merged(); c.wide = 1"}}},
	{"batches are collected when a state is taken", []simEdit{{"slot.go", "\tr.taken = b\n", "\tr.taken = b\n\tif x := r.carrier.Load(); x != nil {\n\t\tx.Committed(n)\n\t}\n"}}},
	{"batches are collected past the checkpoint", []simEdit{{"agent.go", "commit = r.Ckpts[k-1].N", "commit = r.Ckpts[k-1].N + 8"}}},
	{"a superseded incarnation's state counts", []simEdit{
		{"ckptstate.go", "if b.Inc != r.Slots[i].Inc {", "if b.Inc > r.Slots[i].Inc {"},
		{"ckptlead.go", "|| k.Blob.Inc != r.Slots[i].Inc {", "{"},
	}},
	{"a checkpoint goes without one slot's state", []simEdit{{"ckptlead.go", "\t\t\treturn nil\n\t\t}\n\t\tc.N =", "\t\t\tif i == 0 {\n\t\t\t\treturn nil\n\t\t\t}\n\t\t\tk = l.ckpts[0]\n\t\t\tk.Blob.Inc = r.Slots[i].Inc\n\t\t}\n\t\tc.N ="}}},
	{"a command is executed as often as it comes", []simEdit{
		{"state.go", "if r, ok := s.Results[e.Cmd]; ok {", "if r, ok := s.Results[e.Cmd]; ok && false {"},
		{"api.go", "r, ok = s.Results[cmd]", "r, ok = s.Results[cmd+\"?\"]"},
	}},
	{"a rollback leaves the incarnations", []simEdit{{"ckptstate.go", "r.Slots[i].Inc++", "r.Slots[i].Inc += 0"}}},
	{"a damaged state is used", []simEdit{{"blob.go", "if got := SumOf(b); got != sum {", "if got := SumOf(b); got != sum && false {"}}},
	{"a lost batch is asked for once", []simEdit{{"../actors/natsbus/carrier.go", "\t\t\ttimer.Reset(p.wait)\n\t\t}", "\t\t\ttimer.Reset(time.Hour)\n\t\t}"}}},
	{"a collected batch ends the run at once", []simEdit{{"../actors/natsbus/carrier.go", "\t\t\tif p.head > n+1", "\t\t\tif !p.gone.IsZero() {\n\t\t\t\treturn nil, &GapError{Src: src, From: n}\n\t\t\t}\n\t\t\tif p.head > n+1"}}},
	{"a damaged object stays", []simEdit{{"blob.go", "if _, err = j.Get(ctx, sum); err == nil {\n\t\t\treturn sum, nil\n\t\t}", "{\n\t\t\t_, err = j.Get(ctx, sum)\n\t\t\treturn sum, err\n\t\t}"}}},
	{"a zombie's repeated batch is not compared but used", []simEdit{{"../actors/natsbus/carrier.go", "delete(p.parts, n)\n\tp.next = n + 1", "delete(p.parts, n)\n\tp.next = n + 1 + uint64(len(p.parts)/40)"}}},
	{"a snapshot within a leap to the end is lost", []simEdit{{"slot.go", "if b := r.gate.plan; b < at ||", "if b := r.gate.plan; b < at && false ||"}}},
	{"a snapshot where the run is stopped is lost", []simEdit{{"slot.go", "b == at && r.gate.stop == at", "b == at && false"}}},
	{"a fault between a snapshot and the end of its window is lost", []simEdit{
		{"gate.go", "if f := r.Faults[g.seen]; g.seen >= g.known ||", "if f := r.Faults[g.seen]; g.seen >= g.known && f.Eff >= g.upTo ||"},
		{"gate.go", "\theld    map", "\tupTo clock.Time\n\theld    map"},
		{"slot.go", "r.gate.known, r.gate.held = c.known, held", "r.gate.known, r.gate.held, r.gate.upTo = c.known, held, c.merged.Next.Add(clock.Duration(c.wide)*500*clock.Nanosecond)"},
	}},
	{"a stop stays in a snapshot", []simEdit{{"ckpt.go", "m.Stop = clock.Never // the gate", "// the gate"}}},
	{"a snapshot's faults may lie in its past", []simEdit{{"state.go", "r.Grant = c.reached()", "r.Grant = c.B"}}},
	{"the faults of a state are counted by instant", []simEdit{{"slot.go", "known = sortFaults(known[:min(c.known, len(known))])", "known = sortFaults(known)[:min(c.known, len(known))]"}}},
	{"no checkpoint before the first window", []simEdit{{"slot.go", "r.node.usage().cpu, -1", "r.node.usage().cpu, 0"}}},
	{"no second snapshot where a run was restored", []simEdit{{"slot.go", "= c.known, held\n", "= c.known, held\n\tr.taken = r.start.B\n"}}},
	{"a run fails when who keeps its snapshot is away", []simEdit{{"slot.go", "if err == nil || !r.first ||", "if err == nil || r.first || !r.first ||"}}},
	{"a state is reported once", []simEdit{{"slot.go", "B: b, Blob: *stored})\n", "B: b, Blob: *stored})\n\t\t\treturn\n"}}},
	{"the end of a run waits briefly for a snapshot", []simEdit{{"slot.go", "const snapshotWait = 2 * time.Minute", "const snapshotWait = 5 * time.Second"}}},
	{"a checkpoint that is far off is late", []simEdit{{"ckptlead.go", "case p != l.plan || f.m <= p.b:\n\t\tl.plan, l.planN = p, none", "case p != l.plan:\n\t\tl.plan, l.planN, l.planAt = p, 0, time.Now()"}}},
	{"nobody is evicted or replaced", []simEdit{
		{"leader.go", "case !alive && ok && k.Up:", "case !alive && ok && k.Up && false:"},
		{"leader.go", "old.Up && old.Boot != m.Boot {", "old.Up && old.Boot == m.Boot {"},
	}},
}

// TestSimulationFindsMutants compiles the package with each mistake and wants
// the simulation to fail. SIM_MUTANTS=1 asks for it, since it takes minutes:
// SIM_MUTANTS=text takes the mutants whose name has the text.
func TestSimulationFindsMutants(t *testing.T) {
	want := os.Getenv("SIM_MUTANTS")
	if want == "" {
		t.Skip("SIM_MUTANTS=1 runs it")
	}
	killed, n := 0, 0
	for _, m := range simMutants {
		if want != "1" && !strings.Contains(m.name, want) {
			continue
		}
		n++
		t.Run(m.name, func(t *testing.T) {
			if why := m.kill(t); why != "" {
				killed++
				t.Log(why)
			} else {
				t.Errorf("%d seeds did not find it", simMutantSeeds)
			}
		})
	}
	t.Logf("%d of %d mutants were found", killed, n)
}

// simMutantSeeds is how many seeds a mutant may survive.
var simMutantSeeds = simNumber("SIM_SEEDS", 1000)

var simReason = regexp.MustCompile(`(?m)seed \d+: .*|^panic: .*|^fatal error: .*|test timed out.*`)

// kill runs the simulation with the mistake and returns what it said, "" when
// it saw nothing.
func (m *simMutant) kill(t *testing.T) string {
	dir := t.TempDir()
	replace := map[string]string{}
	for i, e := range m.edits {
		path, err := filepath.Abs(e.file)
		if err != nil {
			t.Fatal(err)
		}
		from := path
		if replace[path] != "" {
			from = replace[path]
		}
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if c := strings.Count(string(b), e.old); c != 1 {
			t.Fatalf("%s has %q %d times: the mutant is out of date", e.file, e.old, c)
		}
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[path], []byte(strings.Replace(string(b), e.old, e.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	b, _ := json.Marshal(map[string]any{"Replace": replace})
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	c := exec.Command(bin, "-test.run", "^TestSimulatedCluster$", "-test.timeout", "5m")
	c.Env = append(os.Environ(), fmt.Sprintf("SIM_SEEDS=%d", simMutantSeeds), "SIM_FAILURES=1", "SIM_SEED=")
	out, err := c.CombinedOutput()
	if err == nil {
		return ""
	}
	if s := simReason.FindString(string(out)); s != "" {
		return s[:min(len(s), 400)]
	}
	return string(out[:min(len(out), 400)])
}
