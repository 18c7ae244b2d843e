package qp

import (
	"errors"
	"fmt"

	"github.com/rocemu/rocemu/clock"
)

// CMLinux returns the timeout exponent that Linux makes of the target's ACK
// delay and the packet lifetime, both exponents, without logarithms
// (transport §3.2).
func CMLinux(delay, life uint8) uint8 {
	t := int(life) + 1
	d := int(delay)
	if t >= d {
		if d >= t-1 {
			t++
		}
	} else {
		up := 0
		if t >= d-1 {
			up = 1
		}
		t = d + up
	}
	return uint8(min(t, 31))
}

// CMExact returns 4.096 us × (2·2^life + 2^delay), unrounded.
func CMExact(delay, life uint8) clock.Duration {
	return AckUnit*clock.Duration(2<<min(life, 31)) + AckUnit<<min(delay, 31)
}

// CMExponent returns the smallest exponent whose timeout is at least
// CMExact(delay, life), 31 if none is: what a 5-bit field can carry.
func CMExponent(delay, life uint8) uint8 {
	t := CMExact(delay, life)
	n := uint8(1)
	for n < 31 && AckTimeout(n) < t {
		n++
	}
	return n
}

// CMArticle returns the article's reading, which takes the exponents for
// times: 4.096 us × (2·life + delay).
func CMArticle(delay, life uint8) clock.Duration {
	return AckUnit * clock.Duration(2*int(life)+int(delay))
}

// CMOffer is what one side proposes in REQ or REP.
type CMOffer struct {
	MTU             int
	InitiatorDepth  int // READs and atomics it wants in flight
	ResponderDepth  int // resources it has
	RetryCnt        uint8
	RNRRetry        uint8
	AckDelay        uint8 // of its own CA
	PacketLife      uint8
	MinRNRTimer     uint8
	AltPath         bool
	EndToEndCredits bool
}

// CMResult is the negotiated connection as the active side uses it.
type CMResult struct {
	MTU             int
	MaxRdAtomic     int // of the active side
	MaxDestRdAtomic int
	PeerRdAtomic    int   // of the passive side
	Exponent        uint8 // of Exact, rounded up
	LinuxExponent   uint8
	Linux           clock.Duration
	Exact           clock.Duration
	Article         clock.Duration
	AltPath         bool
	Credits         bool
}

// Negotiate joins an active side's REQ and a passive side's REP: the smaller
// depth in each direction, the target's ACK delay for our timeout. strict
// refuses differing path MTUs instead of taking the smaller.
func Negotiate(req, rep CMOffer, strict bool) (CMResult, error) {
	var errs []error
	for i, o := range []CMOffer{req, rep} {
		who := [...]string{"REQ", "REP"}[i]
		errs = append(errs, o.check(who))
	}
	if strict && req.MTU != rep.MTU {
		errs = append(errs, fmt.Errorf("qp: connect: path mtu %d of REQ against %d of REP: both sides need the same", req.MTU, rep.MTU))
	}
	if req.InitiatorDepth > 0 && rep.ResponderDepth == 0 {
		errs = append(errs, fmt.Errorf("qp: connect: initiator depth %d of REQ but responder depth 0 of REP: no READ or atomic could be answered", req.InitiatorDepth))
	}
	if req.AltPath != rep.AltPath {
		errs = append(errs, fmt.Errorf("qp: connect: alternate path offered by one side only"))
	}
	if err := errors.Join(errs...); err != nil {
		return CMResult{}, err
	}
	n := CMLinux(rep.AckDelay, req.PacketLife)
	return CMResult{
		MTU:             min(req.MTU, rep.MTU),
		MaxRdAtomic:     min(req.InitiatorDepth, rep.ResponderDepth),
		MaxDestRdAtomic: req.ResponderDepth,
		PeerRdAtomic:    min(rep.InitiatorDepth, req.ResponderDepth),
		Exponent:        CMExponent(rep.AckDelay, req.PacketLife),
		LinuxExponent:   n,
		Linux:           AckTimeout(n),
		Exact:           CMExact(rep.AckDelay, req.PacketLife),
		Article:         CMArticle(rep.AckDelay, req.PacketLife),
		AltPath:         req.AltPath,
		Credits:         req.EndToEndCredits && rep.EndToEndCredits,
	}, nil
}

func (o CMOffer) check(who string) error {
	var errs []error
	bad := func(cond bool, field string, v any, allowed string) {
		if cond {
			errs = append(errs, fmt.Errorf("qp: connect: %s %s %v: allowed %s", who, field, v, allowed))
		}
	}
	bad(!validMTU(o.MTU), "path mtu", o.MTU, "256, 512, 1024, 2048, 4096")
	bad(o.InitiatorDepth < 0 || o.InitiatorDepth > 255, "initiator depth", o.InitiatorDepth, "0..255")
	bad(o.ResponderDepth < 0 || o.ResponderDepth > 255, "responder depth", o.ResponderDepth, "0..255")
	bad(o.RetryCnt > 7, "retry_cnt", o.RetryCnt, "0..7")
	bad(o.RNRRetry > 7, "rnr_retry", o.RNRRetry, "0..7")
	bad(o.MinRNRTimer > 31, "min_rnr_timer", o.MinRNRTimer, "0..31")
	bad(o.AckDelay > 31, "target ack delay", o.AckDelay, "0..31")
	bad(o.PacketLife > 31, "packet lifetime", o.PacketLife, "0..31")
	return errors.Join(errs...)
}
