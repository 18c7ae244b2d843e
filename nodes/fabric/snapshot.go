package fabric

import (
	"fmt"
	"math/bits"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Snapshot writes the whole state: settings that faults changed, memory,
// queues, pauses, alarms, counters, notes, digest chain. Equal states give
// equal bytes; live ECMP members, bounds of the MMU and the wait graph are
// derived again on restore.
func (s *Switch) Snapshot(w *snap.Writer) {
	w.U64(s.chain.Hi)
	w.U64(s.chain.Lo)
	for _, v := range []uint64{s.events, s.hops, s.dropped.Frames, s.dropped.Bytes, s.copied.Frames, s.copied.Bytes, s.hash.n, s.lostRec} {
		w.U64(v)
	}
	w.Time(s.lastWork)
	w.Time(s.adopted)
	w.Bool(s.down)
	w.Bool(s.ecnOff)
	w.Bool(s.hash.CRC)
	w.Bool(s.hash.Spray)
	w.U32(s.hash.Seed)
	w.U32(s.recSeq)
	for _, n := range s.drops {
		w.U64(n)
	}
	s.mmu.snapshot(w)
	s.work.snapshot(w)
	s.timer.snapshot(w)
	w.Len(len(s.ports))
	for i := range s.ports {
		s.ports[i].snapshot(w)
	}
	s.countWaits()
	s.wait.snapshot(w)
	w.Len(len(s.rec))
	for i := range s.rec {
		w.Record(&s.rec[i])
	}
	w.Bool(s.faults != nil)
	if s.faults != nil {
		s.faults.Snapshot(w)
	}
}

// Restore replaces the state of a freshly built switch.
func (s *Switch) Restore(r *snap.Reader) error {
	s.chain.Hi, s.chain.Lo = r.U64(), r.U64()
	for _, v := range []*uint64{&s.events, &s.hops, &s.dropped.Frames, &s.dropped.Bytes, &s.copied.Frames, &s.copied.Bytes, &s.hash.n, &s.lostRec} {
		*v = r.U64()
	}
	s.lastWork = r.Time()
	if at := r.Time(); at != clock.Never && r.Err == nil {
		if s.timeline == nil {
			return fmt.Errorf("fabric: %s: state with changed settings, run without changes", s.name)
		}
		s.adopt(at)
	}
	s.down, s.ecnOff, s.hash.CRC, s.hash.Spray = r.Bool(), r.Bool(), r.Bool(), r.Bool()
	s.hash.Seed, s.recSeq = r.U32(), r.U32()
	for i := range s.drops {
		s.drops[i] = r.U64()
	}
	s.mmu.restore(r)
	s.work.restore(r)
	s.timer.restore(r)
	r.Expect("ports of "+s.name, r.Len(), len(s.ports))
	for i := range s.ports {
		if r.Err != nil {
			return r.Err
		}
		s.restorePort(r, i)
	}
	s.restoreWaits(r)
	n := r.Len()
	s.rec = nil
	for range n {
		s.rec = append(s.rec, record.Record{})
		r.Record(&s.rec[len(s.rec)-1])
		if r.Err != nil {
			return r.Err
		}
	}
	s.relive()
	if had := r.Bool(); r.Err == nil && had != (s.faults != nil) {
		return fmt.Errorf("fabric: %s: state with faults %v, plan with faults %v", s.name, had, s.faults != nil)
	}
	if s.faults != nil && r.Err == nil {
		return s.faults.Restore(r)
	}
	return r.Err
}

func (p *portState) snapshot(w *snap.Writer) {
	p.port.Snapshot(w)
	w.U8(p.xoffSent)
	for _, b := range []bool{p.upOut, p.member, p.pfcOff, p.holding} {
		w.Bool(b)
	}
	w.U16(p.mtu)
	if p.holding {
		w.Frame(&p.held)
		w.U32(uint32(p.heldTo.egress))
		w.U32(uint32(p.heldTo.fault))
		w.U8(uint8(p.heldTo.why))
	}
	for _, tc := range p.maps.dscpToTC {
		w.U8(tc)
	}
	w.U8(p.sched.turn)
	for q := range p.q {
		w.I64(p.sched.deficit[q])
		w.Len(int(p.q[q].n))
		p.q[q].each(func(f *wire.Frame, m stored) {
			w.Frame(f)
			w.U32(uint32(m.pg))
			w.U32(uint32(m.cells))
		})
		if p.wred != nil {
			w.I64(p.wred[q].avg)
			w.U64(p.wred[q].draws)
		}
		if p.dog != nil {
			p.dog[q].snapshot(w)
		}
	}
	p.outages.snapshot(w)
	p.counts().snapshot(w)
}

func (s *Switch) restorePort(r *snap.Reader, i int) {
	p := &s.ports[i]
	p.port.Restore(r)
	p.xoffSent = r.U8()
	for _, b := range []*bool{&p.upOut, &p.member, &p.pfcOff, &p.holding} {
		*b = r.Bool()
	}
	p.mtu = r.U16()
	if p.holding {
		r.Frame(&p.held)
		p.heldTo = decision{int32(r.U32()), int32(r.U32()), record.Reason(r.U8())}
		if int(p.heldTo.egress) > len(s.ports) || p.heldTo.egress < everywhere {
			r.Expect("egress port of a held frame", int(p.heldTo.egress), 0)
		}
	}
	var table [64]uint8
	for d := range table {
		table[d] = r.U8() & 7
	}
	s.setTable(i, &table)
	p.sched.turn, p.turns = r.U8()&7, true
	for q := range p.q {
		p.sched.deficit[q] = r.I64()
		s.restoreQueue(r, i, uint8(q))
		if p.wred != nil {
			p.wred[q].avg, p.wred[q].draws = r.I64(), r.U64()
		}
		if p.dog != nil {
			p.dog[q].load(r)
		}
	}
	p.outages.restore(r)
	p.outage = p.outages.any
	p.c.restore(r)
	p.rx, p.tx = p.c.Rx, p.c.Tx
	for q := range p.q {
		p.q[q].sent = p.c.Queue[q].Tx
	}
}

func (s *Switch) restoreQueue(r *snap.Reader, i int, q uint8) {
	p := &s.ports[i]
	n := r.Len()
	var f wire.Frame
	for range n {
		r.Frame(&f)
		m := stored{int32(r.U32()), int32(r.U32())}
		if r.Err != nil {
			return
		}
		if m.pg < 0 || int(m.pg) >= 8*len(s.ports) {
			r.Expect("PG of a queued frame", int(m.pg), 0)
			return
		}
		p.q[q].push(&s.pool, &f, m)
	}
	if n > 0 {
		p.nonEmpty |= 1 << q
	}
}

// snapshot writes since when queues hold frames of an ingress port; how many
// follows from the queues.
func (w *waits) snapshot(o *snap.Writer) {
	for k, n := range w.held {
		if n > 0 {
			o.Time(w.since[k])
		}
	}
}

func (s *Switch) restoreWaits(r *snap.Reader) {
	w := &s.wait
	w.counting = false
	s.countWaits()
	for k, n := range w.held {
		if n > 0 {
			w.since[k] = r.Time()
		}
	}
	w.xoffs = 0
	for i := range s.ports {
		w.xoffs += bits.OnesCount8(s.ports[i].xoffSent)
	}
}

func (m *MMU) snapshot(w *snap.Writer) {
	w.I64(m.stored)
	w.Len(len(m.pg))
	for i := range m.pg {
		p := &m.pg[i]
		for _, v := range []int32{p.used, p.hdrm, p.sharedMark, p.hdrmMark} {
			w.U32(uint32(v))
		}
		w.Bool(p.xoff)
		w.U32(uint32(m.q[i].cells))
		w.U32(uint32(m.q[i].mark))
	}
	for i := range m.sl {
		for _, v := range []int32{m.sl[i].size, m.sl[i].used, m.sl[i].mark, m.sl[i].hdrm, m.sl[i].hdrmMark} {
			w.U32(uint32(v))
		}
	}
}

func (m *MMU) restore(r *snap.Reader) {
	m.stored = r.I64()
	r.Expect("PGs", r.Len(), len(m.pg))
	for i := range m.pg {
		p := &m.pg[i]
		for _, v := range []*int32{&p.used, &p.hdrm, &p.sharedMark, &p.hdrmMark} {
			*v = int32(r.U32())
		}
		p.xoff = r.Bool()
		m.q[i].cells, m.q[i].mark = int32(r.U32()), int32(r.U32())
	}
	for i := range m.sl {
		x := &m.sl[i]
		for _, v := range []*int32{&x.size, &x.used, &x.mark, &x.hdrm, &x.hdrmMark} {
			*v = int32(r.U32())
		}
	}
	m.bounds()
	m.Clear()
}

func (w *Watchdog) words() []*uint64 {
	return []*uint64{&w.Detected, &w.Restored, &w.TxDropped, &w.RxDropped, &w.rx, &w.on2off}
}

func (w *Watchdog) snapshot(o *snap.Writer) {
	for _, v := range w.words() {
		o.U64(*v)
	}
	o.I64(int64(w.left))
	o.Bool(w.wasPaused)
	o.Bool(w.stormed)
	o.Time(w.next)
}

func (w *Watchdog) load(r *snap.Reader) {
	for _, v := range w.words() {
		*v = r.U64()
	}
	w.left = clock.Duration(r.I64())
	w.wasPaused, w.stormed = r.Bool(), r.Bool()
	w.next = r.Time()
}

func (o *outages) snapshot(w *snap.Writer) {
	w.Bool(o.any)
	w.Time(o.down)
	w.Len(len(o.past))
	for _, x := range o.past {
		w.Time(x.from)
		w.Time(x.to)
	}
}

func (o *outages) restore(r *snap.Reader) {
	o.any, o.down, o.past = r.Bool(), r.Time(), nil
	for range r.Len() {
		o.past = append(o.past, outage{r.Time(), r.Time()})
	}
}
