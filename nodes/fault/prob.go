package fault

import (
	"fmt"
	"math/big"
	"math/bits"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// prob is a probability as a 128-bit binary fraction: (hi·2^64 + lo) / 2^128.
// sure stands for 1. Sums of integers only, so every machine draws the same.
type prob struct {
	hi, lo uint64
	sure   bool
}

func (p prob) zero() bool { return p.hi == 0 && p.lo == 0 && !p.sure }

// parseProb reads a decimal or a fraction in [0, 1], exact to 2^-129.
func parseProb(s string) (prob, error) {
	bad := fmt.Errorf("%q: must be a probability from 0 to 1 such as 0.01, 1e-9 or 1/256", s)
	if len(s) == 0 || len(s) > 48 || strings.ContainsAny(s, "_xXpPbBoO") {
		return prob{}, bad
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 {
		return prob{}, bad
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || r.Sign() < 0 || r.Cmp(big.NewRat(1, 1)) > 0 {
		return prob{}, bad
	}
	return probOf(r), nil
}

// probOf scales r by 2^128 and rounds half up.
func probOf(r *big.Rat) prob {
	n := new(big.Int).Lsh(r.Num(), 129)
	n.Add(n, r.Denom())
	n.Quo(n, new(big.Int).Lsh(r.Denom(), 1))
	if n.BitLen() > 128 {
		return prob{sure: true}
	}
	lo := new(big.Int).And(n, new(big.Int).SetUint64(^uint64(0)))
	return prob{hi: new(big.Int).Rsh(n, 64).Uint64(), lo: lo.Uint64()}
}

// not returns 1 - p.
func (p prob) not() prob {
	if p.sure {
		return prob{}
	}
	if p.zero() {
		return prob{sure: true}
	}
	lo, b := bits.Sub64(0, p.lo, 0)
	hi, _ := bits.Sub64(0, p.hi, b)
	return prob{hi: hi, lo: lo}
}

// mul returns p·q, truncated to 128 bits.
func (p prob) mul(q prob) prob {
	if p.sure {
		return q
	}
	if q.sure {
		return p
	}
	h1, l1 := bits.Mul64(p.hi, q.hi)
	h2, l2 := bits.Mul64(p.hi, q.lo)
	h3, l3 := bits.Mul64(p.lo, q.hi)
	h4, _ := bits.Mul64(p.lo, q.lo)
	mid, c1 := bits.Add64(l2, l3, 0)
	_, c2 := bits.Add64(mid, h4, 0)
	lo, c := bits.Add64(l1, h2, 0)
	hi := h1 + c
	lo, c = bits.Add64(lo, h3, 0)
	hi += c
	lo, c = bits.Add64(lo, c1+c2, 0)
	return prob{hi: hi + c, lo: lo}
}

// anyOf returns 1-(1-p)^n: the probability that at least one of n bits is bad.
func (p prob) anyOf(n int) prob {
	q, out := p.not(), prob{sure: true}
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			out = out.mul(q)
		}
		q = q.mul(q)
	}
	return out.not()
}

// draw reports whether the n-th trial under a key succeeds. tag separates
// independent series of one key.
func (p prob) draw(key, n, tag uint64) bool {
	if p.sure {
		return true
	}
	x := clock.Mix(key, n, tag)
	if x != p.hi {
		return x < p.hi
	}
	return clock.Mix(key^0xA5A5A5A5A5A5A5A5, n, x) < p.lo
}

// berTable keeps the frame error probability of the frame lengths seen last.
type berTable struct {
	bit prob
	len [4]int
	p   [4]prob
}

// frame returns the probability that a frame of n bytes has a bad bit.
func (t *berTable) frame(n int) prob {
	i := n & 3
	if n > 256 {
		i = 3
	}
	if t.len[i] != n {
		t.len[i], t.p[i] = n, t.bit.anyOf(8*n)
	}
	return t.p[i]
}
