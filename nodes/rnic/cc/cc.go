// Package cc is congestion control as pure machines: [DCQCN]'s reaction point
// and [Swift] behind one [Controller], the notification point [NP] that paces
// CNPs, and the [Pacer] that spaces packets at a rate exactly. Integers only;
// periodic timers are advanced by elapsed count when a machine is touched, with
// the values that ticking would give.
//
// An RNIC holds one Controller a sending QP: it asks NextSend before a dequeue,
// calls OnSent at it, and OnFeedback for CNPs, acknowledgements and losses.
package cc

import "github.com/rocemu/rocemu/clock"

// Kind of feedback.
type Kind uint8

// Feedback kinds.
const (
	CNP Kind = iota
	Ack
	Loss    // NAK, implied NAK
	Timeout // local ACK timeout
)

// Feedback is one signal to a sender.
type Feedback struct {
	Kind  Kind
	Acked int64          // packets newly acknowledged, with Ack
	RTT   clock.Duration // of a timed packet, 0 = none
	Delay clock.Duration // fabric delay, one way, of a timed packet, 0 = none
}

// Controller is the seam for congestion control of one QP.
type Controller interface {
	// NextSend returns the earliest instant at which a packet may leave with
	// inflight packets unacknowledged; Never = feedback must come first.
	NextSend(now clock.Time, inflight int64) clock.Time
	// OnSent accounts a frame of l bytes (destination MAC through FCS)
	// dequeued at now.
	OnSent(now clock.Time, l int64)
	// OnFeedback takes a signal that arrived at now.
	OnFeedback(now clock.Time, fb Feedback)
}

// Overhead is what a frame occupies on the wire beyond its bytes.
const Overhead = 20

// Pacer spaces packets at a rate. A packet that leaves up to one packet time
// late does not move the schedule, so the average is exact; the remainder of
// each division is carried while the rate stays.
type Pacer struct {
	Next  clock.Time // earliest next departure
	carry int64
	rate  clock.Rate
}

// Sent accounts l bytes that left at now at rate r.
func (p *Pacer) Sent(now clock.Time, l int64, r clock.Rate) {
	if r != p.rate {
		p.rate, p.carry = r, 0
	}
	base := p.Next
	d, carry := r.Serialise(l+Overhead, p.carry)
	if now.Sub(base) > d || base == 0 {
		base = now
		d, carry = r.Serialise(l+Overhead, 0)
	}
	p.Next, p.carry = base.Add(d), carry
}
