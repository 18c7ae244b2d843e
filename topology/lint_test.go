package topology

import (
	"strings"
	"testing"
)

// pair is the cases' two hosts and one switch at 100 Gb/s and 100 m.
const pair = `schema: 1
topology: {spines: 0, leaves: 1, servers: 2, links: {server: {rate: 100Gbps, length: 100m}}}
workload:
  - {name: w, from: rnic1, to: rnic2, verb: write, size: 8KB}
`

const clos = `schema: 1
topology: {spines: 2, leaves: 2, servers: 4}
workload:
  - {name: w, from: rnic1, to: rnic5, verb: write, size: 8KB}
`

// TestLints sets one trap at a time; each must be told, and only it.
func TestLints(t *testing.T) {
	for _, text := range []string{pair, clos} {
		if fs := Lint(load(t, text)); len(fs) != 0 {
			t.Errorf("findings on a clean file: %v", fs)
		}
	}
	for _, c := range []struct {
		base       string
		set        []string
		code, want string
	}{
		{pair, []string{"switches.all.pfc.headroom=20KB"}, "headroom-short", "headroom of priority 3 is short by 89648 B: 20176 B configured, 109824 B needed (483 cells in flight as 64 B frames and 45 of the frame that raises XOFF; auto sets 115440 B)"},
		{pair, []string{"switches.all.ecn.kmin=2MB", "switches.all.ecn.kmax=4MB"}, "ecn-above-pfc", "Kmin 2000000 B of queue 3 lies above the XOFF point of priority 3 (1398101 B"},
		{pair, []string{"switches.all.ecn.drop_min=100KB", "switches.all.ecn.drop_max=200KB"}, "wred-below-xoff", "WRED drop below XOFF on lossless queue 3: it drops from 100000 B"},
		{pair, []string{"switches.devices.leaf1.ports.2.mtu=1500B", "rnics.all.mtu=4096"}, "mtu-small", "leaf1:2 needs >= 4158 (SEND, MIDDLE; WRITE_FIRST 4174, with immediate 4178, READ response 4162)"},
		{pair, []string{"workload.w.window=2010", "workload.w.count=3000"}, "window-over-send-queue", "window 2010, but rnics.qp.send_queue holds 1024 requests"},
		{pair, []string{"rnics.devices.rnic1.pfc.priorities=[]"}, "pfc-one-side", "PFC on one side only: leaf1:1 has priorities [3], rnic1:1 has []"},
		{clos, []string{"switches.spine.qos.dscp_to_tc.26=1"}, "roce-lossy", "RoCE flow rnic1->rnic5 uses lossy queue 1 at spine1 (DSCP 26 -> TC 1)"},
		{clos, []string{"switches.all.qos.dscp_to_tc.48=0"}, "cnp-lossy", "CNPs of flow rnic1->rnic5 use lossy queue 0 without strict priority at leaf2 (DSCP 48 -> TC 0)"},
		{clos, []string{"switches.all.ecmp.seed=7", "topology.links.uplink.per_pair=2"}, "hash-polarised", "leaf1 and spine1 are consecutive and hash with murmur3 and the same seed 7"},
		{clos, []string{"switches.all.ecmp.hash=crc32", "topology.links.uplink.per_pair=2"}, "hash-polarised", "leaf1 and spine1 are consecutive and both hash with crc32: different seeds do not help"},
		{clos, []string{`topology.cables=[{ends: ["leaf1:7", "x:1"]}]`, "topology.nodes=[{name: x, kind: leaf}, {name: h, kind: rnic}, {name: y, kind: leaf}]", `topology.cables=[{ends: ["h:1", "x:1"]}]`, "workload.w.to=h"}, "no-route", "leaf1 has no route to h; this path never works"},
	} {
		fs := Lint(load(t, c.base, c.set...))
		found := false
		for _, f := range fs {
			if f.Code != c.code {
				t.Errorf("%v: also %v", c.set, f)
			}
			found = found || f.Code == c.code && strings.Contains(f.Text, c.want)
		}
		if !found {
			t.Errorf("%v: want %s %q, got %v", c.set, c.code, c.want, fs)
		}
	}
}

// TestMTUMismatch is report case C14b: both ends need the same path MTU.
func TestMTUMismatch(t *testing.T) {
	_, _, err := ParseBytes("f", []byte(pair), "rnics.devices.rnic2.mtu=4096")
	if err == nil || !strings.Contains(err.Error(), "path MTU 1024 at rnic1 and 4096 at rnic2") {
		t.Errorf("got %v", err)
	}
}

// TestTimeoutZero is report case C07: accepted, with a warning.
func TestTimeoutZero(t *testing.T) {
	_, ws, err := ParseBytes("f", []byte(pair), "rnics.all.qp.timeout=0")
	if err != nil || len(ws) != 1 || !strings.Contains(ws[0].Text, "never times out") {
		t.Errorf("%v %v", ws, err)
	}
}

// TestWindow: the window is the smallest fixed latency, and short ones warn.
func TestWindow(t *testing.T) {
	p := load(t, pair)
	if p.Window != 1_000_000 || p.Settle != 4_000_000 { // 500 ns cable, 500 ns half
		t.Errorf("window %v settle %v", p.Window, p.Settle)
	}
	q, ws, err := ParseBytes("f", []byte(pair), "switches.all.latency=0ns", "topology.links.server.length=3m", "run.window=5ns")
	if err != nil || q.Window != 5_000 || q.Settle != 60_000 || len(ws) != 1 || ws[0].Code != "short-window" {
		t.Errorf("%v %v %v", q, ws, err)
	}
	if _, _, err := ParseBytes("f", []byte(pair), "switches.all.pfc.response=100ns"); err == nil || !strings.Contains(err.Error(), "must be at least half the pipeline latency") {
		t.Errorf("response below half a pipeline: %v", err)
	}
}
