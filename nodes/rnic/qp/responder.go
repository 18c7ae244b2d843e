package qp

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// nakState says why the responder is silent to packets beyond ePSN.
type nakState uint8

const (
	nakNone nakState = iota
	nakSeq
	nakRNR
	nakRNRSeq // RNR, and a sequence NAK behind it (OOSBehindRNR)
)

// openKind is the verb of the message being received.
type openKind uint8

const (
	openNone openKind = iota
	openSend
	openWrite
)

// resource remembers a READ or atomic so that it can be answered again.
type resource struct {
	first int64
	va    uint64
	orig  uint64
	msg   uint64
	at    clock.Time // arrival of the request's last bit
	len   uint32
	rkey  uint32
	npkt  uint32
	idx   uint32
	k0    uint32 // offset at which the run under way began
	k     uint32 // next offset to send
	sentK uint32 // highest offset sent + 1
	op    wire.Opcode
	pend  bool // a run is under way or waits for its turn
	again bool // the run sends again what was sent before
	ack   bool // plain ACK ahead of the run
}

func (x *resource) end() int64 { return x.first + int64(x.npkt) }

// repost is a batch of receives that the application posts at an instant.
type repost struct {
	at clock.Time
	n  int32
}

// Shortage bits are the responder's fault injectors: what makes it answer RNR.
type Shortage uint8

// Shortages.
const (
	RQEmpty    Shortage = 1 << iota // no receive, whatever is posted
	RQPause                         // consumed receives are not reposted
	MRNotReady                      // page fault: WRITE, READ and atomics get RNR
	NoResource                      // any new request gets RNR
)

// Responder is the receiving half of a QP. Sequence numbers are counted in 64
// bits from the initial PSN, as in Requester.
type Responder struct {
	// Each packet received or answered: a cache line and a half.
	c      *QP
	epsn   int64
	msn    uint64 // messages completed; the AETH's MSN is its low 24 bits
	ackSeq int64  // pending positive ACK, unset = none
	ackAt  clock.Time
	nakAt  clock.Time // pending NAK or RNR leaves then, Never = none
	psn0   wire.PSN
	off    uint32 // bytes of the open message placed
	dlen   uint32 // open WRITE
	acks   uint32 // ordinals of what was sent

	pending uint32 // resources to be answered
	robN    int32  // packets in rob
	open    openKind
	nak     nakState
	nakSyn  uint8
	short   Shortage
	rkey    uint32
	first   int64  // sequence number of the open message's first packet
	va      uint64 // open WRITE

	rq      int32 // receives posted
	rqDone  int32 // consumed, waiting for their batch
	reposts []repost

	nakPSN   int64
	rnrUntil clock.Time
	naks     uint32
	rnrs     uint32
	rqHead   int32 // first of reposts

	head    uint32 // resources accepted
	low     uint32 // the first of those to be answered
	respIdx uint32 // psn_index of the data stream
	ring    []resource
	passes  []pass

	rob []wire.Frame // selective repeat: packets beyond the gap, by sequence number
}

func (p *Responder) init(c *QP, psn0 wire.PSN) {
	*p = Responder{c: c, psn0: psn0, rq: int32(c.cfg.RecvQueue), ackSeq: unset, nakAt: clock.Never}
}

func (p *Responder) wire(seq int64) wire.PSN { return p.psn0.Add(int(seq & wire.PSNMask)) }

// EPSN returns the expected PSN, MSN the message count, Posted the receives
// that are posted.
func (p *Responder) EPSN() wire.PSN { return p.wire(p.epsn) }
func (p *Responder) MSN() uint32    { return uint32(p.msn) & wire.PSNMask }
func (p *Responder) Posted() int    { return int(p.rq) }

// SetShortage sets the fault injectors in force.
func (p *Responder) SetShortage(s Shortage) { p.short = s }

// PostRecv posts n more receives.
func (p *Responder) PostRecv(n int) { p.rq += int32(n) }

// HandleRequest takes a request packet that arrived at now (transport §2.4).
func (p *Responder) HandleRequest(now clock.Time, f *wire.Frame, fx *Effects) {
	p.c.serves = true
	if st := p.c.state; st < StateRTR || st == StateErr {
		return
	}
	switch d := f.PSN().Diff(p.wire(p.epsn)); {
	case d == 0:
		p.expected(now, f, fx)
		if p.robN > 0 {
			p.drainReorder(now, fx)
		}
	case d > 0:
		p.outOfSequence(now, int64(d), f, fx)
	default:
		p.duplicate(now, p.epsn+int64(d), f, fx)
	}
}

// outOfSequence is a packet beyond a gap: one NAK an episode, then silence.
func (p *Responder) outOfSequence(now clock.Time, d int64, f *wire.Frame, fx *Effects) {
	if p.c.cfg.Recovery == SelectiveRepeat && p.nak <= nakSeq {
		p.hold(p.epsn+d, f, fx)
	}
	switch {
	case p.nak == nakNone:
		p.nak = nakSeq
	case p.nak == nakRNR && p.c.cfg.OOSBehindRNR:
		p.nak = nakRNRSeq
	default:
		return
	}
	p.seqNak(now, f, fx)
}

// seqNak queues the sequence NAK for ePSN.
func (p *Responder) seqNak(now clock.Time, f *wire.Frame, fx *Effects) {
	p.c.cnt.OutOfSequence++
	fx.note(Note{Kind: NoteOutOfSeq, PSN: uint32(p.wire(p.epsn)), X: int64(f.PSN()), Op: uint8(f.Op()), Iter: f.Iter})
	p.queueNak(now.Add(p.c.cfg.NakLatency), wire.SynNAKSequence, fx)
	fx.CNP = fx.CNP || p.c.cfg.NackTriggersCNP
}

func (p *Responder) queueNak(at clock.Time, syn uint8, fx *Effects) {
	p.nakAt, p.nakPSN, p.nakSyn = at, p.epsn, syn
	p.c.serves = true
	if syn>>5 != 1 {
		fx.note(Note{Kind: NoteNakSent, PSN: uint32(p.wire(p.epsn)), Reason: syn})
	}
}

// expected is the packet with the expected PSN. The order of checks is
// transport §2.4, item 3.
func (p *Responder) expected(now clock.Time, f *wire.Frame, fx *Effects) {
	if p.nak != nakNone {
		if p.nak != nakSeq && now < p.rnrUntil && p.early(now, fx) {
			return
		}
		p.nak = nakNone
	}
	switch op := f.Op(); {
	case op == wire.WriteMiddle && p.inside(f):
		p.place(now, 1<<p.c.mtuShift, f, fx)
		p.accept(now, 1, f)
	case op <= wire.SendOnlyImm, op == wire.SendLastInv, op == wire.SendOnlyInv:
		p.send(now, f, fx)
	case op <= wire.WriteOnlyImm:
		p.write(now, f, fx)
	case op == wire.ReadRequest:
		p.read(now, f, fx)
	case op == wire.CompareSwap, op == wire.FetchAdd:
		p.atomic(now, f, fx)
	default:
		p.invalid(now, fx)
	}
}

// early handles a resend inside the RNR interval; true = done with it.
func (p *Responder) early(now clock.Time, fx *Effects) bool {
	switch p.c.cfg.RNREarly {
	case RNREarlyDrop:
		return true
	case RNREarlyRenak:
		p.notReady(now, fx)
		return true
	}
	return false
}

// notReady answers RNR for ePSN; later packets meet silence until it comes.
func (p *Responder) notReady(now clock.Time, fx *Effects) {
	code := p.c.cfg.MinRNRTimer
	p.nak = nakRNR
	p.c.cnt.OutOfBuffer++
	fx.note(Note{Kind: NoteRnrSent, PSN: uint32(p.wire(p.epsn)), X: int64(code)})
	p.rnrUntil = now.Add(RNRWait(code, p.c.cfg.RNRLinear))
	p.queueNak(now, wire.SynRNR|code&31, fx)
}

// opFlags describe request opcodes to the responder.
const (
	oFirst uint8 = 1 << iota
	oLast
	oImm
	oInv
)

var opFlag = [32]uint8{
	wire.SendFirst: oFirst, wire.SendLast: oLast, wire.SendLastImm: oLast | oImm, wire.SendOnly: oFirst | oLast,
	wire.SendOnlyImm: oFirst | oLast | oImm, wire.SendLastInv: oLast | oInv, wire.SendOnlyInv: oFirst | oLast | oInv,
	wire.WriteFirst: oFirst, wire.WriteLast: oLast, wire.WriteLastImm: oLast | oImm, wire.WriteOnly: oFirst | oLast,
	wire.WriteOnlyImm: oFirst | oLast | oImm,
}

// flush ends the posted receives of a QP in error.
func (p *Responder) flush(fx *Effects) {
	p.c.cnt.RespCQEFlushError += uint64(max(p.rq, 0))
	p.rq, p.rqDone, p.reposts, p.rqHead = 0, 0, nil, 0
	p.rob, p.robN, p.ackSeq, p.pending = nil, 0, unset, 0
	for i := range p.ring {
		p.ring[i].pend = false
	}
	if p.nakSyn <= wire.SynNAKSequence {
		p.nakAt = clock.Never // an error NAK still leaves, others are void
	}
}
