package topology

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// FuzzParse: no text crashes or hangs the parser; what loads, loads again from
// its resolved text to the same plan; mistakes have a place.
func FuzzParse(f *testing.F) {
	f.Add(twoRacks)
	f.Add(good)
	for _, e := range exampleFiles(f) {
		if text, err := os.ReadFile(e); err == nil && len(text) < 4096 && !strings.Contains(string(text), "3072") {
			f.Add(string(text))
		}
	}
	for _, s := range []string{"a: &x [*x]", "- - - -", "? {", "a: !!b c", "[[[[", "{}", "schema: 1\ntopology: {nodes: [{name: a, kind: rnic}]}", "a: |\n  b", "\xff", "x: *y", "<<: {a: b}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1<<16 || tooLarge(s) {
			return
		}
		p, _, err := ParseBytes("f", []byte(s))
		if err != nil {
			var es Errors
			if !errors.As(err, &es) {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		q, _, err := ParseBytes("r", p.Resolved())
		if err != nil {
			t.Fatalf("resolved text does not load: %v\n%s", err, p.Resolved())
		}
		if p.Hash != q.Hash {
			t.Fatalf("resolved text gives another plan:\n%s\n%s", p.Resolved(), q.Resolved())
		}
		Lint(p)
	})
}

// tooLarge keeps fuzzed fabrics small: what is slow there is size, not text.
func tooLarge(s string) bool {
	tree, errs := parseTree("f", []byte(s))
	if len(errs) > 0 {
		return false
	}
	product := int64(1)
	for _, k := range []string{"pods", "leaves", "servers", "spines", "cores", "ports"} {
		product *= max(tree.get("topology").num(k), 1)
	}
	if w := tree.get("workload"); w != nil {
		for _, l := range w.items {
			product *= max(l.num("qps"), 1)
		}
	}
	return product > 5000 || product <= 0
}

// TestHostile feeds shapes that break naive parsers.
func TestHostile(t *testing.T) {
	for _, s := range []string{
		strings.Repeat("[", 100_000), strings.Repeat("- ", 100_000), strings.Repeat("{a: ", 10_000), strings.Repeat("a:\n ", 5_000),
		"a: &a [x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: &d [*c, *c, *c, *c]\n" + strings.Repeat("e: [*d, *d, *d, *d]\n", 4),
		strings.Repeat("? ", 50_000), strings.Repeat("!!a ", 50_000), strings.Repeat("&a ", 50_000), "a: \"" + strings.Repeat("x", 1<<20) + "\"",
		"\x00", strings.Repeat("a: b: ", 1000), strings.Repeat(" ", 1<<20),
	} {
		if _, _, err := ParseBytes("f", []byte(s)); err == nil {
			t.Errorf("%.40q: accepted", s)
		}
	}
}
