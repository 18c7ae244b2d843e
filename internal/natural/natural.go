// Package natural orders names as people count: rnic2 before rnic10. It knows
// nothing of what is named. Start at [Compare].
package natural

import (
	"cmp"
	"strings"
)

// Compare orders two names, runs of digits by value and the rest by bytes. Names
// that differ in leading zeros alone are ordered by bytes.
func Compare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		nx, ny := digits(x), digits(y)
		if nx == 0 || ny == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		vx, vy := strings.TrimLeft(x[:nx], "0"), strings.TrimLeft(y[:ny], "0")
		if c := cmp.Or(cmp.Compare(len(vx), len(vy)), cmp.Compare(vx, vy)); c != 0 {
			return c
		}
		x, y = x[nx:], y[ny:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits is the length of the digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
