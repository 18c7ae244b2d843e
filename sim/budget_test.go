package sim_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
)

const roomy = `
schema: 1
name: roomy
topology: {spines: 2, leaves: 4, servers: 16}
workload: [{name: perm, pattern: permutation, shift: 16, verb: write, size: 100KB}]
`

// TestBudgetRefuses a run whose estimate is above run.memory, before anything
// is built, and lets one run that fits.
func TestBudgetRefuses(t *testing.T) {
	_, err := sim.Run(context.Background(), parse(t, roomy, "run.memory=20MiB"), sim.Options{Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "roomy needs about") || !strings.Contains(err.Error(), "run.memory allows 20") {
		t.Errorf("20 MiB: %v", err)
	}
	if r := run(t, parse(t, roomy, "run.memory=4GiB"), 1); r.Verdict != report.Complete {
		t.Errorf("4 GiB: %s", r.Verdict)
	}
}

// TestBudgetStops a run that grows beyond run.memory although the estimate let
// it start.
func TestBudgetStops(t *testing.T) {
	p := parse(t, roomy, "run.until=50ms", "workload.perm.count=forever", "workload.perm.size=1KB")
	p.Run.Memory = sim.Foresee(p).Memory + 1
	ballast := make([]byte, p.Run.Memory)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	r, err := sim.Run(context.Background(), p, sim.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != report.Limit || !strings.Contains(r.VerdictReason, "run.memory") || ballast[0] != 1 {
		t.Errorf("verdict %s: %s", r.Verdict, r.VerdictReason)
	}
}
