package topology

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled is the fabric file's schema, ready to validate.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("fabric.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("fabric.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads YAML the way an editor's schema support does.
func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	j, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSchemaAccepts validates every example, the resolved text and the tests'
// own files.
func TestSchemaAccepts(t *testing.T) {
	s := compiled(t)
	texts := map[string][]byte{"two-racks": []byte(twoRacks), "good": []byte(good), "resolved": load(t, twoRacks).Resolved()}
	for _, f := range exampleFiles(t) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[f] = text
	}
	for name, text := range texts {
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemaRejects validates typing mistakes.
func TestSchemaRejects(t *testing.T) {
	s := compiled(t)
	for _, c := range [][2]string{
		{"headroom: auto", "headrom: auto"},
		{"rate: 25Gbps", "rate: 100"},
		{"rate: 25Gbps", "rate: 100Gb"},
		{"timeout: 14", "timeout: 32"},
		{"verb: write", "verb: wrte"},
		{"size: 1MB", "size: 1"},
		{"length: 3m", "length: 3m, delay: 15ns"},
		{"priorities: [3]", "priorities: [9]"},
		{"schema: 1", "schema: 2"},
		{"name: bulk", "nam: bulk"},
		{"  links:\n    server", "links:\n    server"},
	} {
		text := strings.Replace(good, c[0], c[1], 1)
		if err := s.Validate(asJSON(t, []byte(text))); err == nil {
			t.Errorf("%q: the schema accepts it", c[1])
		}
	}
	if !json.Valid(Schema()) {
		t.Error("not JSON")
	}
}
