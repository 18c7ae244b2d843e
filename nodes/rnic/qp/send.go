package qp

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Position of a packet in its message.
const (
	posFirst = 1
	posLast  = 2
)

// opOf is the request opcode by verb and position (transport §1.8).
var opOf = [verbs][4]wire.Opcode{
	Send:     {wire.SendMiddle, wire.SendFirst, wire.SendLast, wire.SendOnly},
	SendImm:  {wire.SendMiddle, wire.SendFirst, wire.SendLastImm, wire.SendOnlyImm},
	SendInv:  {wire.SendMiddle, wire.SendFirst, wire.SendLastInv, wire.SendOnlyInv},
	Write:    {wire.WriteMiddle, wire.WriteFirst, wire.WriteLast, wire.WriteOnly},
	WriteImm: {wire.WriteMiddle, wire.WriteFirst, wire.WriteLastImm, wire.WriteOnlyImm},
	Read:     {wire.ReadRequest, wire.ReadRequest, wire.ReadRequest, wire.ReadRequest},
	CmpSwap:  {wire.CompareSwap, wire.CompareSwap, wire.CompareSwap, wire.CompareSwap},
	FetchAdd: {wire.FetchAdd, wire.FetchAdd, wire.FetchAdd, wire.FetchAdd},
}

// Ready returns the earliest instant at which the next packet may leave as
// far as the transport is concerned: now or before, later while an RNR wait
// runs, Never while only an event (post, response, timer) can change that.
func (r *Requester) Ready(now clock.Time) clock.Time {
	if r.c.state == StateRTS && r.sr != r.una && r.cur < r.n && !r.probe {
		// Most are in the midst of a SEND or WRITE.
		if w := r.at(r.cur); w.verb < Read && r.nxt != w.first && w.npkt != 0 && r.nxt-r.una < r.window() {
			return r.rnr
		}
	}
	return r.ready()
}

func (r *Requester) ready() clock.Time {
	if st := r.c.state; st != StateRTS && st != StateSQD {
		return clock.Never
	}
	if r.sr == r.una {
		return r.rnr
	}
	if r.cur >= r.n || r.probe && r.probed {
		return clock.Never
	}
	w := r.at(r.cur)
	if !r.allowed(w) {
		return clock.Never
	}
	return r.rnr
}

// window is the most PSNs unacknowledged.
func (r *Requester) window() int64 {
	k := int64(r.c.cfg.PSNWindow)
	if uint64(k-1) >= wire.MaxOutstanding {
		k = wire.MaxOutstanding
	}
	return k
}

// Idle reports that nothing is to be sent whatever the time: all requests posted
// were sent. A cheap test before Ready.
func (r *Requester) Idle() bool { return r.cur >= r.n && r.sr != r.una }

// allowed reports whether the packet at nxt, of w, fits windows and order.
func (r *Requester) allowed(w *wqe) bool {
	limit := r.window()
	if w.verb < Read {
		if r.nxt-r.una >= limit || w.npkt == 0 {
			return false
		}
		if r.nxt != w.first {
			return true
		}
		if !r.noCredit && w.verb != Write && w.ssn > r.lsn {
			return false
		}
	} else {
		if w.npkt == 0 || w.end()-r.una > wire.MaxOutstanding || (r.nxt > r.una && w.end()-r.una > limit) {
			return false
		}
		if r.rd >= uint32(r.c.cfg.MaxRdAtomic) {
			return false
		}
	}
	if w.flags&wFence != 0 && r.rd > 0 {
		return false
	}
	return r.c.state != StateSQD || r.nxt < r.max || r.nxt != w.first
}

// NextPacket dequeues the next packet into f: opcode, PSN, flags, headers,
// length, content, psn_index and iteration. It is the irrevocable dequeue:
// the ACK timer counts from now. False if nothing may leave at now.
func (r *Requester) NextPacket(now clock.Time, f *wire.Frame) bool {
	if r.Ready(now) > now {
		return false
	}
	seq := r.nxt
	if r.sr == r.una {
		seq = r.una
		r.build(r.at(0), seq, now, f)
		r.addPass(seq, seq+1)
		r.sr = unset
	} else {
		w := r.at(r.cur)
		r.build(w, seq, now, f)
		r.advance(w)
	}
	if r.probe {
		f.Set(wire.FlagAckReq)
		r.probed = true
	}
	if r.ack == clock.Never {
		r.arm(now)
	}
	if r.sampSeq < 0 && f.Iter == 1 && f.Has(wire.FlagAckReq) {
		r.sampSeq, r.sampAt = seq, now
	}
	return true
}

// advance moves nxt past the packet just built.
func (r *Requester) advance(w *wqe) {
	end := w.end()
	if w.verb >= Read {
		r.rd++
		r.nxt = end
	} else {
		r.nxt++
	}
	if r.nxt == end {
		r.cur++
	}
	if r.nxt > r.max {
		r.max = r.nxt
	} else if r.nxt == r.passEnd {
		r.addPass(r.passFrom, r.nxt)
	}
}

// build fills f with the packet of w at sequence number seq. Of a SEND or WRITE,
// B is the RETH's second half, or the payload length where there is no RETH.
func (r *Requester) build(w *wqe, seq int64, now clock.Time, f *wire.Frame) {
	if w.verb >= Read {
		r.buildRead(w, seq, now, f)
		return
	}
	k := uint32(seq - w.first)
	pos := 0
	if k == 0 {
		pos = posFirst
	}
	if k == w.npkt-1 {
		pos |= posLast
	}
	off := k << r.c.mtuShift
	op := opOf[w.verb][pos]
	r.c.frame(f, wire.KindData, op, r.wire(seq))
	f.Index = w.idx + k + 1
	r.ackReq(w, seq, pos, f)
	if seq < r.max {
		r.again(w, seq, f)
	} else if k == 0 {
		w.start = now
	}
	n := uint32(1) << r.c.mtuShift
	if pos&posLast != 0 {
		n = w.len - off
		f.D = w.imm
		if w.flags&wSolicited != 0 {
			f.Set(wire.FlagSE)
		}
	}
	f.B = uint64(n)
	if w.verb >= Write && pos&posFirst != 0 {
		f.A, f.B = w.va, uint64(w.rkey)<<32|uint64(w.len)
	}
	f.C = tag(r.key, w.ssn, off)
	f.Len = uint16(wire.RoCELen(op, int(n)))
}

// again marks the packet at seq as one that was sent before.
func (r *Requester) again(w *wqe, seq int64, f *wire.Frame) {
	f.Iter = r.iteration(seq)
	r.c.cnt.RetransmittedPackets++
	w.flags |= wRetrans
}

// buildRead is build for READs and atomics.
func (r *Requester) buildRead(w *wqe, seq int64, now clock.Time, f *wire.Frame) {
	k := uint32(seq - w.first)
	op := opOf[w.verb][0]
	r.c.frame(f, wire.KindData, op, r.wire(seq))
	f.Index = w.idx + k + 1
	f.Set(wire.FlagAckReq)
	if seq < r.max {
		r.again(w, seq, f)
	} else if k == 0 {
		w.start = now
	}
	if w.verb == Read {
		off := k << r.c.mtuShift
		f.Index = w.idx + 1
		f.A, f.B, f.C = w.va+uint64(off), uint64(w.rkey)<<32|uint64(w.len-off), tag(r.key, w.ssn, off)
	} else {
		f.A, f.B, f.C, f.D = w.va, w.a, w.b, w.rkey
	}
	f.Len = uint16(wire.RoCELen(op, 0))
}

// ackReq sets AckReq by the NIC's policy: last packet, every 2^n-th, the packet
// that fills the PSN window, a message beyond the credits; READs and atomics
// always carry it.
func (r *Requester) ackReq(w *wqe, seq int64, pos int, f *wire.Frame) {
	cfg := r.c.cfg
	if pos&posLast != 0 || cfg.AckEvery ||
		cfg.AckFreqLog > 0 && f.Index&(1<<cfg.AckFreqLog-1) == 0 ||
		seq+1-r.una >= wire.MaxOutstanding || cfg.PSNWindow > 0 && seq+1-r.una >= int64(cfg.PSNWindow) ||
		!r.noCredit && w.ssn >= r.lsn {
		f.Set(wire.FlagAckReq)
	}
}
