package report

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzIndent: valid compact JSON is laid out as encoding/json does it.
func FuzzIndent(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `[{}]`, `{"a":[]}`, `0`, `""`, `{"a":{"b":[1,-2.5e3,null,true]},"c":"d"}`,
		`{"{,:}":"[\"]"}`, `["\\"]`, `["\\\"","\\\\",{"\\":[[[]]]}]`, `["ü{ <&>"]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var compact, want bytes.Buffer
		if json.Compact(&compact, in) != nil {
			return
		}
		if err := json.Indent(&want, compact.Bytes(), "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := indent(compact.Bytes()); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", in, got, want.Bytes())
		}
	})
}
