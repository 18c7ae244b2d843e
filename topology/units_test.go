package topology

import (
	"math/big"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
)

func TestRates(t *testing.T) {
	for s, want := range map[string]clock.Rate{"25Gbps": 25e9, "25G": 25e9, "25Gb/s": 25e9, "2.5Gbps": 2.5e9, "100Mbps": 100e6, "64bps": 64, "1.2Tbps": 1.2e12} {
		if got, err := ParseRate(s); err != nil || got != want {
			t.Errorf("%s = %v, %v", s, got, err)
		}
	}
	for s, want := range map[string]string{"100": "no unit", "100Gb": "does not fit", "100GB": "does not fit", "-1G": "negative", "x": "must be a rate", "": "must be a rate", "0.5bps": "whole number of bits per second", "1e400G": "does not fit"} {
		if _, err := ParseRate(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}

func TestDurationsAndSizes(t *testing.T) {
	for s, want := range map[string]clock.Duration{"12us": 12e6, "1.5ms": 1.5e9, "0ns": 0, "67.108864ms": 67108864e3, "1ps": 1, "2h": 7200e12, "7µs": 7e6} {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("%s = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"1", "0.5ps", "3000h", "1m", "12 parsecs"} {
		if _, err := ParseDuration(s); err == nil {
			t.Errorf("%s: accepted", s)
		}
	}
	for s, want := range map[string]int64{"208B": 208, "32MiB": 32 << 20, "18KB": 18000, "1.5KiB": 1536, "1GB": 1e9, "0B": 0} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%s = %v, %v", s, got, err)
		}
	}
	for s, want := range map[string]int64{"100m": 100_000, "3m": 3000, "0.5m": 500, "2km": 2_000_000} {
		if got, err := ParseLength(s); err != nil || got != want {
			t.Errorf("%s = %v, %v", s, got, err)
		}
	}
}

func TestAlphaAndProbability(t *testing.T) {
	for s, want := range map[string]Alpha{"1/8": {1, 8}, "8": {8, 1}, "0.5": {1, 2}, "2/4": {1, 2}, "1/256": {1, 256}} {
		if got, err := ParseAlpha(s); err != nil || got != want {
			t.Errorf("%s = %v, %v", s, got, err)
		}
		if back, err := ParseAlpha(want.String()); err != nil || back != want {
			t.Errorf("%v does not read back", want)
		}
	}
	for _, s := range []string{"0", "-1", "1/0", "300", "a", "1/1000"} {
		if _, err := ParseAlpha(s); err == nil {
			t.Errorf("alpha %s: accepted", s)
		}
	}
	// 1e-9 · 2^64 = 18446744073.709551616: no float is this exact.
	for s, want := range map[string]uint64{"1e-9": 18446744074, "0": 0, "0.5": 1 << 63, "1": 1<<64 - 1, "1/256": 1 << 56, "1e-15": 18447} {
		if got, err := ParseProb64(s); err != nil || got != want {
			t.Errorf("%s = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"1.1", "-0.1", "x", "1e99999999", "1/0"} {
		if _, err := ParseProb64(s); err == nil {
			t.Errorf("probability %s: accepted", s)
		}
	}
}

// TestNegLn compares the table with a rational bound: e^-1 and powers of two.
func TestNegLn(t *testing.T) {
	const one = 1 << 32
	for _, c := range []struct {
		u    uint64
		want uint64 // -ln(u/2^64) · 2^32
	}{{1 << 63, ln2Q32}, {1 << 62, 2 * ln2Q32}, {1, 64 * ln2Q32}, {6786177901268885504, one}, {1<<64 - 1, 0}} {
		got := negLn(c.u)
		if d := int64(got) - int64(c.want); d > one/1000000 || d < -one/1000000 {
			t.Errorf("-ln(%d/2^64) = %d, want %d", c.u, got, c.want)
		}
	}
}

// TestGapMean draws a million gaps: mean within 0.5 %, and the share above the
// mean within 0.5 % of 1/e.
func TestGapMean(t *testing.T) {
	const n, mean = 1_000_000, 1_000_000
	var sum, above int64
	for i := range uint64(n) {
		g := int64(Gap(mean, clock.Mix(7, i, 0)))
		sum += g
		if g > mean {
			above++
		}
	}
	if m := sum / n; m < 995_000 || m > 1_005_000 {
		t.Errorf("mean gap %d, want %d", m, mean)
	}
	if above < 366_000 || above > 369_800 {
		t.Errorf("%d gaps above the mean, want about %d", above, 367_879)
	}
}

func TestCDF(t *testing.T) {
	c := newCDF([]int64{0, 10000, 20000}, []*big.Rat{new(big.Rat), big.NewRat(50, 1), big.NewRat(100, 1)})
	for u, want := range map[uint64]int64{0: 1, 1 << 62: 5000, 1 << 63: 10000, 3 << 62: 15000, 1<<64 - 1: 20000} {
		if got := c.Size(u); got != want {
			t.Errorf("size at %d = %d, want %d", u, got, want)
		}
	}
	if c.Mean().Cmp(big.NewRat(10000, 1)) != 0 {
		t.Errorf("mean %v", c.Mean())
	}
	atom := newCDF([]int64{64, 64, 1000}, []*big.Rat{big.NewRat(0, 1), big.NewRat(90, 1), big.NewRat(100, 1)})
	if atom.Size(1<<63) != 64 {
		t.Error("a vertical step is one size")
	}
}
