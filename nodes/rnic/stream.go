package rnic

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/tcp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// Streams (`transport: tcp`) take the kernel's path: what the application
// writes reaches the stack after stack_latency; a core of its own copies every
// segment and spends per_packet on it before the NIC may send it; at the far
// end the same again, before the acknowledgement leaves (switch §0.1). A
// request is complete when its last byte is acknowledged.

// stream is the sending end of one TCP flow.
type stream struct {
	s      tcp.Sender
	writes fifo[clock.Time] // instants at which a request's bytes reach the stack, oldest first
	core   clock.Time       // the core is busy until then
	ready  clock.Time       // the next segment is copied then; Never = none in work
	cpu    clock.Duration
	wakeAt clock.Time
	inRing bool
	dead   bool
}

// initStream makes the sender of a TCP flow.
func (r *RNIC) initStream(fl *flow) {
	fl.stream = &stream{ready: clock.Never, wakeAt: clock.Never}
	fl.stream.s.Init(r.idx.tcp[tcpKey{&r.nic.TCP, fl.f.Packet, fl.f.DCTCP}])
}

// copyCost is the CPU time of n payload bytes at one end.
func copyCost(h *topology.Host, n int64) clock.Duration {
	return h.CopyRate.Span(n*int64(h.Copies)) + h.PerPacket
}

// streamDue posts what is due on a TCP flow.
func (r *RNIC) streamDue(now clock.Time, i int32, fl *flow) {
	r.postStream(now, i, fl)
	r.tendStream(now, i, fl)
	r.trySend(now)
}

// postStream writes requests while count, window and interval allow.
func (r *RNIC) postStream(now clock.Time, i int32, fl *flow) {
	f, t := fl.f, fl.stream
	for (f.Count < 0 || fl.posted < f.Count) && fl.posted-fl.done < int64(f.Window) && fl.due <= now && !t.dead {
		if r.outstanding == 0 {
			r.lastProgress = now
		}
		r.outstanding++
		fl.posted++
		fl.starts = append(fl.starts, max(now, f.Start))
		t.writes.push(now.Add(r.nic.Host.StackLatency))
		if f.Interval > 0 {
			fl.due = fl.due.Add(f.Interval)
			if fl.due > now && (f.Count < 0 || fl.posted < f.Count) {
				r.start.push(due{fl.due, i})
			}
		}
	}
}

// tendStream brings a sender up to date: bytes that reached the stack, the
// segment in work, the data ring, the wake-up.
func (r *RNIC) tendStream(now clock.Time, i int32, fl *flow) {
	t := fl.stream
	for t.writes.len() > 0 && *t.writes.front() <= now {
		t.writes.pop()
		t.s.Write(fl.f.Size)
	}
	if n := t.s.Ready(); n > 0 && t.ready == clock.Never && !t.inRing && !t.dead {
		t.core = max(t.core, now).Add(copyCost(&r.nic.Host, n))
		t.ready = max(t.core, fl.next)
	}
	if t.ready <= now && !t.inRing {
		t.ready, t.inRing = clock.Never, true
		r.data.push(i*senders + sendTCP)
	}
	at := min(t.ready, t.s.Deadline())
	if t.writes.len() > 0 {
		at = min(at, *t.writes.front())
	}
	if at < t.wakeAt {
		t.wakeAt = at
		r.wake.push(due{at, -1 - 2*i})
	}
}

// streamWake is a sender's wake-up.
func (r *RNIC) streamWake(now clock.Time, d due) {
	i := (-1 - d.id) / 2
	fl := &r.flows[i]
	t := fl.stream
	if t.wakeAt != d.at {
		return // cancelled
	}
	t.wakeAt = clock.Never
	if t.s.Deadline() <= now && !t.dead {
		r.lastWork, r.lastProgress = now, now // a step of a finite ladder
		r.chain.Mix(now, 0xF2<<56|uint64(fl.f.ID), uint64(t.s.Una()))
		if t.s.OnTimeout(now) {
			r.failStream(now, fl, report.RetryExcErr)
		}
	}
	r.tendStream(now, i, fl)
	r.trySend(now)
}

// streamTurn is a sender's turn on the data ring.
func (r *RNIC) streamTurn(now clock.Time, i int, p *txPort, n int32, f *wire.Frame) bool {
	fl := &r.flows[n]
	t := fl.stream
	if !r.streamMay(now, i, p, fl.f.DSCP, n*senders+sendTCP) {
		return false
	}
	t.inRing = false
	var g tcp.Segment
	if t.dead || !t.s.Next(now, &g) {
		r.tendStream(now, n, fl)
		return false
	}
	t.cpu += copyCost(&r.nic.Host, g.Len)
	mss := int64(fl.f.Packet)
	*f = wire.Frame{
		Kind: wire.KindTCP, Src: r.k, Dst: fl.f.To, SPort: fl.f.SPort, TOS: fl.f.DSCP << 2, TTL: 64, Iter: 1,
		Len: wire.TCPLen(g.Len), A: uint64(g.Len)<<32 | uint64(uint32(g.Seq)), B: uint64(fl.f.ID) << 32, C: uint64(now),
		Index: uint32(g.Seq/mss) + 1,
	}
	if fl.f.DCTCP {
		f.TOS |= wire.ECT0
	}
	if g.Again {
		f.Iter = 2
		fl.retrans++
	}
	r.chain.Mix(now, f.A, f.B)
	if fl.f.Rate > 0 {
		d, c := fl.f.Rate.Serialise(int64(f.Len)+wire.Overhead, fl.carry)
		fl.carry = c
		fl.next = clock.Max(fl.next, now).Add(d)
	}
	r.tendStream(now, n, fl)
	return true
}

// streamMay puts a sender aside whose priority is paused, and keeps streams on
// the first port.
func (r *RNIC) streamMay(now clock.Time, i int, p *txPort, dscp uint8, id int32) bool {
	if prio := r.nic.PrioOf[dscp&63]; p.Paused(now, int(prio)) {
		r.held[prio].push(id)
		return false
	}
	if i != 0 {
		r.data.push(id)
		return false
	}
	return true
}

// segment takes a TCP segment off the wire.
func (r *RNIC) segment(now clock.Time, f *wire.Frame) {
	id := f.StreamOf()
	if id < 0 || int(id) >= len(r.plan.Flows) || r.plan.Flows[id].Transport != topology.TCP {
		return
	}
	r.chain.Mix(now, f.A, f.B)
	fl := &r.plan.Flows[id]
	switch {
	case f.Has(wire.FlagTCPAck) && fl.From == r.k:
		r.acknowledged(now, r.localFlow(id), f)
	case !f.Has(wire.FlagTCPAck) && fl.To == r.k:
		r.received1(now, id, f)
	}
}

// acknowledged gives an acknowledgement to its sender.
func (r *RNIC) acknowledged(now clock.Time, i int32, f *wire.Frame) {
	fl := &r.flows[i]
	t := fl.stream
	if t.dead {
		return
	}
	t.cpu += r.nic.Host.PerPacket
	a := tcp.Ack{Ack: wire.Unwrap(t.s.Una(), uint32(f.B)), Echo: clock.Time(f.C), ECE: f.Has(wire.FlagECE)}
	if f.D > 0 {
		a.From = a.Ack + int64(f.A>>32)
		a.Upto = a.From + int64(f.D)
	}
	if t.s.OnAck(now, &a) > 0 {
		r.lastProgress = now
		r.streamDone(now, fl)
	}
	r.postStream(now, i, fl)
	r.tendStream(now, i, fl)
	r.trySend(now)
}

// streamDone completes the requests whose bytes are all acknowledged.
func (r *RNIC) streamDone(now clock.Time, fl *flow) {
	for fl.done < fl.posted && fl.stream.s.Una() >= (fl.done+1)*fl.f.Size {
		r.endRequest(now, fl, report.Success)
	}
}

// endRequest completes the oldest request of a stream.
func (r *RNIC) endRequest(now clock.Time, fl *flow, st report.Status) {
	start := fl.starts[0]
	fl.starts = fl.starts[:copy(fl.starts, fl.starts[1:])]
	fl.done++
	r.outstanding--
	r.sample(fl, start, now, st)
	r.chain.Mix(now, 0xC1<<56|uint64(fl.f.ID), uint64(st))
}

// failStream gives a stream up: the oldest request fails with st, what is
// posted behind it is flushed, and the rest of its count is never posted.
func (r *RNIC) failStream(now clock.Time, fl *flow, st report.Status) {
	t := fl.stream
	t.dead, t.ready, fl.failed = true, clock.Never, true
	t.writes.clear()
	for fl.done < fl.posted {
		r.endRequest(now, fl, st)
		st = report.WRFlushErr
	}
}

// failStreams ends every stream of a device that lost its state: what starts
// here is flushed, what ends here answers no more.
func (r *RNIC) failStreams(now clock.Time) {
	for i := range r.flows {
		if fl := &r.flows[i]; fl.stream != nil && !fl.stream.dead && fl.posted > 0 {
			r.failStream(now, fl, report.WRFlushErr)
		}
	}
	for i := range r.sinks {
		r.sinks[i].gone = true
	}
}

// streamTimer sorts a wake-up by the end it belongs to.
func (r *RNIC) streamTimer(now clock.Time, d due) {
	if d.id&1 != 0 {
		r.streamWake(now, d)
		return
	}
	r.sinkWake(now, d)
}

// fillStream tells of a TCP flow what its samples do not.
func (r *RNIC) fillStream(part *report.Part, fl *flow, end clock.Time) {
	t := fl.stream
	fp := report.FlowPart{Flow: fl.f.ID, Posted: fl.posted, Retransmitted: fl.retrans, CPU: t.cpu, LastProgress: r.lastProgress}
	part.Retransmitted += fl.retrans
	if fl.done < fl.posted || fl.f.Count > 0 && fl.posted < fl.f.Count {
		fp.BytesDone = t.s.Una() - fl.done*fl.f.Size
		fp.Why, fp.Oldest = r.whyStream(fl), fl.oldest(end)
	}
	part.Flows = append(part.Flows, fp)
}

// whyStream tells what an unfinished stream waits for.
func (r *RNIC) whyStream(fl *flow) string {
	t, s := fl.stream, &fl.stream.s
	switch prio := r.nic.PrioOf[fl.f.DSCP&63]; {
	case fl.posted == 0:
		return "not started: its start " + fl.f.Start.String() + " was not reached"
	case t.dead:
		return "its stream was given up"
	case fl.done == fl.posted:
		return report.NotDue
	case r.held[prio].n > 0:
		return fmt.Sprintf("priority %d of %s is paused since %v", prio, r.dev.Name, r.pausedSince(prio))
	case s.Deadline() == clock.Never:
		return fmt.Sprintf("byte %d of the stream was not sent yet", s.Sent())
	}
	return fmt.Sprintf("no acknowledgement beyond byte %d, timeouts in a row %d, RTO %v at %v", s.Una(), s.Timeouts(), s.RTO(), s.Deadline())
}

// fillSinks tells what TCP flows brought here.
func (r *RNIC) fillSinks(part *report.Part) {
	for i := range r.sinks {
		k := &r.sinks[i]
		if n := k.r.Next(); n > 0 || k.cpu > 0 {
			part.Received = append(part.Received, report.RecvPart{Flow: k.id, Messages: n / k.f.Size, Bytes: n, Last: k.last, CPU: k.cpu})
		}
	}
}
