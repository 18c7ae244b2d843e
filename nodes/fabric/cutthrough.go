package fabric

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// arriveHead takes a frame of which the first 64 B have come. Where it goes is
// decided now. It cuts through when its egress is no faster than its ingress
// and the port is idle (model-rules: Frames), damaged or not; otherwise it is
// kept until its last bit has passed the ingress half and goes on as by
// store-and-forward. At most one frame is kept a port: the next one's head
// comes after this one's tail.
func (s *Switch) arriveHead(now clock.Time, pn int, in *portState, f *wire.Frame, out *actors.Outbox) {
	d := s.decide(now, in, f)
	tail := s.tailLag(in, f)
	if d.why == record.NoReason && d.egress != everywhere && tail > 0 && s.mayCut(now, in, f, d) {
		if f.Has(wire.FlagBadFCS) {
			in.c.CRC++ // seen when it is too late to stop it
		}
		s.forward(now, pn, in, f, d, out)
		return
	}
	if in.holding {
		s.releaseHeld(now, pn-1, out) // only copies that a fault made come this close
	}
	in.held, in.heldTo, in.holding = *f, d, true
	in.held.At = now.Add(tail)
	s.work.set(pn-1, in.held.At)
}

// tailLag is how much later than the first 64 B the last bit comes.
func (s *Switch) tailLag(in *portState, f *wire.Frame) clock.Duration {
	r := in.port.Rate()
	full, _ := r.Serialise(int64(f.Len)+wire.Overhead, 0)
	head, _ := r.Serialise(wire.MinFrame, 0)
	return max(full-head, 0)
}

func (s *Switch) mayCut(now clock.Time, in *portState, f *wire.Frame, d decision) bool {
	e := &s.ports[d.egress-1]
	q := e.maps.tcToQueue.of(in.maps.dscpToTC[f.TOS>>2])
	return e.port.Rate() <= in.port.Rate() && e.nonEmpty == 0 && e.port.FreeAt() <= now &&
		e.pausedQueues(now)&(1<<q) == 0
}

// releaseHeld admits a frame whose tail has come.
func (s *Switch) releaseHeld(now clock.Time, i int, out *actors.Outbox) {
	in := &s.ports[i]
	s.work.set(i, clock.Never)
	in.holding = false
	f, d := &in.held, in.heldTo
	switch {
	case f.Has(wire.FlagBadFCS):
		in.c.CRC++
		s.drop(now, i+1, f, dropNote{why: record.CRC})
		return
	case s.down:
		d.why = record.DeviceDown
	case d.why == record.NoReason && d.egress != everywhere && !s.ports[d.egress-1].upOut:
		d.why = record.LinkDown
	}
	s.forward(now, i+1, in, f, d, out)
}
