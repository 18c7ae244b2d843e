// Package clock holds virtual time: instants, spans, rates and the arithmetic
// of windows. It knows nothing of actors or frames and never reads a real
// clock. Start reading here: [Time], then [Rate].
package clock

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Time is an instant of virtual time in picoseconds since the run's start.
// 2^63 ps are 106 days; [Never] stands for "no such instant".
type Time int64

// Duration is a span of virtual time in picoseconds.
type Duration int64

// Spans of common use.
const (
	Picosecond  Duration = 1
	Nanosecond           = 1000 * Picosecond
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
)

// Never lies after every reachable instant.
const Never Time = math.MaxInt64

// Add returns t+d; Never stays Never and overflow saturates to Never.
func (t Time) Add(d Duration) Time {
	if t == Never {
		return Never
	}
	s := t + Time(d)
	if d > 0 && s < t {
		return Never
	}
	return s
}

// Sub returns t-u.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// Min returns the earlier of a and b.
func Min(a, b Time) Time {
	if a < b {
		return a
	}
	return b
}

// Max returns the later of a and b.
func Max(a, b Time) Time {
	if a > b {
		return a
	}
	return b
}

// NS returns t in nanoseconds as an exact decimal with up to three decimals.
func (t Time) NS() string { return Duration(t).NS() }

// String prints t with the largest unit that keeps it exact to read.
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	return Duration(t).String()
}

// NS returns d in nanoseconds as an exact decimal with up to three decimals.
func (d Duration) NS() string { return string(d.AppendNS(nil)) }

// AppendNS appends what NS returns.
func (d Duration) AppendNS(b []byte) []byte {
	u := uint64(d)
	if d < 0 {
		b, u = append(b, '-'), uint64(-d)
	}
	b = strconv.AppendUint(b, u/1000, 10)
	f := u % 1000
	if f == 0 {
		return b
	}
	b = append(b, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	return bytes.TrimRight(b, "0") // not beyond the point: f is not 0
}

// Float returns d in nanoseconds; exact below 2^53 ps (2.5 h). For output only.
func (d Duration) Float() float64 { return float64(d) / 1000 }

// String prints d exactly, in the largest unit not above it: "1.5us".
func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	sign := ""
	u := uint64(d)
	if d < 0 {
		sign, u = "-", uint64(-d)
	}
	units := []struct {
		n uint64
		s string
	}{{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}, {1, "ps"}}
	for _, x := range units {
		if u < x.n {
			continue
		}
		out := fmt.Sprintf("%s%d", sign, u/x.n)
		if r := u % x.n; r != 0 {
			w := len(fmt.Sprint(x.n)) - 1
			out += strings.TrimRight(fmt.Sprintf(".%0*d", w, r), "0")
		}
		return out + x.s
	}
	return "0s"
}

// Rate is a line or token rate in bits per second.
type Rate int64

// Rates of common use.
const (
	BitPerSecond Rate = 1
	Mbps              = 1_000_000 * BitPerSecond
	Gbps              = 1000 * Mbps
)

// psPerSecond8 is the numerator of a byte's serialisation time.
const psPerByte8 = 8_000_000_000_000

// Serialise returns the time n bytes take at rate r, and the remainder to
// carry into the next frame (model-rules: (bytes·8·10^12 + carry)/R). It is
// exact: the sum of spans over a busy period never drifts. r must be positive,
// n below 2^20.
func (r Rate) Serialise(n int64, carry int64) (Duration, int64) {
	num := uint64(n)*psPerByte8 + uint64(carry)
	q := num / uint64(r)
	return Duration(q), int64(num - q*uint64(r))
}

// Span returns ceil(n bytes at rate r) for byte counts of any size.
func (r Rate) Span(n int64) Duration {
	hi, lo := bits.Mul64(uint64(n), psPerByte8)
	q, rem := bits.Div64(hi, lo, uint64(r))
	if rem != 0 {
		q++
	}
	return Duration(q)
}

// String prints r as 25Gbps, 2.5Gbps, 100Mbps or 64bps.
func (r Rate) String() string {
	switch {
	case r >= Gbps:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%09d", r/Gbps, r%Gbps), "0"), ".") + "Gbps"
	case r >= Mbps:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", r/Mbps, r%Mbps), "0"), ".") + "Mbps"
	}
	return fmt.Sprintf("%dbps", int64(r))
}

// Class orders events of one actor that fall on the same instant.
type Class uint8

// The classes, in order (virtual-time rules: same-time order).
const (
	ClassFault Class = iota
	ClassArrival
	ClassTxDone
	ClassTimer
	ClassWork
)

// Mix is the keyed hash behind every tie-break and random draw: a pure
// function of its words. Two rounds of a 64×64→128 multiply.
func Mix(seed, a, b uint64) uint64 {
	hi, lo := bits.Mul64(seed^a^0x9E3779B97F4A7C15, b^0xD1B54A32D192ED03)
	x := hi ^ lo ^ a
	hi, lo = bits.Mul64(x^0x2545F4914F6CDD1D, b+seed|1)
	return hi ^ lo
}

// HashString folds a name into a word for [Mix] (FNV-1a, then mixed).
func HashString(seed uint64, s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return Mix(seed, h, uint64(len(s)))
}
