// Package leaf is the top-of-rack switch: the servers' gateway. It is a
// [fabric.Switch] with the leaf's side of the tree named; what it does with a
// frame is data of the plan (maps, lossless classes, routes), not other code.
package leaf

import (
	"fmt"

	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/topology"
)

// Leaf is the actor of one leaf.
type Leaf struct {
	*fabric.Switch
	// Servers and Uplinks are port numbers, ascending: server ports come first
	// (interface.md, names).
	Servers, Uplinks []int
}

// New builds the leaf of device dev. It panics when the device is no leaf:
// the plan says what it is.
func New(plan *topology.Plan, dev int32, o fabric.Options) *Leaf {
	d := &plan.Devices[dev]
	if d.Kind != topology.Leaf {
		panic(fmt.Sprintf("leaf: device %s is of kind %d", d.Name, d.Kind))
	}
	l := &Leaf{Switch: fabric.New(plan, dev, o)}
	for i := range d.Ports {
		if d.Ports[i].Class == topology.ClassServer {
			l.Servers = append(l.Servers, d.Ports[i].Num)
		} else {
			l.Uplinks = append(l.Uplinks, d.Ports[i].Num)
		}
	}
	return l
}

// Oversubscription returns the sum of the servers' rates and that of the
// uplinks', in bits per second.
func (l *Leaf) Oversubscription() (down, up int64) {
	for _, n := range l.Servers {
		down += int64(l.Rate(n))
	}
	for _, n := range l.Uplinks {
		up += int64(l.Rate(n))
	}
	return down, up
}
