package sim_test

import (
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// TestStreamLatency is one segment over leaf, spine, leaf on an idle fabric:
// the network's share by hand, and the host path at both ends.
func TestStreamLatency(t *testing.T) {
	const text = `
schema: 1
name: latency
topology: {spines: 1, leaves: 2, servers: 1, links: {server: {rate: 25Gbps, length: 3m}, uplink: {rate: 100Gbps, length: 30m}}}
rnics: {all: {host: {stack_latency: 20us, copies: 2, copy_rate: 100Gbps, per_packet: 300ns}}}
workload: [{name: one, from: rnic1, to: rnic2, transport: tcp, size: 1000B}]
`
	r := run(t, parse(t, text), 1)
	// 1000 B: L = 1058, acknowledgement 64; fibre 330 ns and chips 3 us a way.
	wire := func(l int64) clock.Duration { return clock.Duration((l+20)*(2*320+2*80)) + 330_000 + 3_000_000 }
	core := clock.Duration(2*1000*80 + 300_000)
	want := 2*(20*clock.Microsecond+core) + wire(1058) + wire(64)
	if got := clock.Duration(r.Flows["one"].FCT.Min); got != want {
		t.Errorf("completion time %v, want %v", got, want)
	}
	if c := r.Flows["one"].CPU; clock.Duration(c.Sender) != core+300*clock.Nanosecond || clock.Duration(c.Receiver) != core+300*clock.Nanosecond {
		t.Errorf("CPU %+v, want %v at each end", c, core+300*clock.Nanosecond)
	}
}

func parse(t testing.TB, text string, sets ...string) *topology.Plan {
	t.Helper()
	p, _, err := topology.ParseBytes("test.yaml", []byte(text), sets...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStreamsShare lets streams and RDMA cross one bottleneck: DCTCP keeps the
// queue short and loses nothing, CUBIC fills it until it drops.
func TestStreamsShare(t *testing.T) {
	const text = `
schema: 1
name: share
topology: {spines: 1, leaves: 1, servers: 5}
switches: {all: {lossy: {limit: 200KB}, ecn: {0: {kmin: 30KB, kmax: 30KB, pmax: 1}}}}
rnics: {all: {tcp: {congestion: %s, rto_min: 5ms}, host: {copy_rate: 800Gbps, per_packet: 20ns, stack_latency: 5us}}}
workload:
  - {name: in, pattern: incast, from: [rnic1, rnic2, rnic3, rnic4], to: rnic5, transport: tcp, size: 2MB}
`
	for _, c := range []struct {
		control string
		drops   bool
	}{{"dctcp", false}, {"cubic", true}} {
		r := run(t, parse(t, fmt.Sprintf(text, c.control)), 1)
		q := r.Switches["leaf1"].Ports["5"].Queue["0"]
		if got := r.Totals.DroppedFrames > 0; got != c.drops {
			t.Errorf("%s: %d frames dropped", c.control, r.Totals.DroppedFrames)
		}
		if c.control == "dctcp" && (q.Watermark > 180_000 || q.ECNMarked == 0) {
			t.Errorf("dctcp: queue up to %d bytes, %d marks", q.Watermark, q.ECNMarked)
		}
		if c.control == "cubic" && (q.ECNMarked != 0 || r.Totals.Retransmitted < r.Totals.DroppedFrames) {
			t.Errorf("cubic: %d marks, %d sent again for %d drops", q.ECNMarked, r.Totals.Retransmitted, r.Totals.DroppedFrames)
		}
		if g := r.Flows["in"].GoodputBPS; g < 10_000_000_000 || !c.drops && g < 20_000_000_000 {
			t.Errorf("%s: goodput %d of 25 Gb/s", c.control, g)
		}
	}
}

// TestStreamFails ends a stream whose peer is gone with the ladder of its
// retries, and says so.
func TestStreamFails(t *testing.T) {
	const text = `
schema: 1
name: gone
topology: {spines: 1, leaves: 2, servers: 2}
rnics: {all: {tcp: {rto_min: 1ms, rto_max: 20ms, retries: 6}}}
workload:
  - {name: dead, from: rnic1, to: rnic3, transport: tcp, size: 1MB, count: 3, window: 2}
  - {name: fine, from: rnic2, to: rnic4, transport: tcp, size: 1MB}
faults: [{name: off, kind: device-down, target: rnic3, at: 200us}]
`
	r := run(t, parse(t, text), 1)
	d := r.Flows["dead"]
	if d.Status != report.RetryExcErr.String() || d.Statuses["retry_exc_err"] != 1 || d.Statuses["wr_flush_err"] != 1 {
		t.Errorf("status %s %v", d.Status, d.Statuses)
	}
	if r.Flows["fine"].Status != "success" {
		t.Errorf("the other stream: %s", r.Flows["fine"].Status)
	}
}
