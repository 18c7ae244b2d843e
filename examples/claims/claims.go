// Package claims holds what an article says about RDMA retransmission, as data:
// fabric files that measure it, their variants, and the parameter under which
// its figure would come out. The files run by themselves; `emuctl claims` runs
// them all. Start at [All].
package claims

import (
	"embed"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"
)

// Files are index.yaml and the fabric files.
//
//go:embed *.yaml
var Files embed.FS

// Claim is one statement and how it is measured.
type Claim struct {
	Name     string    `yaml:"name"`
	Says     string    `yaml:"says"`
	Article  string    `yaml:"article"` // its figure, in words
	File     string    `yaml:"file"`
	Flow     string    `yaml:"flow"`    // workload line
	Measure  string    `yaml:"measure"` // see Measures
	Variants []Variant `yaml:"variants"`
	Ratio    Ratio     `yaml:"ratio"`
	Vary     Vary      `yaml:"vary"`
	Note     string    `yaml:"note"`
}

// Variant is the file with settings laid over it.
type Variant struct {
	Name string   `yaml:"name"`
	Set  []string `yaml:"set"`
	Flow string   `yaml:"flow"` // workload line, instead of the claim's
}

// Ratio says how many times better To is than From by the article.
type Ratio struct {
	From    string  `yaml:"from"`
	To      string  `yaml:"to"`
	Article float64 `yaml:"article"`
}

// Vary is the parameter that is turned to look for the article's figure; In
// names the variants it applies to, all when empty.
type Vary struct {
	Path   string   `yaml:"path"`
	Values []string `yaml:"values"`
	In     []string `yaml:"in"`
}

// Measures are the figures that can be taken of a workload line.
var Measures = []string{"goodput", "fct_mean", "fct_p50", "fct_p99", "last_end", "extra"}

// All reads the index.
func All() ([]Claim, error) {
	text, err := Files.ReadFile("index.yaml")
	if err != nil {
		return nil, err
	}
	var out []Claim
	if err := yaml.UnmarshalWithOptions(text, &out, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("claims: index.yaml: %w", err)
	}
	for i := range out {
		if err := out[i].check(); err != nil {
			return nil, fmt.Errorf("claims: index.yaml: %s: %w", out[i].Name, err)
		}
	}
	return out, nil
}

func (c *Claim) check() error {
	for _, n := range append([]string{c.Ratio.From, c.Ratio.To}, c.Vary.In...) {
		if c.Variant(n) == nil {
			return fmt.Errorf("no variant is named %q", n)
		}
	}
	if !slices.Contains(Measures, c.Measure) {
		return fmt.Errorf("measure %q: allowed %v", c.Measure, Measures)
	}
	_, err := Files.ReadFile(c.File)
	return err
}

// Variant finds a variant by name, nil if there is none.
func (c *Claim) Variant(name string) *Variant {
	for i := range c.Variants {
		if c.Variants[i].Name == name {
			return &c.Variants[i]
		}
	}
	return nil
}

// Varies says whether the parameter is turned in a variant.
func (c *Claim) Varies(name string) bool {
	return len(c.Vary.In) == 0 || slices.Contains(c.Vary.In, name)
}

// More says that a larger figure is the better one.
func (c *Claim) More() bool { return c.Measure == "goodput" }
