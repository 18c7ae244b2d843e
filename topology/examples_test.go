package topology

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// exampleFiles are the fabric files that the repository ships.
func exampleFiles(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, pat := range []string{"../examples/*.yaml", "../examples/*/*.yaml"} {
		m, err := filepath.Glob(pat)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m {
			if filepath.Base(f) != "index.yaml" { // a list of claims
				out = append(out, f)
			}
		}
	}
	return out
}

// TestExamples loads every example, twice over its resolved text.
func TestExamples(t *testing.T) {
	for _, f := range exampleFiles(t) {
		begin := time.Now()
		p, _, err := Load(LoadOptions{Files: []string{f}})
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		took := time.Since(begin)
		q, _, err := LoadBytes(f, p.Resolved())
		if err != nil {
			t.Errorf("%s: resolved: %v", f, err)
			continue
		}
		if p.Hash != q.Hash {
			t.Errorf("%s: resolved text gives another plan", f)
		}
		if len(p.RNICs) > 1000 {
			t.Logf("%s: %d devices, %d flows in %v", f, len(p.Devices), len(p.Flows), took)
		}
		for _, x := range Lint(p) {
			t.Logf("%s: %s", f, x)
		}
		if _, err := os.Stat(f); err != nil {
			t.Fatal(err)
		}
	}
}
