package qp

import "github.com/rocemu/rocemu/nodes/wire"

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
