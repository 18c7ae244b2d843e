package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/telemetry"
	"github.com/rocemu/rocemu/telemetry/gnmi"
	"github.com/rocemu/rocemu/telemetry/metrics"
	"github.com/rocemu/rocemu/telemetry/otlp"
	flowtime "github.com/rocemu/rocemu/telemetry/split"
	"github.com/rocemu/rocemu/topology"
)

// watcher observes one run: chains, series, exports.
type watcher struct {
	*telemetry.Session
	caps   *sim.Captures
	split  *flowtime.Watcher
	taps   *flowtime.Taps
	splits []flowtime.Split
	push   *metrics.Pusher
	pushed *report.Pushed // account of push, once it has ended
	dials  []*gnmi.Publisher
	dialed *report.Pushed // account of dials, once they have ended
	prom   *metrics.Endpoint
	stores []*gnmi.Store
	stop   []func()
	fabric *sim.Fabric
	snap   counters.Snapshot
	keep   bool // samples, for series.csv
	when   *sim.Sampler
	start  time.Time
}

// watch hooks a session into a run's options. Chains are always assembled: they
// are part of the result. Series are sampled for an output directory or when
// the file asks.
func watch(plan *topology.Plan, o *sim.Options, out bool, f *runFlags) (*watcher, error) {
	w, err := newWatcher(plan, time.Now(), f.sinks(plan))
	if err != nil {
		return nil, err
	}
	w.keep = out
	if also := o.Records; also != nil {
		o.Records = func(b []record.Record) { also(b); w.Records(b) }
	} else {
		o.Records = w.Records
	}
	build := o.OnBuild
	o.OnBuild = func(f *sim.Fabric) (err error) {
		w.fabric = f
		if build != nil {
			err = build(f)
		}
		if err == nil && len(plan.Capture) > 0 {
			w.caps, err = sim.NewCaptures(f, plan.Capture, createFile)
		}
		if w.split != nil {
			w.taps = w.split.Tap(f)
			w.split.Since(f.Engine.Now())
		}
		return err
	}
	if out {
		w.split = flowtime.New(plan)
	}
	if w.split != nil || len(plan.Capture) > 0 {
		w.hookTaps(o)
	}
	if out || plan.Telem.Interval > 0 || w.served() {
		o.Sampler, o.Sample = w.when, w.take
	}
	return w, nil
}

// sinks are who reads a run while it lasts; "" = nobody.
type sinks struct {
	collector  string // OTLP, of traces and metrics
	prometheus string // HOST:PORT to listen on
	gnmi       string // HOST:PORT to listen on, and the ports after it
	dialout    string // HOST:PORT of a listener for gNMI dial-out
}

func (f *runFlags) sinks(plan *topology.Plan) sinks {
	return sinks{plan.Telem.OTLP, f.Metrics, f.GNMI, f.Dialout}
}

func (s sinks) none() bool { return s == sinks{} }

// newWatcher starts a session of a run that began at epoch, with its exports
// and what serves its counters.
func newWatcher(plan *topology.Plan, epoch time.Time, to sinks) (*watcher, error) {
	so := telemetry.Options{Epoch: epoch}
	if to.collector != "" {
		so.Endpoints = []string{to.collector}
	}
	s, err := telemetry.NewSession(plan, so)
	if err != nil {
		return nil, err
	}
	w := &watcher{Session: s, when: sim.NewSampler(plan)}
	if err := w.serve(plan, otlp.TimeMap{Epoch: so.Epoch, Scale: plan.Telem.Scale}, to); err != nil {
		w.end()
		return nil, err
	}
	return w, nil
}

// served says whether somebody wants the counters while the run lasts.
func (w *watcher) served() bool { return w.push != nil || w.prom != nil || w.stores != nil }

// hookTaps feeds what reads frames between windows, once the fabric is built.
func (w *watcher) hookTaps(o *sim.Options) {
	records := o.Records
	o.Records = func(b []record.Record) {
		records(b)
		if w.caps != nil {
			w.caps.Records(b)
		}
		if w.split != nil {
			w.split.Records(b)
		}
	}
	o.Between = func(start clock.Time, n uint64) {
		if w.caps != nil {
			w.caps.Between(start, n)
		}
		if w.split != nil {
			w.taps.Note()
		}
	}
}

// createFile opens an output; "-" is standard output.
func createFile(name string) (io.WriteCloser, error) {
	if name == "-" {
		return stdout{}, nil
	}
	return os.Create(name)
}

// stdout is standard output, left open.
type stdout struct{}

func (stdout) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdout) Close() error                { return nil }

// take reads the counters and hands them to everyone who wants them.
func (w *watcher) take(t clock.Time, f *sim.Fabric) {
	f.Snapshot(t, &w.snap)
	if w.keep {
		w.Snapshot(&w.snap)
	}
	n := f.Engine.Totals()
	h := metrics.Health{FrameHops: n.Hops, Events: n.Events, Windows: n.Windows, WallSeconds: time.Since(w.start).Seconds()}
	for _, d := range f.Engine.Local() {
		h.Outstanding += f.Engine.Status(d).Outstanding
	}
	w.offer(&w.snap, h)
}

// offer hands a sample to who reads the counters live.
func (w *watcher) offer(s *counters.Snapshot, h metrics.Health) {
	if w.push != nil {
		w.push.Offer(s)
	}
	if w.prom != nil {
		w.prom.Offer(s, h)
	}
	for _, g := range w.stores {
		g.Publish(s)
	}
}

// serve starts what reads the counters while the run lasts: the push to the
// collector of the chains, a Prometheus endpoint, a gNMI server a switch.
func (w *watcher) serve(plan *topology.Plan, tm otlp.TimeMap, to sinks) error {
	w.start = tm.Epoch
	if ep := to.collector; ep != "" && !strings.HasPrefix(ep, "file:") {
		dest, err := metrics.Dial(ep)
		if err != nil {
			return err
		}
		w.push, w.pushed = metrics.NewPusher(dest, plan.Name, tm), &report.Pushed{Endpoint: ep}
	}
	if to.prometheus != "" {
		l, err := net.Listen("tcp", to.prometheus)
		if err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
		w.prom = metrics.NewEndpoint()
		srv := &http.Server{Handler: w.prom.Handler(), ReadHeaderTimeout: 5 * time.Second}
		go srv.Serve(l) //nolint:errcheck // ends with Close
		w.stop = append(w.stop, func() { srv.Close() })
	}
	return w.serveSwitches(plan, tm, to)
}

// serveSwitches gives each switch a gNMI server, a dial-out, or both.
func (w *watcher) serveSwitches(plan *topology.Plan, tm otlp.TimeMap, to sinks) error {
	if to.gnmi == "" && to.dialout == "" {
		return nil
	}
	host, base := "", 0
	if to.gnmi != "" {
		var err error
		if host, base, err = gnmiAddress(to.gnmi); err != nil {
			return err
		}
	}
	if to.dialout != "" {
		w.dialed = &report.Pushed{Endpoint: to.dialout}
	}
	for i := range plan.Devices {
		if plan.Devices[i].Kind == topology.RNIC {
			continue
		}
		s := gnmi.NewStore(plan.Devices[i].Name, tm)
		if to.gnmi != "" {
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(base+len(w.stores))))
			if err != nil {
				return fmt.Errorf("--gnmi, for %s: %w", plan.Devices[i].Name, err)
			}
			g := gnmi.Serve(l, s)
			w.stop = append(w.stop, func() { gnmi.Stop(g, s) })
		}
		if to.dialout != "" {
			p, err := dialOut(s, to.dialout)
			if err != nil {
				return err
			}
			w.dials = append(w.dials, p)
		}
		w.stores = append(w.stores, s)
	}
	return nil
}

// gnmiAddress is where the first switch is served: HOST:PORT.
func gnmiAddress(to string) (host string, port int, err error) {
	host, port, err = address(to)
	if err != nil {
		return "", 0, fmt.Errorf("--gnmi %q: want HOST:PORT, a switch each from that port on: %w", to, err)
	}
	return host, port, nil
}

// address takes HOST:PORT with a port by number.
func address(s string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("port %q is not a number from 1 to 65535", text)
	}
	return host, int(n), nil
}

// end closes what serve started.
func (w *watcher) end() {
	if w.push != nil {
		a := w.push.Close()
		w.push = nil
		w.pushed.Made, w.pushed.Exported, w.pushed.Dropped, w.pushed.LastError = a.Offered, a.Exported, a.Dropped, a.LastError
	}
	stops := w.stop
	for _, p := range w.dials {
		stops = append(stops, p.Close)
	}
	stopAll(stops)
	w.accountDials()
	w.stop, w.dials = nil, nil
}

// stopAll stops what a run is served by, all at once: each may wait for who
// still reads.
func stopAll(l []func()) {
	var g sync.WaitGroup
	for _, stop := range l {
		g.Go(stop)
	}
	g.Wait()
}

// finish takes the last sample, ends the captures and completes the result.
func (w *watcher) finish(r *report.Result) error {
	var err error
	if w.caps != nil {
		err = w.caps.Close()
	}
	if w.when.Count > 0 {
		w.take(clock.Time(r.VirtualNS), w.fabric)
	}
	if w.split != nil {
		w.taps.Note()
		w.splits = w.split.Finish(w.fabric.Samples(clock.Time(r.VirtualNS)))
	}
	w.end()
	w.Finish(r)
	r.Telemetry.Samples, r.Telemetry.DialOut = w.pushed, w.dialed
	return err
}

// WriteDir writes the chains and the splits of the flows' time.
func (w *watcher) WriteDir(path string) error {
	return errors.Join(w.Session.WriteDir(path), flowtime.WriteFile(filepath.Join(path, flowtime.FileName), w.splits, w.FlowName))
}
