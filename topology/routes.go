package topology

import (
	"fmt"
	"slices"
)

// router computes shortest-path route groups. RNICs do not forward, and all
// RNICs on the same switch share their way up to it, so the work is one
// breadth-first search over switches per switch that has RNICs.
type router struct {
	p        *Plan
	switches []int32
	dist     []int32 // by device, toward the current switch
	queue    []int32
	group    []map[string]int16 // by device: ports of a group to its number
	key      []byte
	ports    []uint16
}

func (r *resolver) buildRoutes() {
	rt := &router{p: r.plan, dist: make([]int32, len(r.plan.Devices)), group: make([]map[string]int16, len(r.plan.Devices))}
	two := false
	for i := range r.plan.Devices {
		d := &r.plan.Devices[i]
		if d.Kind == RNIC {
			two = two || len(d.Ports) > 1
			continue
		}
		rt.switches = append(rt.switches, int32(i))
		d.Route = make([]int16, len(r.plan.RNICs))
		for k := range d.Route {
			d.Route[k] = -1
		}
		rt.group[i] = map[string]int16{}
	}
	for first, members := range rt.attached(0) {
		rt.toward(int32(first), members, 0)
	}
	if two {
		for _, s := range rt.switches {
			d := &r.plan.Devices[s]
			d.AltRoute = slices.Clone(d.Route)
		}
		for first, members := range rt.attached(1) {
			rt.toward(int32(first), members, 1)
		}
	}
	r.staticRoutes(rt)
	rt.share()
}

// share lets switches whose tables are equal, as those of spines are, have one: it
// stays in a processor's caches from one to the next.
func (rt *router) share() {
	seen := map[uint64][]int16{}
	for _, s := range rt.switches {
		d := &rt.p.Devices[s]
		h := uint64(len(d.Route))
		for _, g := range d.Route {
			h = (h ^ uint64(uint16(g))) * 0x100000001b3
		}
		if t, ok := seen[h]; !ok {
			seen[h] = d.Route
		} else if slices.Equal(t, d.Route) {
			d.Route = t
		}
	}
}

// attached lists, by switch, the RNIC numbers whose port is on it.
func (rt *router) attached(port int) [][]uint32 {
	out := make([][]uint32, len(rt.p.Devices))
	for k, id := range rt.p.RNICs {
		ps := rt.p.Devices[id].Ports
		if port < len(ps) && rt.p.Devices[ps[port].Peer].Kind != RNIC {
			out[ps[port].Peer] = append(out[ps[port].Peer], uint32(k+1))
		}
	}
	return out
}

// toward fills every switch's route to the RNICs on switch s through their
// given port.
func (rt *router) toward(s int32, members []uint32, port int) {
	if len(members) == 0 {
		return
	}
	rt.search(s)
	for _, w := range rt.switches {
		d := &rt.p.Devices[w]
		table := d.Route
		if port == 1 {
			table = d.AltRoute
		}
		if w == s {
			for _, k := range members {
				rn := &rt.p.Devices[rt.p.RNICs[k-1]]
				rt.ports = append(rt.ports[:0], uint16(rn.Ports[port].PeerPort))
				table[k-1] = rt.groupOf(w)
			}
			continue
		}
		if rt.dist[w] < 0 {
			continue
		}
		rt.ports = rt.ports[:0]
		for i := range d.Ports {
			if pd := rt.dist[d.Ports[i].Peer]; pd >= 0 && pd == rt.dist[w]-1 && rt.p.Devices[d.Ports[i].Peer].Kind != RNIC {
				rt.ports = append(rt.ports, uint16(d.Ports[i].Num))
			}
		}
		g := rt.groupOf(w)
		for _, k := range members {
			table[k-1] = g
		}
	}
}

// search sets dist from every switch to s; RNICs and unreachable switches get -1.
func (rt *router) search(s int32) {
	for i := range rt.dist {
		rt.dist[i] = -1
	}
	rt.dist[s] = 0
	rt.queue = append(rt.queue[:0], s)
	for i := 0; i < len(rt.queue); i++ {
		at := rt.queue[i]
		d := &rt.p.Devices[at]
		for j := range d.Ports {
			peer := d.Ports[j].Peer
			if rt.dist[peer] < 0 && rt.p.Devices[peer].Kind != RNIC {
				rt.dist[peer] = rt.dist[at] + 1
				rt.queue = append(rt.queue, peer)
			}
		}
	}
}

// groupOf returns the number of the group with rt.ports on switch w, -1 when
// the group table is full.
func (rt *router) groupOf(w int32) int16 {
	rt.key = rt.key[:0]
	for _, p := range rt.ports {
		rt.key = append(rt.key, byte(p), byte(p>>8))
	}
	if g, ok := rt.group[w][string(rt.key)]; ok {
		return g
	}
	d := &rt.p.Devices[w]
	if len(d.Groups) >= 1<<15-1 {
		return -1
	}
	g := int16(len(d.Groups))
	d.Groups = append(d.Groups, slices.Clone(rt.ports))
	rt.group[w][string(rt.key)] = g
	return g
}

// staticRoutes lays routes given by hand over the computed ones.
func (r *resolver) staticRoutes(rt *router) {
	rs := r.root.path("topology", "routes")
	if rs == nil {
		return
	}
	for i, n := range rs.items {
		field := fmt.Sprintf("topology.routes[%d]", i)
		at, ok := r.dev[n.str("at")]
		if !ok || r.plan.Devices[at].Kind == RNIC {
			r.fail(orNode(n.get("at"), n), field+".at", n.str("at"), "must be a switch", r.nearDevice(n.str("at"), ""))
			continue
		}
		to, ok := r.dev[n.str("to")]
		if !ok {
			r.fail(orNode(n.get("to"), n), field+".to", n.str("to"), "must be an RNIC or a switch", r.nearDevice(n.str("to"), ""))
			continue
		}
		g, ok := r.staticGroup(rt, n, at, field)
		if !ok {
			continue
		}
		d := &r.plan.Devices[at]
		for k, id := range r.plan.RNICs {
			if id == to || r.plan.Devices[id].Ports[0].Peer == to {
				d.Route[k] = g
				if d.AltRoute != nil {
					d.AltRoute[k] = g
				}
			}
		}
	}
	for i := range r.plan.Devices {
		if d := &r.plan.Devices[i]; d.Floods != nil {
			d.Floods = append(d.Floods, make([]bool, len(d.Groups)-len(d.Floods))...)
		}
	}
}

// staticGroup makes the group that a route's line names.
func (r *resolver) staticGroup(rt *router, n *node, at int32, field string) (int16, bool) {
	if n.flag("flood") {
		if n.has("via") {
			r.contradict(n, field, "a flooded route has no port of its own; give via or flood", "",
				said{key: "via", text: text(n.get("via")), n: n.get("via"), path: field + ".via"},
				said{key: "flood", text: "true", n: n.get("flood"), path: field + ".flood"})
			return 0, false
		}
		return rt.flooded(at), true
	}
	rt.ports = rt.ports[:0]
	for _, v := range n.list("via") {
		dev, port, ok := r.parsePort(v, field+".via")
		if !ok {
			continue
		}
		if dev != at {
			r.fail(v, field+".via", v.text, "must be a port of "+n.str("at"), "")
			continue
		}
		rt.ports = append(rt.ports, uint16(port))
	}
	if len(rt.ports) == 0 {
		if !n.has("via") {
			r.fail(n, field+".via", "", "needs a port of "+n.str("at")+", or flood: true", "")
		}
		return 0, false
	}
	slices.Sort(rt.ports)
	return rt.groupOf(at), true
}

// flooded returns the group of all ports of switch w that floods.
func (rt *router) flooded(w int32) int16 {
	d := &rt.p.Devices[w]
	for g, on := range d.Floods {
		if on {
			return int16(g)
		}
	}
	var all []uint16
	for i := range d.Ports {
		all = append(all, uint16(d.Ports[i].Num))
	}
	d.Groups = append(d.Groups, all)
	d.Floods = make([]bool, len(d.Groups), len(d.Groups)+1)
	d.Floods[len(d.Groups)-1] = true
	return int16(len(d.Groups) - 1)
}

func orNode(n, other *node) *node {
	if n != nil {
		return n
	}
	return other
}

// parsePort reads device:port of an existing port; uplinkN names the N-th
// uplink.
func (r *resolver) parsePort(n *node, field string) (dev int32, port int, ok bool) {
	dev, port, msg, hint := r.plan.findPort(n.text)
	if msg == "" {
		return dev, port, true
	}
	if hint == "" && dev < 0 {
		hint = r.nearDevice(cutPort(n.text))
	}
	r.fail(n, field, n.text, msg, hint)
	return 0, 0, false
}
