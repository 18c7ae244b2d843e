package sim_test

import (
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/report"
)

// TestDatagramRequests: each request of a UDP line has datagrams of its own and
// is counted by itself; frames carry 46 B round the payload and have 64 B at
// least; the rate counts what a frame occupies.
func TestDatagramRequests(t *testing.T) {
	const text = `
schema: 1
name: datagrams
topology: {spines: 1, leaves: 1, servers: 2, links: {server: {rate: 100Gbps, length: 100m}}}
workload:
  - {name: u, from: rnic1, to: rnic2, transport: udp, start: 1us, %s}
`
	for _, c := range []struct {
		line          string
		requests      int64
		frames, bytes uint64
		last          report.NS // dequeue of the last datagram
	}{
		{"size: 18B, count: 1000, rate: 100Gbps", 1000, 1000, 64000, 1000_000 + 999*6720},
		{"size: 1B, count: 3", 3, 3, 3 * 64, 1000_000 + 2*6720},
		{"size: 466B, count: 10, rate: 50Gbps", 10, 10, 5120, 1000_000 + 9*85120},
		{"size: 10000B, count: 3", 3, 21, 30000 + 21*46, 1000_000 + (18*1538+2*1234)*80},
		{"size: 18B, count: 5, interval: 2us", 5, 5, 320, 9000_000},
	} {
		r := run(t, parse(t, fmt.Sprintf(text, c.line)), 1)
		f, p := r.Flows["u"], r.Switches["leaf1"].Ports["1"]
		if f.Requests != c.requests || f.Completed != c.requests || f.Status != "success" {
			t.Errorf("%s: %d requests, %d completed, %s", c.line, f.Requests, f.Completed, f.Status)
		}
		if p.RxFrames != c.frames || p.RxBytes != c.bytes {
			t.Errorf("%s: %d frames of %d B in all, want %d and %d", c.line, p.RxFrames, p.RxBytes, c.frames, c.bytes)
		}
		if f.LastEndNS != c.last {
			t.Errorf("%s: ended at %v, want %v", c.line, f.LastEndNS, c.last)
		}
	}
}

// TestDatagramRates: streams that share a port and fill it together get what
// they ask for; waiting for the other's frame is made good.
func TestDatagramRates(t *testing.T) {
	for _, c := range [][2]string{{"60Gbps", "40Gbps"}, {"90Gbps", "10Gbps"}} {
		r := run(t, parse(t, fmt.Sprintf(`
schema: 1
name: rates
run: {until: 1ms}
topology: {spines: 0, leaves: 1, servers: 3, links: {server: {rate: 100Gbps, length: 100m}}}
workload:
  - {name: a, from: rnic1, to: rnic2, transport: udp, frame: 1000B, size: 100MB, rate: %s}
  - {name: b, from: rnic1, to: rnic3, transport: udp, frame: 1000B, size: 100MB, rate: %s}
`, c[0], c[1])), 1)
		for i, n := range []string{"2", "3"} {
			var gbps float64
			fmt.Sscanf(c[i], "%fGbps", &gbps)
			got := float64(r.Switches["leaf1"].Ports[n].TxFrames) * 1020 * 8 / 1e6 // in 1 ms
			if got < 0.99*gbps || got > 1.01*gbps {
				t.Errorf("%v: port %s carries %.2f Gbps", c, n, got)
			}
		}
	}
}
