package topology

import (
	"testing"

	"github.com/rocemu/rocemu/clock"
)

// TestResponseOfACable: the receive-to-stop time of a switch port holds for the
// RNIC at the other end, too, unless the RNIC has its own.
func TestResponseOfACable(t *testing.T) {
	const text = "schema: 1\nname: x\ntopology: {spines: 1, leaves: 2, servers: 1}\n"
	for _, c := range []struct {
		sets []string
		want clock.Duration // of rnic1
		leaf clock.Duration
	}{
		{nil, clock.Microsecond, clock.Microsecond},
		{[]string{"switches.all.pfc.response=10us"}, 10 * clock.Microsecond, 10 * clock.Microsecond},
		{[]string{"switches.leaf.ports.server.pfc.response=3us"}, 3 * clock.Microsecond, 3 * clock.Microsecond},
		{[]string{"switches.all.pfc.response=10us", "rnics.all.pfc.response=2us"}, 2 * clock.Microsecond, 10 * clock.Microsecond},
		{[]string{"switches.all.latency=0ns", "switches.all.pfc.response=0ns", "rnics.all.latency=600ns"}, 300 * clock.Nanosecond, 0},
	} {
		p := load(t, text, c.sets...)
		nic, leaf := &p.Device("rnic1").Ports[0], &p.Device("leaf1").Ports[0]
		if nic.Response != c.want || leaf.PeerResponse != c.want || leaf.Response != c.leaf {
			t.Errorf("%v: RNIC stops after %v (the leaf knows %v), the leaf after %v; want %v and %v",
				c.sets, nic.Response, leaf.PeerResponse, leaf.Response, c.want, c.leaf)
		}
	}
}
