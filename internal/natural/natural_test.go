package natural

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	want := []string{"", "2", "9", "010", "10", "10a", "99999999999999999999999", "eth", "eth0", "eth1/2", "eth1/10", "eth10", "leaf", "leaf-2", "leaf2", "leaf10"}
	for seed := range 20 {
		got := slices.Clone(want)
		for i := range got {
			j := (i*7 + seed*3) % len(got)
			got[i], got[j] = got[j], got[i]
		}
		if slices.SortFunc(got, Compare); !slices.Equal(got, want) {
			t.Fatalf("%q", got)
		}
	}
	for _, a := range want {
		for _, b := range want {
			if c, d := Compare(a, b), Compare(b, a); c != -d || (c == 0) != (a == b) {
				t.Errorf("%q, %q: %d and %d", a, b, c, d)
			}
		}
	}
}
