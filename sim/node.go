package sim

import (
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/leaf"
	"github.com/rocemu/rocemu/nodes/rnic"
	"github.com/rocemu/rocemu/nodes/spine"
	"github.com/rocemu/rocemu/topology"
)

// builder makes nodes of one plan; what RNICs share is built once.
type builder struct {
	plan *topology.Plan
	idx  *rnic.Index
	time *topology.Timeline
}

func (b *builder) node(dev int32) Node {
	if b.plan.Devices[dev].Kind == topology.RNIC {
		if b.idx == nil {
			b.idx = rnic.NewIndex(b.plan)
			b.idx.Timeline = b.time
		}
		return rnic.New(b.plan, dev, b.idx)
	}
	n := &switchNode{plan: b.plan, dev: &b.plan.Devices[dev]}
	if n.dev.Kind == topology.Leaf {
		n.Switch = leaf.New(b.plan, dev, fabric.Options{Timeline: b.time}).Switch
	} else {
		n.Switch = spine.New(b.plan, dev, fabric.Options{Timeline: b.time}).Switch
	}
	return n
}
