package metrics

import (
	"context"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	colpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/otlp"
)

// service is a real OTLP metrics service.
type service struct {
	colpb.UnimplementedMetricsServiceServer
	mu   sync.Mutex
	got  []*colpb.ExportMetricsServiceRequest
	hold chan struct{} // no answer before it is closed
}

func (s *service) Export(_ context.Context, r *colpb.ExportMetricsServiceRequest) (*colpb.ExportMetricsServiceResponse, error) {
	<-s.hold
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, r)
	return &colpb.ExportMetricsServiceResponse{}, nil
}

func sample(us, frames, depth int64) *counters.Snapshot {
	return &counters.Snapshot{At: clock.Time(us * int64(clock.Microsecond)), Devices: []string{"leaf1"}, Points: []counters.Point{
		{ID: counters.TxFrames, Port: 3, Index: -1, Value: frames},
		{ID: counters.QueueOccupancy, Port: 3, Index: 5, Value: depth},
		{ID: counters.CRCErrors, Port: 3, Index: -1},
		{ID: counters.PoolMark, Index: 1, Value: 77},
	}}
}

// serve starts the service and connects to it.
func serve(t *testing.T, s *service) Exporter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	colpb.RegisterMetricsServiceServer(g, s)
	go g.Serve(l) //nolint:errcheck // ends with Stop
	t.Cleanup(g.Stop)
	dest, err := Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return dest
}

// A collector that falls behind still gets the last sample of the run: the
// oldest of those that wait are dropped.
func TestPushKeepsTheLast(t *testing.T) {
	s := &service{hold: make(chan struct{})}
	p := NewPusher(serve(t, s), "t", otlp.TimeMap{})
	const n = 3 * maxWaiting
	for i := range int64(n) {
		p.Offer(sample(i, i+1, 0))
	}
	close(s.hold)
	a := p.Close()
	if a.Offered != n || a.Exported+a.Dropped != n || a.Dropped == 0 {
		t.Errorf("accounts %+v", a)
	}
	last := s.got[len(s.got)-1].ResourceMetrics[0].ScopeMetrics[0].Metrics[0]
	if v := last.GetSum().GetDataPoints()[0].GetAsInt(); last.Name != "rocemu.tx_frames" || v != n {
		t.Errorf("the last that came is %s %d, want tx_frames %d", last.Name, v, n)
	}
}

func TestPush(t *testing.T) {
	s := &service{hold: make(chan struct{})}
	close(s.hold)
	dest := serve(t, s)
	epoch := time.Unix(1_800_000_000, 0)
	p := NewPusher(dest, "t", otlp.TimeMap{Epoch: epoch, Scale: 1000})
	p.Offer(sample(100, 7, 5000))
	p.Offer(sample(200, 9, 0))
	if a := p.Close(); a.Exported != 2 || a.Offered != 2 || a.Dropped != 0 {
		t.Fatalf("accounts %+v", a)
	}
	if len(s.got) != 2 {
		t.Fatalf("%d requests", len(s.got))
	}
	got := map[string]*metricpb.Metric{}
	for _, m := range s.got[1].ResourceMetrics[0].ScopeMetrics[0].Metrics {
		got[m.Name] = m
	}
	sum := got["rocemu.tx_frames"].GetSum()
	if sum == nil || !sum.IsMonotonic || sum.AggregationTemporality != metricpb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
		t.Fatalf("tx_frames is no cumulative sum: %v", got["rocemu.tx_frames"])
	}
	d := sum.DataPoints[0]
	if d.GetAsInt() != 9 || d.StartTimeUnixNano != uint64(epoch.UnixNano()) || d.TimeUnixNano != uint64(epoch.Add(200*time.Millisecond).UnixNano()) {
		t.Errorf("point %v: want 9, from the epoch, at 200 us × 1000", d)
	}
	depth := got["rocemu.queue_occupancy"].GetGauge()
	if depth == nil || depth.DataPoints[0].GetAsInt() != 0 {
		t.Errorf("a gauge that fell to 0 must be sent: %v", got["rocemu.queue_occupancy"])
	}
	if got["rocemu.crc_errors"] != nil {
		t.Error("a counter that never counted was sent")
	}
	var names []string
	for _, kv := range depth.DataPoints[0].Attributes {
		names = append(names, kv.Key+"="+kv.Value.GetStringValue())
	}
	if s := strings.Join(names, " "); !strings.Contains(s, "net.device=leaf1") || !strings.Contains(s, "net.queue=5") {
		t.Errorf("attributes %s", s)
	}
}

// Offering to a dead collector does not wait, and the accounts add up.
func TestPushToNobody(t *testing.T) {
	dest, err := Dial("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	p := NewPusher(dest, "t", otlp.TimeMap{})
	start := time.Now()
	for i := range int64(500) {
		p.Offer(sample(i, i, i))
	}
	if took := time.Since(start); took > 300*time.Millisecond {
		t.Errorf("offering took %v", took)
	}
	if a := p.Close(); a.Offered != 500 || a.Exported+a.Dropped != 500 || a.LastError == "" {
		t.Errorf("accounts %+v", a)
	}
	if _, err := Dial("nowhere"); err == nil {
		t.Error("an endpoint without a port was accepted")
	}
}

func TestPrometheus(t *testing.T) {
	e := NewEndpoint()
	e.Offer(sample(1500, 7, 5000), Health{FrameHops: 42, Windows: 3})
	srv := httptest.NewServer(e.Handler())
	defer srv.Close()
	r, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r.Body)
	r.Body.Close()
	for _, want := range []string{
		`rocemu_tx_frames_total{device="leaf1",port="3"} 7`, `rocemu_queue_occupancy_bytes{device="leaf1",port="3",queue="5"} 5000`,
		`rocemu_pool_watermark_bytes{device="leaf1",pool="headroom"} 77`, "rocemu_frame_hops_total 42", "rocemu_virtual_time_seconds 0.0015",
	} {
		if !strings.Contains(string(b), want+"\n") {
			t.Errorf("scrape lacks %s", want)
		}
	}
}
