package tcp

import (
	"math/bits"

	"github.com/rocemu/rocemu/clock"
)

// CUBIC (RFC 9438): W(t) = C·(t − K)³ + Wmax with C = 0.4 and β = 0.7, windows
// in bytes, time in whole microseconds.

const (
	betaNum, betaDen = 7, 10
	// maxT bounds |t − K| at 2^27 µs (134 s): the window is far beyond any
	// peer's by then, and all products fit 128 bits.
	maxT = 1 << 27
)

type cubic struct {
	epoch   clock.Time // start of this stage of congestion avoidance, Never = none
	wMax    int64      // window before the last cut
	origin  int64
	k       int64 // µs from epoch to origin
	wEst    int64 // what Reno would have
	estRem  int64
	atEpoch int64 // window at the last cut
}

// loss is a congestion event at window cwnd with flight bytes outstanding; it
// returns the new threshold.
func (c *cubic) loss(cwnd, flight, mss int64) int64 {
	w := cwnd
	if cwnd < c.wMax { // fast convergence (4.7): Wmax = cwnd·(1+β)/2
		w = cwnd * (betaDen + betaNum) / (2 * betaDen)
	}
	c.wMax, c.atEpoch = w, cwnd
	c.epoch = clock.Never
	return max(min(flight, cwnd)*betaNum/betaDen, 2*mss)
}

// growCubic is congestion avoidance after n newly acknowledged bytes (4.2 to
// 4.5).
func (s *Sender) growCubic(now clock.Time, n int64) {
	c := &s.cubic
	if c.epoch == clock.Never {
		c.epoch, c.wEst, c.estRem = now, s.cwnd, 0
		c.origin, c.k = s.cwnd, 0
		if s.cwnd < c.wMax {
			c.origin, c.k = c.wMax, cubicK(c.wMax-s.cwnd, s.c.MSS)
		}
	}
	c.reno(s.cwnd, s.c.MSS, n)
	t := int64(now.Sub(c.epoch) / clock.Microsecond)
	if c.at(t, s.c.MSS) < c.wEst { // Reno-friendly region (4.3)
		s.cwnd = max(s.cwnd, c.wEst)
		return
	}
	target := c.at(t+int64(s.srtt/clock.Microsecond), s.c.MSS)
	target = min(max(target, s.cwnd), s.cwnd+s.cwnd/2)
	s.growBy(target-s.cwnd, n)
}

// reno moves the Reno estimate: α = 3(1−β)/(1+β) = 9/17 segments a window
// until it reaches the window before the cut, then 1.
func (c *cubic) reno(cwnd, mss, n int64) {
	num, den := 9*mss, 17*cwnd
	if c.wEst >= c.atEpoch {
		num, den = 17*mss, 17*cwnd
	}
	x := num*n + c.estRem
	c.estRem = x % den
	c.wEst += x / den
}

// at is W(t) in bytes, t in µs from the epoch.
func (c *cubic) at(t, mss int64) int64 {
	d := t - c.k
	if d < 0 {
		return c.origin - cubed(min(-d, maxT), mss)
	}
	return c.origin + cubed(min(d, maxT), mss)
}

// cubed is 0.4·mss·(d µs)³ in bytes per cubic second: d²/10⁶ is taken first
// (its rounding is below a millionth of a segment).
func cubed(d, mss int64) int64 {
	x := uint64(d*d/1_000_000) * uint64(d)
	hi, lo := bits.Mul64(x, 4*uint64(mss))
	q, _ := bits.Div64(hi, lo, 10_000_000_000_000)
	return int64(q)
}

// cubicK is K = ∛(ΔW/(C·mss)) in µs: the cube root of ΔW·2.5·10¹⁸/mss.
func cubicK(dw, mss int64) int64 {
	hi, lo := bits.Mul64(uint64(dw), 2_500_000_000_000_000_000)
	q1, rem := hi/uint64(mss), hi%uint64(mss)
	q0, _ := bits.Div64(rem, lo, uint64(mss))
	return int64(cbrt(q1, q0))
}

// cbrt is the integer cube root, rounded down, of a 128-bit number, at most
// maxT.
func cbrt(hi, lo uint64) uint64 {
	x := uint64(0)
	for b := 26; b >= 0; b-- {
		y := x | 1<<b
		h, l := bits.Mul64(y*y, y)
		if h < hi || h == hi && l <= lo {
			x = y
		}
	}
	return x
}
