package topology

import (
	"fmt"
	"strconv"

	"github.com/rocemu/rocemu/clock"
)

// Effective switch settings: all, then role, then device, merged key by key;
// on top of that, per port, the class and then the port number. Equal settings
// share one struct.

var roleNames = map[Kind]string{Leaf: "leaf", Spine: "spine", Core: "core"}

// layers caches effective trees and what was made of them.
type layers struct {
	r      *resolver
	byDev  map[string]*node // role, or role/device
	config map[*node]*Switch
	ports  map[portKey]*portSet
}

type portKey struct {
	eff   *node
	class PortClass
	num   int // 0 unless the port has settings of its own
	ports int // of the device: the watchdog's defaults depend on it
}

// portSet is what ports of one class share.
type portSet struct {
	mtu   int
	qos   *QoS
	pfc   *PFC
	lossy *Lossy
	ecn   *[8]ECN
}

// effective returns a switch's merged layer.
func (l *layers) effective(d *Device) *node {
	role := roleNames[d.Kind]
	sw := l.r.root.get("switches")
	own := sw.path("devices", d.Name)
	k := role
	if own != nil && own.kind == nMap {
		k += "/" + d.Name
	}
	if n, ok := l.byDev[k]; ok {
		return n
	}
	n := overlay(defaults().path("switches", "all"), expandSwitch(sw.get("all")))
	n = overlay(n, expandSwitch(sw.get(role)))
	n = overlay(n, expandSwitch(own))
	l.byDev[k] = n
	return n
}

// switches fills every switch and its ports.
func (r *resolver) switches() {
	l := &layers{r: r, byDev: map[string]*node{}, config: map[*node]*Switch{}, ports: map[portKey]*portSet{}}
	r.checkDeviceKeys("switches", false)
	for i := range r.plan.Devices {
		d := &r.plan.Devices[i]
		if d.Kind == RNIC {
			continue
		}
		eff := l.effective(d)
		base, ok := l.config[eff]
		if !ok {
			base = r.decodeSwitch(eff)
			l.config[eff] = base
		}
		d.Switch = base
		seeded := *base
		if eff.path("ecmp").str("seed") == "auto" {
			seeded.ECMP.Seed = uint32(clock.HashString(r.plan.Seed, d.Name))
			d.Switch = &seeded
		}
		r.checkPanel(d, eff)
		for j := range d.Ports {
			p := &d.Ports[j]
			ps := l.port(eff, p, len(d.Ports))
			p.MTU, p.QoS, p.PFC, p.Lossy, p.ECN = ps.mtu, ps.qos, ps.pfc, ps.lossy, ps.ecn
			p.EgressHalf, p.IngressHalf = halves(base.Latency)
			p.Response = ps.pfc.Response
		}
	}
}

// halves splits a pipeline's latency before and after the buffer: egress half
// first, the odd picosecond goes to ingress.
func halves(d clock.Duration) (egress, ingress clock.Duration) { return d / 2, d - d/2 }

// checkDeviceKeys demands that devices: names devices of the right side.
func (r *resolver) checkDeviceKeys(section string, rnic bool) {
	ds := r.root.path(section, "devices")
	if ds == nil {
		return
	}
	for _, e := range ds.keys {
		id, ok := r.dev[e.key]
		if ok && (r.plan.Devices[id].Kind == RNIC) == rnic {
			continue
		}
		at := &node{file: ds.file, line: e.line, col: e.col}
		msg := "no such device"
		if ok {
			msg = map[bool]string{true: "is a switch; its settings go under switches.devices", false: "is an RNIC; its settings go under rnics.devices"}[rnic]
		}
		r.fail(at, section+".devices", e.key, msg, r.nearDevice(e.key, ""))
	}
}

func (r *resolver) decodeSwitch(n *node) *Switch {
	b, e := n.get("buffer"), n.get("ecmp")
	s := &Switch{
		ASIC: n.str("asic"), CutThrough: n.str("mode") == "cut-through", Latency: n.dur("latency"),
		MTU: int(n.size("mtu")), BufferBytes: b.size("size"), Cell: b.size("cell"), Slices: int(b.num("slices")),
		HeadroomPool: b.size("headroom_pool"), CapPerPG: b.size("cap_per_pg"), ReserveOff: b.flag("reserve_off"),
		ECMP: ECMP{Hash: e.str("hash"), Seed: uint32(e.num("seed")), Spray: e.str("spray") == "packet"},
		Boot: n.dur("boot"),
	}
	if hp := b.get("headroom_pool"); hp != nil && hp.kind == nMap {
		s.HeadroomPool = hp.size("size")
		if hp.has("cap_per_pg") {
			s.CapPerPG = hp.size("cap_per_pg")
		}
	}
	if s.CapPerPG > 0 && s.HeadroomPool == 0 {
		r.warn("cap-unused", "switches.buffer.cap_per_pg", b.get("cap_per_pg"), "cap_per_pg limits what a priority group takes of headroom_pool, which is none: it has no effect")
	}
	if s.Cell < 32 || s.Cell > 65536 {
		r.fail(orNode(b.get("cell"), n), "switches.buffer.cell", b.str("cell"), "must be 32B..65536B", "208B")
		s.Cell = 208
	}
	if s.Slices < 1 {
		s.Slices = 1
	}
	if s.BufferBytes < s.Cell*int64(s.Slices) {
		r.contradict(n, "switches.buffer", "the buffer must hold at least one cell a slice", "", saidBy(b, "size"), saidBy(b, "cell"), saidBy(b, "slices"))
	}
	if s.MTU < 64 || s.MTU > 65535 {
		r.fail(orNode(n.get("mtu"), n), "switches.mtu", n.str("mtu"), "must be 64B..65535B", "9216B")
	}
	return s
}

// checkPanel counts ports against the front panel of the profile.
func (r *resolver) checkPanel(d *Device, eff *node) {
	rows := panel(d.Switch.ASIC)
	if rows == nil {
		return
	}
	free := make([]int, len(rows))
	for i := range rows {
		free[i] = rows[i].count
	}
	for j := range d.Ports {
		at := -1
		for i := range rows { // slowest cage that is fast enough and free
			if rows[i].rate >= d.Ports[j].Rate && free[i] > 0 {
				at = i
			}
		}
		if at < 0 {
			text := ""
			for i := range rows {
				text += fmt.Sprintf(" %d × %s", rows[i].count, rows[i].rate)
			}
			r.fail(orNode(eff.get("asic"), eff), "switches.asic", d.Switch.ASIC,
				fmt.Sprintf("%s has %d ports, more than the profile's%s (port %d at %s finds no place)", d.Name, len(d.Ports), text, j+1, d.Ports[j].Rate), "")
			return
		}
		free[at]--
	}
}

var classNames = [...]string{ClassServer: "server", ClassUplink: "uplink", ClassDownlink: "downlink", ClassCore: "core", ClassNIC: "nic"}

// String names a port class as the fabric file does.
func (c PortClass) String() string { return classNames[c] }

func (l *layers) port(eff *node, p *Port, ports int) *portSet {
	k := portKey{eff, p.Class, 0, ports}
	own := eff.path("ports", strconv.Itoa(p.Num))
	if own != nil {
		k.num = p.Num
	}
	if ps, ok := l.ports[k]; ok {
		return ps
	}
	n := overlay(eff, eff.path("ports", p.Class.String()))
	n = overlay(n, own)
	ps := l.r.decodePort(n, ports)
	l.ports[k] = ps
	return ps
}

func (r *resolver) decodePort(n *node, ports int) *portSet {
	ps := &portSet{mtu: int(n.size("mtu"))}
	if ps.mtu < 64 || ps.mtu > 65535 {
		r.fail(orNode(n.get("mtu"), n), "switches.mtu", n.str("mtu"), "must be 64B..65535B", "9216B")
	}
	ps.qos = decodeQoS(n.get("qos"))
	ps.pfc = r.decodePFC(n.get("pfc"), ports)
	lo := n.get("lossy")
	ps.lossy = &Lossy{Alpha: lo.alpha("alpha"), Limit: lo.size("limit")}
	ps.ecn = r.decodeECN(n.get("ecn"), ps.qos, ps.pfc)
	return ps
}

func decodeQoS(n *node) *QoS {
	q := &QoS{}
	for i := range 8 {
		q.TCToPG[i], q.TCToQueue[i], q.PFCToQueue[i] = uint8(i), uint8(i), uint8(i)
		q.Sched[i].Weight = 1
	}
	fill := func(key string, to []uint8) {
		m := n.get(key)
		if m == nil {
			return
		}
		for _, e := range m.keys {
			if i, err := strconv.Atoi(e.key); err == nil && i >= 0 && i < len(to) {
				to[i] = uint8(m.num(e.key)) & 7
			}
		}
	}
	fill("dscp_to_tc", q.DSCPToTC[:])
	fill("tc_to_pg", q.TCToPG[:])
	fill("tc_to_queue", q.TCToQueue[:])
	fill("pfc_to_queue", q.PFCToQueue[:])
	for i := range 8 {
		s := n.path("scheduler", strconv.Itoa(i))
		switch {
		case s == nil || s.kind == nNull:
		case s.kind == nScalar:
			q.Sched[i] = Sched{Strict: true, Weight: 1}
		case s.has("weight"):
			q.Sched[i] = Sched{Weight: int(s.num("weight"))}
		}
	}
	return q
}

func (r *resolver) decodePFC(n *node, ports int) *PFC {
	base := defaults().path("switches", "all", "pfc")
	off := n != nil && n.kind == nScalar
	if off || n == nil {
		n = base
	}
	n = overlay(base, n)
	p := &PFC{Quanta: uint16(n.num("quanta")), Response: n.dur("response")}
	if !off {
		for _, x := range n.list("priorities") {
			if v, bad := parseInt(x.text); bad == nil && v >= 0 && v < 8 {
				p.Lossless[v] = true
			}
		}
	}
	for i := range 8 {
		g := overlay(n, n.get(strconv.Itoa(i)))
		p.Alpha[i], p.XOFF[i] = g.alpha("alpha"), g.size("xoff")
		p.Guaranteed[i], p.XONOffset[i] = g.size("guaranteed"), g.size("xon_offset")
		p.Headroom[i] = -1
		if g.str("headroom") != "auto" {
			p.Headroom[i] = g.size("headroom")
		}
	}
	p.Watchdog = r.decodeWatchdog(n.get("watchdog"), ports)
	return p
}

// decodeWatchdog fills what is absent with SONiC's defaults by port count
// (switch §3.5): 200 ms for each 32 ports begun, polled at most each second.
func (r *resolver) decodeWatchdog(n *node, ports int) *Watchdog {
	if n == nil || n.kind != nMap {
		return nil
	}
	d := clock.Duration(max(1, (ports-1)/32+1)) * 200 * clock.Millisecond
	w := &Watchdog{Detect: d, Restore: d, Poll: min(d, clock.Second), Action: "drop"}
	for _, x := range []struct {
		key    string
		to     *clock.Duration
		lo, hi clock.Duration
	}{
		{"detect", &w.Detect, 100 * clock.Millisecond, 5 * clock.Second},
		{"restore", &w.Restore, 100 * clock.Millisecond, 60 * clock.Second},
		{"poll", &w.Poll, 100 * clock.Millisecond, clock.Second},
	} {
		if !n.has(x.key) {
			continue
		}
		*x.to = n.dur(x.key)
		if *x.to < x.lo || *x.to > x.hi {
			at := said{key: x.key, n: n.get(x.key)}
			r.fail(at.n, r.place(&at, "switches.pfc.watchdog."+x.key), n.str(x.key), fmt.Sprintf("must be %v..%v", x.lo, x.hi), "")
		}
	}
	if w.Detect < w.Poll || w.Restore < w.Poll {
		of := func(key string, d clock.Duration) said {
			return said{key: "switches.pfc.watchdog." + key, text: d.String(), n: n.get(key)}
		}
		r.contradict(n, "", "poll must not be above detect and restore", "", of("poll", w.Poll), of("detect", w.Detect), of("restore", w.Restore))
	}
	if n.has("action") {
		w.Action = n.str("action")
	}
	return w
}

// decodeECN applies the flat form to the queues of the lossless priorities and
// the numbered forms to their queue.
func (r *resolver) decodeECN(n *node, q *QoS, p *PFC) *[8]ECN {
	out := &[8]ECN{}
	base := defaults().path("switches", "all", "ecn")
	if n == nil || n.kind == nScalar {
		return out
	}
	flat := overlay(base, n)
	for prio := range 8 {
		if p.Lossless[prio] {
			out[q.PFCToQueue[prio]] = r.oneECN(flat)
		}
	}
	for i := range 8 {
		own := n.get(strconv.Itoa(i))
		switch {
		case own == nil || own.kind == nNull:
		case own.kind == nScalar:
			out[i] = ECN{}
		default:
			out[i] = r.oneECN(overlay(flat, own))
		}
	}
	return out
}

func (r *resolver) oneECN(n *node) ECN {
	e := ECN{
		On: true, KMin: n.size("kmin"), KMax: n.size("kmax"), PMax: scaleProb(n.prob("pmax"), 32),
		Enqueue: n.str("point") == "enqueue", Weight: uint(n.num("weight")), Mark: n.str("mark") != "false",
		DropNotECT: n.flag("drop_not_ect"), DropMin: n.size("drop_min"), DropMax: n.size("drop_max"),
	}
	if n.has("drop_max") {
		e.DropPMax = 1 << 32
		if n.has("drop_pmax") {
			e.DropPMax = scaleProb(n.prob("drop_pmax"), 32)
		}
	}
	if e.KMax < e.KMin {
		r.ordered(n, "switches.ecn", "kmin", "kmax")
	}
	if e.DropMax < e.DropMin {
		r.ordered(n, "switches.ecn", "drop_min", "drop_max")
	}
	return e
}
