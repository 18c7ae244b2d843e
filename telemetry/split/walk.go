package split

import (
	"sort"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// walker goes back in time from a flow's end; what it passes is booked, so the
// parts add up whatever it finds.
type walker struct {
	w     *Watcher
	p     *pair
	out   Split
	now   clock.Time // everything after it is booked
	start clock.Time
	way   []hop // scratch
}

// book attributes the time from t to now and goes there; never before start.
func (k *walker) book(part Part, t clock.Time) {
	t = clock.Max(t, k.start)
	if t < k.now {
		k.out.Parts[part] += k.now.Sub(t)
		k.now = t
	}
}

// walk splits the time of a flow between start and end.
func (w *Watcher) walk(p *pair, start, end clock.Time) Split {
	k := &walker{w: w, p: p, now: end, start: start, out: Split{Flow: p.flow, Start: start, End: end}}
	// The completion was caused by the last answer that had arrived.
	f := arrived(p.sides[0], end)
	for n := 0; f != nil && k.now > start && n < maxSteps; n++ {
		k.book(Host, f.last)
		k.journey(f)
		f = k.before(f)
	}
	k.atSender(p.q.A, start)
	return k.out
}

// arrived returns the frame of a side that came to its end latest, not after t.
func arrived(side []*frame, t clock.Time) *frame {
	// Frames of a queue pair keep their order but for lost ones, so the search
	// by time of sending finds the neighbourhood.
	i := sort.Search(len(side), func(i int) bool { return side[i].sent > t })
	var best *frame
	for j := i - 1; j >= 0 && j > i-4096; j-- {
		at := side[j].last
		if at <= t && (best == nil || at > best.last) {
			best = side[j]
		}
		if best != nil && at < best.last {
			break
		}
	}
	return best
}

// journey books a frame's way, from its arrival back to its first dequeue.
func (k *walker) journey(f *frame) {
	k.way = k.p.way(k.way[:0], f)
	for i := len(k.way) - 1; i >= 0; i-- {
		h := &k.way[i]
		t := &k.w.cables[h.tap]
		k.book(Pipeline, h.at.Add(-t.port.PeerIngressHalf))
		k.book(Fibre, h.at.Add(-t.port.PeerIngressHalf-t.port.Prop))
		sent := h.at.Add(-fixed(t.port, k.slot(f, t.port)))
		if i > 0 {
			// A remainder carried from frame to frame makes a slot a picosecond
			// shorter at times: nothing leaves before it came.
			sent = clock.Max(sent, k.way[i-1].at)
		}
		k.book(Serialisation, sent.Add(t.port.EgressHalf))
		k.book(Pipeline, sent)
		if i > 0 {
			k.wait(t, k.way[i-1].at)
		}
	}
}

// slot is a frame's serialisation on a hop; all its frames have one length.
func (k *walker) slot(f *frame, p *topology.Port) clock.Duration {
	first := k.w.cables[f.tap].port
	if p.Rate == first.Rate {
		return f.slot
	}
	bytes := int64(f.slot) * int64(first.Rate) / 8_000_000_000_000
	for first.Rate.Span(bytes) < f.slot {
		bytes++
	}
	return p.Rate.Span(bytes)
}

// wait books the time in a switch's queue back to its arrival there.
func (k *walker) wait(t *cable, from clock.Time) {
	k.cut(k.w.pauses[place{t.dev, uint16(t.port.Num), k.p.prio}], Pause, Queue, from)
}

// cut books back to from: what lies in the intervals as in, the rest as out.
func (k *walker) cut(ivs []interval, in, out Part, from clock.Time) {
	i := sort.Search(len(ivs), func(i int) bool { return ivs[i].from >= k.now })
	for i--; i >= 0 && k.now > from; i-- {
		if ivs[i].to <= from {
			break
		}
		k.book(out, clock.Max(ivs[i].to, from))
		k.book(in, clock.Max(ivs[i].from, from))
	}
	k.book(out, from)
}

// before finds what a frame waited for at its sender, books that wait, and
// returns the frame to go on with: one that came from the other end, or nil
// when the flow began there.
func (k *walker) before(f *frame) *frame {
	mine, other := k.p.sides[1], k.p.sides[0]
	who := k.p.q.A
	if !f.toward {
		mine, other, who = other, mine, k.p.q.B
	}
	for steps := 0; steps < maxSteps; steps++ {
		cause := arrived(other, f.sent)
		i := sort.Search(len(mine), func(i int) bool { return mine[i].sent >= f.sent })
		var prev *frame
		if i > 0 {
			prev = mine[i-1]
		}
		if cause != nil && k.answers(f) {
			at := cause.last
			if prev == nil || at >= prev.sent.Add(prev.slot) || !f.toward {
				k.atSender(who, at)
				return cause
			}
		}
		if prev == nil {
			return nil
		}
		k.atSender(who, prev.sent.Add(prev.slot))
		k.sending(prev)
		f = prev
	}
	return nil
}

// answers reports whether a frame can wait for one from the other end: the
// first of a message, and everything that a responder sends first.
func (k *walker) answers(f *frame) bool {
	switch op := wire.Opcode(f.op); op {
	case wire.ReadRespMiddle, wire.ReadRespLast, wire.WriteMiddle, wire.WriteLast, wire.WriteLastImm,
		wire.SendMiddle, wire.SendLast, wire.SendLastImm, wire.SendLastInv:
		return false
	}
	return true
}

// sending books the slot of a frame on its sender's cable.
func (k *walker) sending(f *frame) {
	if f.iter > 1 {
		k.book(Retransmission, f.sent)
		return
	}
	k.book(Serialisation, f.sent)
}

// atSender books a wait at an RNIC back to from: paused, in trouble, or the
// host's own.
func (k *walker) atSender(rnic uint32, from clock.Time) {
	dev := k.w.plan.RNICs[rnic-1]
	pauses := k.w.pauses[place{dev, 1, k.p.prio}]
	i := sort.Search(len(k.p.trouble), func(i int) bool { return k.p.trouble[i].from >= k.now })
	for i--; i >= 0 && k.now > from; i-- {
		t := k.p.trouble[i]
		if t.to <= from {
			break
		}
		k.cut(pauses, Pause, Host, clock.Max(t.to, from))
		k.book(Retransmission, clock.Max(t.from, from))
	}
	k.cut(pauses, Pause, Host, clock.Max(from, k.start))
}
