package rnic

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// trySend dequeues on every port that is free and has something; a port that is
// busy gets a dequeue at its FreeAt.
func (r *RNIC) trySend(now clock.Time) {
	if !r.wants() {
		return
	}
	if len(r.ports) == 1 {
		if p := &r.port[0]; !p.queued {
			if p.queued = p.Busy(now); !p.queued {
				r.dequeue(now, 0, p)
			}
		}
		return
	}
	for i := range r.ports {
		p := &r.ports[i]
		if p.queued {
			continue
		}
		if p.Busy(now) {
			p.queued = r.wants()
			continue
		}
		r.dequeue(now, i, p)
	}
}

// dequeueDue serves the ports whose dequeue is due.
func (r *RNIC) dequeueDue(now clock.Time) {
	if len(r.ports) == 1 { // it is due, or nobody had called
		r.port[0].queued = false
		r.dequeue(now, 0, &r.port[0])
		return
	}
	for i := range r.ports {
		if p := &r.ports[i]; p.queued && p.FreeAt() <= now {
			p.queued = false
			r.dequeue(now, i, p)
		}
	}
}

// wants reports whether any frame may be waiting.
func (r *RNIC) wants() bool { return r.data.n|r.acks.n != 0 || r.cnpN != 0 }

// dequeue sends one frame if there is one and plans the next dequeue.
func (r *RNIC) dequeue(now clock.Time, i int, p *txPort) {
	var f wire.Frame
	if !r.pick(now, i, p, &f) {
		return
	}
	r.emit(now, i, p, &f)
	if r.wants() {
		p.queued = true
	}
}

// pick takes the next frame in the order CNP, ACK or NAK, data round robin
// (model-rules, "Frames").
func (r *RNIC) pick(now clock.Time, i int, p *txPort, f *wire.Frame) bool {
	if r.cnpN > 0 && r.pickCNP(now, p, f) {
		return true
	}
	for n := r.acks.n; n > 0; n-- {
		id := r.acks.pop()
		q := &r.pairs[id]
		r.last = id
		if r.pauses && p.holds(now, q.prio) || len(r.ports) > 1 && q.egress() != i {
			r.acks.push(id)
			continue
		}
		q.inAck = false
		if !q.q.Resp.NextControl(now, f) {
			r.enlist(now, id, q)
			continue
		}
		if q.asks || q.waits || !q.q.Resp.OwesNothing() {
			r.refresh(now, id, q)
		}
		return true
	}
	for n := r.data.n; n > 0; n-- {
		if r.turn(now, i, p, f) {
			return true
		}
	}
	return false
}

// pickCNP takes the first CNP whose priority may send.
func (r *RNIC) pickCNP(now clock.Time, p *txPort, f *wire.Frame) bool {
	for c := range r.cnps {
		if !p.holds(now, r.nic.PrioOf[r.cnps[c].DSCP()]) {
			*f = r.cnps[c]
			r.cnps = append(r.cnps[:c], r.cnps[c+1:]...)
			r.cnpN--
			return true
		}
	}
	return false
}

// holds is Paused, asked of the mask first, which is near.
func (p *txPort) holds(now clock.Time, prio uint8) bool {
	return p.PausedMask(now)>>prio&1 != 0
}

// turn gives the sender at the head of the data ring its turn.
func (r *RNIC) turn(now clock.Time, i int, p *txPort, f *wire.Frame) bool {
	id := r.data.pop()
	n := int32(uint32(id) / senders)
	what := id - n*senders
	r.last = n
	if what > sendResp {
		return r.otherTurn(now, i, p, what, n, f)
	}
	q := &r.pairs[n]
	if r.pauses && p.holds(now, q.prio) {
		r.held[q.prio].push(id)
		return false
	}
	if len(r.ports) > 1 && q.egress() != i {
		r.data.push(id)
		return false
	}
	q.inRing[what] = false
	if q.nextSend(now) > now {
		r.refresh(now, n, q)
		return false
	}
	var ok bool
	if what == sendReq {
		ok = q.q.Req.NextPacket(now, f)
	} else {
		ok = q.q.Resp.ResponseReady() <= now && q.q.Resp.NextIsData() && q.q.Resp.NextResponse(now, f)
	}
	if ok {
		q.onSend(now, int64(f.Len))
	}
	r.refresh(now, n, q)
	return ok
}

// otherTurn is turn for what is not RDMA.
func (r *RNIC) otherTurn(now clock.Time, i int, p *txPort, what, n int32, f *wire.Frame) bool {
	switch what {
	case sendUDP:
		return r.datagramTurn(now, i, p, n, f)
	case sendTCP:
		return r.streamTurn(now, i, p, n, f)
	}
	return r.sinkTurn(now, i, p, n, f)
}

// altBit marks the addresses of frames that travel between second ports of
// RNICs (alternate path); switches route them by AltRoute.
const altBit = 1 << 23

// emit puts a dequeued frame on the cable.
func (r *RNIC) emit(now clock.Time, i int, p *txPort, f *wire.Frame) {
	p.Transmit(now, f)
	r.lastWork = now
	if f.Kind > wire.KindCNP {
		r.st.txOther.Add(int(f.Len))
	} else if f.Iter > 1 {
		r.retransmitted(now, f)
	}
	r.chain.Mix(now, uint64(f.Op())<<56|uint64(f.DstQPN())<<32|uint64(f.PSN()), uint64(f.At)^uint64(f.Iter)<<56)
	if i == 1 {
		f.Src, f.Dst = f.Src|altBit, f.Dst|altBit
	}
	if r.faults.wire {
		r.emitFaulty(now, i, p, f)
		return
	}
	r.moved.sent[i].Add(int(f.Len))
	r.out.Send(p.num, f)
}

// emitFaulty lets the port's faults have the frame. They take it as an
// interface: on the stack it would become an object a frame.
func (r *RNIC) emitFaulty(now clock.Time, i int, p *txPort, f *wire.Frame) {
	was := r.moved.sent[i].Bytes
	r.frame = *f
	r.faults.send(r, now, i, p, &r.frame)
	r.st.cut += uint64(f.Len) - (r.moved.sent[i].Bytes - was)
}

// pausesEnded puts held senders back on the ring when their priority's pause
// has run out.
func (r *RNIC) pausesEnded(now clock.Time) {
	for i := range r.ports {
		p := &r.ports[i]
		for prio := range 8 {
			if u := p.PausedUntil(prio); u != 0 && u <= now {
				r.resumed(u, u, p, prio)
			}
		}
	}
	r.trySend(now)
}

// resumed books the end of a pause at t, which by reception ended at counted,
// and releases what it held.
func (r *RNIC) resumed(t, counted clock.Time, p *txPort, prio int) {
	p.Pause(t, prio, 0)
	if s := p.pausedSince[prio]; s != 0 {
		r.st.rxPauseTime[prio] += counted.Sub(s)
		p.pausedSince[prio] = 0
		r.notePause(t, p, prio, false)
	}
	for r.held[prio].n > 0 {
		r.data.push(r.held[prio].pop())
	}
	r.calm()
}

// calm forgets that there were pauses once none is left.
func (r *RNIC) calm() {
	for i := range r.ports {
		p := &r.ports[i]
		for prio := range 8 {
			if p.PausedUntil(prio) != 0 || p.pausedSince[prio] != 0 {
				return
			}
		}
	}
	r.pauses = r.anyHeld()
}
