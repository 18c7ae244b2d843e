package topology

import (
	"fmt"
	"slices"

	"github.com/rocemu/rocemu/clock"
)

// Lints that follow the workload's paths: class, MTU and reachability hop by
// hop over every equal-cost member.

// hop is a frame's arrival at a switch port.
type hop struct {
	dev  int32
	port int
}

// walk calls visit for every (switch, ingress, egress) that a frame from one
// RNIC to another may meet. It reports the switch that has no route, or -1.
func (p *Plan) walk(from, to uint32, visit func(d *Device, in, out *Port)) int32 {
	src := p.RNIC(from)
	seen := hops{list: make([]hop, 0, fewHops)}
	seen.add(hop{src.Ports[0].Peer, src.Ports[0].PeerPort})
	for i := 0; i < len(seen.list); i++ {
		h := seen.list[i]
		d := &p.Devices[h.dev]
		if d.Kind == RNIC {
			continue
		}
		g := d.Route[to-1]
		if g < 0 || len(d.Groups[g]) == 0 {
			return d.ID
		}
		for _, out := range d.Groups[g] {
			o := &d.Ports[out-1]
			visit(d, &d.Ports[h.port-1], o)
			seen.add(hop{o.Peer, o.PeerPort})
		}
	}
	return -1
}

// hops is a set, in the order of adding; few are found by looking through them.
type hops struct {
	list []hop
	many map[hop]bool
}

// fewHops and mostHops bound what is looked through and what is noted.
const (
	fewHops  = 32
	mostHops = 4096
)

func (s *hops) add(h hop) {
	if s.many[h] || s.many == nil && slices.Contains(s.list, h) || len(s.list) == mostHops {
		return
	}
	s.list = append(s.list, h)
	switch {
	case s.many != nil:
		s.many[h] = true
	case len(s.list) > fewHops:
		s.many = make(map[hop]bool, 2*fewHops)
		for _, h := range s.list {
			s.many[h] = true
		}
	}
}

type pathKey struct {
	leaf     int32
	qos      *QoS
	pfc      *PFC
	portMTU  int
	to       uint32
	dscp     uint8
	mtu      int
	wantsCNP bool
}

func (l *linter) paths() {
	done := map[pathKey]bool{}
	for i := range l.p.QPs {
		q := &l.p.QPs[i]
		a, b := l.p.RNIC(q.A), l.p.RNIC(q.B)
		cnp := a.NIC.Congestion == "dcqcn"
		l.path(done, a, b, q.B, q.DSCP, q.MTU, false)
		l.path(done, b, a, q.A, q.DSCP, q.MTU, false) // ACKs and READ responses
		if cnp {
			l.path(done, b, a, q.A, b.NIC.CNPDSCP, 0, true)
		}
	}
}

// path checks one direction of a QP.
func (l *linter) path(done map[pathKey]bool, a, b *Device, to uint32, dscp uint8, mtu int, cnp bool) {
	in := l.p.far(&a.Ports[0])
	k := pathKey{a.Ports[0].Peer, in.QoS, in.PFC, in.MTU, to, dscp, mtu, cnp}
	if done[k] || in.QoS == nil {
		return
	}
	done[k] = true
	name := a.Name + "->" + b.Name
	if mtu > 0 && in.MTU < mtu+62 {
		l.mtu(l.p.PortName(k.leaf, in.Num), in.MTU, mtu, k.leaf)
	}
	no := l.p.walk(uint32(a.Num), to, func(d *Device, in, out *Port) {
		if mtu > 0 && out.MTU < mtu+62 {
			l.mtu(l.p.PortName(d.ID, out.Num), out.MTU, mtu, d.ID)
		}
		tc := in.QoS.DSCPToTC[dscp]
		if in.PFC.Lossless[in.QoS.TCToPG[tc]] {
			return
		}
		q := in.QoS.TCToQueue[tc]
		if cnp {
			name := b.Name + "->" + a.Name // the flow they answer
			if !out.QoS.Sched[q].Strict {
				l.add(fmt.Sprint(d.Kind, dscp), "cnp-lossy", d.Name, l.p.settingNode(d, "qos"),
					"CNPs of flow %s use lossy queue %d without strict priority at %s (DSCP %d -> TC %d)", name, q, d.Name, dscp, tc)
			}
			return
		}
		l.add(fmt.Sprint(d.Kind, d.Switch.ASIC, in.Class, dscp), "roce-lossy", d.Name, l.p.settingNode(d, "qos"),
			"RoCE flow %s uses lossy queue %d at %s (DSCP %d -> TC %d)", name, q, d.Name, dscp, tc)
	})
	if no >= 0 && !cnp {
		l.add(fmt.Sprint(no, to), "no-route", l.p.Devices[no].Name, nil, "flow %s: %s has no route to %s; this path never works", name, l.p.Devices[no].Name, b.Name)
	}
}

// mtu reports a port that cannot carry full packets of a path MTU; sizes are
// whole frames with FCS.
func (l *linter) mtu(port string, have, mtu int, dev int32) {
	l.add(port, "mtu-small", port, l.p.settingNode(&l.p.Devices[dev], "mtu"),
		"port MTU %d B is too small for path MTU %d: %s needs >= %d (SEND, MIDDLE; WRITE_FIRST %d, with immediate %d, READ response %d)",
		have, mtu, port, mtu+62, mtu+78, mtu+82, mtu+66)
}

// paces finds flows whose pace leaves more than the ACK timeout between two
// packets that ask for an acknowledgement: they time out on a sound fabric.
func (l *linter) paces() {
	for i := range l.p.Flows {
		f := &l.p.Flows[i]
		if f.Rate == 0 || f.QP < 0 || f.Verb == Read || f.Verb >= CmpSwap {
			continue
		}
		q, nic := &l.p.QPs[f.QP], l.p.RNIC(f.From).NIC
		if q.Params.Timeout == 0 || q.Params.TimeoutMode != TimeoutIBTA || nic.AckEvery {
			continue
		}
		n := min((f.Size+int64(q.MTU)-1)/int64(q.MTU), 1<<nic.Pers.AckFreqLog) - 1
		span, limit := f.Rate.Span(max(n, 0)*int64(q.MTU)), clock.Duration(4096)*clock.Nanosecond<<q.Params.Timeout
		if span > limit {
			line := &l.p.Lines[f.Line]
			l.add(line.Name, "pace-timeout", line.Name, l.p.lineNode(f.Line, "rate"),
				"at %v, %d packets of %d B take %v before one asks for an acknowledgement; the ACK timer of %v runs out first: ack: every, a longer timeout or a faster pace helps",
				f.Rate, n, q.MTU, span, limit)
		}
	}
}

// windows finds flows that want more requests outstanding than their queue pair
// can hold.
func (l *linter) windows() {
	for i := range l.p.Flows {
		f := &l.p.Flows[i]
		if f.QP < 0 {
			continue
		}
		if q := &l.p.QPs[f.QP]; q.Params.SendQueue > 0 && int(f.Window) > q.Params.SendQueue {
			line := &l.p.Lines[f.Line]
			l.add(line.Name, "window-over-send-queue", line.Name, l.p.lineNode(f.Line, "window"),
				"window %d, but rnics.qp.send_queue holds %d requests of a queue pair: so many are outstanding at most", f.Window, q.Params.SendQueue)
		}
	}
}

// lineNode finds a key of a workload line.
func (p *Plan) lineNode(line int32, key string) *node {
	if ls := p.root.get("workload"); ls != nil {
		for _, n := range ls.items {
			if n.str("name") == p.Lines[line].Name {
				return n.get(key)
			}
		}
	}
	return nil
}
