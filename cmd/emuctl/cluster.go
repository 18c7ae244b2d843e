package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/pki"
	"github.com/spf13/cobra"
)

func (a *app) cluster() *cobra.Command {
	c := a.command(verb{use: "cluster", short: "Prepare a cluster", example: "  emuctl cluster init --dir keys --host nats1 --host node2"})
	c.AddCommand(a.clusterInit())
	return c
}

type clusterInitFlags struct {
	Dir  string   `flag:"dir" help:"directory to write to; must not hold a cluster's keys already"`
	Host []string `flag:"host" help:"name or address that gets a certificate; the first is the NATS server's (repeatable)"`
	Port int      `flag:"port" help:"port in the nats-server configuration"`
	NATS []string `flag:"nats-host" help:"host of a NATS server, its own configuration nats-HOST.conf; several form a cluster (repeatable, or comma-separated)"`

	Store   string `flag:"store" help:"directory of JetStream in the nats-server configuration"`
	Monitor string `flag:"monitor" help:"address of NATS' health endpoint in the nats-server configuration, as in 127.0.0.1:8222"`
	Keep    bool   `flag:"keep" help:"leave keys that are there already as they are"`
	NoCAKey bool   `flag:"no-ca-key" help:"do not keep the authority's key; no more certificates can be made"`
}

func (a *app) clusterInit() *cobra.Command {
	f := clusterInitFlags{Dir: "cluster-keys", Port: 4222}
	return a.command(verb{
		use: "init [--dir DIR] [--host NAME]...", short: "Make keys, certificates and a nats-server configuration",
		long: `Writes an authority, one certificate a host (for NATS and Raft, mutual TLS 1.3),
an NKey for emud and one for emuctl, and a nats-server configuration that lets
nobody in without them. ca.key is needed only to make more certificates.`,
		example: "  emuctl cluster init --dir keys --host nats1 --host node2 --host node3\n  (cd keys && nats-server -c nats-server.conf)",
		args:    cobra.NoArgs, flags: &f,
		run: func(_ context.Context, _ []string) error {
			names, err := pki.Init(pki.Options{
				Dir: f.Dir, Hosts: commaList(f.Host), Port: f.Port, NATS: commaList(f.NATS), Store: f.Store, Keep: f.Keep,
				Monitor: f.Monitor, NoCAKey: f.NoCAKey,
			})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"dir": f.Dir, "files": names})
			}
			for _, n := range names {
				if err := a.printf("%s\n", filepath.Join(f.Dir, n)); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// commaList takes lists apart at commas.
func commaList(list []string) []string {
	var out []string
	for _, s := range list {
		for _, x := range strings.Split(s, ",") {
			if x = strings.TrimSpace(x); x != "" {
				out = append(out, x)
			}
		}
	}
	return out
}

func (a *app) contexts() *cobra.Command {
	c := a.command(verb{use: "context", short: "Name clusters, choose one, list them", example: "  emuctl context set lab --nats tls://nats1:4222 --creds keys/emuctl.nk --tls-ca keys/ca.pem\n  emuctl context use lab"})
	c.AddCommand(a.contextSet(), a.contextUse(), a.contextList(), a.contextRemove())
	return c
}

func (a *app) contextSet() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "set NAME --nats URL [--creds FILE] [--tls-ca FILE]", short: "Name a cluster and make it the current one",
		example: "  emuctl context set lab --nats nats://10.0.0.1:4222", args: cobra.ExactArgs(1), flags: &f,
		run: func(_ context.Context, args []string) error {
			if f.NATS == "" {
				return fmt.Errorf("--nats is required")
			}
			x := client.Context{NATS: f.NATS}
			for _, p := range []struct {
				to *string
				s  string
			}{{&x.Creds, f.Creds}, {&x.CA, f.CA}, {&x.Cert, f.Cert}, {&x.Key, f.Key}} {
				if p.s != "" {
					abs, err := filepath.Abs(p.s)
					if err != nil {
						return err
					}
					*p.to = abs
				}
			}
			return client.EditContexts(func(c *client.Contexts) error {
				c.Named[args[0]], c.Current = x, args[0]
				return nil
			})
		},
	})
}

func (a *app) contextUse() *cobra.Command {
	return a.command(verb{
		use: "use NAME", short: "Make a named cluster the current one", example: "  emuctl context use lab", args: cobra.ExactArgs(1),
		run: func(_ context.Context, args []string) error {
			return client.EditContexts(func(c *client.Contexts) error {
				if _, err := c.Pick(args[0]); err != nil {
					return err
				}
				c.Current = args[0]
				return nil
			})
		},
	})
}

func (a *app) contextList() *cobra.Command {
	return a.command(verb{
		use: "list", short: "List named clusters", example: "  emuctl context list --json", args: cobra.NoArgs,
		run: func(context.Context, []string) error {
			c, err := client.LoadContexts()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(c)
			}
			for _, n := range c.Names() {
				mark := " "
				if n == c.Current {
					mark = "*"
				}
				if err := a.printf("%s %s  %s\n", mark, n, c.Named[n].NATS); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func (a *app) contextRemove() *cobra.Command {
	return a.command(verb{
		use: "remove NAME", short: "Forget a named cluster", example: "  emuctl context remove lab", args: cobra.ExactArgs(1),
		run: func(_ context.Context, args []string) error {
			return client.EditContexts(func(c *client.Contexts) error {
				if _, ok := c.Named[args[0]]; !ok {
					return fmt.Errorf("no context %q: there are %v", args[0], c.Names())
				}
				c.Remove(args[0])
				return nil
			})
		},
	})
}
