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

// RNIC is one actor. What each frame touches stands first, by cache lines, and
// has its queues, its port and its first two queue pairs inside, because a POD
// of RNICs does not stay in a processor's caches: see [RNIC.Hint].
type RNIC struct {
	_ [56]byte // with the allocator's word before it: a cache line begins here

	out   *actors.Outbox
	nic   *topology.NIC
	pairs []pair // by QPN - FirstQPN
	ports []txPort

	chain        actors.Chain
	events       uint64
	lastWork     clock.Time
	lastProgress clock.Time
	outstanding  int64
	k            uint32
	last         int32 // pair whose frame is being sent
	pauses       bool  // some pause ran since the start: look for its end
	gates        bool  // flows here wait for messages of others

	data  ring   // senders that may have a packet, in turn
	acks  ring   // pairs with an ACK, NAK or atomic response due
	wake  agenda // TCP: timers and pacing
	cnpN  int32  // frames in cnps
	waits int32  // responders with a response that waits for a timer

	pairWake wakes // pairs: timers and pacing
	moved    counts
	start    agenda // flows: starts, intervals

	faults faultState
	port   [1]txPort // unless there are more
	_      [16]byte
	fx     qp.Effects
	_      [24]byte
	two    [2]pair // unless there are more
	np     cc.NP
	*cold
}

// cold is what few frames touch. It lies apart, so that what the others touch of
// all RNICs of a POD is on as few pages of memory as can be: a processor
// remembers where some thousand are.
type cold struct {
	st stats

	plan *topology.Plan
	idx  *Index
	dev  *topology.Device

	dcqcn   *cc.Params
	swift   *cc.SwiftParams
	adopted clock.Time            // when settings changed last, Never = not yet
	cfgs    map[cfgKey]*qp.Config // of queue pairs, once settings changed

	flows []flow  // that start here, in plan order
	held  [8]ring // senders whose priority was paused at their turn
	cnps  []wire.Frame
	sinks []sink // TCP flows that end here, in plan order
	gated ring   // flows whose gate opened during a call
	udp   []report.RecvPart

	mem   qp.Memory
	cnt   qp.Counters
	frame wire.Frame // the one that faults look at

	rec      []record.Record
	recSeq   uint32
	recLost  uint64
	findings []report.Finding
}

// counts are the frames that went through each port, and those that came with a
// mark; what else is counted of every frame follows from them (see stats.derive).
type counts struct {
	ecnMarked       uint64 // arrivals with a mark
	sent, delivered [2]report.Count
}

// txPort is a port with what the RNIC keeps of it. The port begins a cache line.
type txPort struct {
	num    int
	queued bool // a dequeue at FreeAt is due
	port.Port
	pausedSince *[8]clock.Time // apart: touched by pauses alone
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
	r := &RNIC{nic: d.NIC, k: uint32(d.Num), chain: actors.NewChain(plan.Seed, d.Name), cold: &cold{plan: plan, idx: idx, dev: d}}
	r.ports, r.pairs = r.port[:0], r.two[:]
	for i := range d.Ports {
		r.ports = append(r.ports, txPort{Port: port.New(&d.Ports[i], true), num: d.Ports[i].Num, pausedSince: new([8]clock.Time)})
	}
	r.registerMemory()
	n := len(idx.qps[r.k-1])
	if n > len(r.two) {
		r.pairs = make([]pair, n)
	}
	r.pairs, r.pairWake.h = r.pairs[:n], r.pairWake.few[:0]
	r.gates = len(idx.gates[r.k-1]) > 0
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
	if r.out != out { // the first look at r is at its first line, which Hint has asked for
		r.out = out
	}
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
	if r.pauses || r.faults.d != nil || len(r.ports) != 1 {
		return r.nextOfAll()
	}
	at, class := clock.Never, clock.ClassWork
	if h := r.start.h; len(h) > 0 {
		at = h[0].at
	}
	if h := r.pairWake.h; len(h) > 0 && h[0].at <= at {
		at, class = h[0].at, clock.ClassTimer
	}
	if h := r.wake.h; len(h) > 0 && h[0].at <= at {
		at, class = h[0].at, clock.ClassTimer
	}
	if p := &r.port[0]; p.queued && p.FreeAt() <= at {
		at, class = p.FreeAt(), clock.ClassTxDone
	}
	return at, class
}

// nextOfAll is nextOwn with pauses, faults and any number of ports.
func (r *RNIC) nextOfAll() (clock.Time, clock.Class) {
	at, class := r.start.next(), clock.ClassWork
	if t := r.nextTimer(); t <= at {
		at, class = t, clock.ClassTimer
	}
	for i := range r.ports {
		if p := &r.ports[i]; p.queued && p.FreeAt() <= at {
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
	return r.outstanding > 0 || r.data.n > 0 || r.acks.n > 0 || r.cnpN > 0 || r.pauses && r.anyHeld() || r.waits > 0
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
	if r.faults.d != nil {
		st.NextFault = r.faults.nextFault()
	}
	st.LastWork, st.LastProgress = r.lastWork, r.lastProgress
	st.Outstanding = r.outstanding
	if r.gates {
		st.Outstanding += r.waiting()
	}
	st.Events, st.Hops = r.events, r.hops()
}

// hops is the number of frames put on a cable, PFC apart.
func (r *RNIC) hops() uint64 { return r.moved.sent[0].Frames + r.moved.sent[1].Frames }

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
	ecnMarked                              uint64 // follows from what moved, as the next four do
	txPackets, rxPackets, txBytes, rxBytes uint64 // follow from what moved, as originated and consumed do
	rxPause, txPause, rxResume             [8]uint64
	rxPauseTime                            [8]clock.Duration
	cnpSent, cnpHandled, cnpIgnored        uint64
	icrc, discards                         uint64
	rnrWaits, rnrLost                      uint64 // waits begun, ps asked for
	drops                                  [report.NumReasons]uint64
	rxDropped, lost, injected, rxInjected  [2]report.Count
	originated, consumed, droppedIn        report.Count
	txOther, rxOther                       report.Count // of these, not RoCE
	cut                                    uint64       // bytes that faults took off frames on their way out
	samples                                report.Samples
	latencies                              report.Latencies
}

// derive fills in the counters that follow from the frames that went through
// the ports.
func (t *stats) derive(m *counts) {
	t.ecnMarked = m.ecnMarked
	t.originated, t.consumed = plus(m.sent[0], m.sent[1]), plus(m.delivered[0], m.delivered[1])
	t.originated.Bytes += t.cut
	t.txPackets, t.txBytes = t.originated.Frames-t.txOther.Frames, t.originated.Bytes-t.txOther.Bytes
	t.rxPackets, t.rxBytes = t.consumed.Frames-t.rxOther.Frames, t.consumed.Bytes-t.rxOther.Bytes
}

// restored finds what derive needs in what it made.
func (t *stats) restored(m *counts) {
	m.ecnMarked = t.ecnMarked
	t.cut = t.originated.Bytes - plus(m.sent[0], m.sent[1]).Bytes
	t.txOther = report.Count{Frames: t.originated.Frames - t.txPackets, Bytes: t.originated.Bytes - t.txBytes}
	t.rxOther = report.Count{Frames: t.consumed.Frames - t.rxPackets, Bytes: t.consumed.Bytes - t.rxBytes}
}
