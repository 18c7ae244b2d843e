package transport

import (
	"fmt"
	"testing"
)

// A NIC that lowers its rate after a loss does so without any CNP before
// (transport §5.1): the rest of the message leaves at half of the line rate.
func TestSlowRestartWithoutCNP(t *testing.T) {
	var end [2]float64
	for i, on := range []bool{false, true} {
		o := execute(t, load(t, fmt.Sprintf(`schema: 1
topology: {spines: 0, leaves: 1, servers: 2, links: {server: {rate: 100Gbps, length: 100m}}}
rnics: {all: {mtu: 1024, model: cx6dx, congestion: dcqcn, qp: {timeout: 8}, personality: {slow_restart: %v, nack_triggers_cnp: false, adp: false}}}
workload: [{name: w, from: rnic1, to: rnic2, verb: write, size: 1MB}]
faults: ["drop rnic1:1 dir=out name=a psn_index=50 count=1"]
`, on)))
		if n := o.RNICs["rnic1"].RoceSlowRestart; o.Totals.CNPs != 0 || (n == 1) != on {
			t.Fatalf("%d CNPs, %d slow restarts", o.Totals.CNPs, n)
		}
		end[i] = float64(o.VirtualNS)
	}
	if r := end[1] / end[0]; r < 1.4 || r > 2.1 {
		t.Errorf("with slow restart %.2f times as long: %v", r, end)
	}
}
