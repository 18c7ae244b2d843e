package topology

import (
	"fmt"
	"math/big"
	"math/bits"
	"sort"

	"github.com/rocemu/rocemu/clock"
)

//go:generate go run ./internal/lngen

// CDF is a flow-size distribution: straight lines between points.
type CDF struct {
	Bytes []int64  // non-decreasing
	Cum   []uint64 // P(size <= Bytes[i]) × 2^64; the last is 2^64-1 and stands for 1
	mean  *big.Rat
}

// Mean returns the mean size in bytes, exact before sizes are made whole.
func (c *CDF) Mean() *big.Rat { return new(big.Rat).Set(c.mean) }

// Size returns the size at a uniform 64-bit draw: linear inside a segment,
// whole bytes, at least 1. Below the first point's share it is that point.
func (c *CDF) Size(u uint64) int64 {
	i := sort.Search(len(c.Cum), func(i int) bool { return c.Cum[i] > u })
	if i == 0 {
		return max(c.Bytes[0], 1)
	}
	if i == len(c.Cum) {
		return max(c.Bytes[i-1], 1)
	}
	a, b := c.Bytes[i-1], c.Bytes[i]
	hi, lo := bits.Mul64(uint64(b-a), u-c.Cum[i-1])
	q, _ := bits.Div64(hi, lo, c.Cum[i]-c.Cum[i-1])
	return max(a+int64(q), 1)
}

// newCDF makes a distribution of checked points (bytes, percent).
func newCDF(bytes []int64, percent []*big.Rat) *CDF {
	c := &CDF{Bytes: bytes, mean: new(big.Rat)}
	hundred := big.NewRat(100, 1)
	prev := new(big.Rat)
	for i, p := range percent {
		share := new(big.Rat).Quo(p, hundred)
		c.Cum = append(c.Cum, scaleProb(share, 64))
		mid := big.NewRat(bytes[i], 1)
		if i > 0 {
			mid = big.NewRat(bytes[i-1]+bytes[i], 2)
		}
		c.mean.Add(c.mean, mid.Mul(mid, new(big.Rat).Sub(share, prev)))
		prev = share
	}
	return c
}

// cdf reads the inline form of a distribution: a list of [bytes, percent].
func (r *resolver) cdf(n *node, field string) *CDF {
	var size []int64
	var pct []*big.Rat
	hundred := big.NewRat(100, 1)
	for i, x := range n.items {
		at := fmt.Sprintf("%s.cdf[%d]", field, i)
		if len(x.items) != 2 {
			r.fail(x, at, "", "must be a pair: bytes, cumulative percent", "")
			return nil
		}
		b, bad := parseInt(x.items[0].text)
		if bad != nil || b < 0 || b > 1<<32-1 {
			r.fail(x.items[0], at, x.items[0].text, "must be bytes as a whole number 0..4294967295", "")
			return nil
		}
		p, ok := rational(x.items[1].text)
		if !ok || p.Sign() < 0 || p.Cmp(hundred) > 0 {
			r.fail(x.items[1], at, x.items[1].text, "must be a percentage 0..100", "")
			return nil
		}
		if i > 0 && (b < size[i-1] || p.Cmp(pct[i-1]) < 0) {
			r.fail(x, at, x.items[0].text+" "+x.items[1].text, "bytes and percentages must not fall", "")
			return nil
		}
		size, pct = append(size, b), append(pct, p)
	}
	if len(pct) == 0 || pct[len(pct)-1].Cmp(hundred) != 0 {
		last := ""
		if len(pct) > 0 {
			last = pct[len(pct)-1].FloatString(3)
		}
		r.fail(n, field+".cdf", last, "the last percentage must be 100", "")
		return nil
	}
	c := newCDF(size, pct)
	if c.mean.Sign() == 0 {
		r.fail(n, field+".cdf", "0", "mean size must be above 0", "")
		return nil
	}
	return c
}

// negLn returns -ln(u/2^64) in 32 fraction bits for u > 0: the leading zeros
// give whole factors of two, the table with linear interpolation the rest.
func negLn(u uint64) uint64 {
	lz := bits.LeadingZeros64(u)
	m := u << lz
	i := m >> 54 & 511 // the nine bits below the leading one
	frac := m >> 22 & (1<<32 - 1)
	a, b := uint64(negLnTable[i]), uint64(negLnTable[i+1])
	return uint64(lz)*ln2Q32 + a - (a-b)*frac>>32
}

// Gap returns an exponential gap with a mean in picoseconds at a uniform draw.
func Gap(mean uint64, u uint64) clock.Duration {
	if u == 0 {
		u = 1
	}
	hi, lo := bits.Mul64(negLn(u), mean)
	if hi >= 1<<31 {
		return clock.Duration(clock.Never)
	}
	return clock.Duration(hi<<32 | lo>>32)
}

// poisson: open-loop arrivals at each member, load · link rate / (8 · mean
// size) a second, to a uniformly drawn other member, each flow on its own QP.
// Every draw is keyed (seed, line, source, n), so that nothing else in the
// file changes it.
func (w *work) poisson(l *line) {
	m := w.members(l)
	cn := l.n.get("cdf")
	load := l.n.prob("load")
	until := l.n.dur("until")
	if !l.n.has("until") && w.r.plan.Run.Until == UntilTime {
		until = clock.Duration(w.r.plan.Run.At)
	}
	for _, k := range []string{"load", "cdf"} {
		if !l.n.has(k) {
			w.r.fail(l.n, l.field+"."+k, "", "missing for pattern poisson", "")
			return
		}
	}
	if until == 0 || load.Sign() == 0 {
		w.r.fail(l.n, l.field, "", "poisson needs a load above 0 and until: a time after which no flow begins", "")
		return
	}
	if m == nil || cn.kind != nSeq {
		return
	}
	c := w.r.cdf(cn, l.field)
	if c == nil {
		return
	}
	dests := m
	if len(l.to) > 0 {
		dests = l.to
	}
	type arrival struct {
		at   clock.Time
		from uint32
		to   uint32
		size int64
	}
	var as []arrival
	for _, from := range m {
		src := clock.Mix(w.r.plan.Seed, clock.HashString(0x706f6973736f6e, l.name), uint64(from))
		mean := meanGap(c, load, w.r.plan.RNIC(from).Ports[0].Rate)
		at := l.start
		for n := uint64(0); ; n++ {
			at = at.Add(Gap(mean, clock.Mix(src, n, 0)))
			if at >= clock.Time(until) || len(as) > maxFlows {
				break
			}
			to, ok := pick(dests, from, clock.Mix(src, n, 2))
			if !ok {
				break
			}
			as = append(as, arrival{at, from, to, c.Size(clock.Mix(src, n, 1))})
		}
	}
	sort.SliceStable(as, func(i, j int) bool { return as[i].at < as[j].at })
	ord := map[uint64]int32{}
	for _, a := range as {
		k := uint64(a.from)<<32 | uint64(a.to)
		ord[k]++
		w.add(l, a.from, a.to, ord[k], a.size, 1, a.at)
	}
}

// meanGap is 8 · mean size / (load · rate) in picoseconds, at least 1.
func meanGap(c *CDF, load *big.Rat, rate clock.Rate) uint64 {
	g := new(big.Rat).Mul(c.mean, big.NewRat(8_000_000_000_000, 1))
	g.Quo(g, load)
	g.Quo(g, big.NewRat(int64(rate), 1))
	q := new(big.Int).Quo(g.Num(), g.Denom())
	if !q.IsUint64() || q.BitLen() > 62 {
		return 1 << 62
	}
	return max(q.Uint64(), 1)
}

// pick draws a destination other than from, uniformly.
func pick(dests []uint32, from uint32, u uint64) (uint32, bool) {
	n := uint64(len(dests))
	self := -1
	for i, d := range dests {
		if d == from {
			self = i
			n--
			break
		}
	}
	if n == 0 {
		return 0, false
	}
	i, _ := bits.Mul64(u, n)
	if self >= 0 && int(i) >= self {
		i++
	}
	return dests[i], true
}
