package report

import (
	"strings"
	"testing"
)

func names() Names {
	return Names{
		Flows: []string{"bulk", "burst", "late"}, RNICs: []string{"rnic1", "rnic2"},
		Switches: map[string][]string{"leaf1": {"1", "2", "10"}}, Faults: []string{"cut"},
	}
}

func compile(t *testing.T, exprs ...string) (*Expect, error) {
	t.Helper()
	var in []Expectation
	for _, x := range exprs {
		in = append(in, Expectation{Expr: x, Pos: "f.yaml:9:5"})
	}
	return CompileExpect(in, names())
}

func TestExpectHolds(t *testing.T) {
	for _, x := range []string{
		`totals.dropped_frames == 1`,
		`flows["bulk"].completed == 2`,
		`flows.bulk.completed == 2.0`,
		`rnics["rnic1"].packet_seq_err == 1`,
		`rnics["rnic1"].rx_prio3_pause == 5 && rnics.rnic1.rx_prio3_pause_duration_ns == 1234.5`,
		`flows["bulk"].fct_ns.p99 < 3000 && flows["bulk"].fct_ns.min == 1500.001`,
		`flows["bulk"].fct_ns.p99 * 2 > flows["bulk"].fct_ns.p50 + 1`,
		`flows["bulk"].slowdown.p50 <= 2`,
		`totals.drops_by_reason["crc"] == 1 && totals.drops_by_reason.fault == 0`,
		`flows["burst"].statuses["retry_exc_err"] == 1 && flows["burst"].statuses["loc_len_err"] == 0`,
		`flows["burst"].status == "retry_exc_err"`,
		`switches["leaf1"].ports["1"].pfc["3"].tx_pause > 0`,
		`switches["leaf1"].ports["10"].queue["5"].tx_frames == 0`,
		`switches.leaf1.pools.slice0.watermark_bytes == 50000`,
		`faults["cut"].hits == 3`,
		`engine.frame_hops == 34 && digest == "00ff"`,
		`flows.all(f, flows[f].retransmitted_packets < 5)`,
		`size(deadlocks) == 0 && !has(flows.late.fct_ns)`,
		`(totals.bytes * 8) / 2 == 10000`,
		`"bulk" in flows`,
	} {
		e, err := compile(t, x)
		if err != nil {
			t.Errorf("%s: %v", x, err)
			continue
		}
		r := smallResult()
		if err := e.Judge(r); err != nil || r.Verdict != Limit || r.Exit != ExitLimit {
			t.Errorf("%s: verdict %q (%s), exit %d, %v", x, r.Verdict, r.VerdictReason, r.Exit, err)
		}
	}
}

func TestExpectErrorsAtLoad(t *testing.T) {
	for x, want := range map[string]string{
		`total.dropped_frames == 0`:                     `did you mean "totals"`,
		`totals.droped_frames == 0`:                     `did you mean "dropped_frames"`,
		`flows["bulc"].completed == 4`:                  `no workload line is named "bulc"; did you mean "bulk"?`,
		`flows.bluk.completed == 4`:                     `did you mean "bulk"`,
		`rnics["rnic9"].out_of_sequence == 0`:           `no RNIC is named "rnic9"`,
		`switches["leaf7"].ports["1"].rx_frames == 0`:   `no switch is named "leaf7"; did you mean "leaf1"?`,
		`switches["leaf1"].ports["77"].rx_frames == 0`:  `no port of leaf1 is named "77"; known: 1, 2, 10`,
		`switches["leaf1"].ports["1"].pg["9"].drops==0`: `no class is named "9"`,
		`totals.drops_by_reason["buffer"] == 0`:         `no drop reason is named "buffer"`,
		`faults["cot"].hits > 0`:                        `did you mean "cut"`,
		`verdict == "completed"`:                        `no verdict is named "completed"; did you mean "complete"?`,
		`flows["bulk"].status == "sucess"`:              `did you mean "success"`,
		`verdict == 5`:                                  `no matching overload`,
		`totals.flows`:                                  `must be true or false`,
		`totals.flows ==`:                               `Syntax error`,
		`flows["bulk"].fct_ns.p98 < 5`:                  `undefined field 'p98'`,
	} {
		_, err := compile(t, x, "totals.flows == 4")
		if err == nil {
			t.Errorf("%s was accepted", x)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "f.yaml:9:5") || !strings.Contains(err.Error(), x[:5]) {
			t.Errorf("%s: %v, want %q", x, err, want)
		}
	}
	_, err := compile(t, "a == 1", "b == 2")
	if err == nil || strings.Count(err.Error(), "f.yaml") != 2 {
		t.Errorf("both errors must be told: %v", err)
	}
}

func TestExpectTellsActualValues(t *testing.T) {
	for x, want := range map[string]string{
		`totals.dropped_frames == 0`:                               `totals.dropped_frames = 1`,
		`flows["bulk"].completed == 4 || totals.bytes > 1000000`:   `totals.bytes = 2500`,
		`flows["bulk"].fct_ns.p50 < flows["bulk"].fct_ns.min`:      `flows["bulk"].fct_ns.min = 1500.001`,
		`flows["late"].fct_ns.p50 < 5`:                             `fct_ns has no value`,
		`flows["burst"].status == "success"`:                       `flows["burst"].status = retry_exc_err`,
		`totals.flows / totals.drops_by_reason["headroom_pool"]>1`: `division by zero`,
	} {
		e, err := compile(t, x)
		if err != nil {
			t.Fatal(err)
		}
		r := smallResult()
		if err := e.Judge(r); err != nil {
			t.Fatal(err)
		}
		if r.Verdict != ExpectationFailed || !strings.Contains(r.VerdictReason, want) || r.Exit != ExitFailed {
			t.Errorf("%s: %q %q exit %d", x, r.Verdict, r.VerdictReason, r.Exit)
		}
	}
}

func TestExpectThatNamesTheVerdict(t *testing.T) {
	for _, c := range []struct {
		exprs []string
		exit  int
	}{
		{[]string{`verdict == "limit"`}, ExitOK},
		{[]string{`verdict != "complete"`, `totals.flows == 4`}, ExitOK},
		{[]string{`verdict == "limit"`, `totals.flows == 5`}, ExitFailed},
		{[]string{`totals.flows == 4`}, ExitLimit},
		{[]string{`verdict == "complete"`}, ExitFailed},
		{nil, ExitLimit},
	} {
		e, err := compile(t, c.exprs...)
		if err != nil {
			t.Fatal(err)
		}
		r := smallResult()
		if err := e.Judge(r); err != nil || r.Exit != c.exit {
			t.Errorf("%q: exit %d, want %d (%v)", c.exprs, r.Exit, c.exit, err)
		}
	}
}

func TestVerdictPrecedence(t *testing.T) {
	order := []string{Complete, Limit, Stalled, ExpectationFailed, Failed}
	for i, a := range order {
		for j, b := range order {
			r := &Result{Verdict: a}
			r.Raise(b, "why")
			if want := order[max(i, j)]; r.Verdict != want {
				t.Errorf("%s then %s: %s", a, b, r.Verdict)
			}
		}
	}
}
