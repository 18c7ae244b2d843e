package sim_test

import "testing"

// TestMTUHits: frames that a fault made too long are its hits; those that are
// too long for the settings are nobody's.
func TestMTUHits(t *testing.T) {
	const text = `
schema: 1
name: hits
topology: {spines: 1, leaves: 1, servers: 2}
switches: {all: {mtu: 2000B}}
workload:
  - {name: long, from: rnic1, to: rnic2, transport: udp, size: 3000B, count: 2}
  - {name: fits, from: rnic1, to: rnic2, transport: udp, size: 1500B, count: 3, start: 100us}
  - {name: later, from: rnic1, to: rnic2, transport: udp, size: 1500B, count: 4, start: 300us}
faults:
  - {name: hole, kind: mtu, target: "leaf1:2", at: 50us, for: 200us, size: 1500B}
`
	r := run(t, parse(t, text), 1)
	if n := r.Totals.DropsByReason["mtu"]; n != 5 {
		t.Errorf("%d frames dropped as mtu, want 2 by the settings and 3 by the fault", n)
	}
	if h := r.Faults["hole"].Hits; h != 3 {
		t.Errorf("hits %d, want 3", h)
	}
	if b := r.Flows["later"].Bytes; b != 6000 {
		t.Errorf("after the fault %d B arrived, want 6000", b)
	}
}

// TestDeviceBackAtOnce: a device that was down forwards again when the fault
// ends, unless a boot time is given.
func TestDeviceBackAtOnce(t *testing.T) {
	const text = `
schema: 1
name: back
topology: {spines: 1, leaves: 1, servers: 2}
workload:
  - {name: u, from: rnic1, to: rnic2, transport: udp, size: 1000B, count: 100, interval: 10us}
faults:
  - {name: off, kind: device-down, target: leaf1, at: 205us, for: 200us}
`
	for set, want := range map[string]int64{"switches.all.boot=0s": 80, "switches.all.boot=100us": 70} {
		r := run(t, parse(t, text, set), 1)
		if got := r.Flows["u"].Bytes / 1000; got != want {
			t.Errorf("%s: %d of 100 datagrams arrived, want %d", set, got, want)
		}
	}
	if r := run(t, parse(t, text), 1); r.Flows["u"].Bytes != 80_000 {
		t.Errorf("without a boot time %d B arrived, want 80000", r.Flows["u"].Bytes)
	}
}
