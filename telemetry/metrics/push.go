// Package metrics shows the counters of a run to metric systems: pushed to an
// OTLP collector (cumulative sums, gauges) at virtual intervals, and as a
// Prometheus endpoint of the latest values. It reads [counters.Snapshot] and
// nothing else, and never makes the run wait. Start at [NewPusher] and
// [NewEndpoint]; names are in docs/telemetry.md.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/otlp"
)

// Limits and times of a [Pusher].
const (
	maxWaiting  = 64              // samples that may wait; then the oldest are dropped and counted
	pushTimeout = 5 * time.Second // of one export
	drain       = 5 * time.Second // how long Close may take
	openFor     = time.Second     // samples are dropped unsent this long after a failure
)

// Exporter is what a pusher delivers to: an OTLP metric exporter.
type Exporter interface {
	Export(context.Context, *metricdata.ResourceMetrics) error
	Shutdown(context.Context) error
}

// Dial returns an exporter for HOST:PORT, grpc://HOST:PORT or http(s)://….
func Dial(endpoint string) (Exporter, error) {
	ctx := context.Background()
	if strings.HasPrefix(endpoint, "http://") || strings.HasPrefix(endpoint, "https://") {
		u := endpoint
		if _, rest, _ := strings.Cut(u, "://"); !strings.Contains(rest, "/") {
			u += "/v1/metrics"
		}
		return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(u), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	}
	host := strings.TrimPrefix(endpoint, "grpc://")
	if _, _, err := net.SplitHostPort(host); err != nil {
		return nil, fmt.Errorf("metrics endpoint %q: want HOST:PORT, grpc://HOST:PORT or http(s)://HOST:PORT", endpoint)
	}
	return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(host), otlpmetricgrpc.WithInsecure(),
		otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{}))
}

// Accounts count samples: Offered = Exported + Dropped after Close.
type Accounts struct {
	Offered   uint64 `json:"offered"`
	Exported  uint64 `json:"exported"`
	Dropped   uint64 `json:"dropped"`
	LastError string `json:"last_error,omitempty"`
}

// Pusher sends samples from its own goroutine.
type Pusher struct {
	dest   Exporter
	time   otlp.TimeMap
	res    *resource.Resource
	queue  chan *counters.Snapshot
	closed chan struct{}
	done   chan struct{}
	mu     sync.Mutex
	acct   Accounts
	free   []*counters.Snapshot // copies that are not needed any longer
	points []point              // what the samples' points have in common, by place
}

// point is what a point is in all samples of a run.
type point struct {
	counters.Point               // its names; the value is not used
	active         bool          // it was once above 0; others are not sent
	attributes     attribute.Set // built when it became active
}

// NewPusher starts pushing the samples of the fabric with this name.
func NewPusher(dest Exporter, fabric string, tm otlp.TimeMap) *Pusher {
	p := &Pusher{
		dest: dest, time: tm, queue: make(chan *counters.Snapshot, maxWaiting),
		closed: make(chan struct{}), done: make(chan struct{}),
		res: resource.NewSchemaless(attribute.String("service.name", "rocemu"), attribute.String("service.namespace", fabric),
			attribute.Int64("emu.scale", tm.InForce())),
	}
	go p.work()
	return p
}

// Offer queues a copy of a sample. When too many wait the oldest is dropped:
// counters are cumulative, and the last sample is the run's result.
func (p *Pusher) Offer(s *counters.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acct.Offered++
	c := p.copied(s)
	for {
		select {
		case p.queue <- c:
			return
		default:
		}
		select {
		case old := <-p.queue:
			p.acct.Dropped++
			p.free = append(p.free, old)
		default:
		}
	}
}

// copied copies a sample. Memory is used again: a sample of a hundred devices is
// half a megabyte, and fresh pages cost more than what is written to them.
func (p *Pusher) copied(s *counters.Snapshot) *counters.Snapshot {
	n := len(p.free)
	if n == 0 {
		n, p.free = 1, append(p.free, new(counters.Snapshot))
	}
	c := p.free[n-1]
	p.free = p.free[:n-1]
	c.At, c.Devices, c.Points = s.At, s.Devices, append(c.Points[:0], s.Points...)
	return c
}

// Close sends what waits, for drain at most, and stops.
func (p *Pusher) Close() Accounts {
	close(p.closed)
	close(p.queue)
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acct
}

func (p *Pusher) work() {
	defer close(p.done)
	run, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		<-p.closed
		time.AfterFunc(drain, end)
	}()
	var open time.Time          // the circuit is open until then
	var held *counters.Snapshot // the last that came while it is
	for s := range p.queue {
		if held != nil {
			p.settle(held, errOpen)
			held = nil
		}
		if run.Err() == nil && time.Now().Before(open) {
			held = s
			continue
		}
		err := p.export(run, s)
		if err != nil {
			open = time.Now().Add(openFor)
		}
		p.settle(s, err)
	}
	if held != nil { // the last sample of a run is tried in any case
		p.settle(held, p.export(run, held))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.dest.Shutdown(ctx) //nolint:errcheck // nothing is left to send
}

// export sends a sample, unless the run's end does not wait any longer.
func (p *Pusher) export(run context.Context, s *counters.Snapshot) error {
	if run.Err() != nil {
		return errLate
	}
	ctx, cancel := context.WithTimeout(run, pushTimeout)
	defer cancel()
	err := p.dest.Export(ctx, p.convert(s))
	if err != nil && run.Err() != nil {
		return errLate
	}
	return err
}

// errOpen stands for samples dropped while the circuit is open, errLate for
// those that Close did not wait for.
var (
	errOpen = fmt.Errorf("the collector failed within the last %v", openFor)
	errLate = errors.New("not delivered soon enough after the run's end")
)

// settle books a sample that the worker is done with.
func (p *Pusher) settle(s *counters.Snapshot, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, s)
	if err == nil {
		p.acct.Exported++
		return
	}
	p.acct.Dropped++
	if err != errOpen && (err != errLate || p.acct.LastError == "") {
		p.acct.LastError = err.Error()
	}
}

// convert makes OTLP metrics of a sample: counters are cumulative sums since
// the run's start, the rest gauges.
func (p *Pusher) convert(s *counters.Snapshot) *metricdata.ResourceMetrics {
	start, at := p.time.At(0), p.time.At(s.At)
	if len(p.points) != len(s.Points) {
		p.points = make([]point, len(s.Points))
	}
	points := make([][]metricdata.DataPoint[int64], len(counters.Metrics))
	for i, pt := range s.Points {
		k, name := &p.points[i], pt
		name.Value = 0
		if k.Point != name {
			*k = point{Point: name}
		}
		if pt.Value == 0 && !k.active {
			continue
		}
		if !k.active {
			k.active, k.attributes = true, attributes(s, pt)
		}
		points[pt.ID] = append(points[pt.ID], metricdata.DataPoint[int64]{Attributes: k.attributes, StartTime: start, Time: at, Value: pt.Value})
	}
	sm := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: "github.com/rocemu/rocemu/telemetry"}}
	for id, dp := range points {
		if len(dp) == 0 {
			continue
		}
		m := counters.Metrics[id]
		out := metricdata.Metrics{Name: "rocemu." + m.Name, Description: m.Help, Unit: m.Unit}
		if m.Gauge {
			out.Data = metricdata.Gauge[int64]{DataPoints: dp}
		} else {
			out.Data = metricdata.Sum[int64]{DataPoints: dp, Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
		}
		sm.Metrics = append(sm.Metrics, out)
	}
	return &metricdata.ResourceMetrics{Resource: p.res, ScopeMetrics: []metricdata.ScopeMetrics{sm}}
}

func attributes(s *counters.Snapshot, p counters.Point) attribute.Set {
	kv := []attribute.KeyValue{attribute.String("net.device", s.Devices[p.Dev])}
	if p.Port != 0 {
		kv = append(kv, attribute.Int("net.port", int(p.Port)))
	}
	if k := p.Metric().Scope.Key(); k != "" {
		kv = append(kv, attribute.String("net."+k, p.IndexName()))
	}
	return attribute.NewSet(kv...)
}
