package qp

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// OwesAck reports that an ACK is what is due, now, and nothing else; OwesNothing
// that nothing is.
func (p *Responder) OwesAck() bool {
	return p.pending == 0 && p.ackSeq != unset && p.nakAt == clock.Never
}

func (p *Responder) OwesNothing() bool {
	return p.pending == 0 && p.ackSeq == unset && p.nakAt == clock.Never
}

// NextControl is NextResponse for everything but READ responses: false if
// nothing may leave at now, or such a response comes first.
func (p *Responder) NextControl(now clock.Time, f *wire.Frame) bool {
	if p.OwesAck() { // what most are
		p.buildAck(f, p.ackSeq, p.ackAt)
		p.ackSeq = unset
		return true
	}
	return p.ResponseReady() <= now && !p.NextIsData() && p.NextResponse(now, f)
}

// NextIsData reports whether the next response is a READ response packet,
// which takes its turn among data; everything else is an acknowledgement. It
// is meaningful when ResponseReady says that something is pending.
func (p *Responder) NextIsData() bool {
	if p.pending == 0 {
		return false
	}
	x := p.res(p.low)
	return x.op == wire.ReadRequest && !x.ack && (p.ackSeq == unset || p.ackSeq >= x.first+int64(x.k))
}

// DoneOfCurrent returns how many bytes of the oldest request are acknowledged.
func (r *Requester) DoneOfCurrent() int64 {
	if r.n == 0 {
		return 0
	}
	return max(0, r.una-r.at(0).first) << r.c.mtuShift
}
