package qp

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// HandleResponse takes an ACK, NAK, RNR, READ response or atomic answer that
// arrived at now (transport §2.3, "Response handling").
func (r *Requester) HandleResponse(now clock.Time, f *wire.Frame, fx *Effects) {
	if st := r.c.state; st != StateRTS && st != StateSQD {
		return
	}
	e := r.una + int64(f.PSN().Diff(r.wire(r.una)))
	if e >= r.max || e < r.una {
		r.ghost(e, f, fx)
		return
	}
	if r.rdmar {
		if e != r.una {
			return // the answer to the restarted request comes first
		}
		r.rdmar = false
	}
	r.from = r.una
	switch op := f.Op(); {
	case op == wire.Acknowledge:
		r.acknowledge(now, e, f, fx)
	case op == wire.AtomicAck:
		r.atomicAck(now, e, f, fx)
	case op.IsReadResponse():
		r.readResponse(now, e, f, fx)
	}
}

// ghost is a response outside [una, max): stale or bogus. Only a repeated
// last acknowledgement still updates credits.
func (r *Requester) ghost(e int64, f *wire.Frame, fx *Effects) {
	if e == r.una-1 && f.Op() == wire.Acknowledge && f.Syndrome()>>5 == 0 {
		r.credit(f)
		return
	}
	r.c.cnt.IgnoredResponses++
	fx.note(Note{Kind: NoteIgnored, PSN: uint32(f.PSN()), X: int64(r.wire(r.una)), Op: uint8(f.Op())})
}

// acknowledge first takes what the AETH acknowledges (everything up to its
// PSN, or before it for a NAK), then acts on the syndrome.
func (r *Requester) acknowledge(now clock.Time, e int64, f *wire.Frame, fx *Effects) {
	syn := f.Syndrome()
	pos := syn>>5 == 0
	if !pos && syn>>5 != 1 && (syn < wire.SynNAKSequence || syn > wire.SynNAKOperation) {
		r.c.cnt.IgnoredResponses++ // reserved
		return
	}
	upTo := e
	if !pos {
		upTo = e - 1
	}
	lost := false
	if w := r.at(0); pos && w.verb < Read && e+1 < w.end() && r.c.cfg.Recovery != GoBack0 {
		r.una = e + 1 // inside the oldest request: what most are
	} else {
		lost = r.ackTo(now, upTo, pos, f, fx)
	}
	if pos && !lost {
		r.credit(f)
		r.sample(now, e, f, fx)
	}
	if !r.progress(now, fx) {
		return
	}
	switch {
	case lost:
		r.impliedNak(now, e, false, fx)
	case pos:
	case syn>>5 == 1:
		r.rnrNak(now, syn&31, fx)
	default:
		r.nak(now, syn, f, fx)
	}
}

// ackTo acknowledges SENDs and WRITEs up to and including e. True if it met a
// READ or atomic first: e then proves that its answer was lost.
func (r *Requester) ackTo(now clock.Time, e int64, named bool, f *wire.Frame, fx *Effects) bool {
	for r.una <= e && r.n > 0 {
		w := r.at(0)
		if w.verb >= Read {
			return true
		}
		end := w.end()
		if e+1 < end {
			r.una = max(r.una, r.partial(e+1))
			return false
		}
		r.una = end
		d := r.pop(now, Success, fx)
		if named && end == e+1 {
			d.RemoteAt = clock.Time(f.A)
		}
	}
	return false
}

// partial is how far an acknowledgement inside a message counts. Go-back-0
// knows only the pass it is in: what an earlier pass brought over is sent again.
func (r *Requester) partial(to int64) int64 {
	if r.c.cfg.Recovery == GoBack0 {
		return min(to, r.nxt)
	}
	return to
}

// reach acknowledges what lies before the READ or atomic that e belongs to.
// It returns the oldest READ or atomic, and whether e lies beyond it (lost);
// nil if e belongs to no such request.
func (r *Requester) reach(now clock.Time, e int64, fx *Effects) (w *wqe, lost bool) {
	i := uint32(0)
	for ; i < r.n; i++ {
		w = r.at(i)
		if w.verb >= Read || e < w.end() {
			break
		}
	}
	if i == r.n || w.verb < Read || i > 0 && r.c.cfg.ReadNoAck {
		return nil, false
	}
	if i > 0 {
		first, end := w.first, w.end()
		r.ackTo(now, first-1, false, nil, fx)
		if !r.progress(now, fx) {
			return nil, false
		}
		return r.at(0), e >= end
	}
	return w, e >= w.end()
}

func (r *Requester) readResponse(now clock.Time, e int64, f *wire.Frame, fx *Effects) {
	w, lost := r.reach(now, e, fx)
	if w == nil {
		return
	}
	if lost || e != r.una {
		r.impliedNak(now, e, true, fx)
		return
	}
	if w.verb != Read {
		return
	}
	k := uint32(e - w.first)
	off := k << r.c.mtuShift
	n, last := uint32(r.c.cfg.MTU), k == w.npkt-1
	if last {
		n = w.len - off
	}
	op := f.Op()
	if last != (op == wire.ReadRespLast || op == wire.ReadRespOnly) || uint32(f.PayloadLen()) != n {
		r.fail(now, LocLenErr, fx)
		return
	}
	if f.C != tag(r.key^readSalt, w.ssn, off) {
		r.c.integrity(w.ssn, off, f, fx)
	}
	r.una = e + 1
	if op != wire.ReadRespMiddle {
		r.credit(f)
	}
	r.sample(now, e, f, fx)
	if last {
		r.pop(now, Success, fx).RemoteAt = clock.Time(f.A)
	}
	r.progress(now, fx)
}

func (r *Requester) atomicAck(now clock.Time, e int64, f *wire.Frame, fx *Effects) {
	w, lost := r.reach(now, e, fx)
	if w == nil {
		return
	}
	if lost || e != r.una {
		r.impliedNak(now, e, true, fx)
		return
	}
	if w.verb < CmpSwap {
		return
	}
	r.una = e + 1
	r.credit(f)
	r.sample(now, e, f, fx)
	d := r.pop(now, Success, fx)
	d.Orig, d.RemoteAt = f.B, clock.Time(f.A)
	r.progress(now, fx)
}

// progress follows an advance of una since r.from: retry counters reload, the
// timer restarts. False if the QP failed meanwhile.
func (r *Requester) progress(now clock.Time, fx *Effects) bool {
	if r.una <= r.from {
		return true
	}
	cfg := r.c.cfg
	fx.Acked += r.una - r.from
	r.from = r.una
	if r.una > r.high {
		r.high = r.una
		r.retry, r.rnrLeft = cfg.RetryCnt, cfg.RNRRetry
		if cfg.ADP != nil {
			r.adp.progress(cfg.ADP)
		}
	}
	r.probe, r.probed = false, false
	if r.nxt < r.una {
		r.endPass()
		r.nxt, r.cur, r.passFrom = r.una, 0, r.una
	}
	if r.una >= r.max {
		r.ack = clock.Never
	} else if r.rnr <= now {
		r.arm(now)
	}
	if r.sampSeq < r.una {
		r.sampSeq = unset
	}
	if r.n > 0 && r.at(0).bad != Success {
		r.fail(now, r.at(0).bad, fx)
		return false
	}
	if r.c.state == StateSQD {
		r.checkDrained(fx)
	}
	return true
}

// credit takes the credits of an AETH (transport §2.2).
func (r *Requester) credit(f *wire.Frame) {
	if r.noCredit {
		return
	}
	code := f.Syndrome() & wire.SynACKMask
	if code == wire.SynUnlimited {
		r.noCredit = true
		return
	}
	base := r.ssnOf(f.MSN())
	r.lsn = max(r.lsn, base+uint64(creditTable[code]))
}

// ssnOf widens a 24-bit MSN to the count nearest to what is outstanding.
func (r *Requester) ssnOf(msn uint32) uint64 {
	oldest := r.ssn - uint64(r.n)
	d := int64(int32((msn-uint32(oldest))<<8) >> 8)
	return uint64(max(int64(oldest)+d, 0))
}

// sample reports the round trip of the timed packet if e answers it.
func (r *Requester) sample(now clock.Time, e int64, f *wire.Frame, fx *Effects) {
	if e != r.sampSeq {
		return
	}
	fx.RTT, fx.HasRTT, r.sampSeq = now.Sub(r.sampAt), true, unset
	if f.A != 0 && f.Op() != wire.ReadRespMiddle {
		fx.OneWay = clock.Time(f.A).Sub(r.sampAt)
	}
}

// integrity reports content that is not what (QP, message, offset) must be.
func (c *Context) integrity(msg uint64, off uint32, f *wire.Frame, fx *Effects) {
	c.cnt.IntegrityErrors++
	fx.note(Note{Kind: NoteIntegrity, PSN: uint32(f.PSN()), X: int64(msg), Y: int64(off), Op: uint8(f.Op())})
}
