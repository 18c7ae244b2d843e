package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/coord/pki"
)

// natsServer runs the nats-server library with the limits emud relies on, where
// no nats-server program is at hand: from a configuration file or from flags.
func natsServer() *cobra.Command {
	var o natsbus.ServerOptions
	var ca, cert, key string
	var members, people, routes []string
	var file string
	c := &cobra.Command{
		Use: "nats-server --port N --store DIR", Short: "Run a NATS server with the limits that a cluster needs", Args: cobra.NoArgs,
		Example: "  emud nats-server --host 0.0.0.0 --port 4222 --store /var/lib/nats",
		PreRunE: func(c *cobra.Command, _ []string) error { return fromEnv(c.Flags()) },
		RunE: func(c *cobra.Command, _ []string) error {
			if file != "" {
				return untilDone(c.Context(), func() (*server.Server, error) { return natsbus.StartFile(file) })
			}
			if ca != "" {
				t, err := pki.Load(ca, cert, key)
				if err != nil {
					return err
				}
				o.TLS = t
			}
			for _, r := range routes {
				u, err := url.Parse(r)
				if err != nil {
					return usageError{fmt.Errorf("--route %q: %w", r, err)}
				}
				o.Routes = append(o.Routes, u)
			}
			var err error
			if o.Members, err = publicKeys(members); err != nil {
				return err
			}
			if o.People, err = publicKeys(people); err != nil {
				return err
			}
			return untilDone(c.Context(), func() (*server.Server, error) { return natsbus.StartServer(o) })
		},
	}
	fs := c.Flags()
	fs.StringVarP(&file, "config", "c", "", "configuration file of a nats-server, as emuctl cluster init writes; instead of all other flags")
	fs.StringVar(&o.Name, "name", "", "name of the server, unique in its cluster")
	fs.StringVar(&o.Host, "host", "127.0.0.1", "address to listen on")
	fs.IntVar(&o.Port, "port", 4222, "port to listen on")
	fs.StringVar(&o.StoreDir, "store", "", "directory of the object store; default none")
	fs.StringSliceVar(&members, "members", nil, "seed files of keys that may join")
	fs.StringSliceVar(&people, "people", nil, "seed files of keys that may control")
	fs.StringVar(&o.Cluster, "cluster", "", "name of the cluster of servers to be in")
	fs.IntVar(&o.ClusterPort, "cluster-port", 6222, "port for other servers")
	fs.StringSliceVar(&routes, "route", nil, "other servers, as in nats://host:6222 (repeatable)")
	fs.StringVar(&ca, "tls-ca", "", "certificates that may sign peers; turns TLS on")
	fs.StringVar(&cert, "tls-cert", "", "own certificate")
	fs.StringVar(&key, "tls-key", "", "own private key")
	return c
}

// untilDone starts a server, says where it listens and stops it when ctx ends.
func untilDone(ctx context.Context, start func() (*server.Server, error)) error {
	s, err := start()
	if err != nil {
		return err
	}
	fmt.Println(s.ClientURL())
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

func publicKeys(files []string) ([]string, error) {
	var out []string
	for _, f := range files {
		k, err := pki.PublicKey(f)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}
