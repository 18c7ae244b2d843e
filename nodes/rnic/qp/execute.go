package qp

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// sequence checks FIRST → MIDDLE* → LAST of one verb and the payload's length;
// false = NAK invalid request (transport §1.8, §2.4).
func (p *Responder) sequence(kind openKind, fl uint8, n uint32, f *wire.Frame) bool {
	if fl&oFirst != 0 {
		if p.open != openNone {
			return false
		}
	} else if p.open != kind {
		return false
	}
	mtu := uint32(p.c.cfg.MTU)
	switch {
	case fl&oLast == 0:
		if n != mtu {
			return false
		}
	case n > mtu, n == 0 && fl&oFirst == 0:
		return false
	}
	return true
}

func (p *Responder) send(now clock.Time, f *wire.Frame, fx *Effects) {
	fl, n := opFlag[f.Op()&31], uint32(f.PayloadLen())
	if !p.sequence(openSend, fl, n, f) || n > MaxMessage-p.off {
		p.invalid(now, fx)
		return
	}
	if fl&oFirst != 0 {
		if !p.takeRecv(now) {
			p.notReady(now, fx)
			return
		}
		p.begin(openSend)
	}
	if fl&oInv != 0 && !p.c.mem.Invalidate(f.D) { // class J
		p.fault(now, LocAccessErr, fx)
		return
	}
	p.place(now, n, f, fx)
	if fl&oLast != 0 {
		p.finish(now, p.sendVerb(fl), fl, f, fx)
	}
	p.accept(now, 1, f)
}

func (p *Responder) sendVerb(fl uint8) Verb {
	switch {
	case fl&oImm != 0:
		return SendImm
	case fl&oInv != 0:
		return SendInv
	}
	return Send
}

func (p *Responder) write(now clock.Time, f *wire.Frame, fx *Effects) {
	fl, n := opFlag[f.Op()&31], uint32(f.PayloadLen())
	dlen, off := p.dlen, p.off
	if fl&oFirst != 0 {
		dlen, off = uint32(f.B), 0
	}
	if !p.sequence(openWrite, fl, n, f) || dlen > MaxMessage ||
		(fl&oLast != 0) != (uint64(off)+uint64(n) == uint64(dlen)) || uint64(off)+uint64(n) > uint64(dlen) {
		p.invalid(now, fx)
		return
	}
	if p.short&(MRNotReady|NoResource) != 0 && fl&oFirst != 0 || fl&oImm != 0 && !p.takeRecv(now) {
		p.notReady(now, fx)
		return
	}
	if fl&oFirst != 0 {
		key := uint32(f.B >> 32)
		if dlen > 0 && !p.c.mem.Check(key, f.A, uint64(dlen), RemoteWrite) {
			p.accessError(now, fx)
			return
		}
		p.begin(openWrite)
		p.va, p.rkey, p.dlen = f.A, key, dlen
		p.c.cnt.RxWriteRequests++
	}
	p.place(now, n, f, fx)
	if fl&oLast != 0 {
		v := Write
		if fl&oImm != 0 {
			v = WriteImm
		}
		p.finish(now, v, fl, f, fx)
	}
	p.accept(now, 1, f)
}

// inside reports whether a WRITE's MIDDLE packet is what most are: full, and
// not the one that should have been the last. What write then checks besides
// holds for every MIDDLE.
func (p *Responder) inside(f *wire.Frame) bool {
	n := uint32(1) << p.c.mtuShift
	return p.open == openWrite && uint32(f.Len) == wire.RoCEBase+n && f.B&3 == 0 && uint64(p.off)+uint64(n) < uint64(p.dlen)
}

func (p *Responder) begin(k openKind) { p.open, p.off, p.first = k, 0, p.epsn }

// place verifies that the payload is the content of its place in the message.
func (p *Responder) place(now clock.Time, n uint32, f *wire.Frame, fx *Effects) {
	if f.C != tag(p.c.rxKey, p.msn, p.off) {
		p.c.integrity(p.msn, p.off, f, fx)
	}
	p.off += n
}

// finish completes the open message.
func (p *Responder) finish(now clock.Time, v Verb, fl uint8, f *wire.Frame, fx *Effects) {
	cqe := v != Write
	rc := Recv{Bytes: p.off, SSN: uint32(p.msn), Verb: v, CQE: cqe, HasImm: fl&oImm != 0}
	if fl&(oImm|oInv) != 0 {
		rc.Imm = f.D
	}
	fx.recv(rc)
	p.open, p.off = openNone, 0
	p.msn++
	if cqe {
		p.consumed(now)
	}
}

// accept moves ePSN past n PSNs and queues the ACK if it was asked for.
func (p *Responder) accept(now clock.Time, n int64, f *wire.Frame) {
	p.epsn += n
	if f.Has(wire.FlagAckReq) {
		p.ackSeq, p.ackAt = p.epsn-1, f.At-clock.Time(p.c.cfg.IngressHalf)
	}
}

// spare reports whether the oldest responder resource may be taken anew: when
// its answer was sent, once. It may be waiting to be sent again, for a duplicate
// that came late; a requester that honours max_rd_atomic and asks for more has
// had the answer by now (transport §2.6).
func (p *Responder) spare() bool {
	if p.ring == nil {
		return p.c.cfg.MaxDestRdAtomic > 0
	}
	x := p.res(p.head)
	return !x.pend || x.sentK == x.npkt
}

func (p *Responder) read(now clock.Time, f *wire.Frame, fx *Effects) {
	n, key := uint64(uint32(f.B)), uint32(f.B>>32)
	if p.open != openNone || n > MaxMessage || !p.spare() {
		p.invalid(now, fx)
		return
	}
	if p.short&(MRNotReady|NoResource) != 0 {
		p.notReady(now, fx)
		return
	}
	if n > 0 && !p.c.mem.Check(key, f.A, n, RemoteRead) {
		p.accessError(now, fx)
		return
	}
	p.c.cnt.RxReadRequests++
	if f.C != tag(p.c.rxKey, p.msn, 0) {
		p.c.integrity(p.msn, 0, f, fx)
	}
	mtu := uint64(p.c.cfg.MTU)
	pk := max(1, (n+mtu-1)/mtu)
	p.remember(resource{first: p.epsn, va: f.A, msg: p.msn, len: uint32(n), rkey: key, npkt: uint32(pk), op: wire.ReadRequest}, f)
	fx.recv(Recv{Bytes: uint32(n), SSN: uint32(p.msn), Verb: Read})
	p.epsn += int64(pk)
	p.msn++
}

func (p *Responder) atomic(now clock.Time, f *wire.Frame, fx *Effects) {
	if p.open != openNone || f.A&7 != 0 || !p.spare() {
		p.invalid(now, fx)
		return
	}
	if p.short&(MRNotReady|NoResource) != 0 {
		p.notReady(now, fx)
		return
	}
	if !p.c.mem.Check(f.D, f.A, 8, RemoteAtomic) {
		p.accessError(now, fx)
		return
	}
	p.c.cnt.RxAtomicRequests++
	old := p.c.mem.Word(f.A)
	v := CmpSwap
	switch {
	case f.Op() == wire.FetchAdd:
		v = FetchAdd
		p.c.mem.SetWord(f.A, old+f.B)
	case old == f.C:
		p.c.mem.SetWord(f.A, f.B)
	}
	p.remember(resource{first: p.epsn, va: f.A, msg: p.msn, orig: old, npkt: 1, op: f.Op()}, f)
	fx.recv(Recv{Bytes: 8, SSN: uint32(p.msn), Verb: v})
	p.epsn++
	p.msn++
}

// remember puts a request among the responder resources, over the oldest, whose
// repeated answer ends where it is.
func (p *Responder) remember(x resource, f *wire.Frame) {
	if p.ring == nil {
		p.ring = make([]resource, p.c.cfg.MaxDestRdAtomic)
	}
	if old := p.res(p.head); old.pend {
		p.endRun(old)
		p.finished(old)
	}
	x.at = f.At.Add(-p.c.cfg.IngressHalf)
	x.idx = p.respIdx
	p.respIdx += x.npkt
	*p.res(p.head) = x
	p.mark(p.head)
	p.head++
}

// invalid is error class C: NAK invalid request, QP to ERR.
func (p *Responder) invalid(now clock.Time, fx *Effects) {
	p.c.cnt.RespRemoteInvalid++
	p.nakError(now, wire.SynNAKInvalid, RemInvReqErr, fx)
}

// accessError is error class C: NAK remote access error, QP to ERR.
func (p *Responder) accessError(now clock.Time, fx *Effects) {
	p.c.cnt.RespRemoteAccess++
	p.nakError(now, wire.SynNAKAccess, RemAccessErr, fx)
}

func (p *Responder) nakError(now clock.Time, syn uint8, st Status, fx *Effects) {
	p.queueNak(now, syn, fx)
	p.fault(now, st, fx)
}

// fault ends the QP; an open receive completes with st.
func (p *Responder) fault(now clock.Time, st Status, fx *Effects) {
	if p.open == openSend {
		p.c.cnt.RespCQEError++
		fx.recv(Recv{Bytes: p.off, SSN: uint32(p.msn), Verb: Send, Status: st, CQE: true})
	}
	p.open = openNone
	p.c.toErr(now, st, fx)
}

// LocalFault is error class A: a malformed receive or a local fault. The peer
// gets NAK remote operational error.
func (p *Responder) LocalFault(now clock.Time, fx *Effects) {
	p.nakError(now, wire.SynNAKOperation, LocQPOpErr, fx)
}

// takeRecv consumes a receive if one is posted.
func (p *Responder) takeRecv(now clock.Time) bool {
	p.settle(now)
	if p.rq <= 0 || p.short&(RQEmpty|NoResource) != 0 {
		return false
	}
	p.rq--
	return true
}

// consumed is the application's side: a finished receive is reposted after
// RecvRepost, in batches of RecvBatch.
func (p *Responder) consumed(now clock.Time) {
	cfg := p.c.cfg
	if cfg.RecvRepost == clock.Duration(clock.Never) {
		return
	}
	p.rqDone++
	if p.rqDone < int32(cfg.RecvBatch) || p.short&RQPause != 0 {
		return
	}
	n := p.rqDone
	p.rqDone = 0
	if cfg.RecvRepost == 0 {
		p.rq += n
		return
	}
	if p.rqHead > 0 && len(p.reposts) == cap(p.reposts) {
		k := copy(p.reposts, p.reposts[p.rqHead:])
		p.reposts, p.rqHead = p.reposts[:k], 0
	}
	p.reposts = append(p.reposts, repost{now.Add(cfg.RecvRepost), n})
}

// settle posts the receives that are due; what a pause held back comes with
// the first call after it.
func (p *Responder) settle(now clock.Time) {
	if p.short&RQPause != 0 {
		return
	}
	if b := int32(p.c.cfg.RecvBatch); p.rqDone >= b && b > 0 {
		p.rq += p.rqDone
		p.rqDone = 0
	}
	for int(p.rqHead) < len(p.reposts) && p.reposts[p.rqHead].at <= now {
		p.rq += p.reposts[p.rqHead].n
		p.rqHead++
	}
	if int(p.rqHead) == len(p.reposts) {
		p.reposts, p.rqHead = p.reposts[:0], 0
	}
}
