package leaf

import (
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/spine"
	"github.com/rocemu/rocemu/topology"
)

// article returns a plan with one device of the article's port counts.
func article(k topology.Kind, lower, upper int, rate clock.Rate) *topology.Plan {
	d := topology.Device{Kind: k, Name: "x", Switch: &topology.Switch{BufferBytes: 32 << 20, Cell: 256, Slices: 1}}
	for i := range lower + upper {
		p := topology.Port{Num: i + 1, Rate: rate, MTU: 9216, QoS: &topology.QoS{}, PFC: &topology.PFC{}, Lossy: &topology.Lossy{}}
		switch {
		case k == topology.Leaf && i < lower:
			p.Class = topology.ClassServer
		case k == topology.Leaf:
			p.Class, p.Rate = topology.ClassUplink, 100*clock.Gbps
		case i < lower:
			p.Class = topology.ClassDownlink
		default:
			p.Class = topology.ClassCore
		}
		d.Ports = append(d.Ports, p)
	}
	return &topology.Plan{Devices: []topology.Device{d}}
}

// TestSC40Roles: the article's leaf is 48 × 25G + 8 × 100G, 1.5 : 1; its spine
// has 64 ports, some of them to the core.
func TestSC40Roles(t *testing.T) {
	l := New(article(topology.Leaf, 48, 8, 25*clock.Gbps), 0, fabric.Options{})
	down, up := l.Oversubscription()
	if len(l.Servers) != 48 || len(l.Uplinks) != 8 || l.Uplinks[0] != 49 || down*2 != up*3 {
		t.Errorf("%d servers, uplinks %v, %d : %d", len(l.Servers), l.Uplinks, down, up)
	}
	s := spine.New(article(topology.Spine, 48, 16, 100*clock.Gbps), 0, fabric.Options{})
	if len(s.Downlinks) != 48 || len(s.CorePorts) != 16 || s.CorePorts[0] != 49 {
		t.Errorf("%d downlinks, core ports %v", len(s.Downlinks), s.CorePorts)
	}
	defer func() {
		if recover() == nil {
			t.Error("a spine was built as a leaf")
		}
	}()
	New(article(topology.Spine, 1, 1, clock.Gbps), 0, fabric.Options{})
}
