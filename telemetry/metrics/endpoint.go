package metrics

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rocemu/rocemu/report/counters"
)

// Health is how the emulator itself does.
type Health struct {
	FrameHops, Events, Windows uint64
	Outstanding                int64
	WallSeconds                float64
	Unknown                    bool // the work is not known: no hops, events and requests are served
}

// Endpoint is a Prometheus collector of the latest sample. Scrapes see a
// consistent sample and never touch the fabric.
type Endpoint struct {
	mu     sync.Mutex
	snap   counters.Snapshot
	health Health
	descs  []*prometheus.Desc // by metric
}

// NewEndpoint returns an endpoint without values.
func NewEndpoint() *Endpoint {
	e := &Endpoint{health: Health{Unknown: true}} // until the first sample
	for _, m := range counters.Metrics {
		labels := []string{"device"}
		if m.Scope.OnPort() {
			labels = append(labels, "port")
		}
		if k := m.Scope.Key(); k != "" {
			labels = append(labels, k)
		}
		e.descs = append(e.descs, prometheus.NewDesc(promName(m), m.Help, labels, nil))
	}
	return e
}

// promName follows the naming rules: base unit and _total for counters.
func promName(m counters.Metric) string {
	n := "rocemu_" + m.Name
	switch {
	case m.Unit == "ps":
		n += "_picoseconds"
	case m.Unit == "By" && m.Gauge:
		n += "_bytes"
	}
	if !m.Gauge {
		n += "_total"
	}
	return n
}

// Offer replaces the sample.
func (e *Endpoint) Offer(s *counters.Snapshot, h Health) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.snap.At, e.snap.Devices, e.health = s.At, s.Devices, h
	e.snap.Points = append(e.snap.Points[:0], s.Points...)
}

// Describe sends nothing: which metrics exist depends on the fabric.
func (e *Endpoint) Describe(chan<- *prometheus.Desc) {}

var (
	descVirtual = prometheus.NewDesc("rocemu_virtual_time_seconds", "virtual time of this sample", nil, nil)
	descWall    = prometheus.NewDesc("rocemu_wall_seconds", "real time since the run began", nil, nil)
	descHops    = prometheus.NewDesc("rocemu_frame_hops_total", "link traversals by frames, PFC apart", nil, nil)
	descEvents  = prometheus.NewDesc("rocemu_events_total", "events executed", nil, nil)
	descWindows = prometheus.NewDesc("rocemu_windows_total", "windows of virtual time executed", nil, nil)
	descWork    = prometheus.NewDesc("rocemu_outstanding_requests", "work requests posted and not completed", nil, nil)
)

// Collect sends the sample; places that never counted are left out.
func (e *Endpoint) Collect(ch chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.snap.Points {
		if p.Value == 0 {
			continue
		}
		labels := []string{e.snap.Devices[p.Dev]}
		m := p.Metric()
		if m.Scope.OnPort() {
			labels = append(labels, strconv.Itoa(int(p.Port)))
		}
		if m.Scope.Key() != "" {
			labels = append(labels, p.IndexName())
		}
		kind := prometheus.CounterValue
		if m.Gauge {
			kind = prometheus.GaugeValue
		}
		ch <- prometheus.MustNewConstMetric(e.descs[p.ID], kind, float64(p.Value), labels...)
	}
	one := func(d *prometheus.Desc, k prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, k, v)
	}
	one(descVirtual, prometheus.GaugeValue, float64(e.snap.At)/1e12)
	one(descWall, prometheus.GaugeValue, e.health.WallSeconds)
	one(descWindows, prometheus.CounterValue, float64(e.health.Windows))
	if e.health.Unknown {
		return
	}
	one(descHops, prometheus.CounterValue, float64(e.health.FrameHops))
	one(descEvents, prometheus.CounterValue, float64(e.health.Events))
	one(descWork, prometheus.GaugeValue, float64(e.health.Outstanding))
}

// Handler serves the endpoint at any path.
func (e *Endpoint) Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(e)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}
