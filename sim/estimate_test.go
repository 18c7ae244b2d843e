package sim

import (
	"context"
	"testing"

	"github.com/rocemu/rocemu/topology"
)

const estimateFile = `
schema: 1
name: estimate
topology: {spines: 4, leaves: 4, servers: 8}
rnics: {all: {ack: every}}
workload: [{name: p, pattern: permutation, shift: 8, verb: write, size: 100KB, count: 2}]
`

// TestForesee compares the estimate with the run: hops to a percent, the span
// within what collisions of the hash cost.
func TestForesee(t *testing.T) {
	plan, _, err := topology.ParseBytes("estimate.yaml", []byte(estimateFile))
	if err != nil {
		t.Fatal(err)
	}
	e := Foresee(plan)
	res, err := Run(context.Background(), plan, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, est, real, low, high float64) {
		if est < real*low || est > real*high {
			t.Errorf("%s: estimated %.4g, was %.4g", what, est, real)
		}
	}
	near("hops", e.Hops, float64(res.Engine.FrameHops), 0.99, 1.01)
	near("events", e.Events, float64(res.Engine.Events), 0.7, 1.4)
	near("span", float64(e.Span), float64(res.VirtualNS), 0.3, 1.05)
	near("requests", e.Requests, 64, 1, 1)
	if e.BottleneckDev < 0 || e.Memory < memBase {
		t.Errorf("%+v", e)
	}
}
