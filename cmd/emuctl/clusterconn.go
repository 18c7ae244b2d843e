package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// clusterFlags say which cluster a verb talks to.
type clusterFlags struct {
	NATS    string `flag:"nats" help:"NATS of the cluster, as in nats://host:4222; default EMUCTL_NATS (with EMUCTL_CREDS, EMUCTL_TLS_CA, _CERT, _KEY), else the current context"`
	Creds   string `flag:"creds" help:"file with an NKey seed"`
	CA      string `flag:"tls-ca" help:"certificate that signed the cluster's; turns TLS on"`
	Cert    string `flag:"tls-cert" help:"own certificate"`
	Key     string `flag:"tls-key" help:"own private key"`
	Context string `flag:"context" help:"named cluster, see emuctl context; default the current one"`
	Timeout string `flag:"timeout" help:"how long the cluster may take to answer (default 10s), and the run to end where a command waits for that (default for ever)"`
}

// target returns the cluster the flags name.
func (f *clusterFlags) target() (client.Context, error) {
	if f.NATS != "" {
		return client.Context{NATS: f.NATS, Creds: f.Creds, CA: f.CA, Cert: f.Cert, Key: f.Key}, nil
	}
	if url := os.Getenv("EMUCTL_NATS"); url != "" && f.Context == "" {
		return client.Context{
			NATS: url, Creds: os.Getenv("EMUCTL_CREDS"), CA: os.Getenv("EMUCTL_TLS_CA"),
			Cert: os.Getenv("EMUCTL_TLS_CERT"), Key: os.Getenv("EMUCTL_TLS_KEY"),
		}, nil
	}
	all, err := client.LoadContexts()
	if err != nil {
		return client.Context{}, err
	}
	x, err := all.Pick(f.Context)
	if err != nil {
		return x, err
	}
	if f.Creds != "" {
		x.Creds = f.Creds
	}
	return x, nil
}

// local reports whether the cluster is that of an `emuctl run` and ends with it.
func (f *clusterFlags) local() bool {
	x, err := f.target()
	return err == nil && x.PID != 0
}

// patience is what --timeout says, otherwise without it.
func (f *clusterFlags) patience(otherwise time.Duration) (time.Duration, error) {
	if f.Timeout == "" {
		return otherwise, nil
	}
	d, err := topology.ParseDuration(f.Timeout)
	if err != nil {
		return 0, fmt.Errorf("--timeout: %w", err)
	}
	return time.Duration(d / 1000), nil
}

// waiting is connected for who waits for the end of a run: as long as that
// takes, or as --timeout says; a run that goes on then is a limit reached.
func (a *app) waiting(ctx context.Context, f *clusterFlags, do func(ctx context.Context, c *client.Client) error) error {
	wait, err := f.patience(0)
	if err != nil {
		return err
	}
	if f.Timeout != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	err = a.connected(ctx, f, func(c *client.Client) error { return do(ctx, c) })
	if err == context.DeadlineExceeded { //nolint:errorlint // of the wait itself, not of a question
		return exitError{report.ExitLimit, fmt.Errorf("the run has not ended within the %s of --timeout; it goes on", f.Timeout)}
	}
	return err
}

// onCluster runs a verb against the cluster within the time it is given.
func (a *app) onCluster(ctx context.Context, f *clusterFlags, do func(ctx context.Context, c *client.Client) error) error {
	wait, err := f.patience(10 * time.Second)
	if err != nil {
		return err
	}
	return a.connected(ctx, f, func(c *client.Client) error {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		return do(ctx, c)
	})
}

// connected is onCluster without a limit in time.
func (a *app) connected(_ context.Context, f *clusterFlags, do func(c *client.Client) error) error {
	x, err := f.target()
	if err != nil {
		return exitError{report.ExitCluster, err}
	}
	d, err := x.Dialer("emuctl", 2*time.Second)
	if err != nil {
		return err
	}
	c, err := client.Dial(d)
	if err != nil {
		return exitError{report.ExitCluster, err}
	}
	defer c.Close()
	c.BelongTo(x.PID)
	err = do(c)
	var coded exitError
	if (errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrOver)) && !errors.As(err, &coded) {
		return exitError{report.ExitCluster, err}
	}
	return err
}
