package sim

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// Probe is a frame whose way is asked for: the flow key that ECMP sees, the
// class, and the length L (destination MAC through FCS).
type Probe struct {
	From, To uint32 // RNIC numbers
	SPort    uint16 // UDP source port
	DSCP     uint8
	Len      int64
	Kind     wire.Kind // KindData, KindUDP or KindTCP: the key's protocol and port
}

// Leg is one device that a probe leaves: by which port, why that one, and in
// which class.
type Leg struct {
	Dev     int32
	In      int // ingress port number, 0 at the sender
	Out     int // egress port number
	Hash    uint32
	Hashed  bool     // ECMP had a choice
	Spray   bool     // per packet: Hash does not decide
	Members []uint16 // equal-cost ports, in port order; Out is Members[Hash % len]
	TC      uint8
	PG      uint8 // of the ingress port; the priority that PFC stops, at the sender
	Queue   uint8
	CT      bool           // the device passes the frame on before it is whole
	Dequeue clock.Duration // since the sender's dequeue, on an idle fabric
	LastBit clock.Duration // when the last bit reaches the far end of the cable
}

// Walk follows a probe from its sender to the last switch, with the hash and
// the maps that the switches use. The last stop's LastBit is the idle latency
// (first dequeue to last bit at the receiver). It fails with the place where
// the way ends: no route, or a loop.
func Walk(plan *topology.Plan, p Probe) ([]Leg, error) {
	f := wire.Frame{Kind: p.Kind, Src: p.From, Dst: p.To, SPort: p.SPort, TOS: p.DSCP << 2}
	dev, out := plan.RNICs[p.From-1], 1
	nic := plan.Devices[dev].NIC
	prio := nic.PrioOf[p.DSCP&63]
	stops := []Leg{{Dev: dev, Out: out, TC: prio, PG: prio, Queue: prio}}
	for {
		s := &stops[len(stops)-1]
		port := &plan.Devices[s.Dev].Ports[s.Out-1]
		s.LastBit = lastBit(s, port, p.Len)
		if port.Peer == plan.RNICs[p.To-1] {
			return stops, nil
		}
		if len(stops) > len(plan.Devices) {
			return stops, fmt.Errorf("the routes from %s to %s make a loop through %s", plan.RNIC(p.From).Name, plan.RNIC(p.To).Name, plan.Devices[s.Dev].Name)
		}
		next, err := enter(plan, port, &f)
		if err != nil {
			return stops, err
		}
		egress := &plan.Devices[next.Dev].Ports[next.Out-1]
		next.Dequeue = arrival(s, port, egress, p.Len, &next.CT)
		stops = append(stops, next)
	}
}

// enter is the device at the far end of port and its choice for f.
func enter(plan *topology.Plan, port *topology.Port, f *wire.Frame) (Leg, error) {
	d := &plan.Devices[port.Peer]
	s := Leg{Dev: port.Peer, In: port.PeerPort}
	if d.Route == nil {
		return s, fmt.Errorf("%s is an RNIC and forwards nothing", d.Name)
	}
	g := d.Route[f.Dst-1]
	if g < 0 || len(d.Groups[g]) == 0 {
		return s, fmt.Errorf("%s has no route to %s", d.Name, plan.RNIC(f.Dst).Name)
	}
	if d.Floods != nil && d.Floods[g] {
		return s, fmt.Errorf("%s floods frames to %s: they leave at every port", d.Name, plan.RNIC(f.Dst).Name)
	}
	s.Members = d.Groups[g]
	s.Out = int(s.Members[0])
	if len(s.Members) > 1 {
		e := &d.Switch.ECMP
		h := fabric.Hasher{CRC: e.Hash == "crc32", Seed: e.Seed}
		s.Hashed, s.Spray, s.Hash = true, e.Spray, h.Of(f)
		s.Out = int(s.Members[s.Hash%uint32(len(s.Members))])
	}
	in, out := d.Ports[s.In-1].QoS, d.Ports[s.Out-1].QoS
	s.TC = in.DSCPToTC[f.TOS>>2]
	s.PG, s.Queue = in.TCToPG[s.TC], out.TCToQueue[s.TC]
	return s, nil
}

// lastBit is when a frame dequeued at s has wholly reached the far end.
func lastBit(s *Leg, p *topology.Port, l int64) clock.Duration {
	full, _ := p.Rate.Serialise(l+wire.Overhead, 0)
	return s.Dequeue + p.EgressHalf + full + p.Prop
}

// arrival is when the receiver of port can dequeue the frame on egress: after
// its ingress half, or after 64 B and that half when it may cut through.
func arrival(s *Leg, p, egress *topology.Port, l int64, cut *bool) clock.Duration {
	full, _ := p.Rate.Serialise(l+wire.Overhead, 0)
	head, _ := p.Rate.Serialise(wire.MinFrame, 0)
	t := s.Dequeue + p.EgressHalf + p.Prop + p.PeerIngressHalf
	if p.PeerCutThrough && egress.Rate <= p.Rate && full > head {
		*cut = true
		return t + head
	}
	return t + full
}

// Load is what a workload puts on one egress port.
type Load struct {
	Flows int
	Bytes int64 // payload; flows that run for ever count one request
}

// Loads adds up the flows and bytes that each switch port would carry, by
// device and port - 1, if every flow took the member its hash names. READ
// responses count on the way back. Sprayed flows are shared evenly.
func Loads(plan *topology.Plan) [][]Load {
	out := make([][]Load, len(plan.Devices))
	for i := range out {
		out[i] = make([]Load, len(plan.Devices[i].Ports))
	}
	for i := range plan.Flows {
		f := &plan.Flows[i]
		p := probeOf(plan, f)
		stops, err := Walk(plan, p)
		if err != nil {
			continue
		}
		bytes := f.Size * max(f.Count, 1)
		for _, s := range stops {
			if !s.Spray {
				out[s.Dev][s.Out-1].add(1, bytes)
				continue
			}
			for _, m := range s.Members {
				out[s.Dev][m-1].add(1, bytes/int64(len(s.Members)))
			}
		}
	}
	return out
}

func (l *Load) add(flows int, bytes int64) {
	l.Flows += flows
	l.Bytes += bytes
}

// WayOf is the way of a flow's data, by which it also shows who sends it.
func WayOf(plan *topology.Plan, f *topology.Flow) ([]Leg, error) {
	return Walk(plan, probeOf(plan, f))
}

// probeOf is the probe of a flow's data: a READ's comes from its target.
func probeOf(plan *topology.Plan, f *topology.Flow) Probe {
	p := Probe{From: f.From, To: f.To, DSCP: f.DSCP, SPort: f.SPort, Len: wire.MinFrame, Kind: wire.KindData}
	switch f.Transport {
	case topology.UDP:
		p.Kind = wire.KindUDP
	case topology.TCP:
		p.Kind = wire.KindTCP
	default:
		p.SPort = plan.QPs[f.QP].SPort
		if f.Verb == topology.Read {
			p.From, p.To = f.To, f.From
		}
	}
	return p
}
