package sim_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

const changesBase = `
schema: 1
name: changing
topology: {spines: 1, leaves: 1, servers: 4}
workload:
  - {name: in, pattern: incast, from: [rnic1, rnic2, rnic3], to: rnic4, verb: write, size: 1MB}
`

// TestChangePlannedEqualsLive gives a change in the file, and the same one
// between windows of a running fabric: one digest.
func TestChangePlannedEqualsLive(t *testing.T) {
	planned := run(t, parse(t, changesBase+"changes: [{name: mark, set: switches.leaf.ecn.kmin, to: 20KB, at: 100us, for: 150us}]\n"), 1)
	plain := run(t, parse(t, changesBase), 1)
	if planned.Digest == plain.Digest {
		t.Fatal("the change changed nothing")
	}
	p := parse(t, changesBase)
	f, err := sim.Build(p, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for f.Engine.Now() < clock.Time(80*clock.Microsecond) {
		if _, err := f.Engine.Step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	c, err := topology.ParseSet("switches.leaf.ecn.kmin=20KB")
	if err != nil {
		t.Fatal(err)
	}
	c.Name, c.At, c.For = "any", clock.Time(100*clock.Microsecond), 150*clock.Microsecond
	if err := p.BindFault(c); err != nil {
		t.Fatal(err)
	}
	if err := f.Schedule(c, 0); err != nil {
		t.Fatal(err)
	}
	res, err := f.Engine.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if live := f.Finish(res, f.Parts(res.Instant()), report.Engine{}); live.Digest != planned.Digest {
		t.Errorf("live %s, planned %s", live.Digest, planned.Digest)
	}
}

// TestChangeOfNothing sets every live setting to the value it has: the digest
// is that of the run without changes.
func TestChangeOfNothing(t *testing.T) {
	want := run(t, parse(t, changesBase), 1).Digest
	for _, set := range []string{
		"switches.all.mtu=9216B", "switches.all.buffer.size=12MiB", "switches.all.qos.dscp_to_tc.26=3", "switches.all.qos.scheduler.3.weight=50",
		"switches.all.pfc.alpha=1/8", "switches.leaf.pfc.guaranteed=0B", "switches.leaf.pfc.xon_offset=18KB", "switches.leaf.pfc.headroom=auto",
		"switches.all.pfc.quanta=65535", "switches.all.lossy.alpha=8", "switches.all.ecn.kmin=100KB", "switches.all.ecmp.hash=murmur3",
		"switches.devices.leaf1.pfc.3.alpha=1/8", "switches.leaf.ports.server.pfc.xon_offset=18KB",
		"rnics.all.cnp_dscp=48", "rnics.all.rx_buffer=1MiB", "rnics.all.ack=last", "rnics.all.pfc.priorities=[3]",
		"rnics.all.qp.timeout=14", "rnics.all.personality.nak_latency=0us", "rnics.devices.rnic1.dcqcn.preset=paper", "rnics.all.host.copies=3",
	} {
		text := changesBase + "changes: ['" + set + " at=50us for=100us']\n"
		if got := run(t, parse(t, text), 1).Digest; got != want {
			t.Errorf("%s: another digest", set)
		}
	}
}

// TestChangeEnds has exactly the old settings back after `for`, with changes of
// one setting that overlap.
func TestChangeEnds(t *testing.T) {
	p := parse(t, changesBase+`
changes:
  - {name: a, set: switches.all.pfc.alpha, to: 1/64, at: 10us, for: 100us}
  - {name: b, set: switches.all.pfc.alpha, to: 1, at: 50us, for: 20us}
  - {name: c, set: switches.devices.leaf1.ecn, to: "off", at: 60us, for: 30us}
  - {name: d, set: rnics.all.qp.retry_cnt, to: 2, at: 20us, for: 40us}
`)
	tl := topology.NewTimeline(p)
	for i := range p.Faults {
		if err := tl.Add(&p.Faults[i], int32(i)); err != nil {
			t.Fatal(err)
		}
	}
	leaf := p.Device("leaf1").ID
	for _, c := range []struct {
		us    int64
		alpha topology.Alpha
		ecn   bool
		retry uint8
	}{
		{0, topology.Alpha{Num: 1, Den: 8}, true, 7},
		{10, topology.Alpha{Num: 1, Den: 64}, true, 7},
		{55, topology.Alpha{Num: 1, Den: 1}, true, 2},
		{60, topology.Alpha{Num: 1, Den: 1}, false, 7},
		{70, topology.Alpha{Num: 1, Den: 64}, false, 7},
		{90, topology.Alpha{Num: 1, Den: 64}, true, 7},
		{110, topology.Alpha{Num: 1, Den: 8}, true, 7},
	} {
		v := tl.At(clock.Time(c.us * int64(clock.Microsecond)))
		d := &v.Devices[leaf]
		if got := d.Ports[0].PFC.Alpha[3]; got != c.alpha {
			t.Errorf("at %d us: alpha %v, want %v", c.us, got, c.alpha)
		}
		if got := d.Ports[0].ECN[3].On; got != c.ecn {
			t.Errorf("at %d us: ECN %v, want %v", c.us, got, c.ecn)
		}
		if got := v.RNIC(1).NIC.QP.RetryCnt; got != c.retry {
			t.Errorf("at %d us: retry_cnt %d, want %d", c.us, got, c.retry)
		}
	}
	end := tl.At(clock.Time(clock.Millisecond))
	for i := range p.Devices {
		a, b := &p.Devices[i], &end.Devices[i]
		if !reflect.DeepEqual(a.Switch, b.Switch) || !reflect.DeepEqual(a.NIC, b.NIC) || !reflect.DeepEqual(a.Ports, b.Ports) {
			t.Errorf("%s: settings differ after the end of all changes", a.Name)
		}
	}
	if err := tl.End(1, clock.Time(55*clock.Microsecond)); err != nil { // revert b early
		t.Fatal(err)
	}
	if got := tl.At(clock.Time(56 * clock.Microsecond)).Devices[leaf].Ports[0].PFC.Alpha[3]; got.Den != 64 {
		t.Errorf("alpha %v after b was cleared, want 1/64", got)
	}
}

// TestChangeActs sees the effect of changes in the counters.
func TestChangeActs(t *testing.T) {
	get := func(changes string) *report.Result { return run(t, parse(t, changesBase+changes), 1) }
	off := get("switches: {all: {ecn: off}}\n")
	on := get("switches: {all: {ecn: off}}\nchanges: ['switches.all.ecn.kmin=5KB at=100us name=on']\n")
	if off.Totals.ECNMarked != 0 || on.Totals.ECNMarked == 0 {
		t.Errorf("ECN turned on at 100us: %d marks before, %d after", off.Totals.ECNMarked, on.Totals.ECNMarked)
	}
	small := get("changes: ['switches.leaf.pfc.xoff=20KB at=50us']\n")
	if small.Totals.PauseFrames <= off.Totals.PauseFrames {
		t.Errorf("a threshold of 20KB: %d pauses, %d without", small.Totals.PauseFrames, off.Totals.PauseFrames)
	}
	lossy := get("changes: ['switches.leaf.pfc.headroom=0B at=50us', 'switches.leaf.pfc.xoff=20KB at=50us']\n")
	if lossy.Totals.DropsByReason["buffer_headroom"] == 0 {
		t.Error("no headroom: nothing dropped")
	}
	mtu := parse(t, changesBase+"changes: ['switches.leaf.mtu=512B at=50us for=100us']\n")
	if r := run(t, mtu, 1); r.Totals.DropsByReason["mtu"] == 0 || r.Flows["in"].Status != "success" {
		t.Errorf("mtu 512 for 100us: %d dropped, flow %s", r.Totals.DropsByReason["mtu"], r.Flows["in"].Status)
	}
	quick := parse(t, changesBase+"changes: ['rnics.all.qp.timeout=2 at=1us']\nfaults: ['drop leaf1:4 dir=out kind=data at=300us for=20us']\n")
	if r := run(t, quick, 1); r.Flows["in"].LastEndNS > report.NS(10*clock.Millisecond) {
		t.Errorf("timeout 2 (16 us) set live: last end %v", r.Flows["in"].LastEndNS)
	}
}

// TestChangeRefused names what can change and where the mistake is.
func TestChangeRefused(t *testing.T) {
	for _, c := range []struct{ change, want string }{
		{"{name: x, set: topology.spines, to: 4, at: 1us}", "can change while the fabric runs"},
		{"{name: x, set: switches.all.latency, to: 2us, at: 1us}", "buffer.size"},
		{"{name: x, set: switches.all.buffer.cell, to: 256B, at: 1us}", "cannot change"},
		{"{name: x, set: switches.all.ecn.kmn, to: 256B, at: 1us}", "kmin"},
		{"{name: x, set: switches.devices.leaf9.mtu, to: 256B, at: 1us}", "no such device"},
		{"{name: x, set: switches.devices.rnic1.mtu, to: 256B, at: 1us}", "no such device"},
		{"{name: x, set: rnics.all.recovery, to: go-back-0, at: 1us}", "cannot change"},
		{"{name: x, set: switches.all.mtu, to: 12, at: 1us}", "unit"},
		{"{name: x, set: switches.all.mtu, at: 1us}", "missing"},
		{"{name: x, set: switches.all.pfc.headroom, to: 100MB, at: 1us}", "headroom"},
	} {
		_, _, err := topology.ParseBytes("f.yaml", []byte(changesBase+"changes:\n  - "+c.change+"\n"))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "f.yaml:8") {
			t.Errorf("%s: error %v, want one at f.yaml:8 with %q", c.change, err, c.want)
		}
	}
}

// TestLiveChangesThatDoNotFit: of two changes that exclude each other, given
// before either was known, the later one waits until the first has ended; the
// order in which they become known is nothing.
func TestLiveChangesThatDoNotFit(t *testing.T) {
	p := parse(t, changesBase)
	var set [2]*topology.Fault
	for i, text := range []string{"switches.all.ecn.kmin=150KB", "switches.all.ecn.kmax=120KB"} {
		f, err := topology.ParseSet(text)
		if err == nil {
			err = p.BindFault(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.At = clock.Time(10*(i+1)) * clock.Time(clock.Microsecond)
		set[i] = f
	}
	const queue = 3
	base := p.Device("leaf1").Ports[0].ECN[queue]
	for _, first := range []int{0, 1} {
		tl := topology.NewTimeline(p)
		tl.Live = true
		for _, i := range []int{first, 1 - first} {
			if err := tl.Add(set[i], int32(i)); err != nil {
				t.Fatalf("the run would end: %v", err)
			}
		}
		if err := tl.End(0, clock.Time(30*clock.Microsecond)); err != nil {
			t.Fatal(err)
		}
		for us, want := range map[int64][2]int64{5: {base.KMin, base.KMax}, 15: {150_000, base.KMax}, 25: {150_000, base.KMax}, 35: {base.KMin, 120_000}} {
			e := tl.At(clock.Time(us * int64(clock.Microsecond))).Device("leaf1").Ports[0].ECN[queue]
			if e.KMin != want[0] || e.KMax != want[1] {
				t.Errorf("number %d known first, at %d us: kmin %d, kmax %d, want %v", first, us, e.KMin, e.KMax, want)
			}
		}
	}
	f, err := sim.Build(p, func(int32) bool { return true }, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Engine.Close()
	for i, x := range set {
		if err := f.Schedule(x, int32(i)); err != nil {
			t.Errorf("the run ends: %v", err)
		}
	}
}
