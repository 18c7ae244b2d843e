package transport

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
)

// held runs a file and returns its result and the heap that the plan and the
// fabric hold at the end, in bytes.
func held(t *testing.T, text string) (*report.Result, uint64) {
	t.Helper()
	var a, b runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&a)
	plan := load(t, text)
	var fab *sim.Fabric
	res, err := sim.Run(context.Background(), plan, sim.Options{Workers: 1, OnBuild: func(f *sim.Fabric) error { fab = f; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&b)
	runtime.KeepAlive(fab)
	runtime.KeepAlive(plan)
	return res, b.HeapAlloc - min(a.HeapAlloc, b.HeapAlloc)
}

// TestMessageSizeCostsNothing holds that a QP with 1 GB outstanding holds what
// one with 1 MB does: a message is a range of PSNs.
func TestMessageSizeCostsNothing(t *testing.T) {
	const file = pair + `run: {until: 50us}
rnics: {all: {mtu: 4096}}
workload: [{name: w, from: rnic1, to: rnic2, verb: %s, size: %s, count: 2, window: 2}]
`
	for _, verb := range []string{"write", "send", "read"} {
		held(t, fmt.Sprintf(file, verb, "1MB")) // tables are made once
		_, small := held(t, fmt.Sprintf(file, verb, "1MB"))
		res, large := held(t, fmt.Sprintf(file, verb, "1GB"))
		if res.Flows["w"].Completed != 0 || res.RNICs["rnic1"].TxPackets+res.RNICs["rnic2"].TxPackets < 140 {
			t.Errorf("%s: the message is not under way: %+v", verb, res.RNICs)
		}
		t.Logf("%s: 1 MB holds %d KB, 1 GB %d KB", verb, small>>10, large>>10)
		if large > small+16<<10 {
			t.Errorf("%s: 1 GB outstanding holds %d B, 1 MB %d B", verb, large, small)
		}
	}
}

// TestIdleQPs holds that 100,000 queue pairs fit into 200 MB: ends that have
// carried a message and are idle now (50,000 connections with both ends in one
// process), and connections that wait for their start.
func TestIdleQPs(t *testing.T) {
	qps := 100000
	if testing.Short() || raceEnabled {
		qps = 10000
	}
	const file = pair + `run: {%s}
rnics: {all: {congestion: none}}
workload: [{name: w, from: rnic1, to: rnic2, verb: write, size: 1B, qps: %d, start: %s}]
`
	res, used := held(t, fmt.Sprintf(file, "limit: 1s", qps/2, "0us"))
	if res.Flows["w"].Completed != int64(qps/2) {
		t.Fatalf("%d of %d completed", res.Flows["w"].Completed, qps/2)
	}
	_, fresh := held(t, fmt.Sprintf(file, "until: 1us", qps, "1s"))
	t.Logf("%d idle ends hold %d MB, %d connections before their start %d MB", qps, used>>20, qps, fresh>>20)
	if limit := uint64(qps) * 2000; used > limit || fresh > limit {
		t.Errorf("%d QPs hold %d B and %d B, allowed %d", qps, used, fresh, limit)
	}
}
