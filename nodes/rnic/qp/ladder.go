package qp

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
)

// LadderParams are the inputs of Ladder: QP attributes, and the exponents
// that the article's formula reads.
type LadderParams struct {
	Timeout, Retry, RNR  uint8 // RNR = the responder's min_rnr_timer
	RNRRetry             uint8
	PacketLife, AckDelay uint8
	Retry7Infinite       bool
	Floor, ArticleFloor  clock.Duration
}

// Rung is one step of a ladder, counted from the first dequeue.
type Rung struct {
	N  int // 0 = first transmission, 1.. = resends
	At clock.Time
}

// LadderSide is one reading of the timers, under total silence from the first
// dequeue on.
type LadderSide struct {
	Name       string
	T          clock.Duration // timeout in force
	Asked      clock.Duration // before the floor
	Clamped    bool
	Rungs      []Rung
	LastChance clock.Time // last resend: Retry × T. Both directions must work by then
	Failure    clock.Time // RETRY_EXC_ERR: (Retry+1) × T; Never if retried for ever
	RNRWait    clock.Duration
	RNRFailure clock.Duration // shortest span from the first RNR to RNR_RETRY_EXC_ERR, -1 = never
}

// Ladder returns the whole ladder in the standard's and in the article's
// reading (transport §3.1, §3.3, §4 rows 5, 6, 15).
func Ladder(p LadderParams) (standard, article LadderSide, err error) {
	switch {
	case p.Timeout > 31:
		err = fmt.Errorf("qp: timeout %d: allowed 0..31", p.Timeout)
	case p.Retry > 7:
		err = fmt.Errorf("qp: retry_cnt %d: allowed 0..7", p.Retry)
	case p.RNR > 31:
		err = fmt.Errorf("qp: min_rnr_timer %d: allowed 0..31", p.RNR)
	case p.RNRRetry > 7:
		err = fmt.Errorf("qp: rnr_retry %d: allowed 0..7", p.RNRRetry)
	}
	if err != nil {
		return standard, article, err
	}
	std, _ := ResolveTimeout(TimeoutParams{Exponent: p.Timeout, Floor: p.Floor})
	art, _ := ResolveTimeout(TimeoutParams{Mode: TimeoutArticle, PacketLife: p.PacketLife, AckDelay: p.AckDelay, Floor: p.ArticleFloor})
	if p.PacketLife == 0 && p.AckDelay == 0 { // no connection data: the exponent as it stands
		art = TimeoutValue{Asked: AckTimeout(p.Timeout), T: max(AckTimeout(p.Timeout), p.ArticleFloor)}
		art.Clamped = art.T != art.Asked
	}
	return ladderSide("standard", p, std, false), ladderSide("article", p, art, true), nil
}

func ladderSide(name string, p LadderParams, v TimeoutValue, linear bool) LadderSide {
	s := LadderSide{Name: name, T: v.T, Asked: v.Asked, Clamped: v.Clamped, RNRWait: RNRWait(p.RNR, linear), RNRFailure: -1}
	s.LastChance, s.Failure = clock.Never, clock.Never
	// The article calls an initial retry counter of 7 endless (row 15b).
	endless := p.Retry == 7 && p.Retry7Infinite
	if v.T > 0 {
		for n := 0; n <= int(p.Retry); n++ {
			s.Rungs = append(s.Rungs, Rung{n, clock.Time(v.T) * clock.Time(n)})
		}
		if !endless {
			s.LastChance = clock.Time(v.T) * clock.Time(p.Retry)
			s.Failure = clock.Time(v.T) * (clock.Time(p.Retry) + 1)
		}
	}
	if p.RNRRetry < 7 {
		s.RNRFailure = s.RNRWait * clock.Duration(p.RNRRetry)
	}
	return s
}
