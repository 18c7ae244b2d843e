// Command emud hosts devices of a fabric: it joins a cluster through NATS, runs
// the racks and spines the coordinator gives it (or the devices it is told to
// take), and votes in Raft where it is a coordinator. It only composes; the
// work is in package coord. Start at serve.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	root := newRoot()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "emud:", err)
	var u usageError
	if errors.As(err, &u) {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is bad input: exit code 2.
type usageError struct{ error }

func newRoot() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "emud --name N --nats URL --data DIR [--coordinator] [--bootstrap-expect N] [--devices leaf1,rnic1…]",
		Short: "Host devices of an emulated RoCEv2 fabric",
		Long: `emud joins a cluster through NATS and hosts what the coordinator places on it.
Every flag can be given as an environment variable: --raft-listen is EMUD_RAFT_LISTEN.
SIGTERM hands its devices over at a checkpoint; kill -9 is safe too.`,
		Example:       "  emud --name e1 --nats nats://127.0.0.1:4222 --data /var/lib/emud --coordinator",
		Args:          cobra.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		PreRunE: func(c *cobra.Command, _ []string) error { return fromEnv(c.Flags()) },
		RunE:    func(c *cobra.Command, _ []string) error { return serve(c.Context(), &o) },
	}
	o.bind(root.Flags())
	root.AddCommand(healthcheck(), janitor(), natsServer())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	return root
}
