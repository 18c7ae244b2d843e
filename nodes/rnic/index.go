package rnic

import (
	"github.com/rocemu/rocemu/nodes/rnic/cc"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/rnic/tcp"
	"github.com/rocemu/rocemu/topology"
)

// Index is what all RNICs of a plan share: which QPs and flows belong to which
// RNIC, and the transport settings, one value for all QPs that agree. Built
// once, read-only after.
type Index struct {
	plan *topology.Plan
	// Timeline holds the changes of settings; nil = none will come.
	Timeline *topology.Timeline
	qps      [][]int32 // by RNIC number - 1: QP ids, by QPN
	flows    [][]int32 // by RNIC number - 1: flows that start there
	recv     [][]int32 // by RNIC number - 1: flows that end there and need a word at start
	gates    [][]int32 // by RNIC number - 1: flows that are gated there
	sinks    [][]int32 // by RNIC number - 1: TCP flows that end there
	tcp      map[tcpKey]*tcp.Config
	cfgs     map[cfgKey]*qp.Config
	dcqcn    map[*topology.NIC]*cc.Params
	swift    map[*topology.NIC]*cc.SwiftParams
}

// tcpKey tells the settings of TCP streams apart.
type tcpKey struct {
	par   *topology.TCPParams
	mss   int
	dctcp bool
}

// streamConfig makes the settings of a TCP flow; the plan has checked them.
func (x *Index) streamConfig(plan *topology.Plan, f *topology.Flow) {
	t, peer := &plan.RNIC(f.From).NIC.TCP, &plan.RNIC(f.To).NIC.TCP
	k := tcpKey{t, f.Packet, f.DCTCP}
	if x.tcp[k] != nil {
		return
	}
	c := &tcp.Config{
		MSS: int64(f.Packet), Initial: int64(t.InitialWindow) * int64(f.Packet), Window: peer.Window,
		RTOMin: t.RTOMin, RTOMax: t.RTOMax, Retries: t.Retries,
	}
	if f.DCTCP {
		c.Control = tcp.DCTCP
	}
	if err := c.Validate(); err != nil {
		panic("rnic: " + err.Error())
	}
	x.tcp[k] = c
}

type cfgKey struct {
	nic  *topology.NIC
	par  *topology.QPParams
	peer *topology.QPParams // with the connection manager, else nil
	mtu  int
}

// NewIndex builds the index of a plan.
func NewIndex(plan *topology.Plan) *Index {
	n := len(plan.RNICs)
	x := &Index{
		plan: plan, qps: make([][]int32, n), flows: make([][]int32, n), recv: make([][]int32, n),
		gates: make([][]int32, n), sinks: make([][]int32, n), tcp: map[tcpKey]*tcp.Config{}, cfgs: map[cfgKey]*qp.Config{},
		dcqcn: map[*topology.NIC]*cc.Params{}, swift: map[*topology.NIC]*cc.SwiftParams{},
	}
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
		x.of(q.A, q)
		x.of(q.B, q)
	}
	for i := range plan.Flows {
		f := &plan.Flows[i]
		x.flows[f.From-1] = append(x.flows[f.From-1], int32(i))
		if f.Verb >= topology.CmpSwap && f.Transport == topology.RC {
			x.recv[f.To-1] = append(x.recv[f.To-1], int32(i))
		}
		if f.Transport == topology.TCP {
			x.sinks[f.To-1] = append(x.sinks[f.To-1], int32(i))
			x.streamConfig(plan, f)
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

func (x *Index) config(k uint32, par, other *topology.QPParams, mtu int) *qp.Config {
	nic := x.plan.Devices[x.plan.RNICs[k-1]].NIC
	key := cfgKey{nic: nic, par: par, mtu: mtu}
	if par.ConnectCM {
		key.peer = other
	}
	c := x.cfgs[key]
	if c == nil {
		c = newConfig(x.plan.Seed, nic, par, other, mtu)
		x.cfgs[key] = c
	}
	return c
}

// of returns the settings of RNIC k's end of a QP.
func (x *Index) of(k uint32, q *topology.QP) *qp.Config {
	if k == q.A {
		return x.config(q.A, q.Params, q.BParams, q.MTU)
	}
	return x.config(q.B, q.BParams, q.Params, q.MTU)
}
