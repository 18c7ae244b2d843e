package topology

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"testing"
)

// Tables are the tables of data/*.yaml as parseTree reads them: reading them at
// each start takes longer than reading most fabric files. -update writes them.
func TestTables(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("// Code generated from data/*.yaml by go test -run TestTables -update; DO NOT EDIT.\n\npackage topology\n")
	for _, name := range []string{"defaults", "asics", "nics", "dcqcn"} {
		text, err := os.ReadFile("data/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		root, errs := parseTree(name+".yaml", text)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		fmt.Fprintf(&b, "\nvar %sTree = node", name)
		writeNode(&b, root)
		b.WriteByte('\n')
	}
	want, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("tables.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile("tables.go"); err != nil || !bytes.Equal(have, want) {
		t.Errorf("tables.go is not what data/*.yaml say (%v): go test ./topology -run TestTables -update", err)
	}
}

// kindNames are the constants of nodeKind.
var kindNames = [...]string{nNull: "nNull", nScalar: "nScalar", nMap: "nMap", nSeq: "nSeq"}

// writeNode writes a tree as the elements of a composite literal, an entry a
// line.
func writeNode(b *bytes.Buffer, n *node) {
	fmt.Fprintf(b, "{kind: %s, file: %q, line: %d, col: %d", kindNames[n.kind], n.file, n.line, n.col)
	if n.text != "" {
		fmt.Fprintf(b, ", text: %q", n.text)
	}
	if n.keys != nil {
		b.WriteString(", keys: []entry{\n")
		for _, e := range n.keys {
			fmt.Fprintf(b, "{%q, %d, %d, &node", e.key, e.line, e.col)
			writeNode(b, e.val)
			b.WriteString("},\n")
		}
		b.WriteByte('}')
	}
	if n.items != nil {
		b.WriteString(", items: []*node{\n")
		for _, x := range n.items {
			writeNode(b, x)
			b.WriteString(",\n")
		}
		b.WriteByte('}')
	}
	b.WriteByte('}')
}
