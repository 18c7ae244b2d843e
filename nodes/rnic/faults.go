package rnic

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fault"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

var _ actors.Actor = (*RNIC)(nil)

// faultState is what faults do to an RNIC. wire is the one branch that every
// frame pays; d is nil as long as no fault touches the device.
type faultState struct {
	wire   bool // send and receive must be asked
	pfcOff bool
	ecnOff bool
	dead   bool
	short  bool // a fault of receive queues or memory is active
	d      *fault.Device
	rx     *rxBuffer // there with d
}

func (s *faultState) init(r *RNIC) {
	for i := range r.dev.Ports {
		if r.dev.Ports[i].BERNum != 0 {
			s.on(r)
		}
	}
}

// on makes the schedule when the first fault comes.
func (s *faultState) on(r *RNIC) *fault.Device {
	if s.d == nil {
		s.d = fault.NewDevice(r.plan, r.dev.ID, nil)
		s.d.Emit = r.note
		s.rx = new(rxBuffer)
		s.rx.init(r)
		s.rewire(r)
	}
	return s.d
}

// Schedule plans a fault; its start must not be executed yet.
func (r *RNIC) Schedule(f *topology.Fault, index int32) error {
	spec, err := fault.Compile(r.plan, f, index)
	if err != nil {
		return err
	}
	r.faults.on(r).Add(&spec)
	return nil
}

// ClearFault ends a fault at t.
func (r *RNIC) ClearFault(index int32, t clock.Time) {
	if r.faults.d != nil {
		r.faults.d.Clear(index, t)
		if r.idx.Timeline != nil {
			_ = r.idx.Timeline.End(index, t) // live: what does not fit then waits
		}
	}
}

// FaultStatus visits the faults of this device.
func (r *RNIC) FaultStatus(visit func(index int32, hits uint64, started bool, end clock.Time)) {
	if r.faults.d != nil {
		r.faults.d.Status(visit)
	}
}

func (s *faultState) next() clock.Time {
	if s.d == nil {
		return clock.Never
	}
	return min(s.d.Next(), s.d.NextHeld())
}

// nextFault is the next start or end, nextWork the next frame let loose.
func (s *faultState) nextFault() clock.Time {
	if s.d == nil {
		return clock.Never
	}
	return s.d.NextFault()
}

func (s *faultState) nextWork() clock.Time {
	if s.d == nil {
		return clock.Never
	}
	return s.d.NextWork()
}

func (s *faultState) step(r *RNIC, now clock.Time) {
	for _, e := range s.d.Step(now) {
		s.act(r, now, e)
	}
	s.rewire(r)
	for {
		num, f, ok := s.d.Held(now)
		if !ok {
			return
		}
		r.lastWork = now
		r.accept(now, r.portIndex(num), &f)
	}
}

func (s *faultState) rewire(r *RNIC) {
	s.wire = false
	for i := range r.ports {
		s.wire = s.wire || s.d.Busy(r.ports[i].num)
	}
}

// act follows one step of the schedule.
func (s *faultState) act(r *RNIC, now clock.Time, e fault.Event) {
	switch e.Phase {
	case fault.LinkFell, fault.LinkRose:
		s.links(r, now)
		return
	case fault.Rejoined:
		return
	case fault.Beat:
		for i := range r.ports {
			if e.Spec.Port == 0 || e.Spec.Port == r.ports[i].num {
				r.sendPFC(now, i, e.Spec.Prios, 0)
				s.d.Sent(e.Spec)
			}
		}
		return
	case fault.Forge:
		s.forge(r, now, e.Spec)
		return
	}
	switch e.Spec.Kind {
	case fault.Rate:
		s.rates(r)
	case fault.PFCOff:
		s.pfcOff = s.d.Active(fault.PFCOff, 0) != nil
		s.resumeAll(r, now)
	case fault.ECNOff:
		s.ecnOff = s.d.Active(fault.ECNOff, 0) != nil
	case fault.SlowReceiver, fault.PCIeStall:
		s.rx.set(r, now, s.d)
	case fault.RQEmpty, fault.RQPause, fault.MRNotReady, fault.NoResource, fault.EarlyRNR:
		s.dressAll(r)
	case fault.Set:
		r.settings(now)
	case fault.QPError:
		if e.Phase == fault.Started {
			s.breakQPs(r, now, e.Spec)
		}
	}
}

// links follows the state of the cables and of the device itself: pauses end
// with the link, and a device without power loses its queue pairs.
func (s *faultState) links(r *RNIC, now clock.Time) {
	dead := !s.d.Alive()
	if dead && !s.dead {
		s.breakQPs(r, now, nil)
		r.failStreams(now)
		r.cnps, r.cnpN = r.cnps[:0], 0
		s.rx.clear(r, now)
	}
	s.dead = dead
	for i := range r.ports {
		if !s.d.Up(r.ports[i].num) {
			s.resumePort(r, now, &r.ports[i])
		}
	}
	r.trySend(now)
}

func (s *faultState) resumeAll(r *RNIC, now clock.Time) {
	for i := range r.ports {
		s.resumePort(r, now, &r.ports[i])
	}
	r.trySend(now)
}

func (s *faultState) resumePort(r *RNIC, now clock.Time, p *txPort) {
	for prio := range 8 {
		if p.PausedUntil(prio) != 0 {
			r.resumed(now, now, p, prio)
		}
	}
}

func (s *faultState) rates(r *RNIC) {
	for i := range r.ports {
		p := &r.ports[i]
		want := r.dev.Ports[i].Rate
		if a := s.d.Active(fault.Rate, p.num); a != nil {
			want = a.Rate
		}
		if p.Rate() != want {
			p.SetRate(want)
		}
		s.d.SetRate(p.num, want)
	}
}

// breakQPs moves queue pairs to ERR: those a fault names, or all for nil.
func (s *faultState) breakQPs(r *RNIC, now clock.Time, a *fault.Spec) {
	for i := range r.pairs {
		n := int32(i)
		if r.pairs[i].id < 0 || a != nil && !a.Has(uint32(n+FirstQPN)) {
			continue
		}
		p := r.use(n)
		if p.q.State() == qp.StateErr {
			continue
		}
		if a != nil {
			s.d.Hit(a, record.Record{At: now, QPN: p.q.QPN(), Src: r.k, Dst: p.peer})
		}
		p.q.SetState(now, qp.StateErr, &r.fx)
		r.settle(now, n, p)
	}
	r.lastWork = now
}

// shortages are the faults of the receive side and what the responder makes of
// them.
var shortages = [...]struct {
	kind fault.Kind
	bit  qp.Shortage
}{{fault.RQEmpty, qp.RQEmpty}, {fault.RQPause, qp.RQPause}, {fault.MRNotReady, qp.MRNotReady}, {fault.NoResource, qp.NoResource}}

// dressAll tells every queue pair what its responder lacks now.
func (s *faultState) dressAll(r *RNIC) {
	s.short = false
	for _, x := range shortages {
		s.d.Each(x.kind, func(*fault.Spec) { s.short = true })
	}
	s.d.Each(fault.EarlyRNR, func(*fault.Spec) { s.short = true })
	for i := range r.pairs {
		if r.pairs[i].q != nil {
			s.dress(&r.pairs[i])
		}
	}
}

func (s *faultState) dress(p *pair) {
	var m qp.Shortage
	qpn := p.q.QPN()
	for _, x := range shortages {
		s.d.Each(x.kind, func(a *fault.Spec) {
			if a.Has(qpn) {
				m |= x.bit
			}
		})
	}
	p.q.Resp.SetShortage(m)
	wait := clock.Duration(-1)
	s.d.Each(fault.EarlyRNR, func(a *fault.Spec) {
		if a.Has(qpn) {
			wait = a.Wait
		}
	})
	p.q.Req.SetEarlyRNR(wait)
}

// rnrSent counts an RNR NAK as a hit of the shortages that are active.
func (s *faultState) rnrSent(r *RNIC, now clock.Time, p *pair, psn uint32) {
	for _, x := range shortages {
		s.d.Each(x.kind, func(a *fault.Spec) {
			if a.Has(p.q.QPN()) {
				s.d.Hit(a, record.Record{At: now, QPN: p.q.QPN(), Src: p.peer, Dst: r.k, PSN: psn})
			}
		})
	}
}

// rnrCut counts an RNR wait that early-rnr replaced as a hit of it.
func (s *faultState) rnrCut(r *RNIC, now clock.Time, p *pair, psn uint32) {
	s.d.Each(fault.EarlyRNR, func(a *fault.Spec) {
		if a.Has(p.q.QPN()) {
			s.d.Hit(a, record.Record{At: now, QPN: p.q.PeerQPN(), Src: r.k, Dst: p.peer, PSN: psn})
		}
	})
}

// forge puts an inject fault's frame on the cable, or lets it arrive. It takes
// no slot of the port.
func (s *faultState) forge(r *RNIC, now clock.Time, a *fault.Spec) {
	f, i := a.Forge.Frame, r.portIndex(max(a.Port, 1))
	p := &r.ports[i]
	f.At = now
	r.lastWork = now
	pause := f.Kind == wire.KindPFC || f.Kind == wire.KindPause
	if a.Dir == fault.In {
		if pause {
			r.pauseFrame(now, i, &f)
			return
		}
		r.st.rxInjected[i].Add(int(f.Len))
		r.accept(now, i, &f)
		return
	}
	if pause {
		timeline := p.Port
		timeline.SendPFC(now, &f)
	} else {
		p.Aside(now, &f)
		r.st.injected[i].Add(int(f.Len))
	}
	r.out.SendLate(p.num, &f)
}

// send puts a dequeued frame on the cable through the port's frame faults.
func (s *faultState) send(r *RNIC, now clock.Time, i int, p *txPort, f *wire.Frame) {
	got := s.d.Send(now, p.num, f, r.out)
	if f.Kind == wire.KindPFC {
		return
	}
	r.moved.sent[i].Add(int(f.Len))
	for range got.Extra {
		r.st.injected[i].Add(int(f.Len))
	}
	if got.Drop != record.NoReason {
		r.st.lost[i].Add(int(f.Len))
		s.lose(r, now, i, f, got.Drop, got.Fault)
	}
}

// receive judges an arriving frame; false = it is gone, or comes later.
func (s *faultState) receive(r *RNIC, now clock.Time, i int, f *wire.Frame) bool {
	got := s.d.In(now, r.ports[i].num, f)
	for range got.Extra {
		r.st.rxInjected[i].Add(int(f.Len))
	}
	if got.Drop == record.NoReason {
		return !got.Keep
	}
	if f.Kind != wire.KindPFC && f.Kind != wire.KindPause {
		r.st.rxDropped[i].Add(int(f.Len))
		s.lose(r, now, i, f, got.Drop, got.Fault)
	}
	return false
}

// lose counts and records a frame that a fault took.
func (s *faultState) lose(r *RNIC, now clock.Time, i int, f *wire.Frame, why record.Reason, by int32) {
	x := report.Reason(why - 1)
	r.st.drops[x]++
	if x == report.RxOverflow {
		r.st.discards++
	}
	r.chain.Mix(now, uint64(f.Op())<<56|uint64(f.DstQPN())<<32|uint64(f.PSN()), uint64(why))
	r.noteDrop(now, i, f, x, by)
}

// portIndex finds a port by its number.
func (r *RNIC) portIndex(num int) int {
	for i := range r.ports {
		if r.ports[i].num == num {
			return i
		}
	}
	return 0
}

// sendPFC pauses and resumes priorities of the peer.
func (r *RNIC) sendPFC(now clock.Time, i int, pause, resume uint8) {
	f := wire.Frame{Kind: wire.KindPFC, Len: wire.PFCFrame}
	for prio := range 8 {
		switch bit := uint8(1) << prio; {
		case pause&bit != 0:
			f.SetPFCTime(prio, r.nic.Quanta)
			r.st.txPause[prio]++
		case resume&bit != 0:
			f.SetPFCTime(prio, 0)
		}
	}
	p := &r.ports[i]
	p.SendPFC(now, &f)
	r.chain.Mix(now, 0xFD<<56|uint64(i), uint64(pause)|uint64(resume)<<8)
	if r.faults.wire {
		r.faults.send(r, now, i, p, &f)
		return
	}
	r.out.SendLate(p.num, &f)
}

func (s *faultState) snapshot(r *RNIC, w *snap.Writer) {
	w.Bool(s.d != nil)
	if s.d == nil {
		return
	}
	s.d.Snapshot(w)
	for _, b := range []bool{s.pfcOff, s.ecnOff, s.dead} {
		w.Bool(b)
	}
	for _, c := range r.st.rxInjected {
		w.U64(c.Frames)
		w.U64(c.Bytes)
	}
	s.rx.snapshot(w)
}

func (s *faultState) restore(r *RNIC, d *snap.Reader) {
	if !d.Bool() || d.Err != nil {
		return
	}
	s.on(r).Restore(d)
	for _, b := range []*bool{&s.pfcOff, &s.ecnOff, &s.dead} {
		*b = d.Bool()
	}
	for i := range r.st.rxInjected {
		r.st.rxInjected[i] = report.Count{Frames: d.U64(), Bytes: d.U64()}
	}
	s.rx.restore(d)
	if d.Err == nil {
		s.rewire(r)
		s.dressAll(r)
	}
}

// fillHeld adds what faults keep back at a port when the run ends.
func (s *faultState) fillHeld(l *report.LinkCounts, i int) {
	if s.d == nil {
		return
	}
	s.d.Waiting(l.Port, func(out bool, f *wire.Frame) {
		if out {
			l.HeldOut.Add(int(f.Len))
		} else {
			l.HeldIn.Add(int(f.Len))
		}
	})
	for k := range s.rx.q {
		if int(s.rx.q[k].port) == i {
			l.HeldIn.Add(int(s.rx.q[k].f.Len))
		}
	}
}
