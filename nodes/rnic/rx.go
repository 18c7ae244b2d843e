package rnic

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
)

// arrive takes a frame off the cable of port num.
func (r *RNIC) arrive(now clock.Time, num int, f *wire.Frame) {
	r.events++
	i := 0
	if len(r.ports) > 1 {
		i = r.portIndex(num)
	}
	pause := f.Kind >= wire.KindPFC && f.Kind <= wire.KindPause
	if r.faults.wire && !r.faults.receive(r, now, i, f) {
		if !pause {
			r.lastWork = now // its loss is the end of a frame, as its arrival is
		}
		return
	}
	if pause {
		r.pauseFrame(now, i, f)
		return
	}
	r.lastWork = now
	if f.Dst == r.k && f.Flags()&badFlags == 0 && r.faults.rx == nil {
		r.deliver(now, i, f)
		return
	}
	r.accept(now, i, f)
}

// badFlags are the damages that the RNIC drops a frame for.
const badFlags = wire.FlagBadFCS | wire.FlagBadHdr | wire.FlagBadICRC

// accept checks a frame and gives it to the receive buffer or the transport.
func (r *RNIC) accept(now clock.Time, i int, f *wire.Frame) {
	if f.Dst == r.k|altBit {
		f.Src, f.Dst = f.Src&^altBit, r.k
	}
	if f.Flags()&badFlags != 0 || f.Dst != r.k {
		r.refuse(now, i, f)
		return
	}
	if b := r.faults.rx; b != nil && b.slow {
		b.store(r, now, i, f)
		return
	}
	r.deliver(now, i, f)
}

// deliver hands a good frame to the transport.
func (r *RNIC) deliver(now clock.Time, i int, f *wire.Frame) {
	r.moved.delivered[i].Add(int(f.Len))
	r.chain.Mix(now, uint64(f.Op())<<56|uint64(f.DstQPN())<<32|uint64(f.PSN()), uint64(f.Src)<<8|uint64(f.TOS))
	if f.Kind > wire.KindCNP {
		r.st.rxOther.Add(int(f.Len))
		switch f.Kind {
		case wire.KindUDP:
			r.datagram(now, f)
		case wire.KindTCP:
			r.segment(now, f)
		}
		return
	}
	n := f.DstQPN() - FirstQPN
	if int(n) >= len(r.pairs) {
		return
	}
	p := &r.pairs[n]
	if p.peer != f.Src || p.free {
		return // no such QP: dropped silently (transport §1.2)
	}
	if p.q == nil {
		r.use(int32(n))
	}
	switch {
	case f.Kind == wire.KindCNP:
		r.cut(now, int32(n), p, f)
		return
	case f.Kind == wire.KindData && f.ECN() == wire.CE && !r.faults.ecnOff:
		r.marked(now, p)
	}
	p.q.HandleFrame(now, f, i == 1, &r.fx)
	r.settle(now, int32(n), p)
}

// cut gives a CNP to the reaction point.
func (r *RNIC) cut(now clock.Time, n int32, p *pair, f *wire.Frame) {
	if !r.onCNP(now, p) {
		r.st.cnpIgnored++
		return
	}
	r.st.cnpHandled++
	r.note(record.Record{At: now, Kind: record.CnpRecv, Src: f.Src, Dst: r.k, QPN: f.DstQPN()})
	r.refresh(now, n, p)
}

// refuse drops a damaged or misaddressed frame and says why.
func (r *RNIC) refuse(now clock.Time, i int, f *wire.Frame) {
	why := report.BadHeader
	switch {
	case f.Has(wire.FlagBadFCS):
		why = report.CRC
	case f.Has(wire.FlagBadHdr):
	case f.Has(wire.FlagBadICRC):
		why = report.ICRC
		r.st.icrc++
	}
	r.drop(now, i, f, why)
}

// drop counts a frame lost on arrival.
func (r *RNIC) drop(now clock.Time, i int, f *wire.Frame, why report.Reason) {
	r.st.rxDropped[i].Add(int(f.Len))
	r.st.drops[why]++
	if why == report.CRC || why == report.RxOverflow {
		r.st.discards++
	}
	r.chain.Mix(now, uint64(f.Op())<<56|uint64(f.DstQPN())<<32|uint64(f.PSN()), uint64(why)+1)
	r.noteDrop(now, i, f, why, 0)
}

// noteDrop records a loss; fault is the index of the fault that did it plus
// one.
func (r *RNIC) noteDrop(now clock.Time, i int, f *wire.Frame, why report.Reason, fault int32) {
	r.note(record.Record{
		At: now, Kind: record.Drop, Reason: uint8(why) + 1, Port: uint16(r.ports[i].num), Fault: fault,
		Src: f.Src, Dst: f.Dst, QPN: f.DstQPN(), PSN: uint32(f.PSN()), Op: uint8(f.Op()), Iter: f.Iter,
	})
}

// pauseFrame applies a PFC frame; 802.3x is ignored when PFC is on, and so is
// what a fault damaged.
func (r *RNIC) pauseFrame(now clock.Time, i int, f *wire.Frame) {
	if f.Flags()&badFlags != 0 {
		if f.Has(wire.FlagBadFCS) {
			r.st.discards++
		}
		return
	}
	if f.Kind != wire.KindPFC {
		return
	}
	p := &r.ports[i]
	released := false
	for prio := range 8 {
		if f.D&(1<<prio) == 0 {
			continue
		}
		q := f.PFCTime(prio)
		if q != 0 {
			r.st.rxPause[prio]++
		} else {
			r.st.rxResume[prio]++
		}
		if !r.nic.Lossless[prio] || r.faults.pfcOff {
			continue
		}
		if u := p.PausedUntil(prio); u != 0 && u <= now {
			r.resumed(u, u, p, prio)
		}
		r.chain.Mix(now, 0xFC<<56|uint64(prio), uint64(q))
		r.pauses = true
		was, is := p.Pause(now, prio, q)
		switch {
		case is && !was:
			p.pausedSince[prio] = max(now.Add(-p.PauseLag()), 1) // the pause counts from reception
			r.notePause(now, p, prio, true)
		case was && !is:
			r.resumed(now, now.Add(-p.PauseLag()), p, prio)
			released = true
		}
	}
	r.calm()
	if released {
		r.lastWork = now
		r.trySend(now)
	}
}

func (r *RNIC) notePause(now clock.Time, p *txPort, prio int, on bool) {
	k := record.PauseEnd
	if on {
		k = record.PauseStart
	}
	r.note(record.Record{At: now, Kind: k, Port: uint16(p.num), Prio: uint8(prio)})
}

// sendCNP queues a CNP to the pair's peer.
func (r *RNIC) sendCNP(now clock.Time, p *pair) {
	var f wire.Frame
	p.q.CNPFrame(&f, r.nic.CNPDSCP<<2|wire.ECT0)
	r.cnps = append(r.cnps, f)
	r.cnpN++
	r.st.cnpSent++
	r.note(record.Record{At: now, Kind: record.CnpSent, Src: p.peer, Dst: r.k, QPN: p.q.QPN()})
	r.trySend(now)
}

// received books messages that the responder finished.
func (r *RNIC) received(now clock.Time, p *pair) {
	for i := range r.fx.Recvs {
		v := &r.fx.Recvs[i]
		if v.Status != qp.Success {
			continue
		}
		p.recvd++
		p.recvB += int64(v.Bytes)
		p.recvAt = now
		r.lastProgress = now
	}
	r.openGates(now, p)
}

// retransmitted records a packet that leaves for the second time or more.
func (r *RNIC) retransmitted(now clock.Time, f *wire.Frame) {
	p := r.sender(f)
	p.retrans++
	r.note(record.Record{
		At: now, Kind: record.Retransmit, Src: f.Src, Dst: f.Dst, QPN: f.DstQPN(), PSN: uint32(f.PSN()),
		Op: uint8(f.Op()), Iter: f.Iter, X: int64(noteKinds[p.q.Req.Cause()]),
	})
}

// sender finds the pair of a frame that leaves here by its destination.
func (r *RNIC) sender(f *wire.Frame) *pair { return &r.pairs[r.last] }
