package fault

import (
	"cmp"
	"slices"

	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// class is a frame class of `match: kind`.
type class uint8

const (
	anyClass class = iota
	classData
	classAck
	classNak
	classRNR
	classCNP
	classPFC
)

var classNames = map[string]class{
	"": anyClass, "data": classData, "ack": classAck, "nak": classNak, "rnr": classRNR, "cnp": classCNP, "pfc": classPFC,
}

// tuple names one direction of a queue pair or datagram stream on the wire.
type tuple struct {
	src, dst uint32
	qpn      uint32 // destination QPN; a datagram stream has 1<<24 | source port
}

func cmpTuple(a, b tuple) int {
	return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst), cmp.Compare(a.qpn, b.qpn))
}

// match is a topology.Match made ready for frames: a pure test of one frame.
type match struct {
	on     bool
	tuples []tuple // sorted; nil = any
	narrow bool    // tuples restrict, even when empty
	op     int16   // -1 = any
	psn    int32   // -1 = any
	index  uint32  // psn_index, 0 = any
	iter   uint8   // 0 = any
	class  class
	nth    uint32 // ordinal of an ack, nak, rnr or cnp; 0 = any
}

// compileMatch resolves flows and queue pairs to addresses.
func compileMatch(plan *topology.Plan, f *topology.Fault) match {
	m := &f.Match
	out := match{op: -1, psn: -1, class: classNames[m.Kind], index: m.PSNIndex}
	if m.HasOp {
		out.op = int16(m.Op)
	}
	if m.HasPSN {
		out.psn = int32(m.PSN)
	}
	if m.Iteration > 0 {
		out.iter = uint8(min(m.Iteration, 255))
	}
	for _, x := range []struct {
		n uint32
		c class
	}{{m.Ack, classAck}, {m.Nak, classNak}, {m.RNR, classRNR}, {m.CNP, classCNP}} {
		if x.n != 0 {
			out.nth, out.class = x.n, x.c
		}
	}
	if m.Flow != "" || len(m.FlowIDs) > 0 {
		out.narrow, out.tuples = true, flowTuples(plan, m.FlowIDs)
	}
	if m.HasQP {
		qp := qpTuples(plan, f.Dev, m.QPN)
		if out.narrow {
			qp = slices.DeleteFunc(qp, func(t tuple) bool {
				_, ok := slices.BinarySearchFunc(out.tuples, t, cmpTuple)
				return !ok
			})
		}
		out.narrow, out.tuples = true, qp
	}
	out.on = out.narrow || out.op >= 0 || out.psn >= 0 || out.index != 0 || out.class != anyClass || out.iter != 0
	return out
}

// flowTuples lists both directions of the queue pairs of flows.
func flowTuples(plan *topology.Plan, ids []int32) []tuple {
	var out []tuple
	for _, id := range ids {
		fl := &plan.Flows[id]
		if fl.QP < 0 {
			out = append(out, tuple{fl.From, fl.To, 1<<24 | uint32(fl.SPort)})
			if fl.Transport == topology.TCP {
				out = append(out, tuple{fl.To, fl.From, 1<<24 | uint32(fl.SPort)})
			}
			continue
		}
		q := &plan.QPs[fl.QP]
		out = append(out, tuple{q.A, q.B, q.BQPN}, tuple{q.B, q.A, q.AQPN})
	}
	slices.SortFunc(out, cmpTuple)
	return slices.Compact(out)
}

// qpTuples lists both directions of the queue pairs that have qpn at RNIC dev,
// or at any RNIC when dev is a switch.
func qpTuples(plan *topology.Plan, dev int32, qpn uint32) []tuple {
	rnic := uint32(0)
	if dev >= 0 && plan.Devices[dev].Kind == topology.RNIC {
		rnic = uint32(plan.Devices[dev].Num)
	}
	var out []tuple
	for i := range plan.QPs {
		q := &plan.QPs[i]
		a := q.AQPN == qpn && (rnic == 0 || rnic == q.A)
		b := q.BQPN == qpn && (rnic == 0 || rnic == q.B)
		if a || b {
			out = append(out, tuple{q.A, q.B, q.BQPN}, tuple{q.B, q.A, q.AQPN})
		}
	}
	slices.SortFunc(out, cmpTuple)
	return slices.Compact(out)
}

// altBit marks addresses of the alternate path; a flow is the same on both.
const altBit = 1 << 23

// ok reports whether f is meant. Without any condition every frame but the
// link-local ones (PFC, PAUSE) is.
func (m *match) ok(f *wire.Frame) bool {
	local := f.Kind == wire.KindPFC || f.Kind == wire.KindPause
	if !m.on {
		return !local
	}
	if local {
		return m.class == classPFC && !m.narrow
	}
	if m.class != anyClass && m.class != classOf(f) {
		return false
	}
	if m.nth != 0 && (f.Index != m.nth || m.class == classAck && f.Op() != wire.Acknowledge) {
		return false
	}
	if m.narrow && !m.hasTuple(f) {
		return false
	}
	if !roce(f) {
		return m.op < 0 && m.psn < 0 && m.index == 0
	}
	if m.op >= 0 && wire.Opcode(m.op) != f.Op() || m.psn >= 0 && wire.PSN(m.psn) != f.PSN() {
		return false
	}
	if m.index != 0 && (f.Index != m.index || f.Kind != wire.KindData && f.Op() != wire.AtomicAck) {
		return false
	}
	// Acknowledgements are never sent again: each has its own ordinal.
	return m.iter == 0 || f.Kind != wire.KindData || f.Iter == m.iter
}

func (m *match) hasTuple(f *wire.Frame) bool {
	t := tuple{f.Src &^ altBit, f.Dst &^ altBit, f.DstQPN()}
	if !roce(f) {
		t.qpn = 1<<24 | uint32(f.SPort)
	}
	if len(m.tuples) == 1 {
		return m.tuples[0] == t
	}
	_, ok := slices.BinarySearchFunc(m.tuples, t, cmpTuple)
	return ok
}

func roce(f *wire.Frame) bool { return f.Kind <= wire.KindCNP }

// classOf sorts a frame by `match: kind`. READ responses are data; an atomic's
// acknowledgement is an ack.
func classOf(f *wire.Frame) class {
	switch f.Kind {
	case wire.KindAck:
		return ackClass(f)
	case wire.KindTCP:
		if f.Has(wire.FlagTCPAck) {
			return classAck
		}
		return classData
	case wire.KindCNP:
		return classCNP
	case wire.KindPFC, wire.KindPause:
		return classPFC
	}
	return classData
}

func ackClass(f *wire.Frame) class {
	if f.Op() == wire.AtomicAck {
		return classAck
	}
	switch s := f.Syndrome(); {
	case s&0xe0 == wire.SynRNR:
		return classRNR
	case s&0xe0 == wire.SynNAKSequence&0xe0:
		return classNak
	}
	return classAck
}
