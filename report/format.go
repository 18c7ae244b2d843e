package report

import (
	"fmt"
	"strings"
)

// Span prints a span with four significant digits: summaries round, the
// result object does not.
func Span(n NS) string {
	f, unit := float64(n), "ps"
	for _, u := range []string{"ns", "us", "ms", "s"} {
		if f < 1000 && f > -1000 {
			break
		}
		f, unit = f/1000, u
	}
	return digits(f) + unit
}

// Bytes prints a size in decimal units.
func Bytes(n int64) string {
	f, unit := float64(n), "B"
	for _, u := range []string{"KB", "MB", "GB", "TB"} {
		if f < 1000 {
			break
		}
		f, unit = f/1000, u
	}
	return digits(f) + " " + unit
}

// BitRate prints bit/s; "-" for zero.
func BitRate(n int64) string {
	if n == 0 {
		return "-"
	}
	f, unit := float64(n), "bps"
	for _, u := range []string{"Kbps", "Mbps", "Gbps", "Tbps"} {
		if f < 1000 {
			break
		}
		f, unit = f/1000, u
	}
	return digits(f) + unit
}

// Number prints a large count: 1.234 M.
func Number(f float64) string {
	unit := ""
	for _, u := range []string{" k", " M", " G"} {
		if f < 1000 {
			break
		}
		f, unit = f/1000, u
	}
	return digits(f) + unit
}

// digits prints f with at most four significant digits.
func digits(f float64) string {
	prec := 3
	for x := f; x >= 10 && prec > 0; x /= 10 {
		prec--
	}
	s := fmt.Sprintf("%.*f", prec, f)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
