package qp

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Deadline returns when OnTimeout must be called, Never if not at all.
func (r *Requester) Deadline() clock.Time { return min(r.ack, r.react) }

// OnTimeout runs what is due at now: a rewind that waited for the NIC's
// reaction, the local ACK timer.
func (r *Requester) OnTimeout(now clock.Time, fx *Effects) {
	if r.react <= now {
		r.react = clock.Never
		if r.reactTo != NoteImpliedNak || r.rdmar {
			r.resend(now, r.reactTo, fx)
		}
	}
	if r.ack <= now {
		r.expire(fx)
	}
}

// arm starts the ACK timer at from.
func (r *Requester) arm(from clock.Time) {
	cfg := r.c.cfg
	t := cfg.Timeout
	if r.c.alt && cfg.AltTimeout > 0 {
		t = cfg.AltTimeout
	}
	if t == 0 {
		r.ack = clock.Never
		return
	}
	if cfg.ADP != nil || cfg.WindowT4 {
		t = r.drawn(cfg, t)
	}
	r.ack, r.ackT = from.Add(t), t
}

// drawn is the timeout of a device that does not wait for t exactly.
func (r *Requester) drawn(cfg *Config, t clock.Duration) clock.Duration {
	if cfg.ADP != nil {
		t = r.adp.timeout(r, t)
	}
	if cfg.WindowT4 {
		r.adp.arms++
		x := clock.Mix(cfg.Seed^r.key, uint64(r.adp.arms), 0x4154)
		t += clock.Duration(x % uint64(3*t+1))
	}
	return t
}

// expire is the local ACK timeout: resend from una, one retry less. The timer
// is re-armed at the expiry instant.
func (r *Requester) expire(fx *Effects) {
	at := r.ack
	r.ack = clock.Never
	if r.una >= r.max {
		return
	}
	t := r.ackT
	if adp := r.c.cfg.ADP; adp != nil {
		if !r.adp.expired(adp, r.c.cfg, t) && !r.exhaust(at, fx) {
			return
		}
		r.c.cnt.RoceAdpRetransTo++
		r.c.cnt.RoceAdpRetrans++
	} else if !r.consume(at, fx) {
		return
	}
	r.c.cnt.LocalAckTimeoutErr++
	fx.note(Note{Kind: NoteTimeout, PSN: uint32(r.wire(r.una)), X: int64(r.retry), Y: int64(t)})
	r.react, r.sr = clock.Never, unset
	r.loss(fx)
	r.rewind(NoteTimeout, fx)
	r.probe, r.probed = r.c.cfg.ProbeOne, false
	r.arm(at)
}

// left is what the retry counter will be after one more retry; 0 also when
// none is left.
func (r *Requester) left() uint8 {
	if r.retry == 0 || r.c.cfg.RetryCnt == 7 && r.c.cfg.Retry7Infinite {
		return r.retry
	}
	return r.retry - 1
}

// consume takes one from the retry counter that timeouts, sequence NAKs and
// implied NAKs share; false = the request failed.
func (r *Requester) consume(now clock.Time, fx *Effects) bool {
	if r.c.cfg.RetryCnt == 7 && r.c.cfg.Retry7Infinite {
		return true
	}
	if r.retry == 0 {
		return r.exhaust(now, fx)
	}
	r.retry--
	return true
}

// exhaust is a spent budget: the other path if there is one, else the end.
func (r *Requester) exhaust(now clock.Time, fx *Effects) bool {
	if r.c.tryMigrate(fx) {
		r.retry = r.c.cfg.RetryCnt
		r.adp.init()
		return true
	}
	r.c.cnt.TransportRetriesExc++
	r.fail(now, RetryExcErr, fx)
	return false
}

// nak handles the NAK f, after what it acknowledges has been taken.
func (r *Requester) nak(now clock.Time, syn uint8, f *wire.Frame, fx *Effects) {
	cfg := r.c.cfg
	switch syn & 0x1f {
	case 0:
		reload := cfg.NakReload || cfg.Recovery == GoBack0
		left := r.left()
		if reload {
			left, r.retry = cfg.RetryCnt, cfg.RetryCnt
		}
		fx.note(Note{Kind: NoteNakRecv, PSN: uint32(f.PSN()), Reason: syn, X: int64(left)})
		if !reload && !r.consume(now, fx) {
			return
		}
		r.c.cnt.PacketSeqErr++
		r.loss(fx)
		r.schedule(now, cfg.ReactLatency, NoteNakRecv, fx)
	case 1:
		r.c.cnt.ReqRemoteInvalid++
		r.fail(now, RemInvReqErr, fx)
	case 2:
		r.c.cnt.ReqRemoteAccess++
		r.fail(now, RemAccessErr, fx)
	default:
		r.fail(now, RemOpErr, fx)
	}
}

// rnrNak handles receiver-not-ready at una: the ACK timer stops, the resend
// waits at least the responder's interval.
func (r *Requester) rnrNak(now clock.Time, code uint8, fx *Effects) {
	cfg := r.c.cfg
	if cfg.RNRRetry != 7 {
		if r.rnrLeft == 0 {
			r.c.cnt.RnrRetriesExc++
			r.fail(now, RNRRetryExcErr, fx)
			return
		}
		r.rnrLeft--
	}
	wait := RNRWait(code, cfg.RNRLinear)
	if r.early >= 0 {
		wait = r.early
	}
	r.c.cnt.RnrNakRetryErr++
	fx.note(Note{Kind: NoteRnrRecv, PSN: uint32(r.wire(r.una)), X: int64(wait), Y: int64(r.rnrLeft)})
	r.rewind(NoteRnrRecv, fx)
	r.rnr, r.ack, r.react, r.sr = now.Add(wait), clock.Never, clock.Never, unset
}

// impliedNak handles proof that the answer of the READ or atomic at una was
// lost; e is the response that proved it, gap a READ response past a gap. One
// restart an episode.
func (r *Requester) impliedNak(now clock.Time, e int64, gap bool, fx *Effects) {
	cfg := r.c.cfg
	if !cfg.ImpliedNAK || gap && cfg.ReadGapTimeout {
		return
	}
	fx.note(Note{Kind: NoteImpliedNak, PSN: uint32(r.wire(r.una)), X: int64(r.wire(e)), Y: int64(r.left())})
	if !r.consume(now, fx) {
		return
	}
	r.c.cnt.ImpliedNakSeqErr++
	r.rdmar = true
	r.loss(fx)
	r.schedule(now, cfg.ReadNakLatency, NoteImpliedNak, fx)
}

// schedule resends at once or after the NIC's latency.
func (r *Requester) schedule(now clock.Time, d clock.Duration, why NoteKind, fx *Effects) {
	if d == 0 {
		r.resend(now, why, fx)
		return
	}
	r.react, r.reactTo = now.Add(d), why
}

// resend starts recovery at una by the scheme in force.
func (r *Requester) resend(now clock.Time, why NoteKind, fx *Effects) {
	if r.una >= r.max || r.n == 0 {
		return
	}
	if why == NoteNakRecv && r.c.cfg.Recovery == SelectiveRepeat && r.nxt > r.una {
		r.cause, r.sr = why, r.una
		return
	}
	r.rewind(why, fx)
}

// rewind moves the send pointer back to una, to the message's start under
// go-back-0, to the READ's start if partial READs are off.
func (r *Requester) rewind(why NoteKind, fx *Effects) {
	if r.n == 0 {
		return
	}
	r.endPass()
	w := r.at(0)
	if r.c.cfg.Recovery == GoBack0 || w.verb == Read && !r.c.cfg.PartialRead {
		r.una = w.first
	}
	old := r.nxt
	r.nxt, r.cur, r.rd = r.una, 0, 0
	r.passFrom, r.passEnd = r.una, r.max
	r.cause, r.sampSeq = why, unset
	fx.note(Note{Kind: NoteRewind, PSN: uint32(r.wire(r.nxt)), X: int64(r.wire(old)), Y: int64(why)})
}

func (r *Requester) loss(fx *Effects) {
	fx.Loss = true
	if r.c.cfg.SlowRestart {
		r.c.cnt.RoceSlowRestart++
		fx.note(Note{Kind: NoteSlowRestart})
	}
}
