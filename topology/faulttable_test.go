package topology

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	faultsDoc  = "../docs/faults.md"
	tableBegin = "<!-- kinds: written by go test ./topology -run TestFaultTable -update -->\n"
	tableEnd   = "<!-- end of kinds -->\n"
)

// faultTable lists every kind with its targets and parameters for a reader.
func faultTable() string {
	targets := map[faultTarget]string{
		onCable: "cable, by either port", onPort: "port", onDevice: "device", onSwitch: "switch or its port",
		onNIC: "RNIC", onSetting: "path of a setting",
	}
	var b strings.Builder
	b.WriteString("| kind | target | parameters | one of these is needed |\n|---|---|---|---|\n")
	for i := range faultKinds {
		k := &faultKinds[i]
		var params []string
		for _, p := range k.params {
			d, _, _ := strings.Cut(p.spec.describe(), " such as ") // one line of the document says how units are written
			d, _, _ = strings.Cut(d, " with unit ")
			if p.list {
				d += "; several with commas"
			}
			params = append(params, fmt.Sprintf("`%s`: %s", p.name, d))
		}
		if k.match {
			params = append(params, "matching")
		}
		need := ""
		if len(k.need) > 0 {
			need = "`" + strings.Join(k.need, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, targets[k.on], strings.Join(params, "<br>"), need)
	}
	return b.String()
}

// The table of kinds in the documentation is that of the program.
func TestFaultTable(t *testing.T) {
	text, err := os.ReadFile(faultsDoc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), tableBegin)
	old, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", faultsDoc)
	}
	want := faultTable()
	if *update {
		if err := os.WriteFile(faultsDoc, []byte(head+tableBegin+want+tableEnd+tail), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if old != want {
		t.Errorf("%s differs from the kinds of the program; run with -update", faultsDoc)
	}
}
