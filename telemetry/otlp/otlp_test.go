package otlp

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	colpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/telemetry/chain"
	"github.com/rocemu/rocemu/topology"
)

const us = int64(clock.Microsecond)

// collectorServer is a real OTLP trace service that keeps what it gets.
type collectorServer struct {
	colpb.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans map[string]*tracepb.Span
	where map[string]string // span id → service.name
	total int
	sizes []int // spans of each request
	most  int
	hold  chan struct{} // nothing is taken before it is closed
	limit int64         // spans rejected in each request
}

func (s *collectorServer) Export(ctx context.Context, r *colpb.ExportTraceServiceRequest) (*colpb.ExportTraceServiceResponse, error) {
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.take(r.ResourceSpans)
	out := &colpb.ExportTraceServiceResponse{}
	if s.limit > 0 {
		out.PartialSuccess = &colpb.ExportTracePartialSuccess{RejectedSpans: s.limit, ErrorMessage: "full"}
	}
	return out, nil
}

func (s *collectorServer) take(rs []*tracepb.ResourceSpans) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spans == nil {
		s.spans, s.where = map[string]*tracepb.Span{}, map[string]string{}
	}
	for _, r := range rs {
		for _, sc := range r.ScopeSpans {
			for _, sp := range sc.Spans {
				id := hex.EncodeToString(sp.SpanId)
				s.spans[id], s.where[id] = sp, value(r.Resource.Attributes, "service.name").GetStringValue()
				s.total++
			}
		}
	}
	s.sizes = append(s.sizes, spansIn(rs))
	s.most = slices.Max(s.sizes)
}

// spansIn counts the spans of a request, packed or not.
func spansIn(rs []*tracepb.ResourceSpans) (n int) {
	d := new(tracepb.TracesData)
	if err := proto.Unmarshal(marshal(&tracepb.TracesData{ResourceSpans: rs}), d); err != nil {
		panic(err)
	}
	for _, r := range d.ResourceSpans {
		for _, sc := range r.ScopeSpans {
			n += len(sc.Spans)
		}
	}
	return n
}

func value(at []*commonpb.KeyValue, key string) *commonpb.AnyValue {
	for _, kv := range at {
		if kv.Key == key {
			return kv.Value
		}
	}
	return nil
}

// serve runs the collector on a port of the loopback.
func serve(t *testing.T, s *collectorServer) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	colpb.RegisterTraceServiceServer(g, s)
	go g.Serve(l) //nolint:errcheck // ends with Stop
	t.Cleanup(g.Stop)
	return l.Addr().String()
}

func testDirectory(qps int) *chain.Directory {
	p := &topology.Plan{
		Name: "t", Seed: 7,
		Devices: []topology.Device{
			{Kind: topology.Leaf, Name: "leaf1"}, {ID: 1, Kind: topology.RNIC, Name: "rnic1"}, {ID: 2, Kind: topology.RNIC, Name: "rnic2"},
		},
		RNICs:  []int32{1, 2},
		Lines:  []topology.Line{{Name: "bulk"}},
		Faults: []topology.Fault{{Name: "lose", Kind: "drop"}},
	}
	for i := range int32(qps) {
		p.QPs = append(p.QPs, topology.QP{ID: i, A: 1, B: 2, AQPN: uint32(100 + i), BQPN: uint32(10000 + i), Flows: []int32{i}})
		p.Flows = append(p.Flows, topology.Flow{ID: i, From: 1, To: 2, Ordinal: i + 1})
		p.Lines[0].Flows = append(p.Lines[0].Flows, i)
	}
	return chain.NewDirectory(p)
}

// story returns the chain of one loss on queue pair i, with n packets resent.
func story(d *chain.Directory, i, n int) *chain.Chain {
	var out *chain.Chain
	a := chain.New(d, func(c *chain.Chain) { out = c })
	seq := uint32(i * 1000)
	rec := func(at int64, dev int32, k record.Kind, psn uint32, x int64) record.Record {
		seq++
		return record.Record{At: clock.Time(at * us), Dev: dev, Kind: k, PSN: psn, X: x, Src: 1, Dst: 2, QPN: uint32(10000 + i), Seq: seq, Iter: 1, Op: 7}
	}
	drop := rec(10, 0, record.Drop, 5, 4096)
	drop.Reason, drop.Fault, drop.Port = uint8(record.Fault), 1, 3
	nak := rec(13, 1, record.NakRecv, 5, 0)
	nak.Reason = 0x60
	recs := []record.Record{rec(1, 1, record.ReqPosted, 0, 1), drop, rec(11, 2, record.OutOfSeq, 5, 6), rec(11, 2, record.NakSent, 5, 0), nak, rec(13, 1, record.Rewind, 5, 9)}
	for k := range n {
		recs = append(recs, rec(14, 1, record.Retransmit, uint32(5+k), 0))
	}
	a.Add(append(recs, rec(20, 1, record.ReqDone, 99, 1)))
	return out
}

var epoch = time.Unix(1_800_000_000, 0)

func TestSpansOfAChain(t *testing.T) {
	col := &collectorServer{}
	dest, err := Dial(serve(t, col))
	if err != nil {
		t.Fatal(err)
	}
	d := testDirectory(1)
	c := story(d, 0, 2)
	e := New(d, dest, Options{Time: TimeMap{Epoch: epoch, Scale: 1000}})
	e.Offer(c)
	if a := e.Close(); a.Exported != a.Offered || a.Exported.Spans != 9 {
		t.Fatalf("accounts %+v", a)
	}
	checkSpans(t, col, c)
}

// checkSpans compares what a collector got with the chain of story(…, 2).
func checkSpans(t *testing.T, col *collectorServer, c *chain.Chain) {
	t.Helper()
	hexID := func(i int) string { id := c.SpanID(i); return hex.EncodeToString(id[:]) }
	root := col.spans[hexID(-1)]
	if root == nil || len(root.ParentSpanId) != 0 || root.Name != "request" {
		t.Fatalf("root span %v", root)
	}
	if got := root.StartTimeUnixNano; got != uint64(epoch.UnixNano()+us) {
		t.Errorf("root starts at %d, want epoch + 1000 × 1 us", got-uint64(epoch.UnixNano()))
	}
	want := []struct {
		name, dev string
		cause     int
	}{{"loss", "leaf1", -1}, {"gap", "rnic2", 0}, {"nak sent", "rnic2", 1}, {"nak", "rnic1", 2}, {"go back", "rnic1", 3}, {"retransmit", "rnic1", 4}, {"retransmit", "rnic1", 4}, {"recovery", "rnic1", 6}}
	for i, w := range want {
		sp := col.spans[hexID(i)]
		if sp == nil {
			t.Fatalf("step %d: no span %s", i, hexID(i))
		}
		if sp.Name != w.name || col.where[hexID(i)] != w.dev || hex.EncodeToString(sp.ParentSpanId) != hexID(-1) {
			t.Errorf("step %d: %s on %s, parent %x; want %s on %s under the request", i, sp.Name, col.where[hexID(i)], sp.ParentSpanId, w.name, w.dev)
		}
		if w.cause < 0 != (len(sp.Links) == 0) || w.cause >= 0 && hex.EncodeToString(sp.Links[0].SpanId) != hexID(w.cause) {
			t.Errorf("step %d: links %v, want one to step %d", i, sp.Links, w.cause)
		}
	}
	loss := col.spans[hexID(0)].Attributes
	for key, s := range map[string]string{"drop.reason": "fault", "fault.name": "lose", "rdma.opcode": "write-middle", "net.device": "leaf1"} {
		if got := value(loss, key).GetStringValue(); got != s {
			t.Errorf("loss: %s = %q, want %q", key, got, s)
		}
	}
	for key, n := range map[string]int64{"rdma.psn": 5, "net.port": 3, "queue.bytes": 4096, "emu.vt_ps": 10 * us, "rdma.qpn": 10000} {
		if got := value(loss, key).GetIntValue(); got != n {
			t.Errorf("loss: %s = %d, want %d", key, got, n)
		}
	}
	if nak := value(col.spans[hexID(3)].Attributes, "rdma.syndrome").GetIntValue(); nak != 0x60 {
		t.Errorf("syndrome %#x, want 0x60", nak)
	}
}

func TestHTTP(t *testing.T) {
	col := &collectorServer{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var m colpb.ExportTraceServiceRequest
		if err := proto.Unmarshal(b, &m); err != nil || r.URL.Path != "/v1/traces" {
			http.Error(w, r.URL.Path, http.StatusBadRequest)
			return
		}
		col.take(m.ResourceSpans)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer srv.Close()
	dest, err := Dial(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := testDirectory(1)
	c := story(d, 0, 2)
	e := New(d, dest, Options{Time: TimeMap{Epoch: epoch}})
	e.Offer(c)
	if a := e.Close(); a.Exported.Chains != 1 {
		t.Fatalf("accounts %+v", a)
	}
	checkSpans(t, col, c)
}

// Two runs write the same file.
func TestFileIsReproducible(t *testing.T) {
	var text [2]string
	for i := range text {
		path := t.TempDir() + "/spans.jsonl"
		dest, err := Dial("file:" + path)
		if err != nil {
			t.Fatal(err)
		}
		d := testDirectory(3)
		e := New(d, dest, Options{Time: TimeMap{Epoch: epoch}})
		c := story(d, 2, 2)
		e.Offer(c)
		if a := e.Close(); a.Exported.Chains != 1 {
			t.Fatalf("accounts %+v", a)
		}
		b, _ := os.ReadFile(path)
		text[i] = canonical(t, b)
		id := hex.EncodeToString(c.Trace[:])
		if !json.Valid(b) || !strings.Contains(text[i], `"traceId":"`+id+`"`) {
			t.Fatalf("no trace %s in %.300s", id, b)
		}
	}
	if text[0] != text[1] {
		t.Errorf("two runs differ:\n%s\n%s", text[0], text[1])
	}
}

// canonical sorts the resources of a line: the SDK groups spans by a map.
func canonical(t *testing.T, b []byte) string {
	t.Helper()
	var v struct {
		ResourceSpans []json.RawMessage `json:"resourceSpans"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, r := range v.ResourceSpans {
		s = append(s, string(r))
	}
	slices.Sort(s)
	return strings.Join(s, "\n")
}

// 50,000 spans while the collector takes nothing: Offer does not wait, the queue
// takes what it may, and the accounts add up, here and at the collector.
func TestStalledCollector(t *testing.T) {
	col := &collectorServer{hold: make(chan struct{})}
	dest, err := Dial(serve(t, col))
	if err != nil {
		t.Fatal(err)
	}
	d := testDirectory(1000)
	e := New(d, dest, Options{Time: TimeMap{Epoch: epoch}, MaxQueue: 40000, Timeout: time.Minute, Drain: time.Minute})
	for i := range 1000 {
		e.Offer(story(d, i, 43))
	}
	if a := e.Accounts(); a.Exported.Chains != 0 || a.Queue.Spans != 10000 {
		t.Errorf("while the collector is stalled: %+v", a)
	}
	close(col.hold)
	a := e.Close()
	if a.Offered.Spans != 50000 || a.Exported.Spans != 40000 || a.Exported.Chains+a.Dropped().Chains != 1000 {
		t.Errorf("accounts do not add up: %+v", a)
	}
	if col.total != int(a.Exported.Spans) || col.most > 4096 {
		t.Errorf("collector has %d spans, %d at once; accounts %+v", col.total, col.most, a)
	}
	// The exporter's goroutine may have found the queue with less in it at first:
	// TestFirstBatch has the limit of that.
	if n := col.sizes[0]; n == 0 || n > 250 || n%50 != 0 {
		t.Errorf("the first request has %d spans", n)
	}
	if want := []int{500, 1000, 2000, 4050}; !slices.Equal(col.sizes[1:5], want) {
		t.Errorf("requests of %d spans, want %d after the first: whole chains, more and more of them", col.sizes[:5], want)
	}
}

// An export takes as long as Options.Timeout says: the libraries' own limit, ten
// seconds or what the environment has, does not end it before.
func TestTimeoutIsTheOptions(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "20") // ms
	web := func(t *testing.T, hold chan struct{}) string {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
		t.Cleanup(s.Close)
		return s.URL
	}
	for name, at := range map[string]func(*testing.T, chan struct{}) string{
		"grpc": func(t *testing.T, hold chan struct{}) string { return serve(t, &collectorServer{hold: hold}) },
		"http": web,
	} {
		hold := make(chan struct{})
		dest, err := Dial(at(t, hold))
		if err != nil {
			t.Fatal(err)
		}
		d := testDirectory(1)
		e := New(d, dest, Options{Time: TimeMap{Epoch: epoch}, Timeout: time.Minute, Drain: time.Minute})
		e.Offer(story(d, 0, 3))
		time.Sleep(300 * time.Millisecond) // longer than the library waits
		close(hold)
		if a := e.Close(); a.Failures != 0 || a.Exported.Chains != 1 {
			t.Errorf("%s: accounts %+v", name, a)
		}
	}
}

// A collector that has not answered yet gets 256 spans at most, in whole chains.
func TestFirstBatch(t *testing.T) {
	d := testDirectory(10)
	e := &Exporter{size: firstBatch, wake: make(chan struct{}, 1)}
	e.opt.defaults()
	for i := range 10 {
		e.Offer(story(d, i, 43))
	}
	n := 0
	for _, c := range e.take() {
		n += len(c.Steps) + 1
	}
	if n != 250 || len(e.queue) != 5 {
		t.Errorf("the first request has %d spans, %d chains are left", n, len(e.queue))
	}
}

// A collector that does not exist costs the end of a run no more than Drain.
func TestDeadCollector(t *testing.T) {
	dest, err := Dial("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	d := testDirectory(2)
	e := New(d, dest, Options{Timeout: 100 * time.Millisecond, Backoff: 10 * time.Millisecond, Attempts: 1 << 20, Drain: 300 * time.Millisecond})
	for i := range 2 {
		e.Offer(story(d, i, 2))
	}
	start := time.Now()
	a := e.Close()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("closing took %v", took)
	}
	if a.Closed.Chains != 2 || a.Exported.Chains != 0 || a.Failures == 0 || a.LastError == "" {
		t.Errorf("accounts %+v", a)
	}
}

// slow is a collector that takes a while for each request.
type slow struct {
	keeping
	each time.Duration
}

func (s *slow) UploadTraces(ctx context.Context, _ []*tracepb.ResourceSpans) error {
	select {
	case <-time.After(s.each):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A collector that is slow and never fails costs six times Drain, one that takes
// nothing costs Drain; what it has not taken by then is counted. The clock is
// the test's own.
func TestSlowCollector(t *testing.T) {
	for _, x := range []struct {
		each, took time.Duration
		exported   uint64
	}{{70 * time.Millisecond, 1200 * time.Millisecond, 17}, {300 * time.Millisecond, 200 * time.Millisecond, 0}, {time.Millisecond, 200 * time.Millisecond, 200}} {
		synctest.Test(t, func(t *testing.T) {
			d := testDirectory(200)
			e := New(d, &slow{each: x.each}, Options{MaxBatch: 9, Drain: 200 * time.Millisecond})
			for i := range 200 {
				e.Offer(story(d, i, 2))
			}
			start := time.Now()
			a := e.Close()
			if took := time.Since(start); took != x.took {
				t.Errorf("%v a request: closing took %v, want %v", x.each, took, x.took)
			}
			late := x.exported < 200
			if a.Exported.Chains != x.exported || a.Closed.Chains != 200-x.exported || a.Failures != 0 || late != (a.LastError != "") {
				t.Errorf("%v a request: accounts %+v, want %d exported", x.each, a, x.exported)
			}
		})
	}
}

// failing fails its first requests, and notes how large each is.
type failing struct {
	keeping
	fails int
	sizes []int
}

func (f *failing) UploadTraces(_ context.Context, rs []*tracepb.ResourceSpans) error {
	f.sizes = append(f.sizes, spansIn(rs))
	if len(f.sizes) <= f.fails {
		return errors.New("away")
	}
	return nil
}

// A batch is tried again as it was, after waits that double.
func TestFailingCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := testDirectory(100)
		f := &failing{fails: 3}
		e := New(d, f, Options{Backoff: time.Second})
		start := time.Now()
		for i := range 100 {
			e.Offer(story(d, i, 4))
		}
		time.Sleep(time.Minute)
		if a := e.Accounts(); a.Exported != a.Offered || a.Failures != 3 || a.LastError != "traces export: away" {
			t.Errorf("accounts %+v", a)
		}
		if e.Close(); time.Since(start) != time.Minute {
			t.Errorf("closing took %v", time.Since(start)-time.Minute)
		}
		if first := f.sizes[0]; !slices.Equal(f.sizes[:4], []int{first, first, first, first}) {
			t.Errorf("requests of %d spans", f.sizes)
		}
	})
}

func TestRejectedAndSampled(t *testing.T) {
	col := &collectorServer{limit: 3}
	dest, err := Dial(serve(t, col))
	if err != nil {
		t.Fatal(err)
	}
	d := testDirectory(40)
	e := New(d, dest, Options{SampleEvery: 4})
	for i := range 40 {
		e.Offer(story(d, i, 2))
	}
	a := e.Close()
	if a.Failed.Spans == 0 || a.Sampled.Chains < 15 || a.Sampled.Chains > 39 || a.Exported.Spans+a.Dropped().Spans != a.Offered.Spans {
		t.Errorf("accounts %+v", a)
	}
}

func TestEndpointErrors(t *testing.T) {
	for _, s := range []string{"", "collector", "ftp://x:1", "file:/nonexistent/dir/x"} {
		if _, err := Dial(s); err == nil {
			t.Errorf("Dial(%q) succeeded", s)
		}
	}
}
