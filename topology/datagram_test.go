package topology

import "testing"

// TestDatagram: a UDP request that fits a jumbo frame is one datagram (report
// C16: "frames of 9000 B"); a longer one is cut to what 1500 B Ethernet carries.
func TestDatagram(t *testing.T) {
	const text = "schema: 1\nname: x\ntopology: {spines: 1, leaves: 2, servers: 2}\nworkload:\n  - {name: u, from: rnic1, to: rnic4, transport: udp, "
	for line, want := range map[string]int{
		"size: 18B}": 1472, "size: 1472B}": 1472, "size: 8954B}": 8954, "size: 9170B}": 9170, "size: 9171B}": 1472, "size: 10MB}": 1472,
		"size: 8954B, packet: 1000B}": 1000, "size: 1MB, frame: 9000B}": 8954, "size: 4KB, frame: 64B}": 18,
	} {
		if got := load(t, text+line+"\n").Flows[0].Packet; got != want {
			t.Errorf("%s: datagrams of %d B, want %d", line, got, want)
		}
	}
}

// TestPatternVerb: the fabric file's example of poisson names no verb.
func TestPatternVerb(t *testing.T) {
	const text = "schema: 1\nname: x\ntopology: {spines: 1, leaves: 2, servers: 2}\nworkload:\n  - {name: p, pattern: "
	for line, want := range map[string]Verb{
		"poisson, load: 0.5, cdf: [[1000, 100]], until: 1ms}": Write, "all-to-all, size: 1KB}": Write,
		"all-to-all, verb: read, size: 1KB}": Read, "ring-allreduce, size: 1MB}": Write, "pingmesh}": Send,
	} {
		p := load(t, text+line+"\n")
		if f := p.Flows[0]; f.Verb != want || p.Lines[0].Verb != verbNames[want] {
			t.Errorf("%s: %v, in the result %q", line, f.Verb, p.Lines[0].Verb)
		}
	}
}
