package report

import (
	"runtime"
	"testing"

	"github.com/rocemu/rocemu/clock"
)

// A run of millions of one-request flows (2048 ranks all-to-all are 4 192 256)
// must fit beside its fabric: samples cost 21 B a request, merging about 100 B
// a flow.
func TestMergeOfManyFlowsFits(t *testing.T) {
	const flows, perFlow = 400_000, 200
	m := &Meta{
		NumFlows: flows, Lines: []LineMeta{{Name: "all", Flows: flows}},
		Flow: func(int32) FlowMeta { return FlowMeta{From: 1, To: 2, Size: 65536, Count: 1, Ideal: 1000} },
		RNIC: func(uint32) string { return "rnic" },
	}
	p := &Part{Device: "rnic1"}
	for i := range int32(flows) {
		p.Samples.Add(i, clock.Time(i), clock.Time(i)+1000+clock.Time(i%997), Success)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := Merge([]*Part{p}, m, End{Verdict: Complete}, Engine{}, "")
	runtime.ReadMemStats(&after)
	f := r.Flows["all"]
	if f.Completed != flows || r.Totals.Completed != flows || f.FCT.Max != 1996 || f.FCT.P50 != 1498 {
		t.Errorf("completed %d, fct %+v", f.Completed, *f.FCT)
	}
	if got := (after.TotalAlloc - before.TotalAlloc) / flows; got > perFlow {
		t.Errorf("merging allocates %d B a flow, want at most %d", got, perFlow)
	}
}
