package rnic

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/cc"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/topology"
)

// Index is what all RNICs of a plan share: which QPs and flows belong to which
// RNIC, and the transport settings, one value for all QPs that agree. Built
// once, read-only after.
type Index struct {
	plan  *topology.Plan
	qps   [][]int32 // by RNIC number - 1: QP ids, by QPN
	flows [][]int32 // by RNIC number - 1: flows that start there
	recv  [][]int32 // by RNIC number - 1: flows that end there and need a word at start
	gates [][]int32 // by RNIC number - 1: flows that are gated there
	cfgs  map[cfgKey]*qp.Config
	dcqcn map[*topology.NIC]*cc.Params
	swift map[*topology.NIC]*cc.SwiftParams
}

type cfgKey struct {
	nic *topology.NIC
	par *topology.QPParams
	mtu int
}

// NewIndex builds the index of a plan.
func NewIndex(plan *topology.Plan) *Index {
	n := len(plan.RNICs)
	x := &Index{plan: plan, qps: make([][]int32, n), flows: make([][]int32, n), recv: make([][]int32, n),
		gates: make([][]int32, n), cfgs: map[cfgKey]*qp.Config{},
		dcqcn: map[*topology.NIC]*cc.Params{}, swift: map[*topology.NIC]*cc.SwiftParams{}}
	for _, d := range plan.RNICs {
		nic := plan.Devices[d].NIC
		if x.dcqcn[nic] == nil {
			x.dcqcn[nic], x.swift[nic] = dcqcnParams(nic), swiftParams(nic)
		}
	}
	for i := range plan.QPs {
		q := &plan.QPs[i]
		x.place(q.A, q.AQPN, int32(i))
		x.place(q.B, q.BQPN, int32(i))
		x.config(plan, q.A, q.Params, q.MTU)
		x.config(plan, q.B, q.BParams, q.MTU)
	}
	for i := range plan.Flows {
		f := &plan.Flows[i]
		x.flows[f.From-1] = append(x.flows[f.From-1], int32(i))
		if f.Verb >= topology.CmpSwap && f.Transport == topology.RC {
			x.recv[f.To-1] = append(x.recv[f.To-1], int32(i))
		}
		if f.Gate >= 0 {
			x.gates[f.From-1] = append(x.gates[f.From-1], int32(i))
		}
	}
	return x
}

// FirstQPN is the number of an RNIC's first QP (model-rules, "Frames").
const FirstQPN = 0x11

func (x *Index) place(k, qpn uint32, id int32) {
	l := &x.qps[k-1]
	for len(*l) <= int(qpn-FirstQPN) {
		*l = append(*l, -1)
	}
	(*l)[qpn-FirstQPN] = id
}

func (x *Index) config(plan *topology.Plan, k uint32, par *topology.QPParams, mtu int) {
	nic := plan.Devices[plan.RNICs[k-1]].NIC
	key := cfgKey{nic, par, mtu}
	if x.cfgs[key] == nil {
		x.cfgs[key] = newConfig(plan, nic, par, mtu)
	}
}

// newConfig turns the plan's settings into those of the transport machines.
func newConfig(plan *topology.Plan, nic *topology.NIC, par *topology.QPParams, mtu int) *qp.Config {
	p := &nic.Pers
	c := &qp.Config{
		MTU: mtu, RetryCnt: par.RetryCnt, RNRRetry: par.RNRRetry, MinRNRTimer: par.MinRNRTimer, SendQueue: 0,
		WindowT4: par.WindowT4, RNRLinear: par.RNRLinear,
		MaxRdAtomic: par.MaxRdAtomic, MaxDestRdAtomic: max(par.MaxRdAtomic, 1),
		AckEvery: nic.AckEvery, AckFreqLog: p.AckFreqLog,
		RecvQueue: par.RecvQueue, RecvRepost: par.RecvRepost, RecvBatch: max(par.RecvBatch, 1), DupAckAll: par.DupAckAll,
		PartialRead: par.PartialRead, ImpliedNAK: par.ImpliedNAK, Credits: par.Credits,
		NakLatency: p.NakLatency, ReadNakLatency: p.ReadNakLatency, ReactLatency: p.ReactLatency,
		MBit: p.MBit, Retry7Infinite: p.Retry7Infinite, NakReload: p.NakReload, OOSBehindRNR: p.OOSBehindRNR,
		ReadGapTimeout: p.ReadGapTimeout, ProbeOne: p.ProbeOne, NackTriggersCNP: p.NackTriggersCNP, SlowRestart: p.SlowRestart,
		IngressHalf: nic.Latency - nic.Latency/2, Seed: plan.Seed,
	}
	switch nic.Recovery {
	case "go-back-0":
		c.Recovery = qp.GoBack0
	case "selective-repeat":
		c.Recovery = qp.SelectiveRepeat
	}
	switch par.RNREarly {
	case "drop":
		c.RNREarly = qp.RNREarlyDrop
	case "renak":
		c.RNREarly = qp.RNREarlyRenak
	}
	if p.ADP {
		c.ADP = qp.DefaultADP()
	}
	c.Timeout = timeoutOf(par)
	return c
}

// timeoutOf is the effective local ACK timeout of QP attributes; the plan has
// checked their ranges.
func timeoutOf(par *topology.QPParams) clock.Duration {
	v, err := qp.ResolveTimeout(qp.TimeoutParams{
		Mode: qp.TimeoutMode(par.TimeoutMode), Exponent: par.Timeout,
		PacketLife: par.PacketLife, AckDelay: par.AckDelay, Floor: par.TimeoutFloor,
	})
	if err != nil {
		panic("rnic: " + err.Error())
	}
	return v.T
}
