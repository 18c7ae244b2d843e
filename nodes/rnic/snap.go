package rnic

import (
	"fmt"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
)

// Snapshot writes the whole state canonically.
func (r *RNIC) Snapshot(w *snap.Writer) {
	w.U64(r.chain.Hi)
	w.U64(r.chain.Lo)
	w.Time(r.adopted)
	for i := range r.ports {
		p := &r.ports[i]
		p.Snapshot(w)
		w.Bool(p.queued)
		for _, t := range p.pausedSince {
			w.Time(t)
		}
	}
	r.snapPairs(w)
	r.snapFlows(w)
	for _, q := range []*ring{&r.data, &r.acks} {
		q.snapshot(w)
	}
	for i := range r.held {
		r.held[i].snapshot(w)
	}
	w.Len(len(r.cnps))
	for i := range r.cnps {
		w.Frame(&r.cnps[i])
	}
	r.pairWake.snapshot(w)
	r.wake.snapshot(w)
	r.start.snapshot(w)
	w.B = r.mem.AppendState(w.B)
	for _, f := range qp.CounterFields {
		w.U64(*f.Get(&r.cnt))
	}
	w.B = r.np.AppendState(w.B)
	r.st.snapshot(w, &r.moved, int64(r.waits))
	w.Bool(r.pauses)
	w.U32(r.recSeq)
	w.U64(r.recLost)
	w.I64(r.outstanding)
	w.Time(r.lastWork)
	w.Time(r.lastProgress)
	w.U64(r.events)
	w.U64(r.hops())
	w.Len(len(r.rec))
	for i := range r.rec {
		w.Record(&r.rec[i])
	}
	r.faults.snapshot(r, w)
}

// Restore reads what Snapshot wrote into a freshly built RNIC.
func (r *RNIC) Restore(s *snap.Reader) error {
	r.chain = actors.Chain{Hi: s.U64(), Lo: s.U64()}
	if at := s.Time(); at != clock.Never && s.Err == nil {
		if r.idx.Timeline == nil {
			return fmt.Errorf("rnic %s: state with changed settings, run without changes", r.dev.Name)
		}
		r.adopt(at)
	}
	for i := range r.ports {
		p := &r.ports[i]
		p.Restore(s)
		p.queued = s.Bool()
		for k := range p.pausedSince {
			p.pausedSince[k] = s.Time()
		}
	}
	if err := r.restorePairs(s); err != nil {
		return err
	}
	r.restoreFlows(s)
	for _, q := range []*ring{&r.data, &r.acks} {
		q.restore(s)
	}
	for i := range r.held {
		r.held[i].restore(s)
	}
	r.cnps = make([]wire.Frame, s.Len())
	r.cnpN = int32(len(r.cnps))
	for i := range r.cnps {
		s.Frame(&r.cnps[i])
	}
	if err := r.restoreWakes(s); err != nil {
		return err
	}
	r.wake.restore(s)
	r.start.restore(s)
	if s.Err == nil {
		s.B, s.Err = r.mem.ReadState(s.B)
	}
	for _, f := range qp.CounterFields {
		*f.Get(&r.cnt) = s.U64()
	}
	if s.Err == nil {
		s.B, s.Err = r.np.ReadState(s.B)
	}
	waits, most := r.st.restore(s, &r.moved), int64(len(r.pairs)+len(r.sinks))
	if waits < 0 || waits > most {
		s.Expect("responders that wait", int(waits), int(most))
	}
	r.waits = int32(waits)
	r.pauses = s.Bool()
	r.recSeq = s.U32()
	r.recLost = s.U64()
	r.outstanding = s.I64()
	r.lastWork, r.lastProgress = s.Time(), s.Time()
	r.events = s.U64()
	s.U64() // hops: the frames sent
	r.rec = make([]record.Record, s.Len())
	for i := range r.rec {
		s.Record(&r.rec[i])
	}
	r.faults.restore(r, s)
	return s.Err
}

func (r *RNIC) snapPairs(w *snap.Writer) {
	n := 0
	for i := range r.pairs {
		if r.pairs[i].q != nil {
			n++
		}
	}
	w.Len(n)
	for i := range r.pairs {
		p := &r.pairs[i]
		if p.q == nil {
			continue
		}
		w.U32(uint32(i))
		w.B = p.q.AppendState(w.B)
		p.ctl.snapshot(w)
		w.Time(p.wakeAt)
		for _, b := range []bool{p.inRing[0], p.inRing[1], p.inAck, p.waits, p.died, p.heard} {
			w.Bool(b)
		}
		w.I64(p.recvd)
		w.I64(p.recvB)
		w.Time(p.recvAt)
		w.U64(p.retrans)
		w.I64(p.acked)
	}
}

func (r *RNIC) restorePairs(s *snap.Reader) error {
	for range s.Len() {
		i := s.U32()
		if s.Err != nil {
			return s.Err
		}
		if int(i) >= len(r.pairs) || r.pairs[i].id < 0 {
			return fmt.Errorf("rnic %s: state names QP %d, which the plan does not have", r.dev.Name, i)
		}
		p := r.use(int32(i))
		if s.B, s.Err = p.q.ReadState(s.B); s.Err != nil {
			return s.Err
		}
		r.restoreControl(s, p)
		p.wakeAt = s.Time()
		for _, b := range []*bool{&p.inRing[0], &p.inRing[1], &p.inAck, &p.waits, &p.died, &p.heard} {
			*b = s.Bool()
		}
		p.recvd, p.recvB = s.I64(), s.I64()
		p.recvAt = s.Time()
		p.retrans = s.U64()
		p.acked = s.I64()
	}
	return s.Err
}

func (r *RNIC) snapFlows(w *snap.Writer) {
	w.Len(len(r.flows))
	for i := range r.flows {
		f := &r.flows[i]
		w.I64(f.posted)
		w.I64(f.done)
		w.Time(f.due)
		w.Len(len(f.starts))
		for _, t := range f.starts {
			w.Time(t)
		}
		w.I64(f.gate)
		w.Time(f.next)
		w.I64(f.carry)
		w.Bool(f.inRing)
		w.Time(f.began)
		w.Bool(f.failed)
		w.U64(f.orig)
		w.Bool(f.hasOrg)
		w.U64(f.retrans)
		if f.stream != nil {
			f.stream.snapshot(w)
		}
	}
	for i := range r.sinks {
		r.sinks[i].snapshot(w)
	}
	w.Len(len(r.udp))
	for i := range r.udp {
		v := &r.udp[i]
		w.U32(uint32(v.Flow))
		w.I64(v.Messages)
		w.I64(v.Bytes)
		w.Time(v.Last)
	}
}

func (r *RNIC) restoreFlows(s *snap.Reader) {
	s.Expect("flow count of "+r.dev.Name, s.Len(), len(r.flows))
	for i := range r.flows {
		f := &r.flows[i]
		f.posted, f.done = s.I64(), s.I64()
		f.due = s.Time()
		f.starts = make([]clock.Time, s.Len())
		for k := range f.starts {
			f.starts[k] = s.Time()
		}
		f.gate = s.I64()
		f.next = s.Time()
		f.carry = s.I64()
		f.inRing = s.Bool()
		f.began = s.Time()
		f.failed = s.Bool()
		f.orig = s.U64()
		f.hasOrg = s.Bool()
		f.retrans = s.U64()
		if f.stream != nil {
			f.stream.restore(s)
		}
	}
	for i := range r.sinks {
		r.sinks[i].restore(s)
	}
	r.udp = make([]report.RecvPart, s.Len())
	for i := range r.udp {
		r.udp[i] = report.RecvPart{Flow: int32(s.U32()), Messages: s.I64(), Bytes: s.I64(), Last: s.Time()}
	}
}

// words lists the plain counters of st, for both directions.
func (t *stats) words(m *counts) []*uint64 {
	w := []*uint64{
		&t.txPackets, &t.rxPackets, &t.txBytes, &t.rxBytes, &t.cnpSent, &t.ecnMarked, &t.cnpHandled, &t.cnpIgnored, &t.icrc, &t.discards,
		&t.rnrWaits, &t.rnrLost,
	}
	for i := range 8 {
		w = append(w, &t.rxPause[i], &t.txPause[i], &t.rxResume[i])
	}
	for i := range t.drops {
		w = append(w, &t.drops[i])
	}
	for i := range m.sent {
		for _, c := range []*report.Count{&m.sent[i], &m.delivered[i], &t.rxDropped[i], &t.lost[i], &t.injected[i]} {
			w = append(w, &c.Frames, &c.Bytes)
		}
	}
	for _, c := range []*report.Count{&t.originated, &t.consumed, &t.droppedIn} {
		w = append(w, &c.Frames, &c.Bytes)
	}
	return w
}

func (t *stats) snapshot(w *snap.Writer, m *counts, waits int64) {
	t.derive(m)
	for _, v := range t.words(m) {
		w.U64(*v)
	}
	for _, d := range t.rxPauseTime {
		w.I64(int64(d))
	}
	w.I64(waits)
	w.Len(len(t.samples.Flow))
	for i := range t.samples.Flow {
		w.U32(uint32(t.samples.Flow[i]))
		w.Time(t.samples.Start[i])
		w.Time(t.samples.End[i])
		w.U8(uint8(t.samples.Status[i]))
	}
	saveFolded(w, t.samples.Folded)
	w.Len(len(t.latencies.Flow))
	for i := range t.latencies.Flow {
		w.U32(uint32(t.latencies.Flow[i]))
		w.I64(int64(t.latencies.Span[i]))
	}
	w.Len(len(t.latencies.Folded))
	for i := range t.latencies.Folded {
		w.U32(uint32(t.latencies.Folded[i].Flow))
		saveSpans(w, &t.latencies.Folded[i].Spans)
	}
}

func (t *stats) restore(s *snap.Reader, m *counts) (waits int64) {
	for _, v := range t.words(m) {
		*v = s.U64()
	}
	t.restored(m)
	for i := range t.rxPauseTime {
		t.rxPauseTime[i] = clock.Duration(s.I64())
	}
	waits = s.I64()
	t.samples, t.latencies = report.Samples{}, report.Latencies{}
	for range s.Len() {
		t.samples.Add(int32(s.U32()), s.Time(), s.Time(), report.Status(s.U8()))
	}
	t.samples.Folded = restoreFolded(s)
	for range s.Len() {
		t.latencies.Add(int32(s.U32()), clock.Duration(s.I64()))
	}
	for n := s.Len(); n > 0 && s.Err == nil; n-- {
		x := report.FoldedLatencies{Flow: int32(s.U32())}
		restoreSpans(s, &x.Spans)
		t.latencies.Folded = append(t.latencies.Folded, x)
	}
	return waits
}

func (a *agenda) snapshot(w *snap.Writer) {
	w.Len(len(a.h))
	for _, d := range a.h {
		w.Time(d.at)
		w.U32(uint32(d.id))
	}
}

func (a *agenda) restore(s *snap.Reader) {
	a.h = a.h[:0]
	for range s.Len() {
		a.push(due{s.Time(), int32(s.U32())})
	}
}

func (q *ring) snapshot(w *snap.Writer) {
	w.Len(int(q.n))
	for i := range q.n {
		w.U32(uint32(q.at(i)))
	}
}

func (q *ring) restore(s *snap.Reader) {
	*q = ring{}
	for range s.Len() {
		q.push(int32(s.U32()))
	}
}
