package telemetry

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/telemetry/chain"
	"github.com/rocemu/rocemu/topology"
)

// lossy loses a packet in the middle of one request and the last packet of
// another, and the acknowledgement of a third.
const lossy = `
schema: 1
name: lossy
topology: {spines: 2, leaves: 2, servers: 2}
rnics: {all: {qp: {timeout: 8}}}
workload:
  - {name: one, from: rnic1, to: rnic3, verb: write, size: 100KB, count: 3}
  - {name: two, from: rnic2, to: rnic4, verb: read, size: 50KB}
faults:
  - {name: middle, kind: drop, target: "leaf1:1", at: 0us, match: {dir: in, psn_index: 4}, count: 1}
  - {name: tail, kind: drop, target: "leaf1:1", at: 0us, match: {dir: in, psn_index: 196}, count: 1}
  - {name: response, kind: drop, target: "leaf2:2", at: 0us, match: {dir: in, psn_index: 9}, count: 1}
`

// watch runs text under a session and returns result, chains and the file.
func watch(t *testing.T, text string, workers int) (*report.Result, []chain.Line, string) {
	t.Helper()
	plan, _, err := topology.ParseBytes("lossy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := NewSession(plan, Options{Endpoints: []string{"file:" + dir + "/spans.jsonl"}, Epoch: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	var snap counters.Snapshot
	r, err := sim.Run(context.Background(), plan, sim.Options{
		Workers: workers, Records: s.Records, Sampler: sim.Every(10 * clock.Microsecond),
		Sample: func(at clock.Time, f *sim.Fabric) { f.Snapshot(at, &snap); s.Snapshot(&snap) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Finish(r)
	if err := s.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	lines, err := report.ReadLines[report.ChainLine](dir + "/" + report.ChainsFile)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "/spans.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return r, lines, string(b)
}

func TestChainsOfARun(t *testing.T) {
	r, lines, spans := watch(t, lossy, 1)
	var got []string
	for _, l := range lines {
		var steps []string
		for i, s := range l.Steps {
			if i == 0 || s.Name != l.Steps[i-1].Name {
				steps = append(steps, s.Name+"@"+s.Device)
			}
		}
		got = append(got, l.Flow+" "+l.Cause+"/"+l.Steps[0].Fault+" "+l.Outcome+": "+strings.Join(steps, " "))
	}
	want := []string{
		"one fault/middle recovered: loss@leaf1 gap@rnic3 nak sent@rnic3 nak@rnic1 go back@rnic1 retransmit@rnic1 recovery@rnic1",
		"two fault/response recovered: loss@leaf2 implied nak@rnic2 go back@rnic2 retransmit@rnic2 recovery@rnic2",
		"one fault/tail recovered: loss@leaf1 timeout@rnic1 go back@rnic1 retransmit@rnic1 recovery@rnic1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	n := r.Telemetry
	if n.ChainsMade != 3 || n.ChainsListed != 3 || len(r.Traces) != 3 || n.MissingRecords != 0 {
		t.Errorf("account %+v, %d traces", n, len(r.Traces))
	}
	if e := n.Exports[0]; e.ChainsExported != 3 || e.ChainsDropped != 0 || e.SpansExported < 100 {
		t.Errorf("export %+v", e)
	}
	for _, tr := range r.Traces {
		if !tr.Recovered || tr.Retries != 1 || tr.Cause != "fault" || !strings.Contains(spans, tr.SpanIDs[0]) {
			t.Errorf("trace %+v", tr)
		}
	}
	if len(slices.Collect(r.Detail.Series)) == 0 {
		t.Error("no series")
	}
}

// Chains and their ids do not depend on the number of workers.
func TestChainsAreReproducible(t *testing.T) {
	_, one, _ := watch(t, lossy, 1)
	_, two, _ := watch(t, lossy, 3)
	if d := cmp.Diff(one, two); d != "" {
		t.Error(d)
	}
	_, other, _ := watch(t, "seed: 9\n"+lossy, 1)
	if one[0].Trace == other[0].Trace {
		t.Error("runs of different seeds have the same trace id")
	}
}
