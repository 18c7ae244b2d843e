package report

import (
	"bytes"
	"strings"
	"testing"
)

func TestGoldenSummary(t *testing.T) {
	r := smallResult()
	r.Engine.WallS, r.Engine.CPUS = 0.5, 0.7
	r.Findings = []Finding{{Code: "headroom-short", Where: "leaf1:1", Text: "3 bytes short"}}
	r.Deadlocks = []Deadlock{{AtNS: 5_000_000, Cycle: []string{"leaf1:1/3", "leaf2:1/3"}}}
	var b bytes.Buffer
	if err := WriteSummary(&b, r, false); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("colours without being asked for")
	}
	golden(t, "summary.txt", b.Bytes())
	var c bytes.Buffer
	if err := WriteSummary(&c, r, true); err != nil || !strings.Contains(c.String(), "\x1b[31mlimit") {
		t.Errorf("no colours when asked for: %q", c.String()[:40])
	}
}

// A summary says that failed flows alone fail no run, and only where that is so.
func TestHintAtFailedFlows(t *testing.T) {
	for _, x := range []struct {
		verdict string
		failed  int64
		exit    int
		hint    bool
	}{{Complete, 1, ExitOK, true}, {Complete, 0, ExitOK, false}, {Complete, 1, ExitFailed, false}, {Failed, 1, ExitFailed, false}} {
		var b bytes.Buffer
		if err := WriteSummary(&b, &Result{Verdict: x.verdict, Totals: Totals{Flows: 2, Failed: x.failed}, Exit: x.exit}, false); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), `expect: ["totals.failed == 0"]`) != x.hint {
			t.Errorf("%+v:\n%s", x, b.String())
		}
	}
}

func TestFormats(t *testing.T) {
	for want, got := range map[string]string{
		"1.5ns": Span(1500), "0ps": Span(0), "2.611ms": Span(2_611_000_000), "999ps": Span(999), "123.5us": Span(123_456_789),
		"1.234 KB": Bytes(1234), "12 MB": Bytes(12_000_000), "0 B": Bytes(0),
		"24.51Gbps": BitRate(24_510_000_000), "-": BitRate(0), "3.4 M": Number(3_400_000),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What a collector did not get is told; nothing is said when it got all.
func TestUndelivered(t *testing.T) {
	r := &Telemetry{ChainsMade: 3, Exports: []Export{{Endpoint: "c:1", ChainsExported: 3}}, Samples: &Pushed{Endpoint: "c:1", Made: 5, Exported: 5}}
	if got := undelivered(r); got != "" {
		t.Errorf("all delivered: %q", got)
	}
	r.Exports[0] = Export{Endpoint: "c:1", ChainsExported: 1, ChainsDropped: 2, LastError: "refused"}
	r.Samples.Dropped = 4
	for _, want := range []string{"2 of 3 chains did not reach c:1: refused", "4 of 5 samples did not reach c:1"} {
		if got := undelivered(r); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestNaturalOrder(t *testing.T) {
	got := strings.Join(sortedKeys(map[string]int{"leaf10": 1, "leaf9": 1, "a": 1}), " ")
	if got != "a leaf9 leaf10" {
		t.Error(got)
	}
}

func TestDiff(t *testing.T) {
	a, b := smallResult(), smallResult()
	b.Flows["bulk"].FCT.P99 = a.Flows["bulk"].FCT.P99 * 2
	b.Flows["bulk"].GoodputBPS /= 2
	b.Totals.DroppedFrames = 0
	b.Flows["new"] = &FlowLine{}
	delete(b.Flows, "late")
	for cond, fails := range map[string]bool{
		"p99>+5%": true, "p99>+100%": false, "p99>99.5%": true, "goodput<-5%": true, "goodput<-60%": false,
		"drops<-0.5": true, "drops>0": false, "min>+0%": false, "marks>+5%": false,
	} {
		c, err := ParseCondition(cond)
		if err != nil {
			t.Fatal(err)
		}
		d := Compare(a, b, []Condition{c})
		if (len(d.Failures) > 0) != fails {
			t.Errorf("%s: failures %q", cond, d.Failures)
		}
		if len(d.OnlyA) != 1 || len(d.OnlyB) != 1 || len(d.Changes) != 3 || !d.SameDigest {
			t.Errorf("%s: %+v", cond, d)
		}
	}
	if d := Compare(a, a, nil); len(d.Changes) != 0 || len(d.OnlyA) != 0 {
		t.Errorf("a result differs from itself: %+v", d)
	}
	for bad, want := range map[string]string{"p98>5%": `no metric "p98"`, "p99": "want METRIC", "p99>1.2.3": "not a number"} {
		if _, err := ParseCondition(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
