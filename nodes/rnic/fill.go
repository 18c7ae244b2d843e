package rnic

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// Fill adds the RNIC's part of the result as of end.
func (r *RNIC) Fill(part *report.Part, end clock.Time) {
	part.RNIC = r.Counters(end)
	st := r.st
	st.derive(&r.moved)
	part.Drops = r.st.drops
	part.Samples, part.Latencies = r.st.samples, r.st.latencies
	part.Retransmitted = r.cnt.RetransmittedPackets
	for i := range r.ports {
		part.Links = append(part.Links, report.LinkCounts{
			Port: r.ports[i].num, Sent: r.moved.sent[i], Injected: r.st.injected[i], Lost: r.st.lost[i],
			Delivered: r.moved.delivered[i], RxDropped: r.st.rxDropped[i], RxInjected: r.st.rxInjected[i],
		})
		r.faults.fillHeld(&part.Links[len(part.Links)-1], i)
		part.Balance.In = plus(part.Balance.In, r.moved.delivered[i])
		part.Balance.Out = plus(part.Balance.Out, r.moved.sent[i])
	}
	part.Balance.Originated, part.Balance.Consumed, part.Balance.Dropped = st.originated, st.consumed, st.droppedIn
	for i := range r.flows {
		r.fillFlow(part, &r.flows[i], end)
	}
	part.Received = append(part.Received, r.udp...)
	r.fillSinks(part)
	for i := range r.pairs {
		p := &r.pairs[i]
		if p.q == nil || p.asks || p.recvd == 0 {
			continue
		}
		if ids := r.plan.QPs[p.id].Flows; len(ids) == 1 {
			part.Received = append(part.Received, report.RecvPart{Flow: ids[0], Messages: p.recvd, Bytes: p.recvB, Last: p.recvAt})
		}
	}
	for _, id := range r.idx.recv[r.k-1] {
		w := r.mem.Word(vaOf(&r.plan.Flows[id]))
		part.Words = append(part.Words, report.Word{Flow: id, Value: w})
	}
	r.fillFindings(part)
}

func plus(a, b report.Count) report.Count {
	return report.Count{Frames: a.Frames + b.Frames, Bytes: a.Bytes + b.Bytes}
}

// Counters maps what was counted to the mlx5 names, as of end.
func (r *RNIC) Counters(end clock.Time) *report.RNICCounters {
	c, s := &r.cnt, r.st // a copy: several may ask at a time
	s.derive(&r.moved)
	out := &report.RNICCounters{
		LocalAckTimeoutErr: c.LocalAckTimeoutErr, PacketSeqErr: c.PacketSeqErr, RNRNakRetryErr: c.RnrNakRetryErr,
		ImpliedNakSeqErr: c.ImpliedNakSeqErr, TransportExceeded: c.TransportRetriesExc, RNRExceeded: c.RnrRetriesExc,
		OutOfSequence: c.OutOfSequence, DuplicateRequest: c.DuplicateRequest, OutOfBuffer: c.OutOfBuffer,
		RxWriteRequests: c.RxWriteRequests, RxReadRequests: c.RxReadRequests, RxAtomicRequests: c.RxAtomicRequests,
		RoceADPRetrans: c.RoceAdpRetrans, RoceSlowRestart: c.RoceSlowRestart, NPCNPSent: s.cnpSent, NPECNMarked: s.ecnMarked, RPCNPHandled: s.cnpHandled,
		RPCNPIgnored: s.cnpIgnored, RxICRC: s.icrc, ReqCQEError: c.ReqCQEError + c.ReqCQEFlushError,
		RespCQEError: c.RespCQEError, ReqRemoteAccessErrs: c.ReqRemoteAccess, RespRemoteAccessErrs: c.RespRemoteAccess,
		TxPackets: s.txPackets, RxPackets: s.rxPackets, TxBytes: s.txBytes, RxBytes: s.rxBytes, RxDiscardsPhy: s.discards,
		RxPause: s.rxPause, TxPause: s.txPause,
	}
	for prio := range 8 {
		t := s.rxPauseTime[prio]
		for i := range r.ports {
			if since := r.ports[i].pausedSince[prio]; since != 0 && end > since {
				t += min(end, max(r.ports[i].PausedUntil(prio), since)).Sub(since)
			}
		}
		out.RxPauseNS[prio] = report.NS(t)
	}
	return out
}

// fillFlow tells of a flow what its samples do not.
func (r *RNIC) fillFlow(part *report.Part, fl *flow, end clock.Time) {
	f := fl.f
	fp := report.FlowPart{Flow: f.ID, Posted: fl.posted}
	tell := f.Count < 0
	if fl.stream != nil {
		r.fillStream(part, fl, end)
		return
	}
	if f.Transport != topology.RC {
		fp.Posted, fp.SentBytes, tell = fl.done, fl.posted, true
		if t := fl.total(); t < 0 || fl.posted < t {
			fp.Why = fmt.Sprintf("%d of %d bytes sent", fl.posted, t)
		}
	}
	if fl.pair >= 0 {
		p := &r.pairs[fl.pair]
		if len(p.flows) == 1 {
			fp.Retransmitted = p.retrans
			tell = tell || p.retrans > 0
		}
		if fl.done < fl.posted || (f.Count > 0 && fl.posted < f.Count) {
			fp.Why, tell = r.why(fl, p), true
			if p.q != nil && len(p.flows) == 1 {
				fp.BytesDone = min(p.q.Req.DoneOfCurrent(), f.Size)
			}
			fp.LastProgress, fp.Oldest = r.lastProgress, fl.oldest(end)
		}
	}
	if fl.hasOrg {
		fp.Atomic, tell = &report.Atomic{Original: fl.orig}, true
	}
	if tell {
		part.Flows = append(part.Flows, fp)
	}
}

// oldest is the age of the flow's oldest outstanding request, 0 without one.
func (fl *flow) oldest(end clock.Time) clock.Duration {
	if len(fl.starts) == 0 {
		return 0
	}
	return max(end.Sub(fl.starts[0]), 0)
}

// why tells what an unfinished flow waits for.
func (r *RNIC) why(fl *flow, p *pair) string {
	switch {
	case p.q == nil:
		return "not started: its start " + fl.f.Start.String() + " was not reached"
	case fl.done == fl.posted && fl.f.Gate >= 0:
		return fmt.Sprintf("waits for message %d of %s", fl.posted+fl.f.GateLag, r.plan.Lines[r.plan.Flows[fl.f.Gate].Line].Name)
	case fl.done == fl.posted && p.q.State() == qp.StateErr:
		return "its QP is in ERR"
	case fl.done == fl.posted:
		return report.NotDue
	case r.held[p.prio].n > 0:
		return fmt.Sprintf("priority %d of %s is paused since %v", p.prio, r.dev.Name, r.pausedSince(p.prio))
	}
	req := &p.q.Req
	if req.InFlight() == 0 && req.Cause() == qp.NoteRnrRecv {
		left := fmt.Sprintf("%d RNR retries left", req.RNRRetriesLeft())
		if p.q.Config().RNRRetry == 7 {
			left = "RNR retries without end"
		}
		return fmt.Sprintf("receiver not ready: PSN %d again at %v, %s", req.Next(), req.RNRUntil(), left)
	}
	if req.InFlight() == 0 {
		return fmt.Sprintf("PSN %d was not sent yet", req.Next())
	}
	text := fmt.Sprintf("no answer to PSN %d, %d retries left", req.Una(), req.RetriesLeft())
	if d := req.AckDeadline(); d != clock.Never {
		return text + ", local ACK timeout at " + d.String()
	}
	if u := req.RNRUntil(); u > 0 {
		return text + ", RNR wait until " + u.String()
	}
	return text + ", its timer is off"
}

func (r *RNIC) pausedSince(prio uint8) clock.Time {
	for i := range r.ports {
		if s := r.ports[i].pausedSince[prio]; s != 0 {
			return s
		}
	}
	return 0
}

// noteDone closes a retransmit chain: when the request was first sent, of which
// flow it is (id + 1), and that it completed.
func (r *RNIC) noteDone(now clock.Time, p *pair, c *qp.Completion) {
	if c.FirstTx != clock.Never {
		r.note(record.Record{
			At: c.FirstTx, Kind: record.ReqPosted, Src: r.k, Dst: p.peer, QPN: p.q.PeerQPN(),
			X: int64(c.ID & (1<<idBits - 1)), Y: int64(r.flows[c.ID>>idBits].f.ID) + 1,
		})
	}
	r.note(record.Record{
		At: now, Kind: record.ReqDone, Src: r.k, Dst: p.peer, QPN: p.q.PeerQPN(), PSN: uint32(p.q.Req.Una()),
		X: int64(c.ID & (1<<idBits - 1)), Y: int64(c.Status),
	})
}
