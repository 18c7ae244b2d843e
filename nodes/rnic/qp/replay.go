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
		p.ackSeq, p.ackAt = p.epsn-1, f.At.Add(-p.c.cfg.IngressHalf)
	default:
		if p.open != openNone && seq >= p.first {
			p.verifyDup(seq, f, fx)
		}
	}
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

// replay answers resource i again from seq. One that still waits for its turn
// is left to it; an earlier one pre-empts what is being sent, and what follows
// is sent after it.
func (p *Responder) replay(i uint32, seq int64) {
	if i > p.tail {
		return
	}
	if p.replayFrom != unset {
		p.addPass(p.replayFrom, p.cur)
	}
	for j := i; j < p.head; j++ {
		p.res(j).fresh = true
	}
	p.tail, p.cur, p.replayFrom = i, seq, unset
	if seq < p.sent {
		p.replayFrom = seq
	}
	p.preAck = p.c.cfg.AckBeforeReplay
}

// addPass notes that the responses [from, to) have been sent once more.
func (p *Responder) addPass(from, to int64) {
	base := int64(0)
	if n := uint32(len(p.ring)); p.head > n {
		base = p.res(p.head - n).first
	}
	p.passes = addPass(p.passes, from, to, base)
}

// ResponseReady returns the earliest instant at which a response may leave:
// zero = now, Never = none is pending.
func (p *Responder) ResponseReady() clock.Time {
	if p.tail != p.head || p.ackSeq != unset && (p.nakAt == clock.Never || p.ackSeq < p.nakPSN) {
		return 0
	}
	return p.nakAt
}

// NextResponse dequeues the next response into f: in PSN order, a READ's
// packets one by one. False if none may leave at now.
func (p *Responder) NextResponse(now clock.Time, f *wire.Frame) bool {
	switch {
	case p.tail != p.head:
		x := p.res(p.tail)
		if p.preAck {
			p.preAck = false
			p.buildAck(f, x.first-1, x.at)
			return true
		}
		if p.ackSeq != unset && p.ackSeq < p.cur {
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
	*f = p.c.tmpl
	f.SetOp(wire.Acknowledge, f.DstQPN())
	f.SetPSN(p.wire(seq))
	f.SetAETH(p.syndrome(), p.MSN())
	p.acks++
	f.Kind, f.Len, f.A, f.Index = wire.KindAck, wire.AckFrame, uint64(at), p.acks
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
	*f = p.c.tmpl
	k := uint32(p.cur - x.first)
	f.SetPSN(p.wire(p.cur))
	f.SetAETH(p.syndrome(), p.MSN())
	f.Index, f.A = x.idx+k+1, uint64(x.at)
	if p.cur < p.sent {
		f.Iter = iteration(p.passes, p.cur)
		p.c.cnt.RetransmittedPackets++
	}
	if x.op == wire.ReadRequest {
		p.readPacket(x, k, f)
	} else {
		f.Kind, f.B, f.Len = wire.KindAck, x.orig, wire.AtomicAckFr
		f.SetOp(wire.AtomicAck, f.DstQPN())
	}
	p.cur++
	p.sent = max(p.sent, p.cur)
	if p.cur == x.end() {
		if p.tail++; p.tail != p.head {
			p.cur = p.res(p.tail).first
		}
	}
	if p.replayFrom != unset && p.cur >= p.sent {
		p.addPass(p.replayFrom, p.sent)
		p.replayFrom = unset
	}
}

func (p *Responder) readPacket(x *resource, k uint32, f *wire.Frame) {
	off := k << p.c.mtuShift
	n, op := uint32(p.c.cfg.MTU), wire.ReadRespMiddle
	if k == x.npkt-1 {
		n, op = x.len-off, wire.ReadRespLast
		if x.fresh {
			op = wire.ReadRespOnly
		}
	} else if x.fresh {
		op = wire.ReadRespFirst
	}
	x.fresh = false
	if op == wire.ReadRespMiddle {
		f.A, f.D = 0, 0
	}
	f.Kind = wire.KindData
	f.SetOp(op, f.DstQPN())
	f.B, f.C = uint64(n), tag(p.c.rxKey^readSalt, x.msg, off)
	f.Len = uint16(wire.RoCELen(op, int(n)))
}
