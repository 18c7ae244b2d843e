package topology

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// Quantities carry their unit (interface.md, "Units"). Every parser here is
// exact: a decimal text becomes a rational, is scaled by its unit and must come
// out as a whole number of the base unit.

// badUnit is what is wrong with a quantity and the likely right spelling.
type badUnit struct{ msg, hint string }

func (b *badUnit) Error() string { return b.msg }

type unit struct {
	name string
	num  int64 // base units in one
}

var rateUnits = []unit{
	{"Gbps", 1e9},
	{"Mbps", 1e6},
	{"kbps", 1e3},
	{"Kbps", 1e3},
	{"Tbps", 1e12},
	{"bps", 1},
	{"Gb/s", 1e9},
	{"Mb/s", 1e6},
	{"kb/s", 1e3},
	{"Kb/s", 1e3},
	{"Tb/s", 1e12},
	{"b/s", 1},
	{"Gbit/s", 1e9},
	{"Mbit/s", 1e6},
	{"kbit/s", 1e3},
	{"G", 1e9},
	{"M", 1e6},
	{"T", 1e12},
}

var durationUnits = []unit{
	{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"µs", 1e6}, {"μs", 1e6}, {"ms", 1e9}, {"s", 1e12}, {"min", 60e12}, {"h", 3600e12},
}

var sizeUnits = []unit{
	{"B", 1},
	{"KB", 1e3},
	{"kB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
}

// Lengths are in millimetres: 5 ns/m are 5 ps/mm.
var lengthUnits = []unit{{"mm", 1}, {"cm", 10}, {"m", 1000}, {"km", 1_000_000}}

const (
	fitRate     = "a rate such as 25Gbps, 25G, 25Gb/s or 100Mbps"
	fitDuration = "a time with unit ps, ns, us, ms, s, min or h, such as 12us"
	fitSize     = "a size with unit B, KB, MB, GB (1000) or KiB, MiB, GiB (1024), such as 208B"
	fitLength   = "a length with unit mm, cm, m or km, such as 100m"
)

// splitUnit cuts "25.5Gbps" into number and unit.
func splitUnit(s string) (num, unitName string) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' || s[i] == '_' ||
		i == 0 && (s[i] == '-' || s[i] == '+')) {
		i++
	}
	return s[:i], strings.TrimSpace(s[i:])
}

// rational parses a plain decimal, optionally with exponent. Lengths and
// exponents are bounded, so that no input makes a huge number.
func rational(s string) (*big.Rat, bool) {
	if len(s) == 0 || len(s) > 40 {
		return nil, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e > 40 || e < -40 {
			return nil, false
		}
	}
	for _, c := range s {
		if !strings.ContainsRune("0123456789.eE+-", c) {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}

// quantity parses number+unit into whole base units.
func quantity(s string, units []unit, fits string) (int64, *badUnit) {
	num, u := splitUnit(s)
	r, ok := rational(strings.ReplaceAll(num, "_", ""))
	if !ok {
		return 0, &badUnit{msg: "must be " + fits}
	}
	if u == "" {
		return 0, &badUnit{msg: "a bare number has no unit; must be " + fits, hint: bareHint(num, units)}
	}
	for _, x := range units {
		if x.name != u {
			continue
		}
		r.Mul(r, new(big.Rat).SetInt64(x.num))
		if r.Sign() < 0 {
			return 0, &badUnit{msg: "must not be negative"}
		}
		if !r.IsInt() {
			return 0, &badUnit{msg: "is not a whole number of " + baseName(units)}
		}
		if !r.Num().IsInt64() {
			return 0, &badUnit{msg: "is too large"}
		}
		return r.Num().Int64(), nil
	}
	if b, ok := bitUnits[u]; ok && &units[0] == &sizeUnits[0] {
		return 0, &badUnit{msg: fmt.Sprintf("unit %q counts bits; must be %s", u, fits), hint: inBytes(r, b)}
	}
	return 0, &badUnit{msg: fmt.Sprintf("unit %q does not fit; must be %s", clip(u), fits), hint: unitHint(num, u, units)}
}

func baseName(units []unit) string {
	switch &units[0] {
	case &rateUnits[0]:
		return "bits per second"
	case &durationUnits[0]:
		return "picoseconds"
	case &lengthUnits[0]:
		return "millimetres"
	}
	return "bytes"
}

// bareHint is the same number with the unit most often meant.
func bareHint(num string, units []unit) string {
	switch &units[0] {
	case &rateUnits[0]:
		return num + "Gbps"
	case &durationUnits[0]:
		return num + "us"
	case &lengthUnits[0]:
		return num + "m"
	}
	return num + "B"
}

// bitUnits are the units of a number of bits, which a size is not written in. A
// lower-case mb is taken for MB.
var bitUnits = map[string]int64{"Kb": 1e3, "Mb": 1e6, "Gb": 1e9, "Tb": 1e12, "bit": 1, "kbit": 1e3, "Kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12}

// inBytes writes so many bits as a size, in the largest unit that leaves a whole
// number; "" when they are not whole bytes.
func inBytes(r *big.Rat, unit int64) string {
	n := new(big.Rat).Mul(r, big.NewRat(unit, 8))
	if !n.IsInt() || n.Sign() <= 0 {
		return ""
	}
	for _, name := range []string{"TB", "GB", "MB", "KB"} {
		for _, x := range sizeUnits {
			if q := new(big.Rat).Quo(n, big.NewRat(x.num, 1)); x.name == name && q.IsInt() {
				return q.Num().String() + name
			}
		}
	}
	return n.Num().String() + "B"
}

// unitHint maps a wrong unit to the nearest right one: 100Gb is 100Gbps.
func unitHint(num, u string, units []unit) string {
	l := strings.ToLower(u)
	for _, x := range units {
		if strings.ToLower(x.name) == l {
			return num + x.name
		}
	}
	if &units[0] == &rateUnits[0] {
		for _, p := range []string{"G", "M", "T", "k"} {
			if strings.HasPrefix(l, strings.ToLower(p)) {
				return num + p + "bps"
			}
		}
		return ""
	}
	names := make([]string, len(units))
	for i, x := range units {
		names[i] = x.name
	}
	if n := nearest(u, names); n != "" {
		return num + n
	}
	return ""
}

// ParseRate reads a rate: 25Gbps, 25G, 25Gb/s.
func ParseRate(s string) (clock.Rate, error) {
	n, bad := quantity(s, rateUnits, fitRate)
	if bad != nil {
		return 0, bad
	}
	return clock.Rate(n), nil
}

// ParseDuration reads a time with its unit: 12us, 1.5ms, 0ns.
func ParseDuration(s string) (clock.Duration, error) {
	n, bad := quantity(s, durationUnits, fitDuration)
	if bad != nil {
		return 0, bad
	}
	return clock.Duration(n), nil
}

// ParseSize reads a size: KB is 1000 bytes, KiB 1024.
func ParseSize(s string) (int64, error) {
	n, bad := quantity(s, sizeUnits, fitSize)
	if bad != nil {
		return 0, bad
	}
	return n, nil
}

// ParseLength reads a cable length in millimetres.
func ParseLength(s string) (int64, error) {
	n, bad := quantity(s, lengthUnits, fitLength)
	if bad != nil {
		return 0, bad
	}
	return n, nil
}

// ParseAlpha reads a threshold factor as an exact rational: 1/8, 8 or 0.125,
// from 1/256 to 256.
func ParseAlpha(s string) (Alpha, error) {
	bad := &badUnit{msg: "must be a factor from 1/256 to 256 such as 1/8 or 8"}
	a, b, frac := strings.Cut(s, "/")
	n, ok := rational(strings.TrimSpace(a))
	if !ok {
		return Alpha{}, bad
	}
	if frac {
		d, ok := rational(strings.TrimSpace(b))
		if !ok || d.Sign() <= 0 {
			return Alpha{}, bad
		}
		n.Quo(n, d)
	}
	if n.Cmp(big.NewRat(1, 256)) < 0 || n.Cmp(big.NewRat(256, 1)) > 0 ||
		!n.Num().IsInt64() || !n.Denom().IsInt64() || n.Denom().Int64() > 1<<20 {
		return Alpha{}, bad
	}
	return Alpha{n.Num().Int64(), n.Denom().Int64()}, nil
}

// String prints an alpha as it is written in a fabric file.
func (a Alpha) String() string {
	if a.Den == 1 {
		return strconv.FormatInt(a.Num, 10)
	}
	return fmt.Sprintf("%d/%d", a.Num, a.Den)
}

// probability parses a number in [0,1] exactly: 0.2, 1e-9, 1/256.
func probability(s string) (*big.Rat, *badUnit) {
	bad := &badUnit{msg: "must be a probability from 0 to 1 such as 0.2, 1e-9 or 1/256"}
	a, b, frac := strings.Cut(s, "/")
	p, ok := rational(strings.TrimSpace(a))
	if !ok {
		return nil, bad
	}
	if frac {
		d, ok := rational(strings.TrimSpace(b))
		if !ok || d.Sign() <= 0 {
			return nil, bad
		}
		p.Quo(p, d)
	}
	if p.Sign() < 0 || p.Cmp(big.NewRat(1, 1)) > 0 {
		return nil, bad
	}
	return p, nil
}

// scaleProb returns p × 2^bits rounded to the nearest integer (half up). For
// bits = 64, p = 1 saturates to 2^64-1.
func scaleProb(p *big.Rat, bits uint) uint64 {
	n := new(big.Int).Lsh(p.Num(), bits+1)
	n.Add(n, p.Denom())
	n.Quo(n, new(big.Int).Lsh(p.Denom(), 1))
	if !n.IsUint64() {
		return math.MaxUint64
	}
	return n.Uint64()
}

// ParseProb64 reads a probability as an integer times 2^64, exact to half a
// unit; 1 saturates to 2^64-1.
func ParseProb64(s string) (uint64, error) {
	p, bad := probability(s)
	if bad != nil {
		return 0, bad
	}
	return scaleProb(p, 64), nil
}

// parseInt reads a bare count, decimal or 0x hexadecimal.
func parseInt(s string) (int64, *badUnit) {
	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return n, nil
	}
	if num, u := splitUnit(s); u != "" && num != "" {
		if _, err := strconv.ParseInt(num, 10, 64); err == nil {
			return 0, &badUnit{msg: "must be a bare number without a unit", hint: num}
		}
	}
	return 0, &badUnit{msg: "must be a whole number"}
}
