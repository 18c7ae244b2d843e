// Package port is one port's transmit side as every RNIC and switch has it: when
// the scheduler may dequeue again, when a dequeued frame reaches the peer's
// state, when a PFC frame goes out between two frames, and which priorities the
// peer has paused. It queues nothing. Start at [Port.Transmit].
package port

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// Port is a value; its zero is not usable, see [New].
type Port struct {
	// What every frame touches: a cache line, and up to two more of macRing.few.
	freeAt   clock.Time     // the scheduler may dequeue from here on
	byteTime clock.Duration // exact time of a byte, 0 when it is no whole number
	egress   clock.Duration // dequeue to MAC
	flight   clock.Duration // propagation + the peer's ingress half
	macRing

	rate      clock.Rate
	carry     int64         // remainder of the serialisation, model-rules "Frames"
	until     [8]clock.Time // a priority is paused before this instant
	pfcEnd    clock.Time    // MAC end of the last PFC frame
	prop      clock.Duration
	pfcLag    clock.Duration // last bit at the peer to the pause acting on its scheduler
	pauseBack clock.Duration // reception lies this long before a pause acts here
}

// headerBytes of a frame let a peer that cuts through begin.
const headerBytes = 64

// New builds the port of a plan. trackMAC is set for ports that generate PFC.
func New(p *topology.Port, trackMAC bool) Port {
	x := Port{
		rate: p.Rate, egress: p.EgressHalf, prop: p.Prop,
		flight:    p.Prop + p.PeerIngressHalf,
		pfcLag:    p.PeerResponse - p.PeerEgressHalf,
		pauseBack: p.Response - p.EgressHalf,
	}
	x.setRate(p.Rate)
	x.cuts, x.on = p.PeerCutThrough, trackMAC
	x.places(p.EgressHalf, x.Slot(macFrame))
	return x
}

func (p *Port) setRate(r clock.Rate) {
	p.rate, p.byteTime = r, 0
	if d, rem := r.Serialise(1, 0); rem == 0 {
		p.byteTime = d
	}
}

// SetRate changes the line rate (a fault or a live change) for frames dequeued
// from now on.
func (p *Port) SetRate(r clock.Rate) { p.carry = 0; p.setRate(r) }

// Rate returns the line rate.
func (p *Port) Rate() clock.Rate { return p.rate }

// FreeAt is the earliest instant of the next dequeue.
func (p *Port) FreeAt() clock.Time { return p.freeAt }

// Busy reports whether the port cannot dequeue at now.
func (p *Port) Busy(now clock.Time) bool { return p.freeAt > now }

// Slot returns how long n bytes with preamble and gap occupy the port.
func (p *Port) Slot(n int64) clock.Duration {
	d, _ := p.rate.Serialise(n+wire.Overhead, 0)
	return d
}

// Transmit dequeues f at now and sets f.At, see Depart.
func (p *Port) Transmit(now clock.Time, f *wire.Frame) { f.At = p.Depart(now, f.Len) }

// Depart dequeues a frame of length l at now, which must not lie before FreeAt, and
// returns when it arrives at the peer. It moves FreeAt on by (L+20)·8/R with the
// remainder carried.
func (p *Port) Depart(now clock.Time, l uint16) (at clock.Time) {
	n := clock.Duration(l) + wire.Overhead
	d := n * p.byteTime
	if p.byteTime == 0 {
		d = p.inexact(now, n)
	}
	p.freeAt = now + clock.Time(d)
	start := now + clock.Time(p.egress)
	last := start + clock.Time(d)
	at = last + clock.Time(p.flight)
	if p.cuts {
		at = start + clock.Time(p.headTime()+p.flight)
	}
	if p.on { // the frame takes the place of the oldest in few, which has left as a rule
		i, t := p.next&(macPlaces-1), uint64(last-p.base)
		if q := &p.few[i]; t>>32 == 0 && uint64(q.end()) <= uint64(now-p.base) {
			*q, p.next = newMacPlace(uint64(start-p.base), t), (i+1)&p.mask
		} else {
			p.crowd(now, macSpan{start, last})
		}
	}
	return at
}

// Aside gives an extra frame the times it would have after what is being sent,
// and leaves the port as it is.
func (p *Port) Aside(now clock.Time, f *wire.Frame) {
	q := *p
	q.on = false // the copy has the ring in common
	q.Transmit(max(now, q.freeAt), f)
}

// inexact is the time of n bytes where that of one is no whole number.
func (p *Port) inexact(now clock.Time, n clock.Duration) (d clock.Duration) {
	if now != p.freeAt {
		p.carry = 0
	}
	d, p.carry = p.rate.Serialise(int64(n), p.carry)
	return d
}

// headTime is how long a peer that cuts through waits for the headers.
func (p *Port) headTime() clock.Duration {
	d, _ := p.rate.Serialise(headerBytes, 0)
	return d
}

// TailLag is how much later than At the last bit of a frame of L bytes passes
// the ingress half of a receiver that cuts through; 0 for store-and-forward.
func (p *Port) TailLag(l int64) clock.Duration {
	if !p.cuts {
		return 0
	}
	full, _ := p.rate.Serialise(l+wire.Overhead, 0)
	head, _ := p.rate.Serialise(headerBytes, 0)
	return full - head
}

// SendPFC generates f at now: it leaves at the next frame boundary of the MAC,
// and f.At becomes the instant it acts on the peer's scheduler. The slot of
// 84 bytes is charged to the next dequeue.
func (p *Port) SendPFC(now clock.Time, f *wire.Frame) {
	start := clock.Max(p.boundary(now), p.pfcEnd)
	slot := p.Slot(wire.PFCFrame)
	p.pfcEnd = start.Add(slot)
	p.freeAt = clock.Max(p.freeAt, now).Add(slot)
	f.At = p.pfcEnd.Add(p.prop + p.pfcLag)
}

// PauseSpan returns how long q quanta of 512 bit times last.
func (p *Port) PauseSpan(q uint16) clock.Duration {
	return p.rate.Span(int64(q) * 64)
}

// RefreshSpan returns how long a sender of pauses of q quanta waits before it
// repeats one: half the pause, so that it never runs out, but at least two slots
// of a PFC frame, so that the shortest pauses leave half of the link to frames.
func (p *Port) RefreshSpan(q uint16) clock.Duration {
	return max(p.PauseSpan(q)/2, 2*p.Slot(wire.PFCFrame))
}

// Pause applies time[prio] = q of a PFC frame that acts at now. The timer runs
// from reception, so it ends that much earlier. It returns whether the priority
// was paused before and is after.
func (p *Port) Pause(now clock.Time, prio int, q uint16) (was, is bool) {
	was = p.Paused(now, prio)
	p.until[prio] = 0
	p.paused &^= 1 << prio
	if q != 0 {
		u := now.Add(p.PauseSpan(q) - p.pauseBack)
		if u > now {
			p.until[prio] = u
			p.paused |= 1 << prio
			is = true
		}
	}
	return was, is
}

// PauseLag is how long after its reception a PFC frame acts on the scheduler.
func (p *Port) PauseLag() clock.Duration { return p.pauseBack }

// Paused reports whether a priority may not start a frame at now.
func (p *Port) Paused(now clock.Time, prio int) bool { return p.until[prio] > now }

// MayPause reports whether some priority was paused and not resumed; the pause
// may have run out.
func (p *Port) MayPause() bool { return p.paused != 0 }

// PausedMask returns the mask of priorities paused at now.
func (p *Port) PausedMask(now clock.Time) uint8 {
	m := p.paused
	if m == 0 {
		return 0
	}
	for i := range 8 {
		if m&(1<<i) != 0 && p.until[i] <= now {
			m &^= 1 << i
		}
	}
	return m
}

// PausedUntil returns the end of a priority's pause, 0 when it has none.
func (p *Port) PausedUntil(prio int) clock.Time { return p.until[prio] }

// NextExpiry is the earliest end of a pause still running at now, or Never.
func (p *Port) NextExpiry(now clock.Time) clock.Time {
	t := clock.Never
	for i := range 8 {
		if p.paused&(1<<i) != 0 && p.until[i] > now {
			t = min(t, p.until[i])
		}
	}
	return t
}

// ClearPause forgets all pauses (device reset).
func (p *Port) ClearPause() { p.until = [8]clock.Time{}; p.paused = 0 }

// Snapshot writes the changing state.
func (p *Port) Snapshot(w *snap.Writer) {
	w.I64(int64(p.rate))
	w.Time(p.freeAt)
	w.I64(p.carry)
	w.Time(p.pfcEnd)
	w.U8(p.paused)
	for _, u := range p.until {
		w.Time(u)
	}
	p.macRing.snapshot(w)
}

// Restore reads what Snapshot wrote.
func (p *Port) Restore(r *snap.Reader) {
	if rate := clock.Rate(r.I64()); rate > 0 {
		p.setRate(rate)
	}
	p.freeAt = r.Time()
	p.carry = r.I64()
	p.pfcEnd = r.Time()
	p.paused = r.U8()
	for i := range p.until {
		p.until[i] = r.Time()
	}
	p.macRing.restore(r)
}
