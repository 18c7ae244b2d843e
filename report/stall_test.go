package report

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
)

// stallMeta are two lines that go on for ever and one with a count.
func stallMeta() *Meta {
	m := &Meta{Name: "s", NumFlows: 3, RNIC: func(uint32) string { return "rnic1" }}
	for _, n := range []string{"hung", "busy", "paced"} {
		m.Lines = append(m.Lines, LineMeta{Name: n, From: "rnic1", To: "rnic2", Verb: "write", Flows: 1})
	}
	m.Flow = func(id int32) FlowMeta {
		f := FlowMeta{Line: id, From: 1, To: 2, Size: 1000, Count: -1}
		if id == 2 {
			f.Count = 10
		}
		return f
	}
	return m
}

// TestStall holds that a line that goes on for ever and stands still at the end
// says so, with goodput over the whole run, and that others are left alone.
func TestStall(t *testing.T) {
	const us, ms = clock.Time(clock.Microsecond), clock.Time(clock.Millisecond)
	p := &Part{Device: "rnic1", RNIC: &RNICCounters{}}
	for f := range int32(3) {
		for i := range clock.Time(5) {
			p.Samples.Add(f, i*100*us, (i+1)*100*us, Success)
		}
	}
	p.Flows = []FlowPart{
		{Flow: 0, Posted: 6, Oldest: clock.Duration(50*ms - 500*us), Why: "no answer to PSN 7"},
		{Flow: 1, Posted: 6, Oldest: clock.Duration(900 * us)},
		{Flow: 2, Posted: 5, Why: NotDue},
	}
	r := Merge([]*Part{p}, stallMeta(), End{Verdict: Complete, At: 50 * ms}, Engine{}, "d")
	hung, busy, paced := r.Flows["hung"], r.Flows["busy"], r.Flows["paced"]
	if !hung.Stalled() || hung.Status != "success" || hung.GoodputBPS != 800_000 {
		t.Errorf("hung: %+v", hung)
	}
	want := "hung: its oldest request has waited 49.5ms at the run's end, 495 times the median of 100us: no answer to PSN 7"
	if hung.Why != want {
		t.Errorf("hung waits: %q", hung.Why)
	}
	if busy.Stalled() || busy.Why != "" || busy.GoodputBPS != 80_000_000 || busy.OldestNS != NS(900*us) {
		t.Errorf("busy: %+v", busy)
	}
	if paced.Stalled() || !paced.OnSchedule() || paced.GoodputBPS != 80_000_000 || busy.OnSchedule() {
		t.Errorf("paced: %+v", paced)
	}
	var rows []FlowRow
	for f := range r.Rows() {
		rows = append(rows, f)
	}
	if rows[0].GoodputBPS != 800_000 || "hung: "+rows[0].Why != want || rows[1].GoodputBPS != 80_000_000 || rows[1].Why != "" {
		t.Errorf("rows %+v", rows)
	}
	var b strings.Builder
	if err := WriteSummary(&b, r, false); err != nil || !strings.Contains(b.String(), "stuck       hung: its oldest") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestStraggled holds that one slow request among many is seen, unless it is
// only larger than the others.
func TestStraggled(t *testing.T) {
	ms := NS(clock.Millisecond)
	for _, c := range []struct {
		p50, most NS
		s         *Ratios
		want      bool
	}{
		{ms / 10, 2 * ms, nil, true},
		{ms / 10, 2*ms - 1, nil, false},
		{ms / 1000, ms / 2, nil, false},
		{ms / 10, 20 * ms, &Ratios{P50: 1, Max: 20}, true},
		{ms / 10, 20 * ms, &Ratios{P50: 1, Max: 1.5}, false},
	} {
		o := &FlowLine{FCT: &Dist{P50: c.p50, Max: c.most}, Slowdown: c.s}
		if o.Straggled() != c.want {
			t.Errorf("p50 %v, max %v, slowdown %+v: %t", c.p50, c.most, c.s, o.Straggled())
		}
	}
}
