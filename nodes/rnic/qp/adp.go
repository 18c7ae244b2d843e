package qp

import "github.com/rocemu/rocemu/clock"

// ADP is adaptive retransmission (transport §3.5): the timeout is Base × 2^v
// where v moves with expiries and progress instead of following the QP's
// exponent, which stays the cap.
type ADP struct {
	Base       clock.Duration // a power of two times 4 us in hardware
	InitLow    uint8          // first v = rand(InitLow, InitLow+InitRange-1)
	InitRange  uint8
	Ranges     [4]ADPRange // ascending; unused ones are zero
	NRanges    uint8
	StartIndex uint8 // range entered by a v outside all of them
	PerValue   uint8 // expiries with one v before it doubles, at least 1
	Dec        uint8 // on progress: v falls by this; 0 = reset to the range's low
	Total      clock.Duration
}

// ADPRange is a span of exponents.
type ADPRange struct{ Low, High uint8 }

// DefaultADP is a profile with the shape of what was measured on ConnectX
// NICs (first expiries of a few milliseconds, doubling, then the cap). The
// figures of the vendor's profile 0 are not published: unverified.
func DefaultADP() *ADP {
	return &ADP{
		Base: 4096 * clock.Nanosecond, InitLow: 10, InitRange: 2,
		Ranges: [4]ADPRange{{10, 14}}, NRanges: 1, PerValue: 1, Dec: 2,
	}
}

// adpState is a QP's place in the adaptive schedule.
type adpState struct {
	spent clock.Duration // without progress
	arms  uint32         // ACK timers started, for WindowT4
	val   uint8
	used  uint8 // expiries with val
	rng   uint8
	begun bool
}

func (s *adpState) init() { *s = adpState{arms: s.arms} }

// timeout returns the adaptive timeout, at most limit.
func (s *adpState) timeout(r *Requester, limit clock.Duration) clock.Duration {
	cfg := r.c.cfg
	a := cfg.ADP
	if !s.begun {
		s.begun = true
		x := clock.Mix(cfg.Seed^r.key, uint64(a.InitLow), 0x414450)
		s.val = a.InitLow + uint8(x%uint64(max(a.InitRange, 1)))
		s.rng = a.NRanges
	}
	return min(a.Base<<min(s.val, 31), limit)
}

// expired steps on an expiry that took t; false = the total budget is spent.
func (s *adpState) expired(a *ADP, cfg *Config, t clock.Duration) bool {
	s.spent += t
	total := a.Total
	if total == 0 {
		total = cfg.Timeout * clock.Duration(cfg.RetryCnt)
	}
	if s.spent >= total {
		return false
	}
	if a.NRanges == 0 {
		s.val = min(s.val+1, 31)
		return true
	}
	if s.rng >= a.NRanges {
		s.enter(a)
		return true
	}
	if s.used++; s.used < max(a.PerValue, 1) {
		return true
	}
	s.used = 0
	if s.val < a.Ranges[s.rng].High {
		s.val++
	} else if s.rng+1 < a.NRanges {
		s.rng++
		s.val = max(s.val, a.Ranges[s.rng].Low)
	}
	return true
}

// enter finds the range of val, or starts at the configured one.
func (s *adpState) enter(a *ADP) {
	for i := uint8(0); i < a.NRanges; i++ {
		if s.val >= a.Ranges[i].Low && s.val <= a.Ranges[i].High {
			s.rng = i
			return
		}
	}
	s.rng = min(a.StartIndex, a.NRanges-1)
	s.val = a.Ranges[s.rng].Low
}

// progress lets the timeout fall again.
func (s *adpState) progress(a *ADP) {
	s.spent = 0
	if a == nil || !s.begun || s.rng >= a.NRanges {
		return
	}
	s.used = 0
	low := a.Ranges[s.rng].Low
	if a.Dec == 0 {
		s.val = low
		return
	}
	s.val -= min(s.val, a.Dec)
	if s.val < low && s.rng > 0 {
		s.rng--
	}
	s.val = max(s.val, a.Ranges[s.rng].Low)
}
