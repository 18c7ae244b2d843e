package sim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// fabrics are small runs that together touch every mechanism: incast with
// pauses, losses and retransmissions of each verb, ECN and CNPs, ties by
// phase-aligned hosts, datagrams, gates, cut-through.
var fabrics = map[string]string{
	"incast": `
schema: 1
name: incast
topology: {spines: 2, leaves: 2, servers: 4}
switches: {all: {buffer: {size: 512KB}}}
workload:
  - {name: burst, pattern: incast, from: [rnic1, rnic2, rnic3, rnic5, rnic6], to: rnic8, verb: write, size: 200KB}
  - {name: perm, pattern: permutation, shift: 3, verb: send, size: 30001B, count: 3}
`,
	"loss": `
schema: 1
name: loss
topology: {spines: 2, leaves: 2, servers: 3}
rnics: {all: {qp: {timeout: 6}}}
switches: {all: {pfc: {priorities: []}}}
workload:
  - {name: w, from: rnic1, to: rnic4, verb: write, size: 100KB, count: 3}
  - {name: r, from: rnic2, to: rnic5, verb: read, size: 60KB, count: 4, window: 2}
  - {name: a, from: rnic3, to: rnic6, verb: fetch-add, add: 5, count: 20}
  - {name: u, from: rnic6, to: rnic1, transport: udp, size: 20KB, count: 10, rate: 3Gbps}
faults:
  - {name: noise, kind: loss, target: "leaf1:uplink1", at: 0us, for: 400us, probability: 0.02}
  - {name: dirty, kind: ber, target: "leaf2:uplink2", at: 10us, to: 1e-6}
  - {name: cut, kind: link-down, target: "leaf1:uplink2", at: 50us, for: 100us}
`,
	"streams": `
schema: 1
name: streams
topology: {spines: 2, leaves: 2, servers: 4}
switches: {all: {buffer: {size: 512KB}, lossy: {limit: 60KB}, ecn: {0: {kmin: 15KB, kmax: 30KB, pmax: 1}}}}
rnics: {all: {tcp: {rto_min: 1ms}, host: {copy_rate: 400Gbps, per_packet: 50ns}}}
workload:
  - {name: cubic, pattern: incast, from: [rnic1, rnic2, rnic3], to: rnic8, transport: tcp, size: 150KB, count: 2}
  - {name: dctcp, pattern: permutation, shift: 3, transport: tcp, congestion: dctcp, size: 100KB}
  - {name: paced, from: rnic6, to: rnic1, transport: tcp, size: 3000B, count: 5, interval: 30us, rate: 2Gbps}
  - {name: w, from: rnic1, to: rnic5, verb: write, size: 200KB}
faults:
  - {name: noise, kind: loss, target: "leaf1:uplink1", at: 0us, for: 2ms, probability: 0.01}
`,
	"changes": `
schema: 1
name: changes
topology: {spines: 2, leaves: 2, servers: 4}
switches: {all: {buffer: {size: 512KB}, ecn: off}}
workload:
  - {name: burst, pattern: incast, from: [rnic1, rnic2, rnic3, rnic5, rnic6], to: rnic8, verb: write, size: 200KB}
  - {name: read, from: rnic4, to: rnic7, verb: read, size: 100KB, count: 3}
  - {name: tcp, from: rnic1, to: rnic8, transport: tcp, size: 100KB}
faults:
  - {name: noise, kind: loss, target: "leaf1:uplink1", at: 0us, for: 300us, probability: 0.02}
  - {name: small, kind: buffer, target: leaf2, at: 60us, for: 40us, size: 300KB}
changes:
  - {name: alpha, set: switches.leaf.pfc.alpha, to: 1/64, at: 30us, for: 50us}
  - {name: mark, set: switches.all.ecn.kmin, to: 5KB, at: 40us, for: 200us}
  - {name: top, set: switches.devices.leaf2.ecn.kmax, to: 20KB, at: 50us, for: 100us}
  - {name: cc, set: rnics.all.dcqcn.rpg_ai_rate, to: 200Mbps, at: 70us}
  - {name: timer, set: rnics.devices.rnic4.qp.timeout, to: 6, at: 20us, for: 2ms}
  - switches.all.ecmp.seed=7 at=90us for=60us name=hash
`,
	"ties": `
schema: 1
name: ties
topology: {spines: 4, leaves: 4, servers: 4, links: {server: {rate: 100Gbps, length: 10m}, uplink: {rate: 100Gbps, length: 10m}}}
switches: {all: {mode: cut-through, latency: 300ns, ecn: {kmin: 5KB, kmax: 20KB, pmax: 0.5}}}
workload:
  - {name: all, pattern: all-to-all, verb: write, size: 10000B}
  - {name: ring, pattern: ring-allreduce, verb: write, size: 64KB}
`,
}

func load(t testing.TB, name string, sets ...string) *topology.Plan {
	t.Helper()
	p, _, err := topology.ParseBytes(name+".yaml", []byte(fabrics[name]), sets...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, p *topology.Plan, workers int) *report.Result {
	t.Helper()
	r, err := sim.Run(context.Background(), p, sim.Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != report.Complete {
		t.Fatalf("verdict %s: %s", r.Verdict, r.VerdictReason)
	}
	return r
}

// TestDigestIndependentOfCutting runs each fabric with 1, 2 and 8 workers and
// with windows W, W/2, W/3 and one of a single instant, which makes the engine
// sequential: one event instant of the whole fabric after the other.
func TestDigestIndependentOfCutting(t *testing.T) {
	for name := range fabrics {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			want := run(t, p, 1)
			w := p.Window
			for _, workers := range []int{2, 8} {
				if r := run(t, p, workers); r.Digest != want.Digest || r.VirtualNS != want.VirtualNS {
					t.Errorf("%d workers: digest %s at %v, want %s at %v", workers, r.Digest, r.VirtualNS, want.Digest, want.VirtualNS)
				}
			}
			r, err := sim.Run(context.Background(), p, sim.Options{Workers: 1, Between: func(clock.Time, uint64) {}})
			if err != nil || r.Digest != want.Digest || r.VirtualNS != want.VirtualNS {
				t.Errorf("in single windows instead of rounds: digest %s at %v, want %s at %v, %v", r.Digest, r.VirtualNS, want.Digest, want.VirtualNS, err)
			}
			for _, cut := range []clock.Duration{w / 2, w / 3, 1} {
				q := *p
				q.Window = cut
				if r := run(t, &q, 1); r.Digest != want.Digest || r.VirtualNS != want.VirtualNS {
					t.Errorf("window %v: digest %s at %v, want %s at %v", cut, r.Digest, r.VirtualNS, want.Digest, want.VirtualNS)
				}
			}
			if r := run(t, load(t, name, "seed=7"), 1); r.Digest == want.Digest {
				t.Error("another seed gives the same digest")
			}
		})
	}
}

// TestRoundsSkipIdleSpans: between two timeouts of a dead path a round does not
// run through the windows in which nothing happens.
func TestRoundsSkipIdleSpans(t *testing.T) {
	p, _, err := topology.LoadBytes("dead.yaml", []byte(`schema: 1
topology: {spines: 1, leaves: 2, servers: 1}
workload: [{name: a, from: rnic1, to: rnic2, verb: write, size: 4KB}]
faults: [{name: dark, kind: loss, target: "leaf1:uplink1", at: 0us, probability: 1}]
`))
	if err != nil {
		t.Fatal(err)
	}
	var windows [2]uint64
	for i, o := range []sim.Options{{Workers: 1}, {Workers: 1, Between: func(clock.Time, uint64) {}}} {
		r, err := sim.Run(context.Background(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		windows[i] = r.Engine.Windows
	}
	if windows[1] < 10 || windows[0] > 2*windows[1] {
		t.Errorf("%d windows in rounds, %d one by one", windows[0], windows[1])
	}
}

// TestSaveRestoreGoesOn saves every device at random window boundaries,
// restores them into a fresh fabric and expects the end of the uninterrupted
// run; saving again at once must give the same bytes.
func TestSaveRestoreGoesOn(t *testing.T) {
	for name := range fabrics {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			want := run(t, p, 1)
			total := int64(want.Engine.Windows)
			for k := range uint64(12) {
				at := int64(clock.Mix(1, k, uint64(total)) % uint64(total))
				if err := saveRestore(p, at, want); err != nil {
					t.Fatalf("saved at window %d of %d: %v", at, total, err)
				}
			}
		})
	}
}

func saveRestore(p *topology.Plan, at int64, want *report.Result) error {
	ctx := context.Background()
	a, err := sim.Build(p, nil, 1)
	if err != nil {
		return err
	}
	for range at {
		if _, err := a.Engine.Step(ctx); err != nil {
			return err
		}
	}
	b, err := sim.Build(p, nil, 1)
	if err != nil {
		return err
	}
	for d := range p.Devices {
		var w, again snap.Writer
		a.Engine.SnapshotDevice(int32(d), &w)
		if err := b.Engine.RestoreDevice(int32(d), &snap.Reader{B: w.B}); err != nil {
			return err
		}
		b.Engine.SnapshotDevice(int32(d), &again)
		if string(again.B) != string(w.B) {
			return fmt.Errorf("%s: saved state differs after restore (%d and %d bytes)", p.Devices[d].Name, len(w.B), len(again.B))
		}
	}
	b.Engine.SetClock(a.Engine.Now(), a.Engine.Windows())
	res, err := b.Engine.Run(ctx)
	if err != nil {
		return err
	}
	got := b.Finish(res, b.Parts(res.Instant()), report.Engine{})
	if res.End != actors.Idle || got.Digest != want.Digest || got.VirtualNS != want.VirtualNS {
		return fmt.Errorf("end %v, digest %s at %v, want %s at %v", res.End, got.Digest, got.VirtualNS, want.Digest, want.VirtualNS)
	}
	return nil
}

// TestIdleLatency is S-C40(b): one frame over leaf, spine, leaf on an idle
// fabric takes the sum of fibre, serialisation and pipelines, exactly.
func TestIdleLatency(t *testing.T) {
	for _, c := range []struct {
		size, latency string
		want          clock.Duration
	}{
		{"1020B", "1us", 4211600}, {"1020B", "300ns", 2111600}, {"1024B", "1us", 4214800}, {"1024B", "300ns", 2114800},
	} {
		text := fmt.Sprintf(`
schema: 1
name: latency
topology: {spines: 1, leaves: 2, servers: 1, links: {server: {rate: 25Gbps, length: 3m}, uplink: {rate: 100Gbps, length: 30m}}}
switches: {all: {latency: %s}}
workload: [{name: one, from: rnic1, to: rnic2, verb: send, size: %s}]
`, c.latency, c.size)
		p, _, err := topology.ParseBytes("latency.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, p, 1)
		l := r.Flows["one"].Latency
		if l == nil || clock.Duration(l.Min) != c.want {
			t.Errorf("%s at %s: latency %v, want %v", c.size, c.latency, l, c.want)
		}
		if s := r.Flows["one"].Slowdown; s == nil || s.Min != 1 {
			t.Errorf("%s: slowdown on an idle fabric %v, want 1", c.size, s)
		}
	}
}
