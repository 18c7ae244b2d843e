// The test draws faults for small fabrics from many seeds and demands that
// everything converges: frames conserved, every request completed, the same
// digest for any number of workers. `CHAOS_SEEDS=1000 go test ./sim/chaos`
// runs more; a failure names the seed and the command that repeats it.
package chaos_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/sim/chaos"
	"github.com/rocemu/rocemu/topology"
)

// variants are settings laid on the fabric; a seed takes one by its number.
var variants = [][]string{
	nil,
	{"switches.all.mode=cut-through", "rnics.all.recovery=selective-repeat"},
	{"switches.all.pfc.priorities=[]", "rnics.all.ack=every", "rnics.all.congestion=none"},
	{"rnics.all.congestion=swift", "rnics.all.mtu=4096", "switches.all.ecmp.spray=packet", "rnics.all.personality.oos_behind_rnr=true"},
}

const fabric = `
schema: 1
name: chaos
topology: {spines: 2, leaves: 2, servers: 2}
workload:
  - {name: w, from: rnic1, to: rnic3, verb: write, size: 400KB, count: 2}
  - {name: r, from: rnic4, to: rnic2, verb: read, size: 200KB, count: 3}
  - {name: s, from: rnic3, to: rnic2, verb: send, size: 10KB, count: 30, interval: 10us}
  - {name: a, from: rnic2, to: rnic4, verb: fetch-add, add: 1, count: 20, interval: 15us}
`

func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("CHAOS_SEEDS"), 10, 32); err == nil {
		return n
	}
	return 60
}

func load(t *testing.T, seed uint64) *topology.Plan {
	t.Helper()
	plan, _, err := topology.ParseBytes("chaos.yaml", []byte(fabric), variants[seed%uint64(len(variants))]...)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func run(t *testing.T, plan *topology.Plan, workers int) *report.Result {
	t.Helper()
	res, err := sim.Run(context.Background(), plan, sim.Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestSeedsConverge(t *testing.T) {
	cleans := make([]*report.Result, len(variants))
	for v := range variants {
		cleans[v] = run(t, load(t, uint64(v)), 1)
		if err := chaos.Judge(load(t, uint64(v)), cleans[v]); err != nil {
			t.Fatalf("without faults, %v: %v", variants[v], err)
		}
	}
	for seed := range seeds() {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			plan, clean := load(t, seed), cleans[seed%uint64(len(variants))]
			faults, err := chaos.Draw(plan, seed, clean)
			if err != nil {
				t.Fatal(err)
			}
			plan.Faults = faults
			res := run(t, plan, 1)
			if err := chaos.Judge(plan, res); err != nil {
				t.Fatalf("seed %d: %v\n%srepeat with: CHAOS_SEEDS=%d go test ./sim/chaos -run TestSeedsConverge/%d$",
					seed, err, chaos.Text(faults), seed+1, seed)
			}
			again := load(t, seed)
			again.Faults = faults
			if b := run(t, again, 2); b.Digest != res.Digest {
				t.Errorf("seed %d: digest %s with one worker, %s with two\n%s", seed, res.Digest, b.Digest, chaos.Text(faults))
			}
			cut := load(t, seed)
			cut.Faults, cut.Window = faults, cut.Window/3
			if b := run(t, cut, 1); b.Digest != res.Digest {
				t.Errorf("seed %d: digest depends on the window\n%s", seed, chaos.Text(faults))
			}
			at := clock.Time(clock.Mix(seed, 1, 2) % uint64(clean.VirtualNS))
			if d := resumed(t, seed, faults, at); d != "" && d != res.Digest {
				t.Errorf("seed %d: digest %s, %s when saved at %v and restored\n%s", seed, res.Digest, d, at, chaos.Text(faults))
			}
		})
	}
}

// resumed saves a run at an instant, restores it elsewhere and finishes it;
// "" when the run had ended before.
func resumed(t *testing.T, seed uint64, faults []topology.Fault, at clock.Time) string {
	t.Helper()
	build := func() *sim.Fabric {
		plan := load(t, seed)
		plan.Faults = faults
		f, err := sim.Build(plan, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Engine.Close)
		return f
	}
	a, b := build(), build()
	held, _, err := a.RunTo(context.Background(), at)
	if err != nil {
		t.Fatal(err)
	}
	if !held {
		return ""
	}
	if err := b.Restore(a.Save()); err != nil {
		t.Fatal(err)
	}
	res, err := b.Engine.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return sim.Digest(b.Plan, b.Parts(res.At))
}

// TestDrawIsAFunctionOfTheSeed: equal seeds draw equal faults, others do not.
func TestDrawIsAFunctionOfTheSeed(t *testing.T) {
	plan := load(t, 0)
	clean := run(t, plan, 1)
	text := func(seed uint64) string {
		f, err := chaos.Draw(plan, seed, clean)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f {
			if _, err := topology.ParseFault(f[i].String()); err != nil {
				t.Errorf("does not read back: %v", err)
			}
		}
		return chaos.Text(f)
	}
	seen := map[string]bool{}
	for seed := range uint64(200) {
		if a, b := text(seed), text(seed); a != b {
			t.Fatalf("seed %d draws differently", seed)
		}
		seen[text(seed)] = true
	}
	if len(seen) < 190 {
		t.Errorf("%d different draws of 200", len(seen))
	}
}

// corner is a fabric of which the workload uses two racks of four, late and
// shortly.
const corner = `
schema: 1
name: corner
topology: {spines: 2, leaves: 4, servers: 4}
workload:
  - {name: w, from: rnic1, to: rnic6, verb: write, size: 300KB, count: 4, start: 20ms}
  - {name: u, from: rnic6, to: rnic2, transport: udp, size: 1000B, count: 200, interval: 2us, start: 21ms}
`

// TestDrawsMeetTheWorkload: nearly every fault that counts hits has some, also
// where most devices and most of the time are idle; those that have none are
// told as findings.
func TestDrawsMeetTheWorkload(t *testing.T) {
	for name, text := range map[string]string{"busy": fabric, "corner": corner} {
		plan := func() *topology.Plan {
			p, _, err := topology.ParseBytes("chaos.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		clean := run(t, plan(), 1)
		drawn, missed := 0, 0
		for seed := range uint64(60) {
			p := plan()
			faults, err := chaos.Draw(p, seed, clean)
			if err != nil {
				t.Fatal(err)
			}
			p.Faults = faults
			res := run(t, p, 1)
			zero := 0
			for i := range faults {
				f := &faults[i]
				if !report.CountsHits(f.Kind) {
					continue
				}
				if drawn++; res.Faults[f.Name] == nil || res.Faults[f.Name].Hits == 0 {
					zero++
				}
			}
			before := len(res.Findings)
			if chaos.Missed(faults, res); len(res.Findings)-before != zero {
				t.Errorf("%s, seed %d: %d findings for %d faults without a hit", name, seed, len(res.Findings)-before, zero)
			}
			missed += zero
		}
		if drawn < 100 || missed*20 > drawn {
			t.Errorf("%s: %d of %d faults acted on nothing", name, missed, drawn)
		}
	}
}

// TestMissedIsTold: a fault after the end of all work is one that missed, a
// change of settings is not judged.
func TestMissedIsTold(t *testing.T) {
	plan := load(t, 0)
	for _, text := range []string{"drop rnic1:1 at=10s count=1 name=late", "rate leaf1:1 to=1Gbps at=10s for=1us name=rate", "rate leaf1:1 to=1Gbps at=0s for=1us name=early", "drop rnic1:1 at=0s count=1 dir=out name=hit"} {
		f, err := topology.ParseFault(text)
		if err == nil {
			err = plan.BindFault(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.NoAt = false
		plan.Faults = append(plan.Faults, *f)
	}
	res := run(t, plan, 1)
	chaos.Missed(plan.Faults, res)
	var got []string
	for _, x := range res.Findings {
		if x.Code == "chaos-missed" {
			got = append(got, x.Where+" "+x.Text)
		}
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "rnic1:1 late acted on nothing: drop rnic1:1 ") {
		t.Errorf("%q", got)
	}
	var s strings.Builder
	if err := report.WriteSummary(&s, res, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hit (drop rnic1:1 at 0s): 1 hits", "rate (rate leaf1:1 at 10s): never began, the run had ended", "early (rate leaf1:1 at 0s): changed settings", "chaos-missed rnic1:1: late acted on nothing"} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("%q is not in\n%s", want, s.String())
		}
	}
}

// TestNothingToMeet: a fabric without a workload has nothing to draw for.
func TestNothingToMeet(t *testing.T) {
	plan, _, err := topology.ParseBytes("idle.yaml", []byte("schema: 1\ntopology: {spines: 0, leaves: 1, servers: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chaos.Draw(plan, 1, run(t, plan, 1)); err == nil || !strings.Contains(err.Error(), "no workload") {
		t.Errorf("%v", err)
	}
}
