package bench

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

var long = flag.Bool("long", false, "run the long forms: 10 s of a 400G queue pair, 16,384 servers")

// TestSteadyStateAllocates nothing: a slice of W1 in mid-run, all mechanisms
// on, makes no heap object a hop.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	f := build(t, load(t, "w1.yaml"))
	defer f.Engine.Close()
	step(t, f, clock.Millisecond)
	before, hops := mallocs(), f.Engine.Totals().Hops
	step(t, f, 1300*clock.Microsecond)
	made, hops := mallocs()-before, f.Engine.Totals().Hops-hops
	if hops < 300_000 {
		t.Fatalf("only %d hops in the slice", hops)
	}
	t.Logf("%d heap objects in %d hops", made, hops)
	if made*1000 > hops { // notes of the first CNPs grow their slices
		t.Errorf("%d heap objects in %d hops", made, hops)
	}
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

func parse(t *testing.T, text string) *topology.Plan {
	t.Helper()
	p, _, err := topology.ParseBytes("bench.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLongIdle crosses 100 days in which nothing is due, and the whole ladder of
// the longest timeout (31: 2.4 hours a rung), in no time.
func TestLongIdle(t *testing.T) {
	p := parse(t, `
schema: 1
name: idle
run: {limit: 8700000s, stall: 8700000s}
topology: {spines: 2, leaves: 2, servers: 4}
rnics: {all: {qp: {timeout: 31}}}
workload:
  - {name: now, from: rnic1, to: rnic5, verb: write, size: 64KB}
  - {name: lost, from: rnic2, to: rnic6, verb: write, size: 1KB}
  - {name: later, from: rnic1, to: rnic7, verb: write, size: 64KB, start: 8640000s}
faults:
  - {name: hole, kind: drop, target: "rnic2:1", at: 0us, match: {dir: out, kind: data}}
`)
	begin := time.Now()
	r, err := sim.Run(context.Background(), p, sim.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	if r.Verdict != report.Complete || r.Flows["later"].Status != "success" || r.Flows["lost"].Status != "retry_exc_err" {
		t.Errorf("verdict %s %s, later %s, lost %s", r.Verdict, r.VerdictReason, r.Flows["later"].Status, r.Flows["lost"].Status)
	}
	if clock.Time(r.VirtualNS) < clock.Time(8_640_000*clock.Second) {
		t.Errorf("ended at %v", clock.Time(r.VirtualNS))
	}
	t.Logf("%v virtual in %v, %d windows", clock.Time(r.VirtualNS), took, r.Engine.Windows)
	if took > time.Second {
		t.Errorf("100 idle days took %v", took)
	}
}

// TestLongRun sends over one queue pair at 400G past the wrap of the PSN, for
// 50 ms, or 10 s with -long: memory must not grow.
func TestLongRun(t *testing.T) {
	span := 50 * clock.Millisecond
	if *long {
		span = 10 * clock.Second
	}
	p := parse(t, fmt.Sprintf(`
schema: 1
name: wraps
run: {until: %v, limit: 20s}
topology: {spines: 0, leaves: 1, servers: 2, links: {server: {rate: 400Gbps, length: 3m}}}
rnics: {all: {mtu: 4096, qp: {initial_psn: 16770000}}}
workload: [{name: w, from: rnic1, to: rnic2, verb: write, size: 1GB, count: forever, window: 2}]
`, span))
	f := build(t, p)
	defer f.Engine.Close()
	step(t, f, span/5)
	before := heap()
	step(t, f, span)
	grown := heap() - before
	moved := f.Parts(f.Engine.Now())
	bytes := uint64(0)
	for _, part := range moved {
		if part.RNIC != nil {
			bytes += part.RNIC.TxBytes
		}
	}
	if want := uint64(span/clock.Microsecond) * 50_000 * 9 / 10; bytes < want {
		t.Errorf("%d bytes sent in %v, want at least %d", bytes, span, want)
	}
	t.Logf("%d bytes in %v, heap grew by %d bytes", bytes, span, grown)
	if grown > 64<<10 {
		t.Errorf("heap grew by %d bytes", grown)
	}
}

// everyPod is W3's permutation in each POD of n servers.
func everyPod(pods, n int) string {
	var b strings.Builder
	for p := range pods {
		fmt.Fprintf(&b, "  - {name: pod%d, pattern: permutation, from: rnic%d..rnic%d, shift: 48, verb: write, size: 250KB}\n", p+1, p*n+1, (p+1)*n)
	}
	return b.String()
}

// TestPods starts 16,384 servers in 8 PODs and runs them for 100 us under
// 8 GiB; only with -long.
func TestPods(t *testing.T) {
	if !*long {
		t.Skip("needs gigabytes; run with -long")
	}
	forget()
	begin := cpu()
	p := parse(t, `
schema: 1
name: pods
run: {until: 100us, memory: 8GiB}
topology:
  pods: 8
  spines: 8
  leaves: 43
  servers: 48
  cores: 8
  links: {server: {rate: 25Gbps, delay: 1us}, uplink: {rate: 100Gbps, delay: 1us}, core: {rate: 100Gbps, delay: 1us}}
rnics: {all: {ack: every}}
workload:
`+everyPod(8, 43*48))
	r, err := sim.Run(context.Background(), p, sim.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d servers, %d hops, %.1f CPU s, peak %.0f MiB", len(p.RNICs), r.Engine.FrameHops, cpu()-begin, peak())
	if r.Verdict != report.Complete || len(p.RNICs) < 16_384 || peak() > 8<<10 {
		t.Errorf("verdict %s, %d servers, peak %.0f MiB", r.Verdict, len(p.RNICs), peak())
	}
}
