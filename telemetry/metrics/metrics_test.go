package metrics

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
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

// never is a collector that answers nothing.
type never struct{ asked int }

func (n *never) Export(ctx context.Context, _ *metricdata.ResourceMetrics) error {
	n.asked++
	<-ctx.Done()
	return ctx.Err()
}
func (*never) Shutdown(context.Context) error { return nil }

// Offering to a collector that does not answer takes no time, nor fresh memory;
// the accounts add up, and closing waits no longer than it may. The clock is the
// test's own.
func TestPushToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPusher(new(never), "t", otlp.TimeMap{})
		start := time.Now()
		s := sample(1, 2, 3)
		for range maxWaiting + 3 {
			p.Offer(s)
		}
		if n := testing.AllocsPerRun(100, func() { p.Offer(s) }); n >= 1 {
			t.Errorf("%v objects a sample", n)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("offering took %v", took)
		}
		a := p.Close()
		if took := time.Since(start); took != drain {
			t.Errorf("closing took %v", took)
		}
		if a.Offered < maxWaiting || a.Exported != 0 || a.Dropped != a.Offered || a.LastError == "" {
			t.Errorf("accounts %+v", a)
		}
	})
}

// A collector that fails is left alone for a second; the last sample is tried
// in any case.
func TestPushAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(refusing)
		p := NewPusher(f, "t", otlp.TimeMap{})
		for i := range int64(150) { // one each 10 ms
			p.Offer(sample(i, i, i))
			time.Sleep(10 * time.Millisecond)
		}
		if a := p.Close(); f.asked != 3 || a.Dropped != 150 || a.LastError != "away" {
			t.Errorf("asked %d times, want at 0 s, 1 s and for the last; accounts %+v", f.asked, a)
		}
	})
}

// refusing is a collector that fails.
type refusing struct{ asked int }

func (r *refusing) Export(context.Context, *metricdata.ResourceMetrics) error {
	r.asked++
	return errors.New("away")
}
func (*refusing) Shutdown(context.Context) error { return nil }

func TestDialErrors(t *testing.T) {
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
