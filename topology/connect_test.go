package topology

import (
	"strings"
	"testing"
)

// TestConnectRefused holds R-C14(b) and the other reasons of a refused
// connection: an error at load, with the workload line's place.
func TestConnectRefused(t *testing.T) {
	const file = `schema: 1
name: connect
topology: {spines: 0, leaves: 1, servers: 2}
rnics:
  all: {qp: {connect: cm}}
  devices: {rnic2: {DEV}}
workload:
  - {name: w, from: rnic1, to: rnic2, verb: write, size: 1KB}
`
	for _, c := range []struct{ dev, want string }{
		{"mtu: 4096", "path MTU 1024 at rnic1 and 4096 at rnic2"},
		{"qp: {max_dest_rd_atomic: 0}", "initiator depth (max_rd_atomic) 16 at rnic1 but responder depth (max_dest_rd_atomic) 0 at rnic2"},
		{"qp: {connect: preset}", "connect: cm at rnic1 but preset at rnic2"},
		{"qp: {alt_path: {port: 1}}", "alternate path is offered by one side only: alt_path.port 0 at rnic1, 1 at rnic2"},
		{"qp: {max_dest_rd_atomic: 256}", "0..255, or same"},
		{"qp: {alt_timeout: 32}", "1..31"},
		{"personality: {timeout_rule: hip08}, qp: {timeout: 21}", "0..20"},
		{"personality: {adp_profile: {ranges: [[5, 3]]}}", "ranges must ascend"},
	} {
		_, _, err := LoadBytes("connect.yaml", []byte(strings.Replace(file, "DEV", c.dev, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "connect.yaml:") {
			t.Errorf("%s: error %v, want it to say %q with its place", c.dev, err, c.want)
		}
	}
	p, _, err := LoadBytes("connect.yaml", []byte(strings.Replace(file, "DEV", "qp: {max_dest_rd_atomic: 4, alt_timeout: 9, psn_window: 128}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	a, b := p.RNIC(1).NIC.QP, p.RNIC(2).NIC.QP
	if a.MaxDestRd != 16 || a.AltTimeout != 14 || a.PSNWindow != 0 || b.MaxDestRd != 4 || b.AltTimeout != 9 || b.PSNWindow != 128 {
		t.Errorf("attributes: %+v and %+v", a, b)
	}
}
