// Package rnic is the RNIC as an actor: it turns workload into work requests,
// lets the pure transport machines of package qp and the congestion control of
// package cc decide, and owns what they share: the port, the order of sending
// (PFC, then CNP, then ACK/NAK, then data round robin per QP, a packet a turn,
// paused priorities left out), timers, counters, the receive side. It knows no
// topology beyond its cable. Start at [RNIC.Advance].
package rnic

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/port"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic/cc"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// RNIC is one actor.
type RNIC struct {
	plan *topology.Plan
	idx  *Index
	dev  *topology.Device
	nic  *topology.NIC
	k    uint32

	dcqcn   *cc.Params
	swift   *cc.SwiftParams
	adopted clock.Time            // when settings changed last, Never = not yet
	cfgs    map[cfgKey]*qp.Config // of queue pairs, once settings changed

	ports []txPort
	chain actors.Chain

	pairs    []pair  // by QPN - FirstQPN
	flows    []flow  // that start here, in plan order
	data     ring    // senders that may have a packet, in turn
	held     [8]ring // senders whose priority was paused at their turn
	acks     ring    // pairs with an ACK, NAK or atomic response due
	cnps     []wire.Frame
	sinks    []sink // TCP flows that end here, in plan order
	pairWake wakes  // pairs: timers and pacing
	wake     agenda // TCP: timers and pacing
	pauses   bool   // some pause ran since the start: look for its end
	last     int32  // pair whose frame is being sent
	gated    ring   // flows whose gate opened during a call
	udp      []report.RecvPart
	start    agenda // flows: starts, intervals

	mem    qp.Memory
	cnt    qp.Counters
	np     cc.NP
	fx     qp.Effects
	out    *actors.Outbox
	frame  wire.Frame // the one that is being sent
	faults faultState

	st       stats
	rec      []record.Record
	recSeq   uint32
	recLost  uint64
	findings []report.Finding

	outstanding  int64
	lastWork     clock.Time
	lastProgress clock.Time
	events       uint64
	hops         uint64
}

// txPort is a port with what the RNIC keeps of it.
type txPort struct {
	port.Port
	num         int
	queued      bool // a dequeue at FreeAt is due
	pausedSince [8]clock.Time
}

// maxRecords bounds the exceptional notes kept between two collections.
const maxRecords = 1 << 20

// maxFindings bounds the remarks of one RNIC.
const maxFindings = 16

// sender ids on the data ring: a pair's requester, its responder, a datagram
// flow, the ends of a TCP flow.
const (
	sendReq = iota
	sendResp
	sendUDP
	sendTCP
	sendTCPAck
	senders
)

// New builds the RNIC of device dev.
func New(plan *topology.Plan, dev int32, idx *Index) *RNIC {
	d := &plan.Devices[dev]
	r := &RNIC{plan: plan, idx: idx, dev: d, nic: d.NIC, k: uint32(d.Num), chain: actors.NewChain(plan.Seed, d.Name)}
	for i := range d.Ports {
		r.ports = append(r.ports, txPort{Port: port.New(&d.Ports[i], true), num: d.Ports[i].Num})
	}
	r.registerMemory()
	r.pairs = make([]pair, len(idx.qps[r.k-1]))
	for i, id := range idx.qps[r.k-1] {
		r.pairs[i].init(plan, r.k, id)
	}
	r.np = newNP(r.nic)
	r.dcqcn, r.swift, r.adopted = idx.dcqcn[r.nic], idx.swift[r.nic], clock.Never
	r.faults.init(r)
	r.initFlows()
	r.initSinks()
	return r
}

// R_Keys that every RNIC registers, and the word that atomics find.
const (
	KeyGood     = 1 << 8 // all rights
	KeyReadOnly = 2 << 8
	KeyBad      = 0xbad00
)

func (r *RNIC) registerMemory() {
	r.mem.Register(0, 1<<62, qp.RemoteRead|qp.RemoteWrite|qp.RemoteAtomic, 0, true)
	r.mem.Register(0, 1<<62, qp.RemoteRead, 0, true)
	for _, id := range r.idx.recv[r.k-1] {
		f := &r.plan.Flows[id]
		if f.Opt != nil && f.Opt.Initial != 0 {
			r.mem.SetWord(vaOf(f), f.Opt.Initial)
		}
	}
}

// vaOf is the remote address of a flow's requests.
func vaOf(f *topology.Flow) uint64 {
	if f.Opt != nil && f.Opt.HasVA {
		return f.Opt.VA
	}
	return uint64(f.ID+1) << 32
}

// Chain returns the digest chain.
func (r *RNIC) Chain() actors.Chain { return r.chain }

// Advance runs all events before end (see actors.Actor). Same-instant order:
// faults, arrivals, dequeues, timers, work.
func (r *RNIC) Advance(end clock.Time, in *actors.Inbox, out *actors.Outbox, st *actors.Status) {
	r.out = out
	last := st.LastEvent
	for {
		at, class := r.nextOwn()
		if a := in.Next(); a < at || a == at && a < end && class > clock.ClassArrival {
			last = a
			f, p := in.Take()
			r.arrive(a, p, f)
			continue
		}
		if at >= end {
			break
		}
		r.events++
		last = at
		switch class {
		case clock.ClassFault:
			r.faults.step(r, at)
		case clock.ClassTxDone:
			r.dequeueDue(at)
		case clock.ClassTimer:
			r.timersDue(at)
		default:
			r.lastWork = at
			r.workDue(at)
		}
	}
	st.LastEvent = last
	r.report(st)
}

// nextOwn is the earliest internal event and its class.
func (r *RNIC) nextOwn() (clock.Time, clock.Class) {
	at, class := r.start.next(), clock.ClassWork
	t := min(r.wake.next(), r.pairWake.next())
	if r.pauses || r.faults.d != nil {
		t = r.nextTimer()
	}
	if t <= at {
		at, class = t, clock.ClassTimer
	}
	if len(r.ports) > 0 {
		if p := &r.ports[0]; p.queued && p.FreeAt() <= at {
			at, class = p.FreeAt(), clock.ClassTxDone
		}
	}
	if len(r.ports) > 1 {
		if p := &r.ports[1]; p.queued && p.FreeAt() <= at {
			at, class = p.FreeAt(), clock.ClassTxDone
		}
	}
	if r.faults.d != nil {
		if t := r.faults.next(); t <= at && t != clock.Never {
			at, class = t, clock.ClassFault
		}
	}
	return at, class
}

// nextTimer is the earliest of QP timers and ends of pauses that hold senders.
func (r *RNIC) nextTimer() clock.Time {
	t := min(r.wake.next(), r.pairWake.next())
	if r.pauses {
		t = min(t, r.holdEnd())
	}
	if r.faults.d != nil {
		t = min(t, r.faults.rx.next())
	}
	return t
}

// holdEnd is the earliest end of a pause that something waits for.
func (r *RNIC) holdEnd() clock.Time {
	t := clock.Never
	if !r.pauses {
		return t
	}
	for i := range r.ports {
		p := &r.ports[i]
		for prio := range 8 {
			if p.pausedSince[prio] != 0 || r.held[prio].n > 0 {
				if u := p.PausedUntil(prio); u != 0 {
					t = min(t, u)
				}
			}
		}
	}
	return t
}

// busy reports whether anything but waiting is left: requests, frames to send,
// responses that a timer will release.
func (r *RNIC) busy() bool {
	return r.outstanding > 0 || r.data.n > 0 || r.acks.n > 0 || len(r.cnps) > 0 || r.anyHeld() || r.st.respWaits > 0
}

func (r *RNIC) anyHeld() bool {
	for i := range r.held {
		if r.held[i].n > 0 {
			return true
		}
	}
	return false
}

func (r *RNIC) report(st *actors.Status) {
	next, _ := r.nextOwn()
	st.Next, st.NextWork = next, min(r.start.next(), r.faults.nextWork())
	if r.busy() {
		st.NextWork = min(st.NextWork, r.workTimer())
	}
	st.NextFault = r.faults.nextFault()
	st.LastWork, st.LastProgress = r.lastWork, r.lastProgress
	st.Outstanding = r.outstanding + r.waiting()
	st.Events, st.Hops = r.events, r.hops
}

// workTimer is the earliest internal event that is work: periodic ones (PFC
// refresh of a storm) are left out.
func (r *RNIC) workTimer() clock.Time {
	t := min(r.wake.next(), r.pairWake.next(), r.faults.rx.workNext())
	for i := range r.ports {
		if p := &r.ports[i]; p.queued {
			t = min(t, p.FreeAt())
		}
	}
	return t
}

// timersDue runs everything on the timer agenda that is due at now.
func (r *RNIC) timersDue(now clock.Time) {
	if r.holdEnd() <= now {
		r.pausesEnded(now)
		return
	}
	if r.faults.d != nil && r.faults.rx.next() <= now {
		r.faults.rx.due(r, now)
		return
	}
	if r.wake.next() <= r.pairWake.next() {
		r.streamTimer(now, r.wake.pop())
		return
	}
	i := r.wakeNext()
	r.pairDue(now, i, &r.pairs[i])
}

// note keeps an exceptional record.
func (r *RNIC) note(n record.Record) {
	r.recSeq++
	if len(r.rec) >= maxRecords {
		r.recLost++
		return
	}
	n.Dev, n.Seq = r.dev.ID, r.recSeq
	r.rec = append(r.rec, n)
}

// TakeRecords appends the notes made since the last call and forgets them.
func (r *RNIC) TakeRecords(dst []record.Record) []record.Record {
	dst = append(dst, r.rec...)
	r.rec = r.rec[:0]
	return dst
}

// stats are the RNIC's own counters beyond the transport's.
type stats struct {
	txPackets, rxPackets, txBytes, rxBytes     uint64
	rxPause, txPause, rxResume                 [8]uint64
	rxPauseTime                                [8]clock.Duration
	cnpSent, ecnMarked, cnpHandled, cnpIgnored uint64
	icrc, discards                             uint64
	rnrWaits, rnrLost                          uint64 // waits begun, ps asked for
	drops                                      [report.NumReasons]uint64
	respWaits                                  int64 // responders with a response that waits for a timer
	sent, delivered, rxDropped, lost, injected [2]report.Count
	originated, consumed, droppedIn            report.Count
	samples                                    report.Samples
	latencies                                  report.Latencies
}
