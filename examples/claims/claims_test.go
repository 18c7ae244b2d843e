package claims

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/topology"
)

// TestFilesLoad resolves every variant at every value.
func TestFilesLoad(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 6 {
		t.Errorf("only %d claims", len(all))
	}
	for _, c := range all {
		text, err := Files.ReadFile(c.File)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# ") || c.Says == "" || c.Note == "" || len(c.Vary.Values) < 3 {
			t.Errorf("%s lacks a comment, a statement, a note or values", c.Name)
		}
		for _, v := range c.Variants {
			for _, x := range c.Vary.Values {
				sets := append([]string{}, v.Set...)
				if c.Varies(v.Name) {
					sets = append(sets, c.Vary.Path+"="+x)
				}
				if _, _, err := topology.ParseBytes(c.File, text, sets...); err != nil {
					t.Errorf("%s, %s, %s: %v", c.Name, v.Name, x, err)
				}
			}
		}
	}
}

func TestCheck(t *testing.T) {
	c := Claim{File: "loss.yaml", Measure: "goodput", Variants: []Variant{{Name: "a"}}, Ratio: Ratio{From: "a", To: "b"}}
	if err := c.check(); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("unknown variant: %v", err)
	}
	c.Ratio.To, c.Measure = "a", "luck"
	if err := c.check(); err == nil || !strings.Contains(err.Error(), "goodput") {
		t.Errorf("unknown measure: %v", err)
	}
}
