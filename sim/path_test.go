package sim

import (
	"context"
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// podFile is one SEND between two leaves: cables of 3, 30, 30 and 3 m.
const podFile = `
schema: 1
name: path
topology:
  spines: 4
  leaves: 2
  servers: 2
  links: {server: {rate: %s, length: 3m}, uplink: {rate: %s, length: 30m}}
switches: {all: {latency: %s, mode: %s, ecmp: {hash: %s}}}
rnics: {all: {latency: 0ns}}
workload: [{name: one, from: rnic1, to: rnic3, verb: send, size: %dB}]
`

func pathPlan(t *testing.T, server, uplink, latency, mode, hash string, size int) *topology.Plan {
	t.Helper()
	plan, _, err := topology.ParseBytes("path.yaml", []byte(fmt.Sprintf(podFile, server, uplink, latency, mode, hash, size)))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestIdleLatency checks switch case C40(b) and, for each, that the run's
// latency equals the sum to the picosecond: also at rates that do not divide,
// where frames cut through, and where they cannot.
func TestIdleLatency(t *testing.T) {
	const sf, ct = "store-and-forward", "cut-through"
	for _, c := range []struct {
		server, uplink, latency, mode string
		size                          int
		want                          clock.Duration // 0 = only against the run
	}{
		{"25Gbps", "100Gbps", "1us", sf, 1020, 4211600},
		{"25Gbps", "100Gbps", "300ns", sf, 1020, 2111600},
		{"25Gbps", "100Gbps", "1us", sf, 1024, 4214800},
		{"25Gbps", "100Gbps", "300ns", sf, 1024, 2114800},
		{"25Gbps", "100Gbps", "300ns", ct, 1024, 0},
		{"100Gbps", "25Gbps", "300ns", ct, 1024, 0},
		{"7Gbps", "13Gbps", "301ns", sf, 777, 0},
		{"13Gbps", "7Gbps", "333ns", ct, 1, 0},
		{"400Gbps", "400Gbps", "300ns", ct, 0, 0},
	} {
		plan := pathPlan(t, c.server, c.uplink, c.latency, c.mode, "murmur3", c.size)
		q := &plan.QPs[0]
		stops, err := Walk(plan, Probe{From: 1, To: 3, SPort: q.SPort, DSCP: q.DSCP, Len: int64(wire.RoCELen(wire.SendOnly, c.size)), Kind: wire.KindData})
		if err != nil {
			t.Fatal(err)
		}
		got := stops[len(stops)-1].LastBit
		if c.want != 0 && got != c.want {
			t.Errorf("%+v: path says %v, want %v", c, got, c.want)
		}
		res, err := Run(context.Background(), plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if l := res.Flows["one"].Latency; l == nil || l.Min != report.NS(got) || l.Max != report.NS(got) {
			t.Errorf("%+v: the run says %+v, the path %v", c, l, got)
		}
	}
}

// TestWalkTakesTheWayOfTheRun compares every hop with the counters of a run.
func TestWalkTakesTheWayOfTheRun(t *testing.T) {
	for _, hash := range []string{"murmur3", "crc32"} {
		plan := pathPlan(t, "25Gbps", "100Gbps", "1us", "store-and-forward", hash, 100)
		loads := Loads(plan)
		res, err := Run(context.Background(), plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		stops, err := Walk(plan, probeOf(plan, &plan.Flows[0]))
		if err != nil || len(stops) != 4 {
			t.Fatalf("%d stops, %v", len(stops), err)
		}
		for _, s := range stops[1:] {
			d := &plan.Devices[s.Dev]
			port := res.Switches[d.Name].Ports[fmt.Sprint(s.Out)]
			if port.TxFrames == 0 || port.Queue[fmt.Sprint(s.Queue)] == nil {
				t.Errorf("%s: nothing left %s:%d by queue %d", hash, d.Name, s.Out, s.Queue)
			}
			if l := loads[s.Dev][s.Out-1]; l.Flows != 1 || l.Bytes != 100 {
				t.Errorf("%s: load of %s:%d is %+v", hash, d.Name, s.Out, l)
			}
		}
		if s := stops[1]; !s.Hashed || len(s.Members) != 4 || s.TC != 3 || s.PG != 3 || s.Queue != 3 {
			t.Errorf("%s: leaf stop %+v", hash, s)
		}
	}
}

func TestSamplesAreTheRequests(t *testing.T) {
	plan := pathPlan(t, "25Gbps", "100Gbps", "1us", "store-and-forward", "murmur3", 100)
	var f *Fabric
	res, err := Run(context.Background(), plan, Options{OnBuild: func(x *Fabric) error { f = x; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	s := f.Samples(clock.Time(res.VirtualNS))
	if len(s) != 1 || report.NS(s[0].End.Sub(s[0].Start)) != res.Flows["one"].FCT.Max || s[0].Status != report.Success {
		t.Errorf("samples %+v, FCT %+v", s, res.Flows["one"].FCT)
	}
}

// idealFile is one request on an idle fabric.
const idealFile = `
schema: 1
name: ideal
topology: {spines: 1, leaves: 2, servers: 1, links: {server: {rate: %s, length: 3m}, uplink: {rate: %s, length: 100m}}}
switches: {all: {mode: %s, latency: 300ns}}
rnics: {all: {mtu: %d}}
workload: [{name: one, from: rnic1, to: rnic2, verb: %s, size: %dB}]
`

// TestIdealIsTheIdleRun: alone on the fabric a request takes exactly its ideal
// time, whatever the frames' sizes and wherever the slow link is.
func TestIdealIsTheIdleRun(t *testing.T) {
	for _, rates := range [][2]string{{"25Gbps", "100Gbps"}, {"100Gbps", "25Gbps"}, {"100Gbps", "100Gbps"}} {
		for _, verb := range []string{"send", "send-imm", "send-inv", "write", "write-imm", "read"} {
			for _, size := range []int{0, 1, 256, 257, 512, 513, 768, 769, 5000} {
				for _, mode := range []string{"store-and-forward", "cut-through"} {
					if mode == "cut-through" && rates[0] != rates[1] {
						continue
					}
					plan, _, err := topology.ParseBytes("ideal.yaml", fmt.Appendf(nil, idealFile, rates[0], rates[1], mode, 256, verb, size))
					if err != nil {
						t.Fatal(err)
					}
					res, err := Run(context.Background(), plan, Options{})
					if err != nil {
						t.Fatal(err)
					}
					if got := res.Flows["one"].FCT.Max; got != report.NS(Ideal(plan, &plan.Flows[0])) {
						t.Errorf("%v %s %d B %s: %v, ideal %v", rates, verb, size, mode, got, Ideal(plan, &plan.Flows[0]))
					}
				}
			}
		}
	}
}
