package gallery

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// pair is rnic1 - leaf1 - rnic2 at 100 Gb/s; w has 16 packets of 1024 B. A full
// frame (1082 B) takes 88.16 ns, the way of one is 2 x 88.16 + 2 x 500 + 1000 ns.
const pair = `
schema: 1
name: pair
topology: {spines: 0, leaves: 1, servers: 2, links: {server: {rate: 100Gbps, length: 100m}}}
rnics: {all: {congestion: none, qp: {timeout: 8, initial_psn: 100}}}
workload:
  - {name: w, from: rnic1, to: rnic2, verb: write, size: 16KiB}
`

// clos has two spines; perm crosses them.
const clos = `
schema: 1
name: clos
topology: {spines: 2, leaves: 2, servers: 2}
rnics: {all: {congestion: none, qp: {timeout: 8}}}
workload:
  - {name: w, from: rnic1, to: rnic3, verb: write, size: 16KiB, qps: 16}
`

// runText runs a fabric text with faults and expectations added.
func runText(t *testing.T, base string, faults, expect []string) *report.Result {
	t.Helper()
	text := base
	if len(faults) > 0 {
		text += "faults:\n  - " + strings.Join(faults, "\n  - ") + "\n"
	}
	text += "expect:\n  - " + strings.Join(expect, "\n  - ") + "\n"
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	res := run(t, file, 1)
	if res.Exit != report.ExitOK {
		t.Errorf("%v: %s: %s", faults, res.Verdict, res.VerdictReason)
	}
	return res
}

const (
	done   = `flows["w"].completed == flows["w"].requests`
	clean  = `totals.dropped_frames == 0`
	silent = `totals.retransmitted_packets == 0`
)

// TestEachKind runs every fault kind alone against counters computed by hand.
func TestEachKind(t *testing.T) {
	for _, c := range []struct {
		name, base string
		faults     []string
		expect     []string
	}{
		{"none", pair, nil, []string{done, clean, silent, `flows["w"].fct_ns.max > 0`}},
		// Packet 1 is on the first cable from 0 to 588 ns; packets 1 to 6 start before 500 ns (6 x 88.16 = 528.96).
		{
			"link-down", pair,
			[]string{"link-down rnic1:1 name=x at=500ns for=100ns"},
			[]string{done, `totals.drops_by_reason.link_down == faults["x"].hits`, `faults["x"].hits >= 6`, `faults["x"].hits <= 8`},
		},
		{
			"link-down queued", pair,
			[]string{"link-down leaf1:2 name=x for=10us"},
			[]string{done, `totals.drops_by_reason.link_down == 16`, `faults["x"].hits == 16`, `rnics["rnic2"].rx_packets == 16 + rnics["rnic2"].duplicate_request`},
		},
		{
			"link-flap", pair,
			[]string{"link-flap leaf1:2 name=x period=20us duty=0.5 for=40us"},
			[]string{done, `totals.drops_by_reason.link_down == 16`, `faults["x"].until_ns == 40000`},
		},
		{
			"one-way", pair,
			[]string{"one-way leaf1:2 name=x dir=out for=10us"},
			[]string{done, `totals.drops_by_reason.link_down == 16`, `rnics["rnic2"].duplicate_request == 0`, `switches["leaf1"].ports["2"].tx_frames >= 32`},
		},
		{
			"one-way back", pair,
			[]string{"one-way leaf1:2 name=x dir=in for=10us"},
			[]string{done, `totals.drops_by_reason.link_down == 1`, `rnics["rnic2"].duplicate_request == 16`},
		},
		{
			"device-down", pair,
			[]string{"device-down leaf1 name=x for=10us boot=5us"},
			[]string{done, `totals.drops_by_reason.link_down == 16`, `rnics["rnic1"].local_ack_timeout_err == 1`},
		},
		{
			"nic power", pair,
			[]string{"device-down rnic2 name=x at=1us"},
			[]string{`flows["w"].status == "retry_exc_err"`, `rnics["rnic1"].local_ack_timeout_err == 7`},
		},
		{
			"own nic power", pair,
			[]string{"device-down rnic1 name=x at=100ns"},
			[]string{`flows["w"].status == "wr_flush_err"`, `verdict == "complete"`},
		},
		{"rate", pair, []string{"rate rnic1:1 name=x to=10Gbps"}, []string{done, clean, `flows["w"].last_end_ns > 16 * 881`, `flows["w"].last_end_ns < 20000`}},
		{
			"ber", pair,
			[]string{"ber rnic1:1 name=x to=1e-5 dir=out for=1us"},
			[]string{done, `totals.drops_by_reason.crc == faults["x"].hits`, `switches["leaf1"].ports["1"].crc_errors == faults["x"].hits`, `faults["x"].hits > 0`},
		},
		{"loss every", pair, []string{"loss rnic1:1 name=x every=8 dir=out for=1500ns"}, []string{done, `totals.drops_by_reason.fault == 2`, `faults["x"].hits == 2`}},
		{"mtu switch", pair, []string{"mtu leaf1:2 name=x size=1000B for=100us"}, []string{done, `totals.drops_by_reason.mtu == 16`, `switches["leaf1"].ports["1"].in_drops == 16`}},
		{"mtu nic", pair, []string{"mtu rnic2 name=x size=1000B for=100us"}, []string{done, `totals.drops_by_reason.mtu == 16`, `faults["x"].hits == 16`}},
		{"hash", clos, []string{"hash leaf1 name=x to=crc32"}, []string{done, clean, silent}},
		{"route", clos, []string{"route leaf1 name=x to=rnic3 via=leaf1:uplink2"}, []string{done, clean, `switches["leaf1"].ports["3"].tx_frames == 0`, `switches["leaf1"].ports["4"].tx_frames == 256`}},
		{"no route", pair, []string{"route leaf1 name=x to=rnic2"}, []string{`flows["w"].status == "retry_exc_err"`, `totals.drops_by_reason.no_route == 128`}},
		{"blackhole", clos, []string{"blackhole leaf1 name=x dst=rnic3"}, []string{`flows["w"].failed == 16`, `totals.drops_by_reason.fault == faults["x"].hits`, `faults["x"].hits == 16 * 16 * 8`}},
		{"drop count", pair, []string{"drop rnic1:1 name=x dir=out count=3"}, []string{done, `totals.drops_by_reason.fault == 3`, `faults["x"].hits == 3`, `rnics["rnic1"].packet_seq_err == 1`}},
		{"drop by psn", pair, []string{"drop rnic2:1 name=x dir=in psn=105 count=1"}, []string{done, `faults["x"].hits == 1`, `rnics["rnic2"].out_of_sequence == 1`, `flows["w"].retransmitted_packets == 11`}},
		{"drop at a switch", pair, []string{"drop leaf1:2 name=x dir=out psn_index=16 count=1"}, []string{done, `rnics["rnic1"].local_ack_timeout_err == 1`}},
		{
			"second retransmission", pair,
			[]string{"drop rnic1:1 name=a dir=out psn_index=5 count=1", "drop rnic1:1 name=b dir=out psn_index=5 iteration=2 count=1", "drop rnic1:1 name=c dir=out psn_index=5 iteration=3 count=1"},
			[]string{done, `faults["c"].hits == 1`, `rnics["rnic1"].local_ack_timeout_err == 2`, `rnics["rnic1"].packet_seq_err == 1`},
		},
		{"by flow", pair, []string{"drop w name=x opcode=write-first count=1"}, []string{done, `faults["x"].hits == 1`}},
		{"duplicate", pair, []string{"duplicate rnic1:1 name=x dir=out psn_index=4"}, []string{done, clean, `rnics["rnic2"].duplicate_request == 1`, `rnics["rnic2"].rx_packets == 17`}},
		{"duplicate in", pair, []string{"duplicate leaf1:1 name=x dir=in psn_index=4"}, []string{done, clean, `rnics["rnic2"].duplicate_request == 1`}},
		{"delay", pair, []string{"delay rnic1:1 name=x dir=out psn_index=16 by=30us"}, []string{done, clean, silent, `flows["w"].last_end_ns > 30000`}},
		{"delay in", pair, []string{"delay rnic2:1 name=x dir=in psn_index=16 by=30us"}, []string{done, clean, silent, `flows["w"].last_end_ns > 30000`}},
		// A packet that comes late is accepted when it comes; the one behind it was discarded: two gaps.
		{"delay makes a gap", pair, []string{"delay rnic1:1 name=x dir=out psn_index=3 by=500ns"}, []string{done, clean, `rnics["rnic2"].out_of_sequence == 2`}},
		{"reorder", pair, []string{"reorder rnic1:1 name=x dir=out psn_index=5"}, []string{done, clean, `rnics["rnic2"].out_of_sequence == 2`, `rnics["rnic1"].packet_seq_err == 2`}},
		{"reorder in", pair, []string{"reorder rnic2:1 name=x dir=in psn_index=5"}, []string{done, clean, `rnics["rnic2"].out_of_sequence == 2`}},
		{"mark-ce", pair, []string{"mark-ce rnic1:1 name=x dir=out count=5"}, []string{done, clean, `rnics["rnic2"].np_ecn_marked_roce_packets == 5`, `rnics["rnic2"].np_cnp_sent == 0`}},
		{"corrupt fcs", pair, []string{"corrupt rnic2:1 name=x dir=in field=fcs psn_index=2 count=1"}, []string{done, `totals.drops_by_reason.crc == 1`, `rnics["rnic2"].rx_discards_phy == 1`}},
		{"corrupt a pause", pair, []string{"pause-storm rnic2:1 name=s for=1ms", "corrupt leaf1:2 name=x dir=in field=ethertype kind=pfc"}, []string{done, clean, silent, `switches["leaf1"].ports["2"].pfc["3"].rx_pause == 0`, `faults["x"].hits == 1`}},
		{"corrupt a pause to an RNIC", pair, []string{"pause-storm leaf1:1 name=s for=500us", "corrupt rnic1:1 name=x dir=in field=fcs kind=pfc"}, []string{done, clean, silent, `rnics["rnic1"].rx_prio3_pause == 0`, `rnics["rnic1"].rx_discards_phy == faults["x"].hits`, `faults["x"].hits > 0`, `flows["w"].last_end_ns < 10000`}},
		{"inject in", pair, []string{"inject rnic2:1 name=x dir=in opcode=send-only psn=90 size=8B at=50us"}, []string{done, `faults["x"].hits == 1`}},
		{"pause-storm", pair, []string{"pause-storm rnic2:1 name=x for=1ms"}, []string{done, clean, `rnics["rnic2"].tx_prio3_pause == 6`, `switches["leaf1"].ports["2"].pfc["3"].rx_pause == 6`, `rnics["rnic2"].duplicate_request > 0`}},
		{"pause-storm of a switch", pair, []string{"pause-storm leaf1:1 name=x for=500us"}, []string{done, clean, silent, `rnics["rnic1"].rx_prio3_pause == 1`}},
		{"pfc-off ends a pause", pair, []string{"pause-storm rnic2:1 name=s for=5ms", "pfc-off leaf1:2 name=x"}, []string{done, clean, silent, `flows["w"].last_end_ns < 10000`}},
		{"ecn-off", pair, []string{"ecn-off rnic2:1 name=x", "mark-ce rnic1:1 name=m dir=out count=5"}, []string{done, `rnics["rnic2"].np_ecn_marked_roce_packets == 0`}},
		{"buffer", pair, []string{"buffer leaf1 name=x size=2MiB for=1us"}, []string{done, clean}},
		{"dscp", pair, []string{"dscp rnic1 name=x to=0"}, []string{done, clean, `switches["leaf1"].ports["2"].queue["0"].tx_frames == 16`}},
		{"slow-receiver", pair, []string{"slow-receiver rnic2 name=x drain=1Gbps"}, []string{done, clean, silent, `flows["w"].last_end_ns > 16 * 8816`, `flows["w"].last_end_ns < 16 * 8816 + 5000`}},
		{"rx-overflow", pair, []string{"rx-overflow rnic2 name=x for=2500ns"}, []string{done, `totals.drops_by_reason.rx_overflow == faults["x"].hits`, `faults["x"].hits > 0`}},
		{"qp-error", pair, []string{"qp-error rnic1 name=x at=200ns"}, []string{`flows["w"].status == "wr_flush_err"`, `faults["x"].hits == 1`}},
		{"qp-error of the responder", pair, []string{"qp-error rnic2 name=x at=200ns"}, []string{`flows["w"].failed == 1`}},
		{"no-resource", pair, []string{"no-resource rnic2 name=x for=100us"}, []string{done, `rnics["rnic2"].out_of_buffer == 1`, `faults["x"].hits == 1`}},
		{"drain", clos, []string{"drain spine1 name=x"}, []string{done, clean, `switches["spine1"].ports["1"].tx_frames == 0`, `switches["leaf1"].ports["4"].tx_frames == 256`}},
		{"drained only way", pair, []string{"drain leaf1 name=x"}, []string{done, clean, silent}},
		// leaf1 leaves the dead uplink at once; leaf2 goes on answering over spine1 until routing tells it.
		{
			"link-down leaves ECMP", clos,
			[]string{"link-down leaf1:uplink1 name=x withdraw=100us"},
			[]string{done, `switches["leaf1"].ports["3"].tx_frames == 0`, `totals.drops_by_reason.link_down == faults["x"].hits`, `faults["x"].hits > 0`, `faults["x"].hits <= 16`},
		},
		{"never withdrawn", clos, []string{"link-down leaf1:uplink1 name=x withdraw=1s"}, []string{`flows["w"].failed > 0`, `flows["w"].completed > 0`}},
		{"back after hold", clos, []string{"link-down leaf1:uplink1 name=x for=1us hold=1s withdraw=100us"}, []string{done, `switches["leaf1"].ports["3"].tx_frames == 0`}},
		{"remote detection", clos, []string{"link-down leaf1:uplink1 name=x detect=10us for=50us"}, []string{done, `totals.drops_by_reason.link_down > 0`}},
		{
			"overlap on one cable", pair,
			[]string{"link-down leaf1:2 name=a for=20us", "link-down leaf1:2 name=b at=10us for=20us", "ber leaf1:2 name=c to=1e-5 for=30us"},
			[]string{done, `faults["a"].hits + faults["b"].hits == 16`, `totals.drops_by_reason.link_down == 16`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runText(t, c.base, c.faults, c.expect)
		})
	}
}

// TestLiveEqualsPlanned hands a fault to a running fabric before its time: the
// digest is that of the run which had it in its file.
func TestLiveEqualsPlanned(t *testing.T) {
	for _, text := range []string{
		"link-down leaf1:2 name=x at=2500ns for=10us", "drop rnic1:1 name=x at=2500ns dir=out count=2", "pause-storm rnic2:1 name=x at=2500ns for=400us",
		"device-down leaf1 name=x at=2500ns for=10us boot=1us", "loss rnic1:1 name=x at=2500ns probability=0.3 for=1us", "slow-receiver rnic2 name=x at=2500ns drain=10Gbps",
		"rq-empty rnic2 name=x at=2500ns", "one-way leaf1:2 name=x at=2500ns dir=in for=20us", "mr-not-ready rnic2 name=x at=2500ns for=40us", "delay leaf1:1 name=x at=2500ns by=5us dir=in count=2",
	} {
		t.Run(strings.Fields(text)[0], func(t *testing.T) {
			t.Parallel()
			planned := digest(t, text, false)
			if live := digest(t, text, true); live != planned {
				t.Errorf("%s: planned %s, live %s", text, planned, live)
			}
		})
	}
}

func digest(t *testing.T, text string, live bool) string {
	t.Helper()
	plan, _, err := topology.ParseBytes("pair.yaml", []byte(strings.ReplaceAll(pair, "16KiB", "64KiB")))
	if err != nil {
		t.Fatal(err)
	}
	ft, err := topology.ParseFault(text)
	if err == nil {
		err = plan.BindFault(ft)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !live {
		plan.Faults = []topology.Fault{*ft}
	}
	f, err := sim.Build(plan, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Engine.Close()
	ctx := context.Background()
	if live {
		for f.Engine.Now() < clock.Time(clock.Microsecond) {
			if _, err := f.Engine.Step(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if f.Engine.Now() > ft.At {
			t.Fatalf("window end %v lies beyond the fault", f.Engine.Now())
		}
		if err := f.Schedule(ft, 0); err != nil {
			t.Fatal(err)
		}
	}
	res, err := f.Engine.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if res.End != actors.Idle {
		t.Fatalf("end %v", res.End)
	}
	return sim.Digest(plan, f.Parts(res.At))
}
