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
