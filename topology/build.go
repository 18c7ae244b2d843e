package topology

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// Sizes that a plan's types and a machine's memory bear.
const (
	maxRNICs   = 1 << 20
	maxDevices = 1 << 21
	maxPorts   = 65000
	psPerMM    = 5 // 5 ns a metre
)

// resolver turns the checked tree into a plan.
type resolver struct {
	checker
	root  *node
	plan  *Plan
	warns []Warning
	dev   map[string]int32 // device by name
	at    []*node          // hand-made devices' nodes by id, nil when generated
	read  ReadFile         // referenced files
}

// ReadFile reads a file that a fabric file names; name is relative to the
// fabric file from.
type ReadFile func(from, name string) ([]byte, error)

// linkOf is a parsed link or cable section.
type linkOf struct {
	rate     clock.Rate
	delay    clock.Duration
	lengthMM int64
	ber      float64
	berNum   uint64
	at       *node
	field    string
}

func (r *resolver) warn(code, where string, n *node, format string, a ...any) {
	pos := ""
	if n != nil {
		pos = n.pos()
	}
	r.warns = append(r.warns, Warning{code, where, pos, fmt.Sprintf(format, a...)})
}

// shape is the generated part's size.
type shape struct {
	pods, spines, leaves, servers, cores, ports int
	perPair, perCore                            int
}

// buildTopology makes devices, ports and cables. It reports false when the
// rest cannot be resolved.
func (r *resolver) buildTopology() bool {
	before := len(r.errs)
	t := r.root.get("topology")
	if t == nil || t.kind != nMap {
		r.fail(r.root, "topology", "", "missing: give spines, leaves and servers, or nodes and cables", "")
		return false
	}
	t = overlay(defaults().get("topology"), t)
	s, ok := r.shape(t)
	if !ok {
		return false
	}
	r.addDevices(t, s)
	if len(r.errs) > before {
		return false
	}
	r.cableGenerated(t, s)
	r.cableByHand(t)
	if len(r.errs) > before { // what would follow are consequences
		return false
	}
	r.checkPorts()
	r.racks()
	return len(r.errs) == before
}

func (r *resolver) shape(t *node) (shape, bool) {
	gen := t.has("leaves") || t.has("servers") || t.has("spines") || t.has("pods") || t.has("cores")
	links := t.get("links")
	s := shape{
		pods: 1, ports: int(t.num("ports")),
		perPair: int(links.path("uplink").num("per_pair")), perCore: int(links.path("core").num("uplinks_per_spine")),
	}
	if !gen {
		if t.get("nodes") == nil || len(t.get("nodes").items) == 0 {
			r.fail(t, "topology", "", "no devices: give spines, leaves and servers, or nodes and cables", "")
			return s, false
		}
		s.pods = 0
		return s, true
	}
	if t.has("pods") {
		s.pods = int(t.num("pods"))
	}
	s.spines, s.leaves, s.servers, s.cores = int(t.num("spines")), int(t.num("leaves")), int(t.num("servers")), int(t.num("cores"))
	ok := true
	for _, k := range []string{"leaves", "servers"} {
		if !t.has(k) {
			r.fail(t, "topology."+k, "", "missing: how many per "+map[string]string{"leaves": "POD", "servers": "leaf"}[k], "")
			ok = false
		}
	}
	if s.spines == 0 && s.leaves > 1 && ok && t.get("cables") == nil {
		r.contradict(t, "topology", "more than one leaf needs at least one spine per POD, or cables by hand", "", saidBy(t, "spines"), saidBy(t, "leaves"))
		ok = false
	}
	if s.pods > 1 && s.cores == 0 && ok && t.get("cables") == nil {
		r.warn("pods-apart", "topology", t.get("pods"), "%d PODs and no core: they cannot reach each other", s.pods)
	}
	if n := s.pods * s.leaves * s.servers; n > maxRNICs || s.pods*(s.spines+s.leaves)+s.cores > maxDevices/2 {
		r.contradict(t, "topology", fmt.Sprintf("%d RNICs in all; must be at most %d, and at most %d switches", n, maxRNICs, maxDevices/2), "",
			saidBy(t, "servers"), saidBy(t, "leaves"), saidBy(t, "spines"), saidBy(t, "pods"))
		ok = false
	}
	if s.servers*s.ports+s.spines*s.perPair > maxPorts || s.leaves*s.perPair+s.cores*s.perCore > maxPorts || s.pods*s.spines*s.perCore > maxPorts {
		r.fail(t, "topology", "", fmt.Sprintf("a switch would have more than %d ports", maxPorts), "")
		ok = false
	}
	return s, ok && r.affordable(t, s)
}

// addDevices creates cores, spines, leaves and RNICs, each kind in number
// order, generated ones before hand-made ones.
func (r *resolver) addDevices(t *node, s shape) {
	var hand [4][]*node
	if ns := t.get("nodes"); ns != nil {
		for i, n := range ns.items {
			field := fmt.Sprintf("topology.nodes[%d]", i)
			name, kind := n.str("name"), n.str("kind")
			if name == "" || kind == "" {
				r.fail(n, field, "", "needs name and kind", "")
				continue
			}
			if strings.ContainsAny(name, ":. \t[]>#/,=\"'") {
				r.fail(n.get("name"), field+".name", name, `must not contain spaces or any of : . / , = > # [ ] or quotes`, "")
				continue
			}
			k := map[string]Kind{"rnic": RNIC, "leaf": Leaf, "spine": Spine, "core": Core}[kind]
			hand[k] = append(hand[k], n)
		}
	}
	total := s.cores + s.pods*(s.spines+s.leaves+s.leaves*s.servers) + len(hand[0]) + len(hand[1]) + len(hand[2]) + len(hand[3])
	r.plan.Devices = make([]Device, 0, total)
	r.dev = make(map[string]int32, total)
	r.at = make([]*node, total)
	r.addKind(Core, "core", 1, s.cores, false, s, hand[Core])
	r.addKind(Spine, "spine", s.pods, s.spines, true, s, hand[Spine])
	r.addKind(Leaf, "leaf", s.pods, s.leaves, true, s, hand[Leaf])
	r.addKind(RNIC, "rnic", s.pods, s.leaves*s.servers, false, s, hand[RNIC])
}

// addKind adds the devices of one kind: per POD count of them, then by hand.
func (r *resolver) addKind(k Kind, word string, pods, count int, prefixed bool, s shape, hand []*node) {
	num := 0
	for pod := 1; pod <= pods; pod++ {
		for i := 1; i <= count; i++ {
			num++
			name := word + strconv.Itoa(num)
			if prefixed {
				name = word + strconv.Itoa(i)
				if s.pods > 1 {
					name = fmt.Sprintf("pod%d-%s%d", pod, word, i)
				}
			}
			p := pod
			if k == Core {
				p = 0
			}
			r.addDevice(k, name, num, p, nil)
		}
	}
	for _, n := range hand {
		num++
		pod := 1
		if n.has("pod") {
			pod = int(n.num("pod"))
		}
		if k == Core {
			pod = 0
		}
		r.addDevice(k, n.str("name"), num, pod, n)
	}
}

func (r *resolver) addDevice(k Kind, name string, num, pod int, at *node) {
	if old, dup := r.dev[name]; dup {
		msg := "name is taken by a generated device"
		if o := r.at[old]; o != nil {
			msg = "name is taken by the node at " + o.pos()
		}
		n := at
		if n == nil {
			n = r.at[old]
		}
		r.fail(n.get("name"), "topology.nodes", name, msg, "")
		return
	}
	id := int32(len(r.plan.Devices))
	d := Device{ID: id, Kind: k, Name: name, Num: num, Pod: pod}
	if k == RNIC {
		d.Addr = 10<<24 + uint32(num)
		r.plan.RNICs = append(r.plan.RNICs, id)
	}
	r.plan.Devices = append(r.plan.Devices, d)
	r.dev[name] = id
	r.at[id] = at
}

// cableGenerated joins the generated devices; the order of calls is the order
// of port numbers.
func (r *resolver) cableGenerated(t *node, s shape) {
	links := t.get("links")
	server := r.parseLink(links.get("server"), "topology.links.server")
	uplink := r.parseLink(links.get("uplink"), "topology.links.uplink")
	core := r.parseLink(links.get("core"), "topology.links.core")
	if s.pods == 0 {
		return
	}
	spine0, leaf0 := int(r.plan.firstOf(Spine)), int(r.plan.firstOf(Leaf))
	r.plan.Cables = make([]Cable, 0, s.pods*s.leaves*(s.servers*s.ports+s.spines*s.perPair)+s.pods*s.spines*s.cores*s.perCore)
	for pod := 0; pod < s.pods; pod++ {
		for l := 0; l < s.leaves; l++ {
			leaf := int32(leaf0 + pod*s.leaves + l)
			for k := 0; k < s.servers; k++ {
				rn := r.plan.RNICs[(pod*s.leaves+l)*s.servers+k]
				for p := 0; p < s.ports; p++ {
					r.connect(leaf, rn, server)
				}
			}
		}
		for l := 0; l < s.leaves; l++ {
			leaf := int32(leaf0 + pod*s.leaves + l)
			for sp := 0; sp < s.spines; sp++ {
				for p := 0; p < s.perPair; p++ {
					r.connect(leaf, int32(spine0+pod*s.spines+sp), uplink)
				}
			}
		}
	}
	for sp := 0; sp < s.pods*s.spines; sp++ {
		for c := 0; c < s.cores; c++ {
			for p := 0; p < s.perCore; p++ {
				r.connect(int32(spine0+sp), int32(c), core)
			}
		}
	}
}

// firstOf returns the id of the first device of a kind, 0 when there is none.
func (p *Plan) firstOf(k Kind) int32 {
	for i := range p.Devices {
		if p.Devices[i].Kind == k {
			return int32(i)
		}
	}
	return 0
}

// connect joins two devices at their next free ports.
func (r *resolver) connect(a, b int32, l *linkOf) {
	da, db := &r.plan.Devices[a], &r.plan.Devices[b]
	r.join(a, len(da.Ports)+1, b, len(db.Ports)+1, l)
}

// join lays one cable between numbered ports.
func (r *resolver) join(a int32, ap int, b int32, bp int, l *linkOf) {
	id := int32(len(r.plan.Cables))
	r.plan.Cables = append(r.plan.Cables, Cable{A: a, B: b, APort: ap, BPort: bp, Rate: l.rate, Delay: l.delay, LengthMM: l.lengthMM, BER: l.ber})
	end := func(me int32, mp int, peer int32, pp int) {
		d := &r.plan.Devices[me]
		if d.Ports == nil && mp == 1 && d.Kind == RNIC {
			d.Ports = make([]Port, 0, 1)
		}
		d.Ports = append(d.Ports, Port{
			Num: mp, Cable: id, Peer: peer, PeerPort: pp, Rate: l.rate, Prop: l.delay,
			BER: l.ber, BERNum: l.berNum, Class: classOf(d.Kind, r.plan.Devices[peer].Kind),
		})
	}
	end(a, ap, b, bp)
	end(b, bp, a, ap)
}

// classOf names a port's side of the tree.
func classOf(own, peer Kind) PortClass {
	switch {
	case own == RNIC:
		return ClassNIC
	case own == Core, peer == Core:
		return ClassCore
	case peer == RNIC:
		return ClassServer
	case own == Leaf:
		return ClassUplink
	}
	return ClassDownlink
}

// parseLink reads a link section and refuses cables without delay.
func (r *resolver) parseLink(n *node, field string) *linkOf {
	l := &linkOf{rate: n.rate("rate"), at: n, field: field}
	if n.has("delay") {
		l.delay = n.dur("delay")
	} else {
		l.lengthMM = n.q("length", lengthUnits)
		l.delay = clock.Duration(l.lengthMM * psPerMM)
	}
	p := n.prob("ber")
	l.ber, _ = p.Float64()
	l.berNum = scaleProb(p, 64)
	if p.Sign() > 0 && l.berNum == 0 {
		l.berNum = 1
	}
	if l.rate < 1000 {
		r.fail(n, field+".rate", n.str("rate"), "must be at least 1kbps", "")
		l.rate = clock.Gbps
	}
	if l.delay == 0 {
		k, at := "length", n
		if n.has("delay") {
			k, at = "delay", n.get("delay")
		} else if n.has("length") {
			at = n.get("length")
		}
		r.fail(at, field+"."+k, n.str(k), "a cable must have a delay: it is what lets devices run in parallel; 5ns is a metre", "3m")
	}
	return l
}

// parseEnd reads device:port; port may be a number or uplinkN.
func (r *resolver) parseEnd(n *node, field string) (dev int32, port int, ok bool) {
	name, p, found := strings.Cut(n.text, ":")
	id, known := r.dev[name]
	if !known {
		r.fail(n, field, n.text, "no such device", r.nearDevice(name, ":"+p))
		return 0, 0, false
	}
	if !found {
		r.fail(n, field, n.text, "must be device:port, ports numbered from 1", n.text+":1")
		return 0, 0, false
	}
	num, err := strconv.Atoi(p)
	if err != nil || num < 1 || num > maxPorts {
		r.fail(n, field, n.text, fmt.Sprintf("port must be a number 1..%d", maxPorts), "")
		return 0, 0, false
	}
	return id, num, true
}

func (r *resolver) cableByHand(t *node) {
	cs := t.get("cables")
	if cs == nil {
		return
	}
	links := t.get("links")
	used := map[string]*node{}
	for i, c := range cs.items {
		field := fmt.Sprintf("topology.cables[%d]", i)
		ends := c.list("ends")
		if len(ends) != 2 {
			r.fail(c, field+".ends", "", `must be two ends, such as ["h1:1", "tor:1"]`, "")
			continue
		}
		a, ap, ok1 := r.parseEnd(ends[0], field+".ends[0]")
		b, bp, ok2 := r.parseEnd(ends[1], field+".ends[1]")
		if !ok1 || !ok2 {
			continue
		}
		if a == b {
			r.fail(ends[1], field+".ends", ends[1].text, "a cable joins two devices", "")
			continue
		}
		bad := false
		for _, e := range ends {
			if old := used[e.text]; old != nil {
				r.fail(e, field+".ends", e.text, "port is in use by the cable at "+old.pos(), "")
				bad = true
			}
			used[e.text] = e
		}
		if bad || r.portTaken(a, ap, ends[0], field) || r.portTaken(b, bp, ends[1], field) {
			continue
		}
		r.join(a, ap, b, bp, r.handLink(c, links, a, b, field))
	}
}

func (r *resolver) portTaken(d int32, port int, at *node, field string) bool {
	if port <= len(r.plan.Devices[d].Ports) && r.at[d] == nil && r.plan.Devices[d].Ports[port-1].Num == port {
		r.fail(at, field+".ends", at.text, fmt.Sprintf("port is in use by a generated cable; the next free port of %s is %d",
			r.plan.Devices[d].Name, len(r.plan.Devices[d].Ports)+1), "")
		return true
	}
	return false
}

// handLink fills what a cable leaves out from the link section of its class.
func (r *resolver) handLink(c, links *node, a, b int32, field string) *linkOf {
	ka, kb := r.plan.Devices[a].Kind, r.plan.Devices[b].Kind
	sect := "uplink"
	switch {
	case ka == RNIC || kb == RNIC:
		sect = "server"
	case ka == Core || kb == Core:
		sect = "core"
	}
	return r.parseLink(overlay(links.get(sect), c), field)
}

// checkPorts demands ports 1..n without a gap and sorts them.
func (r *resolver) checkPorts() {
	for i := range r.plan.Devices {
		d := &r.plan.Devices[i]
		at := r.at[i]
		if at == nil {
			at = r.root.get("topology")
		}
		sort.Slice(d.Ports, func(x, y int) bool { return d.Ports[x].Num < d.Ports[y].Num })
		for j := range d.Ports {
			if d.Ports[j].Num != j+1 {
				r.fail(at, "topology.cables", d.Name, fmt.Sprintf("ports are numbered 1..n without a gap; port %d of %s has no cable", j+1, d.Name), "")
				break
			}
		}
		if d.Kind == RNIC && len(d.Ports) > 2 {
			r.fail(at, "topology.cables", d.Name, "an RNIC has one or two ports", "")
		}
		if d.Kind == RNIC && len(d.Ports) == 0 {
			r.fail(at, "topology.nodes", d.Name, "RNIC has no cable", "")
		}
	}
}

// racks numbers placement groups: a leaf with its RNICs, every other switch by
// itself; an RNIC on another switch goes with that switch.
func (r *resolver) racks() {
	next := int32(0)
	ds := r.plan.Devices
	for i := range ds {
		if ds[i].Kind == Leaf {
			ds[i].Rack = next
			next++
		}
	}
	for i := range ds {
		if ds[i].Kind == Spine || ds[i].Kind == Core {
			ds[i].Rack = next
			next++
		}
	}
	for i := range ds {
		if ds[i].Kind != RNIC {
			continue
		}
		if len(ds[i].Ports) > 0 && ds[ds[i].Ports[0].Peer].Kind != RNIC {
			ds[i].Rack = ds[ds[i].Ports[0].Peer].Rack
			continue
		}
		ds[i].Rack = next
		next++
	}
}
