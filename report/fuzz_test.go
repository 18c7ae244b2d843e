package report

import (
	"encoding/binary"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzExpect: whatever a file says, compiling and judging end without panic,
// and an expression that compiles can be judged.
func FuzzExpect(f *testing.F) {
	for _, s := range []string{
		`totals.flows == 4`, `flows["bulk"].fct_ns.p99 < 3000.5`, `flows.all(f, flows[f].failed == 0)`, `verdict in ["complete"]`,
		`size(deadlocks) > 0 || has(flows.bulk.why)`, `switches.leaf1.ports["1"].pfc["3"].tx_pause / 0 == 1`, `1 + 2.5 > -3`, `"a" + "b" == 'ab'`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		e, err := CompileExpect([]Expectation{{Expr: expr, Pos: "f:1:1"}}, names())
		if err != nil {
			return
		}
		r := smallResult()
		if err := e.Judge(r); err != nil {
			t.Fatal(err)
		}
		if r.Verdict != Limit && r.Verdict != ExpectationFailed {
			t.Errorf("%s made the verdict %q", expr, r.Verdict)
		}
	})
}

// FuzzParts: bytes that claim to be parts are refused or are those of parts, and
// never make more than they are.
func FuzzParts(f *testing.F) {
	parts, _, _ := small()
	b, err := EncodeParts(parts)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[8:])
	f.Add(append(binary.AppendUvarint(nil, 1<<40), 1, 2, 3))
	f.Fuzz(func(t *testing.T, in []byte) {
		in = append(b[:8:8], in...)
		parts, err := DecodeParts(in)
		if err != nil {
			return
		}
		one, err := EncodeParts(parts)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeParts(one)
		if err != nil || !reflect.DeepEqual(parts, again) {
			t.Errorf("%v: %+v became %+v", err, parts, again)
		}
	})
}

// FuzzResult: a result that can be read is written and read again unchanged.
func FuzzResult(f *testing.F) {
	b, err := json.Marshal(smallResult())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"schema":1,"virtual_ns":0.001,"rnics":{"a":{"rx_prio3_pause_duration_ns":1.5}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := new(Result)
		if json.Unmarshal(in, r) != nil {
			return
		}
		one, err := json.Marshal(r)
		if err != nil {
			t.Skip(err) // not a number JSON can carry
		}
		again := new(Result)
		if err := json.Unmarshal(one, again); err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		two, err := json.Marshal(again)
		if err != nil || string(one) != string(two) {
			t.Errorf("%v: %s became %s", err, one, two)
		}
	})
}

// FuzzCondition: a --fail-if that parses compares without panic.
func FuzzCondition(f *testing.F) {
	f.Add("p99>+5%")
	f.Add("drops<-0.5")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCondition(s)
		if err != nil {
			return
		}
		if d := Compare(smallResult(), smallResult(), []Condition{c}); len(d.Changes) != len(d.Failures) {
			t.Errorf("%s: equal results differ: %+v", s, d)
		}
	})
}
