package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/telemetry/metrics"
)

type observeFlags struct {
	clusterFlags
	OTLP    string `flag:"otlp" help:"collector of traces and metrics, as telemetry.otlp in a fabric file; default what the run's file says"`
	Metrics string `flag:"metrics" help:"serve a Prometheus endpoint at HOST:PORT"`
	GNMI    string `flag:"gnmi" help:"serve gNMI at HOST:PORT and the ports after it, a switch each"`
	Dialout string `flag:"dialout" help:"have each switch publish its counters to a gNMI dial-out listener: [sonic:]HOST:PORT"`
	Once    bool   `flag:"once" help:"end with the run instead of waiting for the next one"`
}

func (a *app) observe() *cobra.Command {
	var f observeFlags
	return a.command(verb{
		use: "observe [--otlp HOST:PORT] [--metrics HOST:PORT] [--gnmi HOST:PORT] [--nats URL --creds FILE]", short: "Show a cluster's runs to collectors: traces, metrics, Prometheus, gNMI",
		long: `Follows the runs of a cluster, one after the other, until it is interrupted:
retransmit chains go to the collector as whole traces, counters to the collector,
to Prometheus and to gNMI clients. It only reads: a run does not wait for it and
is not changed by it. When it is started again it tells the current run from its
beginning, with the same trace ids and times.`,
		example: "  emuctl observe --otlp 127.0.0.1:4317 --metrics 0.0.0.0:9464 --gnmi 0.0.0.0:9339",
		args:    cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error { return a.runObserve(ctx, &f) },
	})
}

func (a *app) runObserve(ctx context.Context, f *observeFlags) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := checkSinks(f.GNMI, f.Dialout); err != nil {
		return err
	}
	a.warnUnknown(ctx, f.Dialout)
	o := observing{a: a, f: f}
	if f.Metrics != "" {
		l, err := net.Listen("tcp", f.Metrics)
		if err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
		o.prom = metrics.NewEndpoint()
		srv := &http.Server{Handler: o.prom.Handler(), ReadHeaderTimeout: 5 * time.Second}
		go srv.Serve(l) //nolint:errcheck // ends with Close
		defer srv.Close()
	}
	defer func() { o.release() }()
	return a.connected(ctx, &f.clusterFlags, func(c *client.Client) error {
		for {
			over, err := o.next(ctx, c)
			switch {
			case ctx.Err() != nil || over && f.Once && err == nil:
				return nil
			case err != nil && f.Once:
				return err
			case err != nil:
				fmt.Fprintln(a.err, "emuctl observe:", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(followEvery):
			}
		}
	})
}

// observing is a long-lived observer.
type observing struct {
	a    *app
	f    *observeFlags
	prom *metrics.Endpoint
	held []func() // servers that show the last run until the next one
	seen string   // run that was told to its end
}

// next waits for a run that was not told yet and tells it.
func (o *observing) next(ctx context.Context, c *client.Client) (over bool, err error) {
	sctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, err := c.Status(sctx)
	if err != nil {
		return false, err
	}
	if s.Run == nil || s.Run.ID == o.seen || s.Run.Phase == coord.Placing || len(s.Run.Slots) == 0 {
		return false, nil
	}
	return true, o.tell(ctx, c, s.Run.ID)
}

// release stops what the last run is served by.
func (o *observing) release() {
	stopAll(o.held)
	o.held = nil
}

// tell observes one run to its end.
func (o *observing) tell(ctx context.Context, c *client.Client, id string) error {
	rctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	run, err := c.Run(rctx, id)
	cancel()
	if err != nil {
		return err
	}
	plan, err := new(emu.Model).Plan(&run.Spec)
	if err != nil {
		o.seen = id // it will not resolve the next time either
		return err
	}
	o.release()
	to := o.f.OTLP
	if to == "" {
		to = plan.Telem.OTLP
	}
	w, err := newWatcher(plan, epochOf(run), sinks{collector: to, gnmi: o.f.GNMI, dialout: o.f.Dialout})
	if err != nil {
		return err
	}
	w.prom, o.held, w.stop = o.prom, w.stop, nil
	fmt.Fprintf(o.a.err, "observing run %s (%s)\n", id, plan.Name)
	g := gathering{run: id, known: plan, follow: follow(c, plan, w, id, false)}
	defer g.follow.end()
	res, err := o.a.collect(ctx, c, &g)
	if err != nil || res == nil {
		if ctx.Err() == nil {
			o.seen = id
		}
		w.end()
		w.Close()
		return err
	}
	o.seen = id
	o.account(res)
	return nil
}

// account says what was delivered.
func (o *observing) account(res *report.Result) {
	t := res.Telemetry
	fmt.Fprintf(o.a.err, "run ended: %s at %s virtual; %d chains", res.Verdict, report.Span(res.VirtualNS), t.ChainsMade)
	for _, e := range t.Exports {
		fmt.Fprintf(o.a.err, ", %d to %s (%d dropped)", e.ChainsExported, e.Endpoint, e.ChainsDropped)
	}
	for _, p := range []*report.Pushed{t.Samples, t.DialOut} {
		if p != nil {
			fmt.Fprintf(o.a.err, ", %d samples to %s (%d dropped)", p.Exported, p.Endpoint, p.Dropped)
		}
	}
	fmt.Fprintln(o.a.err)
}
