package topology

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
)

const twoRacks = `schema: 1
name: two-racks
seed: 42
topology:
  spines: 2
  leaves: 2
  servers: 4
workload:
  - {name: bulk, from: rnic1, to: rnic5, verb: write, size: 10MB, count: 4}
  - {name: burst, pattern: incast, from: [rnic1, rnic2, rnic3], to: rnic8, verb: write, size: 1MB}
  - {name: perm, pattern: permutation, shift: 4, verb: write, size: 250KB}
faults:
  - {name: cut, kind: link-down, target: "leaf1:uplink1", at: 1ms, for: 500us}
  - {name: lose, kind: drop, target: "rnic1:1", at: 0us, match: {dir: out, psn_index: 3}, count: 1}
  - "drop rnic2:1 dir=out psn_index=3 count=1"
expect:
  - totals.dropped_frames == 0
`

// load resolves a text and demands that its resolved text gives the same plan.
func load(t *testing.T, text string, sets ...string) *Plan {
	t.Helper()
	p, _, err := ParseBytes("fabric.yaml", []byte(text), sets...)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if len(p.Devices) > 200 || len(p.Flows) > 1000 {
		return p
	}
	q, _, err := LoadBytes("resolved.yaml", p.Resolved())
	if err != nil {
		t.Fatalf("resolved text does not load: %v\n%s", err, p.Resolved())
	}
	if q.Hash != p.Hash || !reflect.DeepEqual(p.Devices, q.Devices) || !reflect.DeepEqual(p.QPs, q.QPs) || !reflect.DeepEqual(p.Flows, q.Flows) {
		t.Fatalf("resolved text gives another plan:\n%s", p.Resolved())
	}
	return p
}

// TestTelemetryDefaults are those of docs/telemetry.md, also when the section
// names something else.
func TestTelemetryDefaults(t *testing.T) {
	p := load(t, twoRacks, "telemetry.otlp=127.0.0.1:4317")
	if p.Telem.Scale != 1000 || p.Telem.Interval != 100*clock.Microsecond {
		t.Errorf("%+v, want scale 1000, interval 100us", p.Telem)
	}
}

// TestModelHash is the same whoever watches, and another for another run.
func TestModelHash(t *testing.T) {
	p := load(t, twoRacks)
	for _, set := range []string{"telemetry.otlp=127.0.0.1:4317", "capture=[{port: \"leaf1:1\", file: x.pcapng}]", "expect=[]"} {
		if q := load(t, twoRacks, set); q.Model != p.Model || q.Hash == p.Hash {
			t.Errorf("with %s: model %x, without %x", set, q.Model, p.Model)
		}
	}
	for _, set := range []string{"workload.bulk.size=1MB", "faults=[]", "seed=43"} {
		if q := load(t, twoRacks, set); q.Model == p.Model {
			t.Errorf("with %s: the same model", set)
		}
	}
}

// TestResolvedRoundTrip loads the resolved text and demands the same plan.
func TestResolvedRoundTrip(t *testing.T) {
	p := load(t, twoRacks)
	q, _, err := LoadBytes("resolved", p.Resolved())
	if err != nil {
		t.Fatalf("resolved text does not load: %v\n%s", err, p.Resolved())
	}
	if string(p.Resolved()) != string(q.Resolved()) || p.Hash != q.Hash {
		t.Fatalf("resolved text changed:\n%s\n---\n%s", p.Resolved(), q.Resolved())
	}
	if len(p.Flows) != len(q.Flows) || p.Window != q.Window || p.Run != q.Run {
		t.Fatalf("plans differ")
	}
	if !strings.Contains(string(p.Resolved()), "preset: paper") {
		t.Error("defaults are not filled in")
	}
}
