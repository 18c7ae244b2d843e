package cc

import (
	"math/bits"

	"github.com/rocemu/rocemu/clock"
)

// SwiftParams are Swift's parameters (transport §5.4). Fractions are × 1/1024.
type SwiftParams struct {
	BaseTarget clock.Duration // fabric delay aimed at on a direct path
	HopScale   clock.Duration // per hop
	Hops       int64
	FSRange    clock.Duration // most that flow scaling adds at a small window; 0 = off
	AI         int64          // packets an RTT
	Beta       int64
	MaxMDF     int64
	MaxCwnd    int64 // packets; the window a QP starts with
}

// DefaultSwift returns parameters that fit a rack at 100 Gb/s; they are our
// own, the paper's were not read.
func DefaultSwift() SwiftParams {
	return SwiftParams{
		BaseTarget: 10 * clock.Microsecond, HopScale: clock.Microsecond, Hops: 3,
		FSRange: 10 * clock.Microsecond, AI: 1024, Beta: 819, MaxMDF: 512, MaxCwnd: 256,
	}
}

// cwndOne is a window of one packet in fixed point; cwndMin the smallest.
const (
	cwndOne = 1 << 20
	cwndMin = cwndOne >> 10
)

// Swift keeps a delay-based window of one QP, from timestamps only. Below one
// packet the window becomes a pace.
type Swift struct {
	p        *SwiftParams
	cwnd     int64 // packets × 2^20
	rtt      clock.Duration
	delay    clock.Duration
	lastCut  clock.Time
	lastSent clock.Time
	timeouts int
}

// SetParams replaces the parameters; the window stays.
func (s *Swift) SetParams(p *SwiftParams) { s.p = p }

// Init makes s a sender with the largest window.
func (s *Swift) Init(p *SwiftParams) {
	*s = Swift{p: p, cwnd: p.MaxCwnd * cwndOne, lastCut: -1, lastSent: -1}
}

// Window returns the window in packets × 2^20.
func (s *Swift) Window() int64 { return s.cwnd }

// NextSend implements [Controller].
func (s *Swift) NextSend(now clock.Time, inflight int64) clock.Time {
	if s.cwnd >= cwndOne {
		if inflight < s.cwnd/cwndOne {
			return 0
		}
		return clock.Never
	}
	if inflight > 0 {
		return clock.Never
	}
	if s.lastSent < 0 {
		return 0
	}
	return s.lastSent.Add(s.rtt * cwndOne / clock.Duration(s.cwnd))
}

// OnSent implements [Controller].
func (s *Swift) OnSent(now clock.Time, l int64) { s.lastSent = now }

// Target returns the delay aimed at: base, hops, and what a small window adds.
func (s *Swift) Target() clock.Duration {
	t := s.p.BaseTarget + s.p.HopScale*clock.Duration(s.p.Hops)
	if s.p.FSRange == 0 {
		return t
	}
	// range / sqrt(cwnd), at most range: 2^10·sqrt(cwnd in packets).
	root := isqrt(uint64(max(s.cwnd, 1)))
	return t + min(s.p.FSRange, s.p.FSRange*1024/clock.Duration(max(root, 1)))
}

// OnFeedback implements [Controller].
func (s *Swift) OnFeedback(now clock.Time, fb Feedback) {
	if fb.RTT > 0 {
		s.rtt = fb.RTT
		s.delay = fb.RTT
		if fb.Delay > 0 {
			s.delay = fb.Delay
		}
	}
	switch fb.Kind {
	case Ack:
		s.timeouts = 0
		s.onAck(now, fb.Acked)
	case Loss:
		s.shrink(now, 1024-s.p.MaxMDF)
	case Timeout:
		if s.timeouts++; s.timeouts > 1 {
			s.cwnd = cwndMin
		} else {
			s.shrink(now, 1024-s.p.MaxMDF)
		}
	}
}

func (s *Swift) onAck(now clock.Time, acked int64) {
	target := s.Target()
	if s.delay == 0 || acked <= 0 {
		return
	}
	if s.delay < target {
		ai := s.p.AI * (cwndOne / 1024) * acked
		if s.cwnd >= cwndOne {
			ai = int64(mulDiv(uint64(ai), cwndOne, uint64(s.cwnd)))
		}
		s.cwnd = min(s.cwnd+ai, s.p.MaxCwnd*cwndOne)
		return
	}
	over := int64(mulDiv(uint64(s.p.Beta), uint64(s.delay-target), uint64(s.delay)))
	s.shrink(now, max(1024-over, 1024-s.p.MaxMDF))
}

// shrink multiplies the window by f/1024, at most once a round trip.
func (s *Swift) shrink(now clock.Time, f int64) {
	if s.lastCut >= 0 && now.Sub(s.lastCut) < s.rtt {
		return
	}
	s.lastCut = now
	s.cwnd = max(s.cwnd*f/1024, cwndMin)
}

func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// isqrt is the integer square root.
func isqrt(x uint64) uint64 {
	if x < 2 {
		return x
	}
	r := uint64(1) << ((bits.Len64(x) + 1) / 2)
	for {
		n := (r + x/r) / 2
		if n >= r {
			return r
		}
		r = n
	}
}
