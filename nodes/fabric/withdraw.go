package fabric

import (
	"slices"

	"github.com/rocemu/rocemu/topology"
)

// Routing tells switches that are not at a broken cable to avoid it: members of
// their ECMP groups behind which a destination cannot be reached any more are
// left out for it. Routes stay those of the plan, so only members vanish.

// broken is one end of a withdrawn cable; port 0 stands for all of a device.
type broken struct {
	dev  int32
	port int
}

// detours computes anew which members are left for each destination.
func (x *faultPlan) detours() {
	s := x.s
	dead := map[broken]bool{}
	x.d.Broken(func(dev int32, port int) { dead[broken{dev, port}] = true })
	s.avoid = nil
	if len(dead) == 0 {
		return
	}
	s.avoid = make([][]uint16, len(s.route))
	for k, g := range s.route {
		if g < 0 || len(s.groups[g]) < 2 {
			continue
		}
		left := make([]uint16, 0, len(s.groups[g]))
		for _, p := range s.groups[g] {
			if reaches(x.plan, dead, s.id, int(p), uint32(k+1), maxDepth) {
				left = append(left, p)
			}
		}
		if n := len(left); n > 0 && n < len(s.groups[g]) {
			s.avoid[k] = left
		}
	}
}

// maxDepth bounds a path: leaf, spine, core, spine, leaf and some to spare.
const maxDepth = 8

// reaches reports whether RNIC k can be reached through a port of dev without
// the broken cables, along the plan's routes.
func reaches(plan *topology.Plan, dead map[broken]bool, dev int32, port int, k uint32, depth int) bool {
	p := &plan.Devices[dev].Ports[port-1]
	if dead[broken{dev, port}] || dead[broken{p.Peer, p.PeerPort}] || dead[broken{p.Peer, 0}] {
		return false
	}
	peer := &plan.Devices[p.Peer]
	if peer.Switch == nil {
		return peer.Num == int(k)
	}
	g := peer.Route[k-1]
	if g < 0 || depth == 0 {
		return false
	}
	return slices.ContainsFunc(peer.Groups[g], func(q uint16) bool {
		return reaches(plan, dead, p.Peer, int(q), k, depth-1)
	})
}

// detour narrows the live members toward a destination to those that are left
// after withdrawals; when that leaves none, the live ones stay.
func (s *Switch) detour(dst uint32, live []uint16) []uint16 {
	k := int(dst&^altBit) - 1
	if k < 0 || k >= len(s.avoid) || s.avoid[k] == nil {
		return live
	}
	if len(live) == len(s.groups[s.group(dst)]) {
		return s.avoid[k]
	}
	var m []uint16
	for _, p := range s.avoid[k] {
		if slices.Contains(live, p) {
			m = append(m, p)
		}
	}
	if len(m) == 0 {
		return live
	}
	return m
}
