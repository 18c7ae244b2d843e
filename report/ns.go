// Package report turns what the devices of a run counted into its result: the
// object of every machine-readable output, the summary a person reads, the
// files of an output directory and the comparison of two runs. It knows plain
// data only (names, counters, samples) and nothing of actors, frames or
// fabric files; whoever runs a fabric fills a [Part] a device and a [Meta],
// and calls [Merge]. Start at [Result].
package report

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// NS is a virtual time or span in picoseconds that is written as nanoseconds
// with up to three decimals: exact, never rounded.
type NS int64

// MarshalJSON writes the exact decimal: 1500 ps are 1.5.
func (n NS) MarshalJSON() ([]byte, error) { return clock.Duration(n).AppendNS(nil), nil }

// UnmarshalJSON reads a decimal with at most three decimals' precision; finer
// values are an error, since they could not have come from a run.
func (n *NS) UnmarshalJSON(b []byte) error {
	text := strings.TrimSpace(string(b))
	// A long exponent would make a number of that many digits.
	_, exp, _ := strings.Cut(strings.ToLower(text), "e")
	r, ok := new(big.Rat), len(text) <= 40 && len(exp) <= 3
	if ok {
		r, ok = r.SetString(text)
	}
	if !ok {
		return fmt.Errorf("%q is not a number of nanoseconds", b)
	}
	r.Mul(r, big.NewRat(1000, 1))
	if !r.IsInt() || !r.Num().IsInt64() {
		return fmt.Errorf("%s ns is finer than a picosecond or beyond 106 days", b)
	}
	*n = NS(r.Num().Int64())
	return nil
}

// Float returns n in nanoseconds, for expressions and plots.
func (n NS) Float() float64 { return clock.Duration(n).Float() }

// String prints n in the unit that reads best.
func (n NS) String() string { return clock.Duration(n).String() }
