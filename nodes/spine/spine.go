// Package spine is the switch above the leaves, and the core above the spines.
// Both are a [fabric.Switch]; ports that face a core have no PFC and no
// lossless PG, by the plan, so RDMA stays in its POD.
package spine

import (
	"fmt"

	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/topology"
)

// Spine is the actor of one spine or core.
type Spine struct {
	*fabric.Switch
	// Downlinks face leaves, CorePorts a core (or, at a core, the spines).
	Downlinks, CorePorts []int
}

// New builds the spine or core of device dev. It panics when the device is
// another kind.
func New(plan *topology.Plan, dev int32, o fabric.Options) *Spine {
	d := &plan.Devices[dev]
	if d.Kind != topology.Spine && d.Kind != topology.Core {
		panic(fmt.Sprintf("spine: device %s is of kind %d", d.Name, d.Kind))
	}
	s := &Spine{Switch: fabric.New(plan, dev, o)}
	for i := range d.Ports {
		p := &d.Ports[i]
		if p.Class == topology.ClassCore {
			s.CorePorts = append(s.CorePorts, p.Num)
		} else {
			s.Downlinks = append(s.Downlinks, p.Num)
		}
	}
	return s
}
