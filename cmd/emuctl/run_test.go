package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// An interrupt cancels the context: the run stops at a window end and reports
// what there is.
func TestInterruptedRunReportsLimit(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	a := &app{out: &out, err: &errs, json: true}
	err := a.runFabric(ctx, []string{"../../examples/two-racks.yaml"}, &runFlags{})
	var e exitError
	if !errors.As(err, &e) || e.code != report.ExitLimit {
		t.Fatalf("error %v, want exit code %d", err, report.ExitLimit)
	}
	for _, want := range []string{`"verdict": "limit"`, `"status": "unfinished"`, `"why": "`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in the result", want)
		}
	}
}

func TestProgressLine(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, &topology.Plan{Run: topology.Run{Until: topology.UntilTime}})
	p.show(sim.Progress{Virtual: 1_000_000, Until: 5_000_000, Hops: 3_000_000, Outstanding: 7, Wall: 2 * time.Second})
	for _, want := range []string{"1us virtual", "3.0 M hops", "1.50 M hops/s", "7 requests", "ETA 8s"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
	b.Reset()
	if p.line(sim.Progress{Virtual: 1_000_000}, false); !strings.Contains(b.String(), "1us virtual") || strings.Contains(b.String(), "hops") {
		t.Errorf("with unknown work: %q", b.String())
	}
	idle := newProgress(&b, &topology.Plan{})
	if left := idle.remaining(sim.Progress{Outstanding: 100, Wall: time.Second, Until: clock.Time(clock.Second)}); left != 0 {
		t.Errorf("a forecast of %v before anything is done", left)
	}
	if left := idle.remaining(sim.Progress{Outstanding: 25, Wall: 3 * time.Second}); left != time.Second {
		t.Errorf("75 of 100 done in 3 s leaves %v, want 1s", left)
	}
}

func TestCaptureArguments(t *testing.T) {
	plan, _, err := topology.Load(topology.LoadOptions{Files: []string{"../../examples/two-racks.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := captures(plan, []string{"leaf1:2=x.pcapng"})
	if err != nil || len(c) != 1 || plan.Devices[c[0].Dev].Name != "leaf1" || c[0].Port != 2 || c[0].File != "x.pcapng" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"leaf1=x", "leaf1:x=y", "leaf1:99=x", "none:1=x", "leaf1:1="} {
		if _, err := captures(plan, []string{bad}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Every verb has an example, and --json.
func TestEveryVerbHasAnExample(t *testing.T) {
	root := (&app{out: &bytes.Buffer{}, err: &bytes.Buffer{}}).newRoot()
	for _, c := range root.Commands() {
		if c.Example == "" {
			t.Errorf("%s has no example", c.Name())
		}
		if c.InheritedFlags().Lookup("json") == nil {
			t.Errorf("%s has no --json", c.Name())
		}
	}
}

func TestSplitPos(t *testing.T) {
	for pos, want := range map[string][3]any{
		"a/b.yaml:12:3": {"a/b.yaml", 12, 3}, "x": {"x", 0, 0}, "": {"", 0, 0}, "c:/d.yaml:1:2": {"c:/d.yaml", 1, 2},
	} {
		f, l, c := splitPos(pos)
		if f != want[0] || l != want[1] || c != want[2] {
			t.Errorf("%q: %q %d %d", pos, f, l, c)
		}
	}
}

// TestPcapKeepsOffATerminal: a capture is not written where a person reads.
func TestPcapKeepsOffATerminal(t *testing.T) {
	for _, f := range []pcapFlags{{Write: "-"}, {Write: "-", File: []string{"../../examples/two-racks.yaml"}}} {
		var out, errs bytes.Buffer
		a := &app{out: &out, err: &errs, outTTY: true}
		if err := a.runPcap(context.Background(), "rnic1:1", &f); err == nil || !strings.Contains(err.Error(), "-w FILE") || out.Len() > 0 {
			t.Errorf("%v: %v, %d bytes", f.File, err, out.Len())
		}
	}
}
