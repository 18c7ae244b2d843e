package split

import (
	"context"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// run runs a fabric file and splits its flows.
func run(t *testing.T, text string) []Split {
	t.Helper()
	plan, _, err := topology.ParseBytes("split.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w := New(plan)
	see := func(s *Sighting) {
		if !w.See(s) {
			t.Fatalf("refused: %+v", s)
		}
	}
	var taps *Taps
	var fab *sim.Fabric
	o := sim.Options{
		OnBuild: func(f *sim.Fabric) error { fab, taps = f, w.Tap(f); return nil },
		Records: func(b []record.Record) { w.Records(b) },
		Between: func(clock.Time, uint64) { taps.Read(see) },
	}
	r, err := sim.Run(context.Background(), plan, o)
	if err != nil {
		t.Fatal(err)
	}
	taps.Read(see)
	out := w.Finish(fab.Samples(clock.Time(r.VirtualNS)))
	if len(out) != len(plan.Flows) {
		t.Fatalf("%d splits of %d flows", len(out), len(plan.Flows))
	}
	for _, s := range out {
		var sum clock.Duration
		for i, d := range s.Parts {
			if sum += d; d < 0 {
				t.Errorf("flow %d: %s is %v", s.Flow, Names[i], d)
			}
		}
		if sum != s.End.Sub(s.Start) {
			t.Errorf("flow %d: parts add up to %v, it took %v", s.Flow, sum, s.End.Sub(s.Start))
		}
	}
	return out
}

// One SEND between leaves on an idle fabric: every term is known (switch case
// C40(b), and the acknowledgement of 66 B on the way back).
func TestIdle(t *testing.T) {
	s := run(t, `
schema: 1
name: idle
topology: {spines: 2, leaves: 2, servers: 1, links: {server: {rate: 25Gbps, length: 3m}, uplink: {rate: 100Gbps, length: 30m}}}
switches: {all: {latency: 1us}}
rnics: {all: {latency: 0ns}}
workload: [{name: one, from: rnic1, to: rnic2, verb: send, size: 1020B}]
`)[0]
	const ns = clock.Nanosecond
	want := [NumParts]clock.Duration{Pipeline: 6000 * ns, Fibre: 660 * ns, Serialisation: 881600 + 68800}
	if s.Parts != want {
		t.Errorf("parts %v, want %v", s.Parts, want)
	}
}

const lossFile = `
schema: 1
name: loss
topology: {spines: 1, leaves: 2, servers: 2}
rnics: {all: {congestion: none}}
workload: [{name: one, from: rnic1, to: rnic3, verb: %, size: 50KB, count: 3}]
faults: [{name: lose, kind: drop, target: "leaf1:1", at: 0us, match: {psn_index: 20}, count: 1}]
`

// A loss shows as retransmission; without it there is none.
func TestLoss(t *testing.T) {
	for _, verb := range []string{"write", "read"} {
		text := ""
		for _, c := range lossFile {
			if c == '%' {
				text += verb
			} else {
				text += string(c)
			}
		}
		lost := run(t, text)[0]
		clean := run(t, text[:len(text)-len(`faults: [{name: lose, kind: drop, target: "leaf1:1", at: 0us, match: {psn_index: 20}, count: 1}]
`)])[0]
		if lost.Parts[Retransmission] == 0 || clean.Parts[Retransmission] != 0 {
			t.Errorf("%s: retransmission %v with a loss, %v without", verb, lost.Parts[Retransmission], clean.Parts[Retransmission])
		}
		if more := lost.End.Sub(lost.Start) - clean.End.Sub(clean.Start); more > lost.Parts[Retransmission]+2*clock.Microsecond {
			t.Errorf("%s: the loss cost %v, of which only %v are booked as retransmission", verb, more, lost.Parts[Retransmission])
		}
		if clean.Parts[Serialisation] < clean.End.Sub(clean.Start)/3 {
			t.Errorf("%s: only %v of %v is serialisation on an idle fabric", verb, clean.Parts[Serialisation], clean.End.Sub(clean.Start))
		}
	}
}

// Incast: the senders wait in queues and for pauses.
func TestIncast(t *testing.T) {
	var queue, pause clock.Duration
	for _, s := range run(t, `
schema: 1
name: incast
topology: {spines: 1, leaves: 2, servers: 4}
switches: {all: {buffer: {size: 1MiB}, ecn: {kmin: 1MB, kmax: 2MB, pmax: 0}}}
rnics: {all: {congestion: none}}
workload: [{name: burst, pattern: incast, from: [rnic1, rnic2, rnic3, rnic4, rnic5, rnic6], to: rnic8, verb: write, size: 400KB}]
`) {
		queue, pause = queue+s.Parts[Queue], pause+s.Parts[Pause]
		if s.Parts[Retransmission] != 0 {
			t.Errorf("flow %d: %v of retransmission without a loss", s.Flow, s.Parts[Retransmission])
		}
	}
	if queue == 0 || pause == 0 {
		t.Errorf("queue %v, pause %v: both must show", queue, pause)
	}
}
