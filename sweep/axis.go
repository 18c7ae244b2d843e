// Package sweep runs many variants of one fabric: grids over anything that a
// fabric file can say, several seeds each, on all cores and resumable, and the
// search for watermarks that suit a workload. A run is a pure function of its
// resolved plan, so the plan's hash is its name in the journal. Start at
// [Grid].
package sweep

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Axis is one thing that varies: a path of the fabric file and its values, as
// they would be written there.
type Axis struct {
	Path   string   `json:"path"`
	Values []string `json:"values"`
}

// Limits of an axis and of a grid.
const (
	MaxValues = 1000
	MaxPoints = 100_000
)

const defaultSteps = 5

// SeedPath is the axis whose values are the seeds themselves.
const SeedPath = "seed"

// ParseAxis reads PATH=v1,v2,… or PATH=a..b[:steps]. A range is even in
// logarithm when it spans a factor of 8 or more (powers of two for fractions),
// else even; whole numbers that are close step by one.
func ParseAxis(arg string) (Axis, error) {
	path, vals, ok := strings.Cut(arg, "=")
	ax := Axis{Path: strings.TrimSpace(path)}
	if !ok || ax.Path == "" || strings.TrimSpace(vals) == "" {
		return ax, fmt.Errorf("--vary %q: want PATH=v1,v2,… or PATH=a..b[:steps], as in switches.all.pfc.alpha=1/16,1/8,1/4", arg)
	}
	for _, v := range splitList(vals) {
		if !strings.Contains(v, "..") {
			ax.Values = append(ax.Values, v)
			continue
		}
		r, err := expand(v)
		if err != nil {
			return ax, fmt.Errorf("--vary %s: %w", ax.Path, err)
		}
		ax.Values = append(ax.Values, r...)
	}
	for i, v := range ax.Values {
		if v == "" {
			return ax, fmt.Errorf("--vary %s: value %d is empty", ax.Path, i+1)
		}
		if slices.Contains(ax.Values[:i], v) {
			return ax, fmt.Errorf("--vary %s: value %s is there twice", ax.Path, v)
		}
	}
	if len(ax.Values) > MaxValues {
		return ax, fmt.Errorf("--vary %s: %d values; at most %d", ax.Path, len(ax.Values), MaxValues)
	}
	return ax, nil
}

// splitList cuts at commas that are not inside brackets or quotes.
func splitList(s string) []string {
	var out []string
	depth, from := 0, 0
	quote := rune(0)
	for i, c := range s {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(s[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(s[from:]))
}

// scale is a unit and its factor; units of one group convert.
type scale struct {
	name   string
	factor int64
	group  int
}

var scales = []scale{
	{"", 1, 0},
	{"B", 1, 1},
	{"KB", 1e3, 1},
	{"MB", 1e6, 1},
	{"GB", 1e9, 1},
	{"KiB", 1 << 10, 1},
	{"MiB", 1 << 20, 1},
	{"GiB", 1 << 30, 1},
	{"ps", 1, 2},
	{"ns", 1e3, 2},
	{"us", 1e6, 2},
	{"ms", 1e9, 2},
	{"s", 1e12, 2},
	{"bps", 1, 3},
	{"kbps", 1e3, 3},
	{"Mbps", 1e6, 3},
	{"Gbps", 1e9, 3},
	{"Tbps", 1e12, 3},
	{"G", 1e9, 3},
	{"mm", 1, 4},
	{"cm", 10, 4},
	{"m", 1000, 4},
	{"km", 1e6, 4},
}

// quantity is a number with its unit, in base units of the unit's group.
type quantity struct {
	v    *big.Rat
	unit scale
	frac bool // written as n/d
}

func parseQuantity(s string) (quantity, error) {
	i := strings.LastIndexAny(s, "0123456789") + 1
	r, ok := new(big.Rat).SetString(s[:i])
	if !ok || len(s) > 40 {
		return quantity{}, fmt.Errorf("%q is no number with a unit", s)
	}
	for _, u := range scales {
		if u.name == s[i:] {
			return quantity{r.Mul(r, new(big.Rat).SetInt64(u.factor)), u, strings.Contains(s[:i], "/")}, nil
		}
	}
	return quantity{}, fmt.Errorf("%q: a range needs a unit of size, time, rate or length, or none", s)
}

// expand turns a..b[:steps] into values.
func expand(s string) ([]string, error) {
	body, st, has := strings.Cut(s, ":")
	lo, hi, _ := strings.Cut(body, "..")
	a, err := parseQuantity(lo)
	if err != nil {
		return nil, err
	}
	b, err := parseQuantity(hi)
	if err != nil {
		return nil, err
	}
	if a.unit.group != b.unit.group || a.v.Cmp(b.v) >= 0 {
		return nil, fmt.Errorf("range %s: the ends must be of one kind, the first one smaller", body)
	}
	steps := 0
	if has {
		if steps, err = strconv.Atoi(st); err != nil || steps < 2 || steps > MaxValues {
			return nil, fmt.Errorf("range %s: steps %q: allowed 2..%d", body, st, MaxValues)
		}
	}
	switch {
	case a.frac || b.frac:
		return fractions(a.v, b.v, steps)
	case a.unit.group == 0 && a.v.IsInt() && b.v.IsInt():
		return integers(a.v.Num().Int64(), b.v.Num().Int64(), steps), nil
	}
	if steps == 0 {
		steps = defaultSteps
	}
	return spaced(a, b, steps), nil
}

// fractions are the powers of two between two fractions, as alpha has them.
func fractions(a, b *big.Rat, steps int) ([]string, error) {
	var out []string
	for e := -20; e <= 20; e++ {
		r := new(big.Rat).SetFrac64(1<<max(e, 0), 1<<max(-e, 0))
		if r.Cmp(a) >= 0 && r.Cmp(b) <= 0 {
			out = append(out, r.RatString())
		}
	}
	if len(out) < 2 {
		return nil, fmt.Errorf("range %s..%s holds no two powers of two; list the values", a.RatString(), b.RatString())
	}
	if steps == 0 || steps >= len(out) {
		return out, nil
	}
	var thin []string
	for i := range steps {
		thin = append(thin, out[(i*(len(out)-1)+(steps-1)/2)/(steps-1)])
	}
	return thin, nil
}

func integers(a, b int64, steps int) []string {
	if steps == 0 {
		steps = defaultSteps
		if b-a < 32 {
			steps = int(b-a) + 1
		}
	}
	var out []string
	for i := range int64(steps) {
		v := strconv.FormatInt(a+(b-a)*i/int64(steps-1), 10)
		if len(out) == 0 || out[len(out)-1] != v {
			out = append(out, v)
		}
	}
	return out
}

// spaced places values between two quantities; the inner ones are rounded to
// three digits so that they can be read, and written in a unit that fits.
func spaced(a, b quantity, steps int) []string {
	fa, _ := a.v.Float64()
	fb, _ := b.v.Float64()
	logs := fa > 0 && fb/fa >= 8
	out := []string{a.text()}
	for i := 1; i < steps-1; i++ {
		x := float64(i) / float64(steps-1)
		v := fa + (fb-fa)*x
		if logs {
			v = fa * math.Pow(fb/fa, x)
		}
		unit := math.Pow(10, math.Floor(math.Log10(v))-2)
		n := int64(max(math.Round(v/max(unit, 1))*max(unit, 1), 1))
		t := quantity{new(big.Rat).SetInt64(n), a.unit, false}.text()
		if t != out[len(out)-1] {
			out = append(out, t)
		}
	}
	return append(out, b.text())
}

// text writes a quantity in its unit if it comes out with few digits, else in
// the largest decimal unit that makes it whole.
func (q quantity) text() string {
	r := new(big.Rat).Quo(q.v, new(big.Rat).SetInt64(q.unit.factor))
	if s := strings.TrimRight(strings.TrimRight(r.FloatString(3), "0"), "."); exact(s, r) && len(s) < 7 {
		return s + q.unit.name
	}
	best := q.unit
	for _, u := range scales {
		if u.group != q.unit.group || u.name == "G" || strings.HasSuffix(u.name, "iB") {
			continue
		}
		if new(big.Rat).Quo(q.v, new(big.Rat).SetInt64(u.factor)).IsInt() {
			best = u
		}
	}
	return new(big.Rat).Quo(q.v, new(big.Rat).SetInt64(best.factor)).RatString() + best.name
}

func exact(s string, r *big.Rat) bool {
	x, ok := new(big.Rat).SetString(s)
	return ok && x.Cmp(r) == 0
}
