package rnic

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// pair is one end of a queue pair at this RNIC. The transport state exists only
// once the QP was used.
type pair struct {
	// What each frame touches: a cache line.
	q      *qp.QP
	ctl    control // rate of what this end sends as data
	wakeAt clock.Time
	acked  int64
	peer   uint32
	slot   int32   // place in the agenda, from 1; 0 = not in it
	inRing [2]bool // requester, responder on the data ring (or held)
	inAck  bool
	waits  bool // counted in RNIC.waits
	prio   uint8
	asks   bool // this end is the requester; nothing is ever posted at the other
	free   bool // the number is not in use
	paced  bool // ctl holds something

	id      int32 // in the plan, -1 = number not in use
	died    bool  // ended by RETRY_EXC_ERR
	heard   bool  // a NAK or RNR NAK came back
	recvd   int64 // messages received here
	recvB   int64
	recvAt  clock.Time
	retrans uint64
	flows   []int32 // local flow numbers posted on it
}

func (p *pair) init(plan *topology.Plan, k uint32, id int32) {
	p.id, p.wakeAt = id, clock.Never
	if p.free = id < 0; p.free {
		return
	}
	q := &plan.QPs[id]
	p.asks = q.A == k
	p.peer = q.B
	if !p.asks {
		p.peer = q.A
	}
}

// use makes sure that the transport state of pair i exists.
func (r *RNIC) use(i int32) *pair {
	p := &r.pairs[i]
	if p.q != nil || p.id < 0 {
		return p
	}
	pq := &r.plan.QPs[p.id]
	par, peer, other := r.ends(p)
	p.prio = r.nic.PrioOf[pq.DSCP&63]
	p.q = newQP()
	p.q.Init(qp.Params{
		Cfg: r.config(p), Counters: &r.cnt, Memory: &r.mem,
		QPN: FirstQPN + uint32(i), PeerQPN: other, Src: r.k, Dst: p.peer, SPort: pq.SPort, TOS: pq.DSCP<<2 | wire.ECT0,
		SQPSN: wire.PSN(par.InitialPSN & wire.PSNMask), RQPSN: wire.PSN(peer.InitialPSN & wire.PSNMask),
		AltPath: par.AltPort > 0,
	})
	if r.faults.short {
		r.faults.dress(p)
	}
	r.newControl(p)
	return p
}

// newQP makes room for the transport state, at the begin of a cache line: the
// allocator puts a word before an object of this size.
func newQP() *qp.QP {
	x := new(struct {
		_ [56]byte
		q qp.QP
	})
	return &x.q
}

// egress is the index of the port that pair p sends on, if there are two.
func (p *pair) egress() int {
	if p.q.OnAlternate() {
		return 1
	}
	return 0
}

// settle brings everything that follows from a call into a pair's machines up
// to date: completions, notes, posting, rings and the wake-up.
func (r *RNIC) settle(now clock.Time, i int32, p *pair) {
	fx := &r.fx
	if fx.Acked > 0 {
		if p.q.Config().Recovery != qp.GoBack0 { // it gives up what was acknowledged: messages count
			r.lastProgress = now
		}
		p.acked += fx.Acked
	}
	if fx.Any || fx.Loss || fx.CNP || p.ctl.swift != nil {
		r.follow(now, i, p)
		return
	}
	if fx.Acked > 0 {
		fx.Reset()
	}
	if p.asks || p.waits || !p.q.Resp.OwesAck() {
		r.refresh(now, i, p)
	} else if !p.inAck { // refresh comes to the same
		p.inAck = true
		r.acks.push(i)
	}
	r.trySend(now)
}

// follow is settle where more came of the call than an acknowledgement.
func (r *RNIC) follow(now clock.Time, i int32, p *pair) {
	fx := &r.fx
	if len(fx.Notes) > 0 {
		r.notes(now, p)
	}
	if len(fx.Recvs) > 0 {
		r.received(now, p)
	}
	if fx.Loss || fx.HasRTT && p.ctl.swift != nil {
		r.feedback(now, p)
	}
	done := len(fx.Done) > 0
	if done {
		r.completed(now, p)
	}
	cnp := fx.CNP && r.nic.Congestion == "dcqcn" // without it the notification point is off
	fx.Reset()
	if done {
		r.postFlows(now, p)
	}
	if cnp {
		r.sendCNP(now, p)
	}
	r.refresh(now, i, p)
	r.trySend(now)
	for r.gated.n > 0 {
		g := r.gated.pop()
		fl := &r.flows[g]
		q := r.use(fl.pair)
		r.postFlow(now, g, fl, q)
		r.settle(now, fl.pair, q)
	}
}

// enlist puts the pair's requester and responder on the rings they belong to.
func (r *RNIC) enlist(now clock.Time, i int32, p *pair) {
	if !p.inRing[sendReq] && !p.q.Req.Idle() && p.q.Req.Ready(now) <= now && p.nextSend(now) <= now {
		p.inRing[sendReq] = true
		r.data.push(i*senders + sendReq)
	}
	if p.q.Resp.ResponseReady() <= now {
		r.enlistResponse(now, i, p)
	}
}

// enlistResponse puts a response that is due on its ring.
func (r *RNIC) enlistResponse(now clock.Time, i int32, p *pair) {
	if !p.q.Resp.NextIsData() {
		if !p.inAck {
			p.inAck = true
			r.acks.push(i)
		}
	} else if !p.inRing[sendResp] && p.nextSend(now) <= now {
		p.inRing[sendResp] = true
		r.data.push(i*senders + sendResp)
	}
}

// refresh is enlist, and makes sure that the pair is looked at when its next
// timer or its pace says so. The machines are asked once for both.
func (r *RNIC) refresh(now clock.Time, i int32, p *pair) {
	q, t := p.q, clock.Never
	if p.asks {
		t = q.Req.Deadline()
		if !p.inRing[sendReq] && !q.Req.Idle() {
			if s := q.Req.Ready(now); s != clock.Never {
				if s = max(s, p.nextSend(now)); s <= now {
					p.inRing[sendReq] = true
					r.data.push(i*senders + sendReq)
				} else {
					t = min(t, s)
				}
			}
		}
	}
	if q.Serves() {
		t = min(t, r.refreshResponse(now, i, p))
	}
	if t < p.wakeAt {
		r.wakeUp(i, p, t)
	}
}

// refreshResponse does the responder's part of refresh; it returns when it is
// to be looked at again.
func (r *RNIC) refreshResponse(now clock.Time, i int32, p *pair) clock.Time {
	t := p.q.Resp.ResponseReady()
	if w := t > now && t != clock.Never; w != p.waits {
		r.countWait(p, w)
	}
	if t <= now {
		r.enlistResponse(now, i, p)
		if p.inRing[sendResp] || p.inAck {
			return clock.Never
		}
		return p.nextSend(now) // a READ response that waits for its pace
	}
	return t
}

// countWait books that the pair's response waits for a timer, or no longer.
func (r *RNIC) countWait(p *pair, w bool) {
	p.waits = w
	if w {
		r.waits++
	} else {
		r.waits--
	}
}

// pairDue is a pair's wake-up: machines first, then rings.
func (r *RNIC) pairDue(now clock.Time, i int32, p *pair) {
	if p.q.Req.Deadline() <= now {
		r.lastWork = now
		r.chain.Mix(now, uint64(p.q.QPN())<<8|1, uint64(p.q.Req.Una()))
		p.q.Req.OnTimeout(now, &r.fx)
	}
	r.settle(now, i, p)
}

// noteKinds maps the transport's notes to records.
var noteKinds = [...]record.Kind{
	qp.NoteOutOfSeq: record.OutOfSeq, qp.NoteNakSent: record.NakSent, qp.NoteNakRecv: record.NakRecv,
	qp.NoteRnrSent: record.RnrSent, qp.NoteRnrRecv: record.RnrRecv, qp.NoteImpliedNak: record.ImpliedNak,
	qp.NoteTimeout: record.Timeout, qp.NoteRewind: record.Rewind, qp.NoteDuplicate: record.Duplicate,
	qp.NoteQPError: record.QPError, qp.NoteMigrate: record.Migrate, qp.NoteIgnored: record.Ignored,
	qp.NoteAdaptive: record.Clamp,
}

// notes turns what the machines remarked into records.
func (r *RNIC) notes(now clock.Time, p *pair) {
	for i := range r.fx.Notes {
		n := &r.fx.Notes[i]
		if n.Kind == qp.NoteIntegrity {
			r.broken(p, n)
			continue
		}
		r.observe(now, p, n)
		if int(n.Kind) >= len(noteKinds) || noteKinds[n.Kind] == record.None {
			continue
		}
		rec := record.Record{At: now, Kind: noteKinds[n.Kind], X: n.X, Y: n.Y, PSN: uint32(n.PSN), Reason: n.Reason, Op: n.Op, Iter: n.Iter}
		rec.Src, rec.Dst, rec.QPN = r.k, p.peer, p.q.PeerQPN()
		switch n.Kind { // the responder's side names the peer's packet
		case qp.NoteOutOfSeq, qp.NoteNakSent, qp.NoteRnrSent, qp.NoteDuplicate:
			rec.Src, rec.Dst, rec.QPN = p.peer, r.k, p.q.QPN()
		case qp.NoteRewind:
			rec.Y = int64(noteKinds[n.Y])
		}
		if n.Kind == qp.NoteRnrSent && r.faults.short {
			r.faults.rnrSent(r, now, p, uint32(n.PSN))
		}
		if n.Kind == qp.NoteRnrRecv && r.faults.short {
			r.faults.rnrCut(r, now, p, uint32(n.PSN))
		}
		r.note(rec)
	}
}

// broken reports content that is wrong although no fault touched it: the model
// is at fault, and the run fails.
func (r *RNIC) broken(p *pair, n *qp.Note) {
	if len(r.findings) < maxFindings {
		r.findings = append(r.findings, report.Finding{
			Code: report.CodeInvariant, Where: r.dev.Name,
			Text: fmt.Sprintf("QPN 0x%x received wrong content: message %d, offset %d, PSN %d", p.q.QPN(), n.X, n.Y, n.PSN),
		})
	}
}
