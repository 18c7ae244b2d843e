package qp

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// duplicate is a request before ePSN (transport §2.6): SEND and WRITE are
// acknowledged anew, READ and atomics answered from the resources. Errors in
// a duplicate are never NAKed.
func (p *Responder) duplicate(now clock.Time, seq int64, f *wire.Frame, fx *Effects) {
	p.c.cnt.DuplicateRequest++
	fx.note(Note{Kind: NoteDuplicate, PSN: uint32(f.PSN()), Op: uint8(f.Op()), Iter: f.Iter})
	if p.nak == nakSeq && p.c.cfg.Recovery == GoBack0 {
		p.nak = nakNone // the message starts over: its gap is a new one
	}
	switch op := f.Op(); {
	case op == wire.ReadRequest:
		p.replayRead(seq, f)
	case op == wire.CompareSwap || op == wire.FetchAdd:
		if i, ok := p.find(seq); ok && p.res(i).op == op && p.res(i).first == seq {
			p.replay(i, seq)
		}
	case f.Has(wire.FlagAckReq) || p.c.cfg.DupAckAll:
		if p.open != openNone && seq >= p.first {
			p.verifyDup(seq, f, fx)
		}
		p.ackSeq, p.ackAt = max(p.ackSeq, p.dupAck(seq)), f.At.Add(-p.c.cfg.IngressHalf)
	default:
		if p.open != openNone && seq >= p.first {
			p.verifyDup(seq, f, fx)
		}
	}
}

// dupAck is the PSN that acknowledges a duplicate: the newest, but not past a
// READ or atomic behind the duplicate. The requester sends that again too, and
// would take an acknowledgement beyond it for the loss of its answer.
func (p *Responder) dupAck(seq int64) int64 {
	to := p.epsn - 1
	for i := p.head; i > 0 && p.head-i < uint32(len(p.ring)); {
		i--
		if x := p.res(i); x.first > seq {
			to = x.first - 1
		} else {
			break
		}
	}
	return to
}

// verifyDup checks that a duplicate of the open message carries the bytes its
// PSN carried before.
func (p *Responder) verifyDup(seq int64, f *wire.Frame, fx *Effects) {
	off := uint32(seq-p.first) << p.c.mtuShift
	if f.C != tag(p.c.rxKey, p.msn, off) {
		p.c.integrity(p.msn, off, f, fx)
	}
}

func (p *Responder) res(i uint32) *resource { return &p.ring[i%uint32(len(p.ring))] }

// find returns the remembered resource whose range holds seq.
func (p *Responder) find(seq int64) (uint32, bool) {
	for i := p.head; i > 0 && p.head-i < uint32(len(p.ring)); {
		i--
		x := p.res(i)
		if seq >= x.first {
			return i, seq < x.end()
		}
	}
	return 0, false
}

// replayRead answers a READ again if it is the tail of the original: same
// end, address and length advanced together, the key still good (else error
// class D: silence).
func (p *Responder) replayRead(seq int64, f *wire.Frame) {
	i, ok := p.find(seq)
	if !ok || p.res(i).op != wire.ReadRequest {
		return
	}
	x := p.res(i)
	off := uint32(seq-x.first) << p.c.mtuShift
	n, key := uint32(f.B), uint32(f.B>>32)
	if f.A != x.va+uint64(off) || n != x.len-off {
		return
	}
	if n > 0 && !p.c.mem.Check(key, f.A, uint64(n), RemoteRead) {
		return
	}
	p.c.cnt.RxReadRequests++
	p.replay(i, seq)
}

// replay answers resource i again from seq. It pre-empts what is being sent of
// later resources; that starts over behind it, for the requester drops what
// comes past a gap. Later resources that were answered in full wait for their
// own duplicates.
func (p *Responder) replay(i uint32, seq int64) {
	x := p.res(i)
	if x.pend {
		p.endRun(x)
		p.begun(x, uint32(seq-x.first))
	} else {
		x.k = uint32(seq - x.first)
		p.mark(i)
	}
	x.ack = p.c.cfg.AckBeforeReplay
}

// mark queues resource i for an answer from its offset k on.
func (p *Responder) mark(i uint32) {
	if p.pending == 0 || i < p.low {
		if p.pending > 0 {
			y := p.res(p.low)
			p.endRun(y)
			p.begun(y, y.k0)
		}
		p.low = i
	}
	p.pending++
	x := p.res(i)
	x.pend = true
	p.begun(x, x.k)
}

// begun starts a run of x at offset k.
func (p *Responder) begun(x *resource, k uint32) { x.k0, x.k, x.again = k, k, k < x.sentK }

// endRun notes what a run has sent once more.
func (p *Responder) endRun(x *resource) {
	if !x.again {
		return
	}
	x.again = false
	base := int64(0)
	if n := uint32(len(p.ring)); p.head > n {
		base = p.res(p.head - n).first
	}
	p.passes = addPass(p.passes, x.first+int64(x.k0), x.first+int64(x.k), base)
}

// ResponseReady returns the earliest instant at which a response may leave:
// zero = now, Never = none is pending.
func (p *Responder) ResponseReady() clock.Time {
	if p.pending > 0 || p.ackSeq != unset && (p.nakAt == clock.Never || p.ackSeq < p.nakPSN) {
		return 0
	}
	return p.nakAt
}

// NextResponse dequeues the next response into f: in PSN order, a READ's
// packets one by one. False if none may leave at now.
func (p *Responder) NextResponse(now clock.Time, f *wire.Frame) bool {
	switch {
	case p.pending > 0:
		x := p.res(p.low)
		if x.ack {
			x.ack = false
			p.buildAck(f, x.first-1, x.at)
			return true
		}
		if p.ackSeq != unset && p.ackSeq < x.first+int64(x.k) {
			break
		}
		p.respond(x, f)
		return true
	case p.ackSeq == unset || p.nakAt != clock.Never && p.nakPSN <= p.ackSeq:
		if p.nakAt > now {
			return false
		}
		p.buildNak(f)
		return true
	}
	p.buildAck(f, p.ackSeq, p.ackAt)
	p.ackSeq = unset
	return true
}

func (p *Responder) buildAck(f *wire.Frame, seq int64, at clock.Time) {
	p.c.frame(f, wire.KindAck, wire.Acknowledge, p.wire(seq))
	f.SetAETH(p.syndrome(), p.MSN())
	p.acks++
	f.Len, f.A, f.Index = wire.AckFrame, uint64(at), p.acks
}

func (p *Responder) buildNak(f *wire.Frame) {
	p.buildAck(f, p.nakPSN, 0)
	p.acks--
	f.SetAETH(p.nakSyn, p.MSN())
	if p.nakSyn>>5 == 1 {
		p.rnrs++
		f.Index = p.rnrs
	} else {
		p.naks++
		f.Index = p.naks
	}
	p.nakAt = clock.Never
}

// syndrome is the positive AETH: credits, or code 31 for none.
func (p *Responder) syndrome() uint8 {
	if !p.c.cfg.Credits {
		return wire.SynUnlimited
	}
	return creditCode(uint32(max(p.rq, 0)))
}

// respond builds the next packet of resource x.
func (p *Responder) respond(x *resource, f *wire.Frame) {
	seq := x.first + int64(x.k)
	p.c.frame(f, wire.KindData, 0, p.wire(seq))
	f.SetAETH(p.syndrome(), p.MSN())
	f.Index, f.A = x.idx+x.k+1, uint64(x.at)
	if x.k < x.sentK {
		f.Iter = iteration(p.passes, seq)
		p.c.cnt.RetransmittedPackets++
	}
	if x.op == wire.ReadRequest {
		p.readPacket(x, f)
	} else {
		f.Kind, f.B, f.Len = wire.KindAck, x.orig, wire.AtomicAckFr
		f.SetOp(wire.AtomicAck, f.DstQPN())
	}
	x.k++
	if x.k >= x.sentK {
		p.endRun(x)
		x.sentK = x.k
	}
	if x.k == x.npkt {
		p.finished(x)
	}
}

// finished moves on to the next resource that waits for an answer.
func (p *Responder) finished(x *resource) {
	x.pend = false
	if p.pending--; p.pending == 0 {
		return
	}
	for p.low++; !p.res(p.low).pend; p.low++ {
	}
}

func (p *Responder) readPacket(x *resource, f *wire.Frame) {
	off, fresh := x.k<<p.c.mtuShift, x.k == x.k0
	n, op := uint32(p.c.cfg.MTU), wire.ReadRespMiddle
	if x.k == x.npkt-1 {
		n, op = x.len-off, wire.ReadRespLast
		if fresh {
			op = wire.ReadRespOnly
		}
	} else if fresh {
		op = wire.ReadRespFirst
	}
	if op == wire.ReadRespMiddle {
		f.A, f.D = 0, 0
	}
	f.SetOp(op, f.DstQPN())
	f.B, f.C = uint64(n), tag(p.c.rxKey^readSalt, x.msg, off)
	f.Len = uint16(wire.RoCELen(op, int(n)))
}
