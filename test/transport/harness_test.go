// Package transport drives the RC transport through the composition that
// `emuctl run` uses: exact ladders, the public problem reports of
// examples/reports, path migration, random losses, memory, integrity.
package transport

import (
	"context"
	"testing"

	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// outcome is a finished run: its result, its records, its nodes.
type outcome struct {
	*report.Result
	plan *topology.Plan
	rec  []record.Record
	fab  *sim.Fabric
}

// nic returns RNIC number k.
func (o *outcome) nic(k uint32) *rnic.RNIC {
	return o.fab.Nodes[o.plan.RNICs[k-1]].(*rnic.RNIC)
}

// of returns the records of a kind made by RNIC number k.
func (o *outcome) of(k uint32, kind record.Kind) []record.Record {
	var out []record.Record
	for _, r := range o.rec {
		if r.Kind == kind && r.Dev == o.plan.RNICs[k-1] {
			out = append(out, r)
		}
	}
	return out
}

// load reads a fabric from text.
func load(t testing.TB, text string) *topology.Plan {
	t.Helper()
	plan, _, err := topology.LoadBytes("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// execute runs a plan on one worker and judges its expectations.
func execute(t testing.TB, plan *topology.Plan) *outcome {
	t.Helper()
	o := &outcome{plan: plan}
	res, err := sim.Run(context.Background(), plan, sim.Options{
		Workers: 1,
		Records: func(r []record.Record) { o.rec = append(o.rec, r...) },
		OnBuild: func(f *sim.Fabric) error { o.fab = f; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Result = res
	if err := sim.Judge(plan, res); err != nil {
		t.Fatal(err)
	}
	if res.Verdict == report.Failed {
		t.Fatalf("failed: %s", res.VerdictReason)
	}
	return o
}

// run is load and execute.
func run(t testing.TB, text string) *outcome {
	t.Helper()
	return execute(t, load(t, text))
}

// pair is the head of a file with two RNICs on one leaf.
const pair = `schema: 1
name: test
topology: {spines: 0, leaves: 1, servers: 2, links: {server: {rate: 100Gbps, length: 100m}}}
`
