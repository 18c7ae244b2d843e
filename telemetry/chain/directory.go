package chain

import (
	"sync/atomic"

	"github.com/rocemu/rocemu/topology"
)

// Directory names what records know by number. It is built from a plan once
// and read-only afterwards.
type Directory struct {
	plan *topology.Plan
	ends map[end]int32 // endpoint → queue pair id
	live atomic.Pointer[[]topology.Fault]
}

// end is one end of a queue pair: an RNIC number and a QPN there.
type end struct{ rnic, qpn uint32 }

// NewDirectory indexes the queue pairs of a plan.
func NewDirectory(p *topology.Plan) *Directory {
	d := &Directory{plan: p, ends: make(map[end]int32, 2*len(p.QPs))}
	for i := range p.QPs {
		q := &p.QPs[i]
		d.ends[end{q.A, q.AQPN}] = int32(i)
		d.ends[end{q.B, q.BQPN}] = int32(i)
	}
	return d
}

// Conn finds the queue pair of a packet by the RNIC it goes to and the QPN
// there; toward says that it travels from requester to responder.
func (d *Directory) Conn(src, dst, qpn uint32) (id int32, toward, ok bool) {
	id, ok = d.ends[end{dst, qpn}]
	if !ok {
		return -1, false, false
	}
	q := &d.plan.QPs[id]
	toward = q.B == dst && q.BQPN == qpn && (q.A != q.B || src == q.A)
	return id, toward, true
}

// QP returns a queue pair by id.
func (d *Directory) QP(id int32) *topology.QP { return &d.plan.QPs[id] }

// Device returns a device's name, "" for an unknown id.
func (d *Directory) Device(id int32) string {
	if id < 0 || int(id) >= len(d.plan.Devices) {
		return ""
	}
	return d.plan.Devices[id].Name
}

// RNIC returns the name of RNIC number k.
func (d *Directory) RNIC(k uint32) string {
	if k == 0 || int(k) > len(d.plan.RNICs) {
		return ""
	}
	return d.Device(d.plan.RNICs[k-1])
}

// RNICDevice returns the device id of RNIC number k, -1 when there is none.
func (d *Directory) RNICDevice(k uint32) int32 {
	if k == 0 || int(k) > len(d.plan.RNICs) {
		return -1
	}
	return d.plan.RNICs[k-1]
}

// SetFaults replaces the plan's faults by a list that also has those that were
// added to the running fabric.
func (d *Directory) SetFaults(list []topology.Fault) { d.live.Store(&list) }

// Fault returns the name and kind of fault n of a record (counted from 1).
func (d *Directory) Fault(n int32) (name, kind string) {
	list := d.plan.Faults
	if l := d.live.Load(); l != nil {
		list = *l
	}
	if n < 1 || int(n) > len(list) {
		return "", ""
	}
	f := &list[n-1]
	return f.Name, f.Kind
}

// FlowName returns the name of a single flow as flows.csv has it.
func (d *Directory) FlowName(id int32) string {
	if id < 0 || int(id) >= len(d.plan.Flows) {
		return ""
	}
	f := &d.plan.Flows[id]
	l := &d.plan.Lines[f.Line]
	if len(l.Flows) == 1 {
		return l.Name
	}
	return singleFlow(l.Name, d.RNIC(f.From), d.RNIC(f.To), f.Ordinal)
}

// Line returns the workload line of a flow.
func (d *Directory) Line(id int32) string {
	if id < 0 || int(id) >= len(d.plan.Flows) {
		return ""
	}
	return d.plan.Lines[d.plan.Flows[id].Line].Name
}

// Run returns the hash of what acts on the run and its seed, from which ids are
// derived: who watches does not matter.
func (d *Directory) Run() (hash [32]byte, seed uint64) { return d.plan.Model, d.plan.Seed }

// Fabric returns the run's name.
func (d *Directory) Fabric() string { return d.plan.Name }
