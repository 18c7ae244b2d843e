package fabric

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// frameKey names a frame in the digest.
func frameKey(f *wire.Frame, pn int) uint64 {
	return uint64(f.PSN()) | uint64(f.DstQPN())<<24 | uint64(pn)<<48 | uint64(f.Kind)<<60
}

// frameBody is the part of a verdict that tells what was carried.
func frameBody(f *wire.Frame) uint64 {
	return uint64(f.Src)<<32 ^ uint64(f.Dst)<<16 ^ uint64(f.Len)<<8 ^ uint64(f.TOS) ^ uint64(f.Op())<<56
}

// arrive takes a frame that the cable of port pn delivers at now.
func (s *Switch) arrive(now clock.Time, pn int, f *wire.Frame, out *actors.Outbox) {
	in := &s.ports[pn-1]
	if in.seam || in.outage {
		if s.lostOnCable(now, pn, in, f) {
			if f.Kind-wire.KindPFC > wire.KindPause-wire.KindPFC {
				s.lastWork = now // its loss is the end of a frame, as its arrival is
			}
			return
		}
	}
	if f.Kind-wire.KindPFC <= wire.KindPause-wire.KindPFC { // one of the two
		s.control(now, pn, f)
		return
	}
	s.lastWork = now
	in.rx.add(f.Len)
	if s.cut {
		s.arriveHead(now, pn, in, f, out)
		return
	}
	if f.Has(wire.FlagBadFCS) {
		in.c.CRC++
		s.drop(now, pn, f, dropNote{why: record.CRC})
		return
	}
	if !s.odd {
		if n, e := s.straight(in, f); e != nil {
			s.store(now, pn, in, f, n, e, out)
			return
		}
	}
	s.forward(now, pn, in, f, s.decide(now, in, f), out)
}

// straight is decide in a switch where no fault has a say: the egress port, nil
// where decide has to look closer.
func (s *Switch) straight(in *portState, f *wire.Frame) (int, *portState) {
	k := f.Dst - 1
	if f.Len > in.mtu || f.TTL <= 1 || k >= uint32(len(s.route)) {
		return 0, nil
	}
	g := uint(s.route[k])
	if g >= uint(len(s.only)) {
		return 0, nil
	}
	n := s.only[g]
	if n == 0 {
		n = s.spread(f, g)
	}
	i := uint(n) - 1
	if i >= uint(len(s.ports)) {
		return 0, nil
	}
	e := &s.ports[i]
	if f.Len > e.mtu || !e.upOut {
		return 0, nil
	}
	return int(n), e
}

// spread is choose where the hash alone does, else 0.
func (s *Switch) spread(f *wire.Frame, g uint) uint16 {
	m := s.live[g]
	if len(m) < 2 || s.hash.Spray || s.plan.Floods != nil {
		return 0
	}
	if i := pick(s.hash.Of(f), uint32(len(m))); i < uint32(len(m)) {
		return m[i]
	}
	return 0
}

// decision is where a frame goes, or why nowhere.
type decision struct {
	egress int32
	fault  int32
	why    record.Reason
}

// forward goes on with a frame that is ready for admission as decided.
func (s *Switch) forward(now clock.Time, pn int, in *portState, f *wire.Frame, d decision, out *actors.Outbox) {
	if d.why != record.NoReason {
		in.c.InDrops++
		s.drop(now, pn, f, dropNote{why: d.why, fault: d.fault})
		return
	}
	egress := int(d.egress)
	if egress == everywhere {
		s.flood(now, pn, in, f, out)
		return
	}
	s.store(now, pn, in, f, egress, &s.ports[egress-1], out)
}

// store classifies a frame that goes out by port e, and stores it or sends it
// straight on.
func (s *Switch) store(now clock.Time, pn int, in *portState, f *wire.Frame, egress int, e *portState, out *actors.Outbox) {
	tc := in.maps.dscpToTC[f.TOS>>2]
	pg, q := in.maps.tcToPG.of(tc), in.maps.tcToQueue.of(tc)
	if e.maps.tcToQueue != in.maps.tcToQueue { // rarely: so that the queue need not wait for the port to come from memory
		q = e.maps.tcToQueue.of(tc)
	}
	if s.watched && s.stormDrop(now, pn, in, e, pg, q, f) {
		return
	}
	l := &e.q[q&7]
	if l.aqm&aqmEnqueue != 0 && !s.enqueueAQM(now, pn, e, q, f) {
		return
	}
	cells := int32((uint64(f.Len) + uint64(s.mmu.cell) - 1) * s.cellMul >> 32)
	gi, qi := (pn-1)<<3+int(pg), (egress-1)<<3+int(q)
	if e.nonEmpty == 0 && e.port.FreeAt() <= now && e.pausedQueues(now)>>(q&7)&1 == 0 && s.mmu.Pass(gi, qi, cells) {
		if l.marks() {
			s.dequeueMark(e, q, f)
		}
		s.send(now, egress, e, l, f, f.TTL-1, out)
		return
	}
	if why := s.mmu.Admit(gi, qi, cells); why != record.NoReason {
		s.refuse(now, pn, in, e, pg, q, f, why)
		s.announce(now, out)
		return
	}
	l.push(&s.pool, f, stored{int32(gi), cells}).TTL-- // of the copy, see SendAt
	e.nonEmpty |= 1 << (q & 7)
	s.wait.enter(now, l.row, pn-1)
	s.chain.Mix(now, frameKey(f, pn), frameBody(f)^uint64(egress)<<40^uint64(q)<<52)
	if s.work.at(s.wakeSlot(egress-1)) > clock.Max(now, e.port.FreeAt()) {
		s.arm(now, e, egress-1) // the port slept, or waits for a pause that is not this queue's
	}
	if len(s.mmu.changed) != 0 {
		s.announce(now, out)
	}
}

// decide finds the egress port, or why the frame goes no further. It looks at
// headers only; the frame check sequence is the caller's.
func (s *Switch) decide(now clock.Time, in *portState, f *wire.Frame) decision {
	if s.down {
		return decision{why: record.DeviceDown}
	}
	if f.Len > in.mtu {
		return decision{why: record.MTU}
	}
	g := s.group(f.Dst)
	if g < 0 {
		return decision{why: record.NoRoute}
	}
	if f.TTL <= 1 {
		return decision{why: record.TTL}
	}
	d := decision{egress: int32(s.only[g])}
	if d.egress == 0 || s.avoid != nil || s.router != nil {
		if d = s.choose(now, g, f); d.why != record.NoReason || d.egress == everywhere {
			return d
		}
	}
	e := &s.ports[d.egress-1]
	if f.Len > e.mtu {
		return decision{why: record.MTU}
	}
	if !e.upOut {
		return decision{why: record.LinkDown}
	}
	return d
}

// choose finds the egress port where there are several, faults have a say, or
// the frame floods.
func (s *Switch) choose(now clock.Time, g int16, f *wire.Frame) decision {
	if s.plan.Floods != nil && s.plan.Floods[g] {
		return decision{egress: everywhere}
	}
	var d decision
	m := s.live[g]
	if s.avoid != nil {
		m = s.detour(f.Dst, m)
	}
	switch {
	case len(m) == 1:
		d.egress = int32(m[0])
	case len(m) == 0:
		d.why = record.LinkDown
	default:
		d.egress = int32(m[pick(s.member(f), uint32(len(m)))])
	}
	if s.router != nil {
		return s.divert(now, f, d)
	}
	return d
}

// pick is h % n, without a division where n is a power of two.
func pick(h, n uint32) uint32 {
	if n&(n-1) == 0 {
		return h & (n - 1)
	}
	return h % n
}

// member returns the number that chooses among equal-cost ports.
func (s *Switch) member(f *wire.Frame) uint32 {
	h := &s.hash
	if h.Spray {
		h.n++
		return uint32(clock.Mix(uint64(h.Seed), h.n, 0x7370726179) >> 32)
	}
	return h.Of(f)
}

// Of returns a frame's ECMP hash.
func (h *Hasher) Of(f *wire.Frame) uint32 {
	if h.CRC {
		return CRC32(KeyOf(f), h.Seed)
	}
	if f.Kind == wire.KindUDP || f.Kind == wire.KindTCP {
		return Murmur3(KeyOf(f), h.Seed)
	}
	return roceMurmur3(f.Src, f.Dst, f.SPort, h.Seed)
}

// group returns the route group toward a destination, -1 for none. Numbers
// with bit 23 set are second ports of RNICs (alternate path).
func (s *Switch) group(dst uint32) int16 {
	if k := dst - 1; k < uint32(len(s.route)) {
		return s.route[k]
	}
	if k := dst&^altBit - 1; dst&altBit != 0 && k < uint32(len(s.plan.AltRoute)) {
		return s.plan.AltRoute[k]
	}
	return -1
}

const altBit = 1 << 23

func (s *Switch) divert(now clock.Time, f *wire.Frame, d decision) decision {
	to, v := s.router.Route(now, f, s.hash.Of(f))
	if v.Act == Drop {
		return decision{why: v.Reason, fault: v.Fault}
	}
	if to != 0 {
		d.egress, d.why = int32(to), record.NoReason
	}
	return d
}

// enqueueAQM applies WRED on the way in; it returns false when the frame was dropped.
func (s *Switch) enqueueAQM(now clock.Time, pn int, e *portState, q uint8, f *wire.Frame) bool {
	if s.ecnOff {
		return true
	}
	w := &e.wred[q]
	l := e.q[q].bytes
	switch {
	case w.Enqueue || !w.marking:
		l = w.Length(l)
	case w.weight != 0:
		l = w.avg >> w.weight
	}
	if w.Drops(f, l) {
		e.c.Queue[q].Drops++
		s.drop(now, pn, f, dropNote{why: record.WRED, prio: q, level: l})
		return false
	}
	if w.Enqueue && w.Mark(f, l) {
		e.c.Queue[q].Marked++
	}
	return true
}

// dequeueMark marks by the bytes that stay behind the departing frame.
func (s *Switch) dequeueMark(e *portState, q uint8, f *wire.Frame) {
	if s.ecnOff {
		return
	}
	w := &e.wred[q]
	l := e.q[q].bytes
	if w.weight != 0 {
		l = w.Length(l)
	}
	if w.Mark(f, l) {
		e.c.Queue[q].Marked++
	}
}

// refuse counts a frame that found no room: on the PG for ingress reasons, on
// the queue for egress ones.
func (s *Switch) refuse(now clock.Time, pn int, in, e *portState, pg, q uint8, f *wire.Frame, why record.Reason) {
	n := dropNote{why: why, prio: pg, level: s.mmu.PGBytes((pn-1)<<3 + int(pg))}
	if why == record.EgressLimit {
		e.c.Queue[q].Drops++
		n.prio, n.level = q, e.q[q].bytes
	} else {
		in.c.PG[pg].Drops++
		in.c.InDrops++
	}
	s.drop(now, pn, f, n)
}

// arm sets a port's wake-up: when the scheduler may dequeue, or when the first
// pause ends if all its frames are paused.
func (s *Switch) arm(now clock.Time, e *portState, i int) {
	t := clock.Never
	if e.nonEmpty != 0 {
		t = clock.Max(now, e.port.FreeAt())
		if e.port.MayPause() && e.nonEmpty&^e.pausedQueues(t) == 0 {
			t = clock.Max(t, e.port.NextExpiry(t))
		}
	}
	s.work.set(s.wakeSlot(i), t)
}

// serve is the wake-up of a port: it dequeues one frame if it may.
func (s *Switch) serve(now clock.Time, i int, out *actors.Outbox) {
	e := &s.ports[i]
	ready := e.nonEmpty &^ e.pausedQueues(now)
	if ready == 0 || e.port.FreeAt() > now {
		s.arm(now, e, i)
		return
	}
	q := uint8(firstBit(ready)) & 7
	if ready&(ready-1) != 0 {
		e.turns = true
		q = uint8(e.sched.Pick(ready, &e.q)) & 7
	}
	l := &e.q[q]
	f, m := l.pop(&s.pool)
	if l.n == 0 {
		e.nonEmpty &^= 1 << q
		if e.turns {
			e.sched.Empty(int(q))
			e.turns = e.nonEmpty != 0 // no empty queue has a deficit
		}
	}
	s.wait.leave(l.row, int(m.pg)>>3)
	s.mmu.Release(int(m.pg), i<<3+int(q), m.cells)
	if l.marks() {
		s.dequeueMark(e, q, f)
	}
	s.send(now, i+1, e, l, f, f.TTL, out)
	if len(s.mmu.changed) != 0 {
		s.announce(now, out)
	}
	s.arm(now, e, i)
}

// send puts a frame onto the cable.
func (s *Switch) send(now clock.Time, pn int, e *portState, q *queue, f *wire.Frame, ttl uint8, out *actors.Outbox) {
	at := e.port.Depart(now, f.Len)
	s.lastWork = now
	e.tx.add(f.Len)
	q.sent++
	s.hops++
	s.chain.Mix(now, frameKey(f, pn)^1<<63, frameBody(f)^uint64(at))
	if !e.seam {
		out.SendAt(pn, f, at, ttl)
		return
	}
	f.At, f.TTL = at, ttl
	s.throughWire(now, pn, e, f, out)
}

// throughWire lets a fault seam have its way with a frame on the cable.
func (s *Switch) throughWire(now clock.Time, pn int, e *portState, f *wire.Frame, out *actors.Outbox) {
	v := e.wire.Out(now, pn, f, out)
	e.c.Injected.Frames += uint64(v.Extra)
	e.c.Injected.Bytes += uint64(v.ExtraBytes)
	switch v.Act {
	case Go:
		out.Send(pn, f)
	case Late:
		out.SendLate(pn, f)
	case Drop:
		e.c.Lost.add(f.Len)
		s.lose(now, pn, f, v)
	}
}

// dropNote is what a record says of a drop.
type dropNote struct {
	why   record.Reason
	prio  uint8
	fault int32
	level int64 // bytes of the PG or queue
}

// drop ends a frame inside the device.
func (s *Switch) drop(now clock.Time, pn int, f *wire.Frame, n dropNote) {
	s.dropped.add(f.Len)
	s.noteDrop(now, pn, f, n)
}

// lose ends a frame on a cable, where it is not in the device's balance.
func (s *Switch) lose(now clock.Time, pn int, f *wire.Frame, v Verdict) {
	if f.Kind == wire.KindPFC || f.Kind == wire.KindPause {
		return // dropped_frames leaves PFC out
	}
	s.noteDrop(now, pn, f, dropNote{why: v.Reason, fault: v.Fault})
}

func (s *Switch) noteDrop(now clock.Time, pn int, f *wire.Frame, n dropNote) {
	if n.fault == 0 && s.faults != nil && (n.why == record.LinkDown || n.why == record.DeviceDown || n.why == record.MTU) {
		n.fault = s.faults.Blame(now, f, n.why)
	}
	s.drops[n.why]++
	s.chain.Mix(now, frameKey(f, pn), frameBody(f)^uint64(n.why)<<52)
	s.note(record.Record{
		At: now, X: n.level, Src: f.Src, Dst: f.Dst, QPN: f.DstQPN(), PSN: uint32(f.PSN()), Fault: n.fault,
		Port: uint16(pn), Kind: record.Drop, Reason: uint8(n.why), Prio: n.prio, Op: uint8(f.Op()), Iter: f.Iter,
	})
}
