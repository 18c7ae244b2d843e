package topology

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const good = `schema: 1
name: pair
topology:
  spines: 2
  leaves: 2
  servers: 4
  links:
    server: {rate: 25Gbps, length: 3m}
    uplink: {rate: 100Gbps, length: 100m}
switches:
  all:
    pfc: {priorities: [3], headroom: auto}
    ecn: {kmin: 100KB, kmax: 400KB}
rnics:
  all:
    qp: {timeout: 14, retry_cnt: 7}
workload:
  - {name: bulk, from: rnic1, to: rnic5, verb: write, size: 1MB}
faults:
  - drop rnic1:1 dir=out psn_index=3 count=1
`

// TestBroken breaks one good file in many ways; each must fail with its line,
// the offending text, what is allowed and, where one is near, a suggestion.
func TestBroken(t *testing.T) {
	load(t, good)
	for _, c := range []struct{ old, new, want string }{
		{"headroom: auto", "headrom: auto", `fabric.yaml:12:28: switches.all.pfc.headrom: value "headrom": unknown key; allowed here: priorities, alpha, xoff, guaranteed, xon_offset, headroom, quanta, response, watchdog, or a number 0..7; did you mean "headroom"?`},
		{"  links:\n    server", "links:\n    server", `fabric.yaml:7:1: links: value "links": unknown key at this level; allowed here: schema, name, seed, run, topology,`},
		{"  links:\n    server", "links:\n    server", `did you mean "topology.links"?`},
		{"rate: 25Gbps", "rate: 100", `fabric.yaml:8:20: topology.links.server.rate: value "100": a bare number has no unit; must be a rate such as 25Gbps, 25G, 25Gb/s or 100Mbps; did you mean "100Gbps"?`},
		{"rate: 25Gbps", "rate: 100Gb", `value "100Gb": unit "Gb" does not fit; must be a rate such as 25Gbps, 25G, 25Gb/s or 100Mbps; did you mean "100Gbps"?`},
		{"length: 100m", "delay: 500", `fabric.yaml:9:36: topology.links.uplink.delay: value "500": a bare number has no unit; must be a time with unit`},
		{"to: rnic5", "to: rnic50", `fabric.yaml:18:35: workload.bulk.to: value "rnic50": no such RNIC; there are 8, rnic1 to rnic8; did you mean "rnic5"?`},
		{"to: rnic5", "to: leaf1", `value "leaf1": is a switch`},
		{"leaves: 2", "leaves: two", `fabric.yaml:5:11: topology.leaves: value "two": must be a whole number 0..4096`},
		{"leaves: 2", "leaves: 2\n  leaves: 3", `fabric.yaml:6:3: topology.leaves: given twice; first at line 5`},
		{"retry_cnt: 7", "retry_cnt: 15", `fabric.yaml:16:34: rnics.all.qp.retry_cnt: value "15": must be a whole number 0..7`},
		{"retry_cnt: 7", "rnr_retry: 9", `value "9": must be a whole number 0..7`},
		{"timeout: 14", "timeout: 32", `value "32": must be a whole number 0..31`},
		{"timeout: 14", "timeout: 14ms", `value "14ms": must be a whole number 0..31; did you mean "14"?`},
		{"size: 1MB", "size: 32Mb", `value "32Mb": unit "Mb" counts bits; must be a size with unit B, KB, MB, GB (1000) or KiB, MiB, GiB (1024), such as 208B; did you mean "4MB"?`},
		{"size: 1MB", "size: 1Gbit", `did you mean "125MB"?`},
		{"size: 1MB", "size: 1mb", `unit "mb" does not fit; must be a size with unit B, KB, MB, GB (1000) or KiB, MiB, GiB (1024), such as 208B; did you mean "1MB"?`},
		{"verb: write", "verb: wrte", `value "wrte": must be one of send, send-imm, send-inv, write, write-imm, read, cmp-swap, fetch-add; did you mean "write"?`},
		{"verb: write", "pattern: poissson", `must be one of incast, permutation, all-to-all, ring-allreduce, poisson, pingmesh; did you mean "poisson"?`},
		{"size: 1MB", "size: 1000", `value "1000": a bare number has no unit; must be a size with unit B, KB, MB, GB (1000) or KiB, MiB, GiB (1024), such as 208B; did you mean "1000B"?`},
		{"length: 3m", "length: 0m", `fabric.yaml:8:36: topology.links.server.length: value "0m": a cable must have a delay`},
		{"length: 3m", "length: 3m, delay: 15ns", `give length or delay, not both`},
		{"kmax: 400KB", "kmax: 40KB", `fabric.yaml:13:30: switches.all.ecn.kmax: value "40KB": must not be below kmin 100KB`},
		{"drop rnic1:1", "dorp rnic1:1", `fabric.yaml:20:5: faults[0].kind: value "dorp": must be one of link-down,`},
		{"drop rnic1:1", "drop rnic1:2", `faults[0].target: value "rnic1:2": rnic1 has ports 1..1`},
		{"psn_index=3", "psnindex=3", `did you mean "psn_index"?`},
		{"drop rnic1:1", "drop leef1:1", `no such device, port or flow; did you mean "leaf1:1"?`},
		{"name: bulk", "nam: bulk", `unknown key; allowed here: name, pattern,`},
		{"schema: 1", "schema: 2", `fabric.yaml:1:9: schema: value "2": must be 1`},
		{"priorities: [3]", "priorities: [3, 9]", `switches.all.pfc.priorities[1]: value "9": must be a whole number 0..7`},
		{"priorities: [3]", "priorities: 3", `must be a list`},
		{"    qp: {timeout", "    qp:\n  devices: {rnic33: {mtu: 4096}}\n  nothing: {timeout", `fabric.yaml:17:13: rnics.devices: value "rnic33": no such device; did you mean "rnic3"?`},
		{"schema: 1", "schema: 1\n\t- x", `not valid YAML`},
		{"pfc: {priorities: [3], headroom: auto}", "buffer: {size: 64KiB}", `headroom + reserved`},
		{"name: pair", "name: pair\nrun: {window: 2us}", `fabric.yaml:3:15: run.window: value "2us": must be above 0 and at most the automatic window, 515ns; did you mean "auto"?`},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("mutation %q does not apply", c.old)
		}
		p, _, err := ParseBytes("fabric.yaml", []byte(text))
		if err == nil {
			t.Errorf("%q -> %q: accepted", c.old, c.new)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q -> %q:\n got %v\nwant %s", c.old, c.new, err, c.want)
		}
		var es Errors
		if p != nil || !errors.As(err, &es) || len(es) == 0 || es[0].Line == 0 {
			t.Errorf("%q: plan %v, error without place: %v", c.new, p, err)
		}
	}
}

// TestBrokenWhole gives whole messages where what must not be in them matters.
func TestBrokenWhole(t *testing.T) {
	const mtu = "must be 256, 512, 1024, 2048 or 4096, a bare number; did you mean "
	for _, c := range []struct{ old, new, want string }{
		{"to: rnic5", "to: rnic9", `fabric.yaml:18:35: workload.bulk.to: value "rnic9": no such RNIC; there are 8, rnic1 to rnic8`},
		{"timeout: 14", "timeout: 67ms", `fabric.yaml:16:19: rnics.all.qp.timeout: value "67ms": must be a whole number 0..31`},
		{"qp: {timeout: 14, ", "mtu: 9000\n    qp: {", `fabric.yaml:16:10: rnics.all.mtu: value "9000": ` + mtu + `"4096"?`},
		{"qp: {timeout: 14, ", "mtu: 1500\n    qp: {", `fabric.yaml:16:10: rnics.all.mtu: value "1500": ` + mtu + `"1024"?`},
		{"qp: {timeout: 14, ", "mtu: 4096B\n    qp: {", `fabric.yaml:16:10: rnics.all.mtu: value "4096B": ` + mtu + `"4096"?`},
		{"switches:\n", "switches:\n  leaf1: {pfc: off}\n", `fabric.yaml:11:3: switches.leaf1: value "leaf1": unknown key; allowed here: all, leaf, spine, core, devices; did you mean "devices: {leaf1: ...}"?`},
		{"rnics:\n", "rnics:\n  rnic1: {mtu: 1024}\n", `fabric.yaml:15:3: rnics.rnic1: value "rnic1": unknown key; allowed here: all, devices; did you mean "devices: {rnic1: ...}"?`},
		{"rnics:\n", "rnics:\n  leaf2: {mtu: 1024}\n", `fabric.yaml:15:3: rnics.leaf2: value "leaf2": unknown key; allowed here: all, devices; did you mean "switches: {devices: {leaf2: ...}}"?`},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if _, _, err := ParseBytes("fabric.yaml", []byte(text)); text == good || err == nil || err.Error() != c.want {
			t.Errorf("%q -> %q:\n got %v\nwant %s", c.old, c.new, err, c.want)
		}
	}
	const at = "--set switches.all.pfc.watchdog:1:27: switches.all.pfc.watchdog."
	_, _, err := ParseBytes("fabric.yaml", []byte(good), "switches.all.pfc.watchdog={detect: 2ms, restore: 2ms, action: drop}")
	want := []string{at + `detect: value "2ms": must be 100ms..5s`, at + `restore: value "2ms": must be 100ms..60s`, at + `detect: value "2ms": poll must not be above`}
	lines := strings.Split(fmt.Sprint(err), "\n")
	for i, l := range lines {
		if len(lines) != len(want) || !strings.HasPrefix(l, want[i]) {
			t.Errorf("watchdog:\n%v", err)
			break
		}
	}
	_, _, err = ParseBytes("fabric.yaml", []byte(good), "switches.leaf1.pfc=off")
	if err == nil || !strings.HasSuffix(err.Error(), `did you mean "switches.devices.leaf1"?`) {
		t.Errorf("%v", err)
	}
}

// TestPatternOfOneKnownRNIC: a wrong name that leaves a pattern one member, or
// none, is the error, for each pattern.
func TestPatternOfOneKnownRNIC(t *testing.T) {
	for _, pattern := range []string{"ring-allreduce", "permutation", "all-to-all", "pingmesh", "poisson, load: 0.5, cdf: [[1000, 100]], until: 1ms", "incast, to: rnic3"} {
		for _, from := range []string{"[rnic1, rnic33]", "[rnic33, rnic34]", "rnic33"} {
			text := strings.Replace(good, "from: rnic1, to: rnic5", "from: "+from+", pattern: "+pattern, 1)
			_, _, err := ParseBytes("fabric.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), `value "rnic33": no such RNIC; there are 8`) {
				t.Errorf("%s of %s: %v", pattern, from, err)
			}
		}
	}
}

// TestAllErrorsAtOnce puts four mistakes in one file.
func TestAllErrorsAtOnce(t *testing.T) {
	text := strings.NewReplacer("headroom: auto", "headrom: auto", "retry_cnt: 7", "retry_cnt: 8", "verb: write", "verb: wirte", "to: rnic5", "to: rnic99").Replace(good)
	_, _, err := ParseBytes("fabric.yaml", []byte(text))
	var es Errors
	if !errors.As(err, &es) || len(es) != 4 {
		t.Fatalf("want 4 errors, got %v", err)
	}
	for i := 1; i < len(es); i++ {
		if es[i].Line < es[i-1].Line {
			t.Errorf("not in order of lines: %v", err)
		}
	}
}

// TestHandMade covers mistakes of nodes and cables.
func TestHandMade(t *testing.T) {
	const h = `schema: 1
topology:
  nodes: [{name: h1, kind: rnic}, {name: h2, kind: rnic}, {name: tor, kind: leaf}]
  cables:
    - {ends: ["h1:1", "tor:1"], rate: 100Gbps, length: 2m}
    - {ends: ["h2:1", "tor:2"], rate: 100Gbps, length: 2m}
`
	p := load(t, h)
	if p.Device("h2").Addr != 0x0a000002 || p.Device("tor").Ports[1].Class != ClassServer || p.Device("tor").Ports[1].Prop != 10000 {
		t.Errorf("hand-made fabric is off: %+v", p.Device("tor").Ports)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"tor:2"`, `"tor:1"`, `fabric.yaml:6:23: topology.cables[1].ends: value "tor:1": port is in use by the cable at fabric.yaml:5:23`},
		{`"h2:1"`, `"h3:1"`, `value "h3:1": no such device; did you mean "h1:1"?`},
		{`"tor:2"`, `"tor:3"`, `port 2 of tor has no cable`},
		{`kind: leaf`, `kind: laef`, `must be one of rnic, leaf, spine, core; did you mean "leaf"?`},
		{`{name: h2`, `{name: h1`, `name is taken by the node at`},
	} {
		_, _, err := ParseBytes("fabric.yaml", []byte(strings.Replace(h, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.new, err, c.want)
		}
	}
}

// TestOverBudget is report case C18: headroom that exceeds the buffer. The case
// writes "headroom 1 340 160 + reserved > buffer": read as one sum, of the bytes
// that the settings ask for, while what must fit, and what is said to be needed,
// is that sum in whole cells. Its second half, use above a limit at run time, is
// TestR18ShrunkPool of package fabric.
func TestOverBudget(t *testing.T) {
	text := "schema: 1\ntopology: {spines: 0, leaves: 1, servers: 64}\nswitches: {all: {buffer: {size: 1MiB, cell: 1KB}, pfc: {headroom: 21KB}}}\n"
	_, _, err := ParseBytes("f", []byte(strings.Replace(text, "cell: 1KB", "cell: 32B", 1)))
	want := fmt.Sprintf("headroom + reserved %d > buffer 1048576", 64*21000) // as asked for, not as held in cells
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "needs a buffer of at least 1345536") || !strings.Contains(err.Error(), `"1314KiB"`) {
		t.Errorf("got %v, want %q, 64 times 657 cells of 32 bytes, that is 1314 KiB", err, want)
	}
}
