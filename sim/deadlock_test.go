package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// ringFile is four switches in a ring, a host each, all routes clockwise.
func ringFile() string {
	b := &strings.Builder{}
	b.WriteString("schema: 1\nrun: {until: 3ms}\ntopology:\n  links: {server: {rate: 100Gbps, length: 100m}, uplink: {rate: 100Gbps, length: 100m}}\n  nodes:\n")
	for i := 1; i <= 4; i++ {
		fmt.Fprintf(b, "    - {name: s%d, kind: leaf}\n    - {name: h%d, kind: rnic}\n", i, i)
	}
	b.WriteString("  cables:\n")
	for i := 1; i <= 4; i++ {
		fmt.Fprintf(b, "    - {ends: [\"s%d:1\", \"h%d:1\"]}\n    - {ends: [\"s%d:2\", \"s%d:3\"]}\n", i, i, i, i%4+1)
	}
	b.WriteString("  routes:\n")
	for i := 1; i <= 4; i++ {
		fmt.Fprintf(b, "    - {at: s%d, to: h%d, via: \"s%d:2\"}\n", i, (i+1)%4+1, i)
	}
	b.WriteString("switches: {all: {buffer: {size: 600KB}}}\nrnics: {all: {congestion: none}}\nworkload:\n")
	for i := 1; i <= 4; i++ {
		fmt.Fprintf(b, "    - {name: f%d, from: h%d, to: h%d, verb: write, size: 100MB}\n", i, i, (i+1)%4+1)
	}
	return b.String()
}

// TestSC36Instant: S-C36d as a run. The instant at which the cycle closed does
// not depend on windows or workers, nor on whether the switches' waits met
// only at the end.
func TestSC36Instant(t *testing.T) {
	var want []report.Deadlock
	for _, c := range []struct {
		window  string
		workers int
	}{{"auto", 1}, {"auto", 4}, {"200ns", 1}, {"7ns", 2}} {
		p, _, err := topology.ParseBytes("ring", []byte(ringFile()), "run.window="+c.window)
		if err != nil {
			t.Fatal(err)
		}
		var fab *Fabric
		var notes []record.Record
		res, err := Run(context.Background(), p, Options{
			Workers: c.workers, OnBuild: func(f *Fabric) error { fab = f; return nil },
			Records: func(rs []record.Record) {
				for _, r := range rs {
					if r.Kind == record.Deadlock {
						notes = append(notes, r)
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		d := res.Deadlocks
		if len(d) != 1 || strings.Join(d[0].Cycle, " ") != "s1:2/3 s2:2/3 s3:2/3 s4:2/3" {
			t.Fatalf("%+v: %v", c, d)
		}
		if want == nil {
			want = d
		}
		if d[0].AtNS != want[0].AtNS || len(notes) != 1 || report.NS(notes[0].At) != d[0].AtNS {
			t.Errorf("%+v: closed at %v (record %v), with one window size at %v", c, d[0].AtNS, notes, want[0].AtNS)
		}
		if !slices.ContainsFunc(res.Findings, func(f report.Finding) bool { return f.Code == "deadlock" && f.Where == "s1:2/3" }) {
			t.Errorf("findings %v", res.Findings)
		}
		late, parts := NewDeadlocks(p), fab.Parts(p.Run.At) // whose waits meet only at the end
		waits := fab.Waits(p.Run.At, true)
		if again := fab.Waits(p.Run.At, false); len(waits) != 4 || len(again) != 0 {
			t.Errorf("%d of 4 switches told their waits, %d again", len(waits), len(again))
		}
		late.Look(waits)
		late.place(parts)
		if got := partOf(parts, "s1").Deadlocks; len(got) != 1 || got[0].AtNS != want[0].AtNS {
			t.Errorf("from parts: %v, want %v", got, want)
		}
	}
}

// TestSC31Finding: the victim of head-of-line blocking is named, the flows
// that cause the congestion are not.
func TestSC31Finding(t *testing.T) {
	p, _, err := topology.ParseBytes("pod", []byte(`schema: 1
run: {until: 2ms}
topology: {spines: 1, leaves: 2, servers: 4, links: {server: {rate: 100Gbps, length: 3m}, uplink: {rate: 100Gbps, length: 30m}}}
switches: {all: {buffer: {size: 1MiB}}}
rnics: {all: {congestion: none}}
workload:
  - {name: toR, pattern: incast, from: [rnic1, rnic2], to: rnic5, verb: write, size: 100MB}
  - {name: local, from: rnic6, to: rnic5, verb: write, size: 100MB}
  - {name: victim, from: rnic3, to: rnic6, verb: write, size: 100MB, rate: 10Gbps}
  - {name: free, from: rnic7, to: rnic8, verb: write, size: 100MB}
`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range res.Findings {
		if f.Code == "head-of-line-victim" {
			got = append(got, f.Where)
			if !strings.Contains(f.Text, "not the congested leaf2:1") {
				t.Error(f.Text)
			}
		}
	}
	if len(got) != 1 || got[0] != "victim" {
		t.Errorf("victims %v, want [victim]", got)
	}
}
