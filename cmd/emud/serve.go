package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/coord/pki"
)

// serve runs the process until ctx ends, then hands over and stops.
func serve(ctx context.Context, o *options) error {
	if err := o.check(); err != nil {
		return err
	}
	level := hclog.LevelFromString(o.logLevel)
	if level == hclog.NoLevel {
		return usageError{fmt.Errorf("--log-level %q: must be trace, debug, info, warn or error", o.logLevel)}
	}
	log := hclog.New(&hclog.LoggerOptions{Name: o.name, Level: level, Output: os.Stderr, JSONFormat: o.logJSON})
	cfg, err := o.config(log)
	if err != nil {
		return err
	}
	n, err := coord.NewNode(ctx, cfg)
	if err != nil {
		return err
	}
	defer n.Close()
	if o.health != "" {
		stop, err := serveHealth(o.health, n)
		if err != nil {
			return err
		}
		defer stop()
	}
	log.Info("up", "nats", o.nats, "coordinator", cfg.Coordinator, "devices", o.devices)
	err = n.Run(ctx)
	log.Info("stopped", "err", err)
	return err
}

func (o *options) config(log hclog.Logger) (coord.Config, error) {
	cfg := coord.Config{
		Name: o.name, Data: o.data, Coordinator: o.coordinator || o.only, NoSlots: o.only, Expect: o.expect, RaftAddr: o.raftListen, RaftName: o.raftName,
		Devices: o.devices, Workers: o.workers, Cores: o.cores, Model: new(emu.Model), Log: log, GiveUp: o.giveUp, Silence: o.silence,
		Build: o.build, Retain: o.retain, JetReplicas: o.replicas, Shared: o.shared,
		Dialer: natsbus.Dialer{URL: o.nats, Seed: o.creds, Wait: o.connectWait},
	}
	if o.fast {
		cfg.Timing = coord.Timing{Heartbeat: 150 * time.Millisecond, Lease: 75 * time.Millisecond, Commit: 5 * time.Millisecond}
	}
	if o.ca != "" {
		t, err := pki.Load(o.ca, o.cert, o.key)
		if err != nil {
			return cfg, err
		}
		cfg.Dialer.TLS, cfg.RaftTLS = t, t
	}
	return cfg, nil
}

// serveHealth answers /healthz (alive) and /readyz (follows a ledger that has a
// leader).
func serveHealth(addr string, n *coord.Node) (stop func(), err error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--health: %w", err)
	}
	mux := http.NewServeMux()
	say := func(ok func() bool, yes, no string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if !ok() {
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprintln(w, no)
				return
			}
			fmt.Fprintln(w, yes)
		}
	}
	mux.HandleFunc("GET /healthz", say(n.Healthy, "ok", "no heartbeat for 5 s"))
	mux.HandleFunc("GET /readyz", say(n.Ready, "ready", "no leader is known"))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 2 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second}
	go func() {
		if err := s.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "emud: health:", err)
		}
	}()
	return func() { _ = s.Close() }, nil
}
