package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
)

var update = flag.Bool("update", false, "rewrite golden files")

// small is a run of two RNICs on one leaf: a bulk line of one flow with two
// requests, an incast line of two flows of which one fails, and one that
// never finishes.
func small() ([]*Part, *Meta, End) {
	flows := []FlowMeta{
		{Line: 0, From: 1, To: 2, Ordinal: 1, Size: 1000, Count: 2, Ideal: 1000 * clock.Nanosecond},
		{Line: 1, From: 1, To: 2, Ordinal: 1, Size: 500, Count: 1},
		{Line: 1, From: 2, To: 1, Ordinal: 1, Size: 500, Count: 1},
		{Line: 2, From: 2, To: 1, Ordinal: 1, Size: 10, Count: 3, Start: 7},
	}
	m := &Meta{
		Name: "small", Seed: 42, NumFlows: len(flows),
		Lines: []LineMeta{
			{"bulk", "rnic1", "rnic2", "write", 1},
			{"burst", "rnic1, rnic2", "*", "send", 2},
			{"late", "rnic2", "rnic1", "read", 1},
		},
		Flow: func(id int32) FlowMeta { return flows[id] },
		RNIC: func(n uint32) string { return fmt.Sprintf("rnic%d", n) },
		Links: []Link{
			{"rnic1", 1, "leaf1", 1},
			{"leaf1", 1, "rnic1", 1},
			{"rnic2", 1, "leaf1", 2},
			{"leaf1", 2, "rnic2", 1},
		},
		Faults: map[string]*FaultResult{"cut": {Kind: "link-down", Target: "leaf1:1", AtNS: 1500, Hits: 3}},
	}
	p1 := &Part{Device: "rnic1", RNIC: &RNICCounters{TxPackets: 10, LocalAckTimeoutErr: 2, PacketSeqErr: 1}, Retransmitted: 4, FrameHops: 10, Events: 20}
	p1.RNIC.RxPause[3], p1.RNIC.RxPauseNS[3] = 5, 1_234_500
	p1.Samples.Add(0, 0, 1_500_001, Success)
	p1.Samples.Add(0, 1_500_001, 4_000_000, Success)
	p1.Samples.Add(1, 100, 9_000_000, RetryExcErr)
	p1.Flows = []FlowPart{{Flow: 0, Retransmitted: 4}}
	p1.Links = []LinkCounts{{Port: 1, Sent: Count{10, 1000}, Delivered: Count{7, 70}}}
	p1.Balance = Balance{In: Count{7, 70}, Consumed: Count{7, 70}, Originated: Count{10, 1000}, Out: Count{10, 1000}}
	p2 := &Part{Device: "rnic2", RNIC: &RNICCounters{RxPackets: 9}, FrameHops: 7}
	p2.Samples.Add(2, 200, 3_000_200, Success)
	p2.Latencies.Add(2, 2_500_000)
	p2.Flows = []FlowPart{{Flow: 3, BytesDone: 4, LastProgress: 5_000_000, Why: "waits for an ACK of PSN 7, retry 3 of 7"}}
	p2.Links = []LinkCounts{{Port: 1, Delivered: Count{8, 800}, RxDropped: Count{1, 100}}}
	p2.Drops[CRC] = 1
	p2.Balance = Balance{In: Count{9, 900}, Consumed: Count{8, 800}, Dropped: Count{1, 100}}
	leaf := &Part{Device: "leaf1", FrameHops: 17, Switch: &SwitchCounters{
		Ports: map[string]*PortCounters{
			"1":  {Peer: "rnic1:1", TxFrames: 7, PFC: map[string]*PFCCounters{"3": {TxPause: 5, TxResume: 5, TxPauseNS: 1_234_500}}},
			"2":  {Peer: "rnic2:1", TxFrames: 9, Queue: map[string]*QueueCounter{"3": {TxFrames: 9, Watermark: 40000, ECNMarked: 2}}},
			"10": {},
		},
		Pools: map[string]*PoolCounters{"slice0": {Watermark: 50000}},
	}}
	leaf.Links = []LinkCounts{
		{Port: 1, Delivered: Count{10, 1000}, Sent: Count{8, 80}, Lost: Count{1, 10}},
		{Port: 2, Sent: Count{9, 900}, Injected: Count{1, 100}, Lost: Count{1, 100}},
	}
	return []*Part{p1, leaf, p2}, m, End{Verdict: Limit, Reason: "virtual limit 10us reached", At: 10_000_000}
}

func smallResult() *Result {
	p, m, e := small()
	return Merge(p, m, e, Engine{Windows: 3, Workers: 1, Processes: 1}, "00ff")
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test ./report -update rewrites it); got:\n%s", path, got)
	}
}

// TestFaultsAfterTheEnd: what was planned for later than the run lasted is told.
func TestFaultsAfterTheEnd(t *testing.T) {
	p, m, e := small()
	m.Faults = map[string]*FaultResult{
		"late": {Kind: "link-down", Target: "leaf1:1", AtNS: 1e12},
		"set":  {Kind: "set", Target: "switches.all.ecn", AtNS: NS(e.At) + 1},
		"last": {Kind: "drop", Target: "leaf1:1", AtNS: NS(e.At)},
	}
	r := Merge(p, m, e, Engine{}, "")
	var got []string
	for _, f := range r.Findings {
		if f.Code == CodeFaultNeverBegan {
			got = append(got, f.Where+": "+f.Text)
		}
	}
	if len(got) != 2 || got[0] != "late: link-down leaf1:1 was to begin at 1s, but the run ended at 10us: plan it earlier, or let the run go on with run.until" || !strings.HasPrefix(got[1], "set: ") {
		t.Errorf("%q", got)
	}
	var b bytes.Buffer
	if err := WriteSummary(&b, r, false); err != nil || strings.Count(b.String(), "never began, the run had ended") != 2 {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestGoldenResult(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, smallResult()); err != nil {
		t.Fatal(err)
	}
	golden(t, "small.json", b.Bytes())
	back := new(Result)
	if err := json.Unmarshal(b.Bytes(), back); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := WriteJSON(&again, back); err != nil {
		t.Fatal(err)
	}
	if again.String() != b.String() {
		t.Error("reading a result and writing it again changes it")
	}
	if back.RNICs["rnic1"].RxPauseNS[3] != 1_234_500 {
		t.Errorf("rx_prio3_pause_duration_ns read back as %d ps", back.RNICs["rnic1"].RxPauseNS[3])
	}
}

func TestGoldenFiles(t *testing.T) {
	dir := t.TempDir()
	d, err := OpenDir(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	r := smallResult()
	r.Detail.Resolved = []byte("schema: 1\n")
	r.Detail.Series = slices.Values([]SeriesRow{{At: 1500, Device: "leaf1", Port: 2, Metric: "queue", Index: "3", Value: 7, Unit: "B"}})
	r.Detail.Events = []Event{{AtNS: 1_234_567, Device: "leaf1", Kind: "xoff", Fields: map[string]any{"prio": 3}}}
	if err := d.Write(r); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"flows.csv", "series.csv", "events.jsonl"} {
		b, err := os.ReadFile(filepath.Join(dir, "out", f))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, f, b)
	}
	if back, err := ReadResult(filepath.Join(dir, "out")); err != nil || back.Name != "small" {
		t.Errorf("ReadResult: %v, %v", back, err)
	}
}

// The fields that are put together by hand are what [csv.Writer] would write.
func TestAppendField(t *testing.T) {
	for _, f := range []string{"", "leaf1", "rack-1_a", "a,b", `say "x"`, " first", "two\nlines", "über"} {
		var want strings.Builder
		c := csv.NewWriter(&want)
		c.Write([]string{f}) //nolint:errcheck // a builder takes it
		c.Flush()
		if got := string(appendField(nil, f)) + "\n"; got != want.String() {
			t.Errorf("%q is written %q, want %q", f, got, want.String())
		}
	}
}

func TestOpenDirRefusesWhatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(filepath.Join(file, "out")); err == nil || !strings.Contains(err.Error(), "--out") {
		t.Errorf("a directory below a file: %v", err)
	}
}

func TestMergeDoesNotDependOnOrderOrEncoding(t *testing.T) {
	want, _ := json.Marshal(smallResult())
	parts, m, e := small()
	slices.Reverse(parts)
	b, err := EncodeParts(parts)
	if err != nil {
		t.Fatal(err)
	}
	if b2, _ := EncodeParts(parts); !bytes.Equal(b, b2) {
		t.Error("parts are encoded differently from time to time")
	}
	back, err := DecodeParts(b)
	if err != nil || len(back) != len(parts) {
		t.Fatalf("%d parts of %d, %v", len(back), len(parts), err)
	}
	if !reflect.DeepEqual(back, parts) {
		t.Error("parts differ after a way there and back")
	}
	b[3]++
	if _, err := DecodeParts(b); err == nil || !strings.Contains(err.Error(), "another build") {
		t.Errorf("parts with other fields: %v", err)
	}
	b[3]--
	for _, cut := range []int{1, 7, 9, len(b) / 2, len(b) - 1} {
		if _, err := DecodeParts(b[:cut]); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", cut, len(b))
		}
	}
	parts = back
	got, _ := json.Marshal(Merge(parts, m, e, Engine{Windows: 3, Workers: 1, Processes: 1}, "00ff"))
	if !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestConservationBreachFails(t *testing.T) {
	for name, breakIt := range map[string]func(p []*Part){
		"leaf1:1 -> rnic1:1": func(p []*Part) { p[1].Links[0].Sent.Frames++ },
		"in rnic2":           func(p []*Part) { p[2].Balance.Stored.Bytes++ },
		"rnic2:1 -> leaf1:2": func(p []*Part) { p[1].Links[1].Delivered.Frames = 1 },
	} {
		p, m, e := small()
		breakIt(p)
		r := Merge(p, m, e, Engine{}, "")
		if r.Verdict != Failed || !strings.Contains(r.VerdictReason, name) || r.Exit != ExitFailed {
			t.Errorf("%s: verdict %q, reason %q, exit %d", name, r.Verdict, r.VerdictReason, r.Exit)
		}
	}
}

func TestPercentilesAreNearestRank(t *testing.T) {
	v := make([]clock.Duration, 0, 1000)
	for i := range 1000 {
		v = append(v, clock.Duration(1000-i))
	}
	if d := newDist(v, new(Spans)); *d != (Dist{Min: 1, Mean: 500, P50: 500, P95: 950, P99: 990, P999: 999, Max: 1000}) {
		t.Errorf("1..1000: %+v", *d)
	}
	if d := newDist([]clock.Duration{7}, new(Spans)); d.Min != 7 || d.P50 != 7 || d.P999 != 7 || d.Mean != 7 {
		t.Errorf("one sample: %+v", *d)
	}
	if d := newDist([]clock.Duration{1, 2, 3}, new(Spans)); d.P50 != 2 || d.P95 != 3 {
		t.Errorf("three samples: %+v", *d)
	}
	big := []clock.Duration{1 << 62, 1 << 62, 1 << 62, 1 << 62}
	if d := newDist(big, new(Spans)); d.Mean != 1<<62 {
		t.Errorf("the mean overflows: %v", d.Mean)
	}
	if newDist(nil, new(Spans)) != nil {
		t.Error("no samples must give no distribution")
	}
}

func TestWarmupIsLeftOut(t *testing.T) {
	p, m, e := small()
	m.Warmup = 1_000_000
	r := Merge(p, m, e, Engine{}, "")
	f := r.Flows["bulk"]
	if f.Completed != 2 || f.FCT == nil || f.FCT.Max != 4_000_000-1_500_001 || f.FCT.Min != f.FCT.Max {
		t.Errorf("completed %d, fct %+v: the request that started at 0 must count, but not be measured", f.Completed, f.FCT)
	}
	if r.Flows["burst"].Latency != nil {
		t.Error("latency of a request before the warm-up's end was measured")
	}
}

func TestNS(t *testing.T) {
	for ps, want := range map[NS]string{0: "0", 1: "0.001", 1500: "1.5", -1500: "-1.5", 123_000: "123"} {
		b, _ := json.Marshal(ps)
		var back NS
		if err := json.Unmarshal(b, &back); err != nil || string(b) != want || back != ps {
			t.Errorf("%d ps: %s, back %d, %v", ps, b, back, err)
		}
	}
	var n NS
	if err := json.Unmarshal([]byte("0.0001"), &n); err == nil {
		t.Error("a tenth of a picosecond was accepted")
	}
	if err := json.Unmarshal([]byte("1e3"), &n); err != nil || n != 1_000_000 {
		t.Errorf("1e3 ns = %d ps, %v", n, err)
	}
}

func TestForeverAndDatagramFlows(t *testing.T) {
	flows := []FlowMeta{{Count: -1, Size: 100}, {Line: 1, Count: -1, Size: 100, Datagram: true}}
	m := &Meta{
		NumFlows: 2, Lines: []LineMeta{{Name: "live", Flows: 1}, {Name: "udp", Flows: 1}},
		Flow: func(id int32) FlowMeta { return flows[id] }, RNIC: func(uint32) string { return "r" },
	}
	p := &Part{Device: "r", Flows: []FlowPart{{Flow: 0, Posted: 9}}, Received: []RecvPart{{Flow: 1, Messages: 3, Bytes: 300}}}
	p.Samples.Add(0, 0, 8_000_000, Success)
	r := Merge([]*Part{p}, m, End{Verdict: Complete}, Engine{}, "")
	if f := r.Flows["live"]; f.Status != "success" || f.Requests != 9 || f.Bytes != 100 || f.GoodputBPS != 100_000_000 {
		t.Errorf("live: %+v", *f)
	}
	if f := r.Flows["udp"]; f.Bytes != 300 || f.Status != "success" {
		t.Errorf("udp: %+v", *f)
	}
	if r.Totals.Flows != 2 || r.Totals.Completed != 2 {
		t.Errorf("totals: %+v", r.Totals)
	}
}

func TestNamesAreComplete(t *testing.T) {
	for i := range NumReasons {
		if back, ok := ReasonNamed(i.String()); !ok || back != i {
			t.Errorf("reason %d: %q", i, i)
		}
	}
	for i := range NumStatuses {
		if i.String() == "" {
			t.Errorf("status %d has no name", i)
		}
	}
	for v, want := range map[string]int{Complete: 0, Failed: 1, ExpectationFailed: 1, Limit: 4, Stalled: 5} {
		if ExitCode(v) != want {
			t.Errorf("%s: exit code %d, want %d", v, ExitCode(v), want)
		}
	}
}

// What is counted and not listed: numbers, means, least and largest are exact,
// percentiles are right to 1/512, however much of it was listed.
func TestFolded(t *testing.T) {
	const n = 20_000
	flows := []FlowMeta{{Line: 0, From: 1, To: 2, Size: 8, Count: -1, Ideal: 1000, Start: 60}, {Line: 0, From: 1, To: 2, Size: 8, Count: -1, Ideal: 7, Start: 60}}
	m := &Meta{
		NumFlows: 2, Lines: []LineMeta{{Name: "a", Flows: 2}}, Warmup: 50,
		Flow: func(id int32) FlowMeta { return flows[id] }, RNIC: func(uint32) string { return "rnic" },
	}
	merged := func(listed int) *FlowLine {
		r := rand.New(rand.NewPCG(1, 2))
		p := &Part{Device: "rnic1"}
		for i := range n {
			flow, start := int32(r.IntN(2)), clock.Time(i)
			d := clock.Duration(1) << r.IntN(40)
			end := start.Add(d + clock.Duration(r.Int64N(int64(d))))
			st := Success
			if i > n/2 && r.IntN(50) == 0 {
				st = RetryExcErr
			}
			if i < listed {
				p.Samples.Add(flow, start, end, st)
				p.Latencies.Add(flow, end.Sub(start))
			} else {
				p.Samples.Fold(flow, start, end, st, start >= m.Warmup)
				p.Latencies.Fold(flow, end.Sub(start))
			}
		}
		b, err := EncodeParts([]*Part{p})
		if err != nil {
			t.Fatal(err)
		}
		parts, err := DecodeParts(b)
		if err != nil {
			t.Fatal(err)
		}
		return Merge(parts, m, End{Verdict: Complete, At: 1 << 60}, Engine{}, "").Flows["a"]
	}
	near := func(what string, a, b float64) {
		t.Helper()
		if math.Abs(a-b) > b/512+1e-4 { // ratios are rounded to that
			t.Errorf("%s %v, want %v", what, a, b)
		}
	}
	want := merged(n)
	for _, listed := range []int{0, 10, n / 2, n - 1} {
		got := merged(listed)
		for _, x := range [][2]NS{{got.FCT.P50, want.FCT.P50}, {got.FCT.P95, want.FCT.P95}, {got.FCT.P99, want.FCT.P99}, {got.FCT.P999, want.FCT.P999}, {got.Latency.P50, want.Latency.P50}} {
			near("span", float64(x[0]), float64(x[1]))
		}
		for _, x := range [][2]float64{{got.Slowdown.P50, want.Slowdown.P50}, {got.Slowdown.P99, want.Slowdown.P99}} {
			near("ratio", x[0], x[1])
		}
		if got.Folded != int64(n-listed) {
			t.Errorf("%d folded of %d with %d listed", got.Folded, n, listed)
		}
		got.Folded, got.Latency.P50 = 0, want.Latency.P50
		f, g := got.FCT, want.FCT
		f.P50, f.P95, f.P99, f.P999 = g.P50, g.P95, g.P99, g.P999
		s, u := got.Slowdown, want.Slowdown
		near("mean ratio", s.Mean, u.Mean)
		s.P50, s.P95, s.P99, s.P999, s.Mean = u.P50, u.P95, u.P99, u.P999, u.Mean
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d listed: %+v\nwant %+v", listed, got, want)
		}
	}
}

// Each span is within 1/512 of its class's middle, and classes are in order.
func TestClasses(t *testing.T) {
	last := int32(0)
	for d := clock.Duration(0); d < 1<<62; d += 1 + d/300 {
		c := classOf(d)
		if err := math.Abs(float64(middle(c) - d)); err > float64(d)/512 || c < last {
			t.Fatalf("%d is of class %d after %d, whose middle is %d", d, c, last, middle(c))
		}
		last = c
	}
}
