package topology

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

const (
	firstQPN = 0x11
	maxFlows = 1 << 24
	udpFrame = 14 + 20 + 8 + 4 // Ethernet, IP, UDP, FCS round a datagram
	// jumboFrame is the largest frame of switches by default.
	jumboFrame = 9216
)

// work builds lines, flows and queue pairs in workload order.
type work struct {
	r     *resolver
	qpn   []uint32 // next QPN by RNIC number - 1
	named map[string]*namedQP
	perQP []int32 // flows by QP, counted
	full  bool
}

type namedQP struct {
	id   int32
	from *node
	line string
}

// patternVerb is the verb of patterns that need not name one.
var patternVerb = map[string]Verb{"poisson": Write, "all-to-all": Write, "ring-allreduce": Write, "pingmesh": Send}

// line is one workload line (or CSV row) decoded.
type line struct {
	n         *node
	field     string
	name      string
	id        int32
	pattern   string
	from, to  []uint32
	verb      Verb
	transport Transport
	size      int64
	count     int64
	qps       int
	window    int32
	start     clock.Time
	interval  clock.Duration
	rate      clock.Rate
	dscp      int
	packet    int
	control   string
	opt       *WorkOpt
	toldMTU   bool
	toldCM    bool
	toldPod   bool
	qp        string
	gate      int32
}

func (r *resolver) workload() {
	w := &work{r: r, qpn: make([]uint32, len(r.plan.RNICs)), named: map[string]*namedQP{}}
	for i := range w.qpn {
		w.qpn[i] = firstQPN
	}
	lines := r.root.get("workload")
	if lines == nil {
		return
	}
	seen := map[string]*node{}
	for i, n := range lines.items {
		if n.kind != nMap {
			continue
		}
		field := fmt.Sprintf("workload[%d]", i)
		name := n.str("name")
		if name == "" {
			r.fail(n, field+".name", "", "a workload line needs a name", "")
			continue
		}
		field = "workload." + clip(name)
		if strings.ContainsAny(name, "[]>#\n") {
			r.fail(n.get("name"), field, name, "a name must not contain [ ] > or #", "")
			continue
		}
		if old := seen[name]; old != nil {
			r.fail(n.get("name"), field, name, "name is taken by the line at "+old.pos(), "")
			continue
		}
		seen[name] = n
		w.line(n, field, name)
	}
	w.bindFlows()
}

// line decodes one line and expands its pattern.
func (w *work) line(n *node, field, name string) {
	l := w.decode(n, field, name)
	l.id = int32(len(w.r.plan.Lines))
	w.r.plan.Lines = append(w.r.plan.Lines, Line{
		Name: name, Pattern: l.pattern, From: text(n.get("from")), To: text(n.get("to")),
		Verb: l.verbName(), Pos: n.pos(),
	})
	if n.has("rows") {
		w.rows(l)
		return
	}
	if !w.sane(l) {
		return
	}
	switch l.pattern {
	case "":
		w.single(l)
	case "incast":
		w.incast(l)
	case "permutation":
		w.permutation(l)
	case "all-to-all":
		w.allToAll(l)
	case "pingmesh":
		w.pingmesh(l)
	case "ring-allreduce":
		w.ring(l)
	case "poisson":
		w.poisson(l)
	}
}

// verbName is the verb of a result's flow entry; empty for what is not RDMA.
func (l *line) verbName() string {
	if _, ok := patternVerb[l.pattern]; l.transport == RC && ok {
		return verbNames[l.verb]
	}
	return l.n.str("verb")
}

func text(n *node) string {
	switch {
	case n == nil:
		return ""
	case n.kind == nScalar:
		return n.text
	}
	parts := make([]string, len(n.items))
	for i, x := range n.items {
		parts[i] = x.text
	}
	return strings.Join(parts, ",")
}

func (w *work) decode(n *node, field, name string) *line {
	l := &line{
		n: n, field: field, name: name, pattern: n.str("pattern"), size: n.size("size"), count: 1, qps: 1, window: 1,
		start: clock.Time(n.dur("start")), interval: n.dur("interval"), rate: n.rate("rate"), dscp: -1, qp: n.str("qp"), gate: -1,
	}
	l.from, l.to = w.rnicList(n, "from", field), w.rnicList(n, "to", field)
	l.verb = patternVerb[l.pattern]
	if i := slices.Index(verbNames, n.str("verb")); i >= 0 {
		l.verb = Verb(i)
	}
	l.transport = map[string]Transport{"udp": UDP, "tcp": TCP}[n.str("transport")]
	if n.has("count") {
		l.count = n.num("count")
		if n.str("count") == "forever" {
			l.count = -1
			if w.r.plan.Run.Until == UntilIdle {
				w.r.warn("never-idle", name, n.get("count"), "count: forever never becomes idle; run.until: stopped or a duration ends it before the limit")
			}
		}
	}
	if n.has("qps") {
		l.qps = int(n.num("qps"))
	}
	if n.has("window") {
		l.window = int32(n.num("window"))
	}
	if n.has("dscp") {
		l.dscp = int(n.num("dscp"))
	}
	if l.verb >= CmpSwap && !n.has("size") {
		l.size = 8
	}
	l.packet, l.control = w.packet(n, field), n.str("congestion")
	if l.transport == TCP && !n.has("packet") && !n.has("frame") {
		l.packet = 0 // the sender's MTU decides
	}
	l.opt = decodeOpt(n)
	return l
}

func decodeOpt(n *node) *WorkOpt {
	any := false
	for _, k := range []string{"fence", "unsignalled", "rkey", "va", "add", "compare", "swap", "initial"} {
		any = any || n.has(k)
	}
	if !any {
		return nil
	}
	o := &WorkOpt{
		Fence: n.flag("fence"), Unsignalled: n.flag("unsignalled"), RKey: "good", VA: uint64(n.num("va")), HasVA: n.has("va"),
		Add: uint64(n.num("add")), Compare: uint64(n.num("compare")), Swap: uint64(n.num("swap")), Initial: uint64(n.num("initial")),
	}
	if n.has("rkey") {
		o.RKey = n.str("rkey")
	}
	return o
}

// packet is the payload of a datagram: what the line says, else the whole of a
// request that fits a jumbo frame, else what an Ethernet of 1500 B carries.
func (w *work) packet(n *node, field string) int {
	p := int64(1472)
	if s := n.size("size"); s > p && s <= jumboFrame-udpFrame && n.str("pattern") != "poisson" && !n.has("rows") {
		p = s
	}
	switch {
	case n.has("packet"):
		p = n.size("packet")
	case n.has("frame"):
		p = n.size("frame") - udpFrame
		if p < 18 {
			w.r.fail(n.get("frame"), field+".frame", n.str("frame"), "must be 64B..65535B", "64B")
		}
	}
	if p < 1 || p > 65535-udpFrame {
		if !n.has("frame") {
			w.r.fail(orNode(n.get("packet"), n), field+".packet", n.str("packet"), fmt.Sprintf("must be 1B..%dB", 65535-udpFrame), "")
		}
		p = 18
	}
	return int(p)
}

// rnicList reads names, a range a..b, or all.
func (w *work) rnicList(n *node, key, field string) []uint32 {
	var out []uint32
	for _, x := range n.list(key) {
		if x.text == "all" {
			out = append(out, w.all()...)
			continue
		}
		if a, b, ok := strings.Cut(x.text, ".."); ok {
			i, ok1 := w.rnic(x, a, field+"."+key)
			j, ok2 := w.rnic(x, b, field+"."+key)
			if ok1 && ok2 && j < i {
				w.r.fail(x, field+"."+key, x.text, "a range runs upward", b+".."+a)
			}
			if ok1 && ok2 {
				for k := i; k <= j; k++ {
					out = append(out, k)
				}
			}
			continue
		}
		if k, ok := w.rnic(x, x.text, field+"."+key); ok {
			out = append(out, k)
		}
	}
	return out
}

func (w *work) all() []uint32 {
	out := make([]uint32, len(w.r.plan.RNICs))
	for i := range out {
		out[i] = uint32(i + 1)
	}
	return out
}

func (w *work) rnic(at *node, name, field string) (uint32, bool) {
	id, ok := w.r.dev[name]
	if ok && w.r.plan.Devices[id].Kind == RNIC {
		return uint32(w.r.plan.Devices[id].Num), true
	}
	msg := fmt.Sprintf("no such RNIC; there are %d", len(w.r.plan.RNICs))
	if n := len(w.r.plan.RNICs); n > 0 {
		msg += fmt.Sprintf(", %s to %s", w.r.plan.RNIC(1).Name, w.r.plan.RNIC(uint32(n)).Name)
	}
	hint := ""
	if ok {
		msg = "is a switch; traffic runs between RNICs"
	} else {
		hint = w.r.nearDevice(name, "")
	}
	w.r.fail(at, field, name, msg, hint)
	return 0, false
}

// sane checks what a line needs for its pattern and verb.
func (w *work) sane(l *line) bool {
	before := len(w.r.errs)
	need := func(ok bool, key, msg string) {
		if !ok && l.n.get(key) == nil { // a bad value was reported already
			w.r.fail(l.n, l.field+"."+key, "", msg, "")
		}
	}
	if l.pattern == "" || l.pattern == "incast" {
		need(len(l.from) > 0, "from", "missing: the RNIC that posts the requests")
		need(len(l.to) > 0, "to", "missing: the other RNIC")
	}
	if _, ok := patternVerb[l.pattern]; l.transport == RC && !ok {
		need(l.n.has("verb"), "verb", "missing: one of "+strings.Join(verbNames, ", "))
	}
	if l.transport == TCP && l.n.has("verb") || l.transport == UDP && l.n.has("verb") {
		w.contradict(l, "a verb needs transport rdma", "", "verb", "transport")
	}
	if l.pattern != "poisson" && l.pattern != "pingmesh" {
		need(l.size > 0 || l.n.has("size") || l.verb >= CmpSwap, "size", "missing: bytes of a request, such as 64KB")
	}
	w.saneStream(l)
	if l.size > 1<<40 || l.transport == RC && l.size > math.MaxUint32 {
		w.r.fail(l.n.get("size"), l.field+".size", l.n.str("size"), "a request carries at most 4294967295B", "")
	}
	if l.verb >= CmpSwap && l.size != 8 {
		w.contradict(l, "an atomic is 8 bytes", "8B", "size", "verb")
	}
	for _, k := range []struct{ key, pattern string }{{"shift", "permutation"}, {"load", "poisson"}, {"cdf", "poisson"}, {"until", "poisson"}} {
		if l.n.has(k.key) && l.pattern != k.pattern {
			w.contradict(l, k.key+" belongs to pattern "+k.pattern, "", k.key, "pattern")
		}
	}
	if l.qp != "" && (l.pattern != "" || l.qps != 1 || l.transport != RC) {
		w.contradict(l, "a shared QP needs a single rdma flow: no pattern and no qps", "", "qp", "pattern", "qps", "transport")
	}
	return len(w.r.errs) == before
}

func (w *work) single(l *line) {
	if len(l.from) > 1 || len(l.to) > 1 {
		w.contradict(l, "several RNICs in from or to need a pattern, such as incast", "", "from", "to")
		return
	}
	if len(l.from) == 0 || len(l.to) == 0 {
		return
	}
	w.pair(l, l.from[0], l.to[0])
}

// pair adds the flows of one ordered pair, one a QP.
func (w *work) pair(l *line, from, to uint32) {
	for q := 1; q <= l.qps && !w.full; q++ {
		w.add(l, from, to, int32(q), l.size, l.count, l.start)
	}
}

// add appends one flow and, for RDMA, its queue pair.
func (w *work) add(l *line, from, to uint32, ordinal int32, size, count int64, start clock.Time) *Flow {
	p := w.r.plan
	if from == to {
		if !l.toldPod {
			w.r.fail(orNode(l.n.get("to"), l.n), l.field+".to", p.RNIC(to).Name, "an RNIC does not send to itself", "")
			l.toldPod = true
		}
		return nil
	}
	if len(p.Flows) >= maxFlows {
		if !w.full {
			w.r.fail(l.n, l.field, "", fmt.Sprintf("more than %d single flows", maxFlows), "")
			w.full = true
		}
		return nil
	}
	id := int32(len(p.Flows))
	f := Flow{
		ID: id, Line: l.id, QP: -1, From: from, To: to, Ordinal: ordinal, Transport: l.transport, Verb: l.verb, Size: size,
		Start: start, Count: count, Window: l.window, Interval: l.interval, Rate: l.rate, Packet: l.packet, Opt: l.opt, Gate: -1,
	}
	if l.transport == RC {
		f.Packet = 0
		f.QP = w.queuePair(l, from, to)
		f.DSCP = p.QPs[f.QP].DSCP
	} else {
		if l.dscp > 0 {
			f.DSCP = uint8(l.dscp)
		}
		if l.transport == TCP {
			w.stream(l, &f)
		}
		h := clock.Mix(clock.HashString(0, l.name), uint64(from)<<32|uint64(to), uint64(ordinal))
		f.SPort = 0xC000 | uint16(h)&0x3FFF
	}
	p.Flows = append(p.Flows, f)
	p.Lines[l.id].Flows = append(p.Lines[l.id].Flows, id)
	return &p.Flows[id]
}

// queuePair returns the QP for a flow: a new one, or the named one.
func (w *work) queuePair(l *line, from, to uint32) int32 {
	p := w.r.plan
	a, b := p.RNIC(from), p.RNIC(to)
	if old := w.named[l.qp]; l.qp != "" && old != nil {
		if q := &p.QPs[old.id]; q.A != from || q.B != to {
			w.r.fail(l.n.get("qp"), l.field+".qp", l.qp, fmt.Sprintf("line %q uses this QP from %s to %s; all lines of a QP run the same way (%s)",
				old.line, p.RNIC(q.A).Name, p.RNIC(q.B).Name, old.from.pos()), "")
		}
		w.perQP[old.id]++
		return old.id
	}
	w.checkPair(l, a, b)
	id := int32(len(p.QPs))
	q := QP{
		ID: id, Name: l.qp, A: from, B: to, AQPN: w.nextQPN(from), BQPN: w.nextQPN(to), DSCP: a.NIC.DSCP, MTU: a.NIC.MTU,
		Params: &a.NIC.QP, BParams: &b.NIC.QP,
	}
	q.SPort = a.NIC.SPort
	if q.SPort == 0 {
		q.SPort = SPort(q.AQPN, q.BQPN)
	}
	if l.dscp >= 0 {
		q.DSCP = uint8(l.dscp)
	}
	p.QPs = append(p.QPs, q)
	w.perQP = append(w.perQP, 1)
	if l.qp != "" {
		w.named[l.qp] = &namedQP{id: id, from: l.n, line: l.name}
	}
	return id
}

func (w *work) nextQPN(k uint32) uint32 {
	q := w.qpn[k-1]
	w.qpn[k-1]++
	return q
}

// checkPair refuses what cannot connect: ends that disagree, PODs apart.
func (w *work) checkPair(l *line, a, b *Device) {
	w.checkConnect(l, a, b)
	t := w.r.root.get("topology")
	if a.Pod != b.Pod && t.str("cross_pod_rdma") != "lossy" && !l.toldPod {
		l.toldPod = true
		w.r.fail(l.n, l.field, a.Name+" to "+b.Name, "RDMA between PODs is refused: the core is not lossless; set topology.cross_pod_rdma: lossy to run it anyway"+
			w.r.origins(saidBy(overlay(defaults().get("topology"), t), "cross_pod_rdma"), saidBy(t, "pods")), "")
	}
}

// SPort folds two QPNs into the UDP source port of RoCEv2 (switch §5.2).
func SPort(lqpn, rqpn uint32) uint16 {
	fl := uint64(lqpn) * uint64(rqpn)
	fl ^= fl >> 20
	fl ^= fl >> 40
	fl &= 0xFFFFF
	return uint16((fl&0x3FFF)^((fl&0xFC000)>>14)) | 0xC000
}

// bindFlows lists each QP's flows by (start, line), in one shared array.
func (w *work) bindFlows() {
	p := w.r.plan
	flat := make([]int32, 0, len(p.Flows))
	for i := range p.QPs {
		n := int(w.perQP[i])
		at := len(flat)
		flat = flat[:at+n]
		p.QPs[i].Flows = flat[at : at : at+n]
	}
	for i := range p.Flows {
		if q := p.Flows[i].QP; q >= 0 {
			p.QPs[q].Flows = append(p.QPs[q].Flows, int32(i))
		}
	}
	for i := range p.QPs {
		if fs := p.QPs[i].Flows; len(fs) > 1 {
			sort.SliceStable(fs, func(x, y int) bool { return p.Flows[fs[x]].Start < p.Flows[fs[y]].Start })
		}
	}
}

// FlowName renders a single flow: NAME, or NAME[rnic2>rnic8#1] in a line of
// several.
func (p *Plan) FlowName(f *Flow) string {
	l := &p.Lines[f.Line]
	if len(l.Flows) == 1 && l.Pattern == "" {
		return l.Name
	}
	return fmt.Sprintf("%s[%s>%s#%d]", l.Name, p.RNIC(f.From).Name, p.RNIC(f.To).Name, f.Ordinal)
}
