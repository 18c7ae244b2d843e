package sim

import (
	"cmp"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// Meta describes a plan to package report.
func Meta(plan *topology.Plan) *report.Meta {
	ideal := make([]clock.Duration, len(plan.Flows))
	m := &report.Meta{
		Name: plan.Name, Seed: plan.Seed, Warmup: clock.Time(0).Add(plan.Run.Warmup), NumFlows: len(plan.Flows),
		RNIC: func(k uint32) string { return plan.Devices[plan.RNICs[k-1]].Name },
	}
	for i := range plan.Lines {
		l := &plan.Lines[i]
		m.Lines = append(m.Lines, report.LineMeta{Name: l.Name, From: l.From, To: l.To, Verb: l.Verb, Flows: len(l.Flows)})
	}
	m.Flow = func(id int32) report.FlowMeta {
		f := &plan.Flows[id]
		if ideal[id] == 0 && f.Transport == topology.RC {
			ideal[id] = Ideal(plan, f)
		}
		post, recv := rdmaCPU(plan, f)
		return report.FlowMeta{
			PostCPU: post, RecvCPU: recv,
			Line: f.Line, From: f.From, To: f.To, Ordinal: f.Ordinal, Size: f.Size, Count: f.Count,
			Start: f.Start, Ideal: ideal[id], Datagram: f.Transport == topology.UDP,
		}
	}
	for i := range plan.Devices {
		d := &plan.Devices[i]
		for p := range d.Ports {
			m.Links = append(m.Links, report.Link{
				From: d.Name, FromPort: d.Ports[p].Num,
				To: plan.Devices[d.Ports[p].Peer].Name, ToPort: d.Ports[p].PeerPort,
			})
		}
	}
	m.Faults = map[string]*report.FaultResult{}
	for i := range plan.Faults {
		f := &plan.Faults[i]
		r := &report.FaultResult{Kind: f.Kind, Target: f.Target, AtNS: report.NS(f.At)}
		if f.For > 0 {
			r.UntilNS = report.NS(f.At.Add(f.For))
		}
		m.Faults[f.Name] = r
	}
	return m
}

// rdmaCPU is what a request of f costs its host's software: posting and polling
// at the requester, the same for a receive that the request consumes. The NIC
// moves the data.
func rdmaCPU(plan *topology.Plan, f *topology.Flow) (post, recv clock.Duration) {
	if f.Transport != topology.RC {
		return 0, 0
	}
	switch f.Verb {
	case topology.Send, topology.SendImm, topology.SendInv, topology.WriteImm:
		recv = plan.RNIC(f.To).NIC.Host.PerRequest
	}
	return plan.RNIC(f.From).NIC.Host.PerRequest, recv
}

// Hop is one link of a path.
type Hop struct {
	Dev   int32
	Port  int // egress port number
	Rate  clock.Rate
	Fixed clock.Duration // egress half + propagation + the receiver's ingress half
	CT    bool           // the receiver cuts through
	Ways  int            // links that share the frames by spraying, 1 without
}

// span is what n bytes take on an idle link, rounded as the ports round.
func (h *Hop) span(n int64) clock.Duration {
	d, _ := h.Rate.Serialise(n, 0)
	return d
}

// Path follows a flow with UDP source port sport from RNIC a to RNIC b, as the
// switches hash it; of sprayed members it takes the fastest, since cables by
// hand may differ. Nil when there is no route.
func Path(plan *topology.Plan, a, b uint32, sport uint16) []Hop {
	f := wire.Frame{Kind: wire.KindData, Src: a, Dst: b, SPort: sport}
	var hops []Hop
	dev, port, ways := plan.RNICs[a-1], 1, 1
	for len(hops) <= len(plan.Devices) {
		d := &plan.Devices[dev]
		p := &d.Ports[port-1]
		hops = append(hops, Hop{Dev: dev, Port: port, Rate: p.Rate, Fixed: p.EgressHalf + p.Prop + p.PeerIngressHalf, CT: p.PeerCutThrough, Ways: ways})
		dev = p.Peer
		if dev == plan.RNICs[b-1] {
			return hops
		}
		next := &plan.Devices[dev]
		if next.Route == nil || next.Route[b-1] < 0 {
			return nil
		}
		group := next.Groups[next.Route[b-1]]
		if port = member(next, group, &f); next.Switch.ECMP.Spray {
			ways = max(ways, len(group))
		}
		if next.Ports[port-1].Peer == plan.RNICs[b-1] {
			ways = 1 // they meet again
		}
	}
	return nil
}

// member is the port that d sends f out of.
func member(d *topology.Device, group []uint16, f *wire.Frame) int {
	if len(group) == 1 {
		return int(group[0])
	}
	e := &d.Switch.ECMP
	if !e.Spray {
		h := fabric.Hasher{CRC: e.Hash == "crc32", Seed: e.Seed}
		return int(group[h.Of(f)%uint32(len(group))])
	}
	best := slices.MinFunc(group, func(x, y uint16) int {
		p, q := &d.Ports[x-1], &d.Ports[y-1]
		return cmp.Or(cmp.Compare(q.Rate, p.Rate), cmp.Compare(p.Prop, q.Prop))
	})
	return int(best)
}

// message is the lengths of a message's frames on the wire: the first, those in
// the middle, the last.
type message struct {
	n                int64
	first, mid, last int64
}

// oneWay is the idle time from the first dequeue of a message's frames to the
// last bit of the last one at the far end, pipelines and fibre included.
//
// Frames queue behind one another at every hop that stores them, so the time is
// the longest of the ways to go from the first frame at the first hop to the
// last frame at the last hop, one hop or one frame a step: the first frame as
// far as hop a, the middle ones from there to hop b, the last from b on.
func oneWay(hops []Hop, m message) clock.Duration {
	var t, best clock.Duration
	var store []Hop
	for i, h := range hops {
		t += h.Fixed
		if h.CT && i+1 < len(hops) && hops[i+1].Rate <= h.Rate {
			t += h.span(64)
			continue
		}
		store = append(store, h)
	}
	var head clock.Duration // the first frame as far as a
	for a := range store {
		head += store[a].span(m.first + wire.Overhead)
		best = max(best, head+m.rest(store[a:]))
	}
	return t + best
}

// rest is what the frames behind the first add when it waits for them at the
// first of hops.
func (m *message) rest(hops []Hop) clock.Duration {
	var best, mid, slowest, tail clock.Duration
	if m.n == 1 {
		for i := range hops[1:] {
			tail += hops[1+i].span(m.first + wire.Overhead)
		}
		return tail
	}
	for i := range hops {
		tail += hops[i].span(m.last + wire.Overhead)
	}
	if m.n == 2 {
		return tail
	}
	for b := range hops {
		h := &hops[b]
		full := h.span(m.mid + wire.Overhead)
		mid, slowest = mid+full, max(slowest, full/clock.Duration(h.Ways))
		best = max(best, mid+clock.Duration(m.n-3)*slowest+tail)
		tail -= h.span(m.last + wire.Overhead)
	}
	return best
}

// Ideal is the completion time of one request of f on an idle fabric: data out,
// acknowledgement or response back. It is exact but for a picosecond a frame at
// rates that do not divide, for messages whose frames are sprayed, and where a
// switch cuts through to a slower link.
func Ideal(plan *topology.Plan, f *topology.Flow) clock.Duration {
	if f.QP < 0 {
		return 0
	}
	sport := plan.QPs[f.QP].SPort
	out, back := Path(plan, f.From, f.To, sport), Path(plan, f.To, f.From, sport)
	if out == nil || back == nil {
		return 0
	}
	mtu := int64(plan.QPs[f.QP].MTU)
	switch f.Verb {
	case topology.Read:
		return oneWay(out, one(wire.ReadRequest)) + oneWay(back, frames(f, mtu))
	case topology.CmpSwap, topology.FetchAdd:
		return oneWay(out, one(wire.FetchAdd)) + oneWay(back, one(wire.AtomicAck))
	}
	return oneWay(out, frames(f, mtu)) + oneWay(back, one(wire.Acknowledge))
}

// one is a single frame without payload.
func one(op wire.Opcode) message { return message{n: 1, first: int64(wire.RoCELen(op, 0))} }

// frameOps are the opcodes of a verb's data: FIRST, MIDDLE, LAST, ONLY.
var frameOps = map[topology.Verb][4]wire.Opcode{
	topology.Send:     {wire.SendFirst, wire.SendMiddle, wire.SendLast, wire.SendOnly},
	topology.SendImm:  {wire.SendFirst, wire.SendMiddle, wire.SendLastImm, wire.SendOnlyImm},
	topology.SendInv:  {wire.SendFirst, wire.SendMiddle, wire.SendLastInv, wire.SendOnlyInv},
	topology.Write:    {wire.WriteFirst, wire.WriteMiddle, wire.WriteLast, wire.WriteOnly},
	topology.WriteImm: {wire.WriteFirst, wire.WriteMiddle, wire.WriteLastImm, wire.WriteOnlyImm},
	topology.Read:     {wire.ReadRespFirst, wire.ReadRespMiddle, wire.ReadRespLast, wire.ReadRespOnly},
}

// frames is the message that carries the data of one request of f.
func frames(f *topology.Flow, mtu int64) message {
	op, n := frameOps[f.Verb], max(1, (f.Size+mtu-1)/mtu)
	rest := int(f.Size - (n-1)*mtu)
	if n == 1 {
		return message{n: 1, first: int64(wire.RoCELen(op[3], rest))}
	}
	return message{n: n, first: int64(wire.RoCELen(op[0], int(mtu))), mid: int64(wire.RoCELen(op[1], int(mtu))), last: int64(wire.RoCELen(op[2], rest))}
}
