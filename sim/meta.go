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

// oneWay is the idle time from the first dequeue of n frames, of which the
// largest has size l and the last size last, to the last bit of the last one at
// the far end, pipelines and fibre included.
func oneWay(hops []Hop, n int64, l, last int64) clock.Duration {
	var t, slowest clock.Duration
	for i, h := range hops {
		full := h.span(l + wire.Overhead)
		slowest = max(slowest, full/clock.Duration(h.Ways))
		t += h.Fixed
		if h.CT && i+1 < len(hops) && hops[i+1].Rate <= h.Rate {
			t += h.span(64)
			continue
		}
		t += h.span(last + wire.Overhead)
	}
	return t + clock.Duration(n-1)*slowest
}

// Ideal is the completion time of one request of f on an idle fabric: data out,
// acknowledgement or response back. It is exact for one frame and close for
// more (all but the last are taken as full).
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
	n := max(1, (f.Size+mtu-1)/mtu)
	rest := int(f.Size - (n-1)*mtu)
	switch f.Verb {
	case topology.Read:
		first, only := wire.ReadRespFirst, wire.ReadRespOnly
		lens := sizes(first, wire.ReadRespMiddle, wire.ReadRespLast, only, n, int(mtu), rest)
		req := int64(wire.RoCELen(wire.ReadRequest, 0))
		return oneWay(out, 1, req, req) + oneWay(back, n, lens[0], lens[1])
	case topology.CmpSwap, topology.FetchAdd:
		req, ack := int64(wire.RoCELen(wire.FetchAdd, 0)), int64(wire.RoCELen(wire.AtomicAck, 0))
		return oneWay(out, 1, req, req) + oneWay(back, 1, ack, ack)
	}
	first, mid, last, only := wire.SendFirst, wire.SendMiddle, wire.SendLast, wire.SendOnly
	if f.Verb == topology.Write || f.Verb == topology.WriteImm {
		first, mid, last, only = wire.WriteFirst, wire.WriteMiddle, wire.WriteLast, wire.WriteOnly
	}
	lens := sizes(first, mid, last, only, n, int(mtu), rest)
	ack := int64(wire.AckFrame)
	return oneWay(out, n, lens[0], lens[1]) + oneWay(back, 1, ack, ack)
}

// sizes returns the length of a full frame and of the last one.
func sizes(first, mid, last, only wire.Opcode, n int64, mtu, rest int) [2]int64 {
	switch n {
	case 1:
		l := int64(wire.RoCELen(only, rest))
		return [2]int64{l, l}
	case 2:
		return [2]int64{int64(wire.RoCELen(first, mtu)), int64(wire.RoCELen(last, rest))}
	}
	return [2]int64{int64(wire.RoCELen(mid, mtu)), int64(wire.RoCELen(last, rest))}
}
