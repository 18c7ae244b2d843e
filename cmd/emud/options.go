package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// options are emud's flags.
type options struct {
	name, nats, data     string
	coordinator, only    bool
	expect               int
	raftListen, raftName string
	devices              []string
	workers, cores       int
	logLevel             string
	logJSON              bool
	health               string
	creds, ca, cert, key string
	shared               string
	silence, giveUp      time.Duration
	fast                 bool
	build                string
	retain, replicas     int
	connectWait          time.Duration
}

func (o *options) bind(fs *pflag.FlagSet) {
	host, _ := os.Hostname()
	fs.StringVar(&o.name, "name", host, "name of this process, unique in the cluster")
	fs.StringVar(&o.nats, "nats", "nats://127.0.0.1:4222", "NATS servers, comma-separated")
	fs.StringVar(&o.data, "data", "", "directory for the Raft log, states and batches (required)")
	fs.BoolVar(&o.coordinator, "coordinator", false, "vote in Raft")
	fs.BoolVar(&o.only, "coordinator-only", false, "vote in Raft and host no device")
	fs.IntVar(&o.expect, "bootstrap-expect", 1, "coordinators to hear of before the cluster is founded")
	fs.StringVar(&o.raftListen, "raft-listen", "127.0.0.1:0", "address of a coordinator's Raft port")
	fs.StringVar(&o.raftName, "raft-advertise", "", "address other coordinators reach it at; default the listen address")
	fs.StringSliceVar(&o.devices, "devices", nil, "host these devices and no others; default whole racks and spines, as placed")
	fs.IntVar(&o.workers, "workers", 1, "threads of each engine; the result does not depend on it")
	fs.IntVar(&o.cores, "cores", 0, "weight in placement; 0 = processors of the machine")
	fs.StringVar(&o.logLevel, "log-level", "info", "trace, debug, info, warn or error")
	fs.BoolVar(&o.logJSON, "log-json", false, "write the log as JSON lines")
	fs.StringVar(&o.health, "health", "", "address of /healthz and /readyz, as in 127.0.0.1:8222; default off")
	fs.StringVar(&o.creds, "creds", "", "file with an NKey seed")
	fs.StringVar(&o.ca, "tls-ca", "", "certificates that may sign peers; turns TLS on for NATS and Raft")
	fs.StringVar(&o.cert, "tls-cert", "", "own certificate")
	fs.StringVar(&o.key, "tls-key", "", "own private key")
	fs.DurationVar(&o.silence, "silence", 2*time.Second, "without a heartbeat for that long a process counts as lost")
	fs.DurationVar(&o.giveUp, "give-up", 2*time.Minute, "a batch may stay missing that long before the run fails")
	fs.BoolVar(&o.fast, "fast-failover", false, "shorter Raft time-outs, for quiet machines")
	fs.StringVar(&o.build, "build", "", "build id to claim; default the hash of this program")
	fs.IntVar(&o.retain, "retain-bytes", 256<<20, "memory for sent batches before they go to --data")
	fs.StringVar(&o.shared, "shared", "", "directory that all processes of the cluster have, for states and results; default the NATS servers' object store")
	fs.IntVar(&o.replicas, "object-replicas", 1, "copies of states in a NATS cluster's object store")
	fs.DurationVar(&o.connectWait, "connect-wait", 30*time.Second, "how long NATS may take to appear at the start")
}

// fromEnv sets flags that were not given from EMUD_ variables.
func fromEnv(fs *pflag.FlagSet) (err error) {
	fs.VisitAll(func(f *pflag.Flag) {
		name := "EMUD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v, ok := os.LookupEnv(name)
		if !ok || f.Changed || err != nil {
			return
		}
		if e := fs.Set(f.Name, v); e != nil {
			err = usageError{fmt.Errorf("%s=%q: %w", name, v, e)}
		}
	})
	return err
}

// check reports the first value that cannot be.
func (o *options) check() error {
	bad := func(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }
	switch {
	case o.name == "" || len(o.name) > 128 || strings.ContainsAny(o.name, " \t\n./*>"):
		return bad("--name %q: must be 1 to 128 letters without blanks, '.', '/', '*' or '>'", o.name)
	case o.data == "":
		return bad("--data is required: a directory that survives a restart")
	case o.expect < 1 || o.expect > 9:
		return bad("--bootstrap-expect %d: must be 1 to 9; 3 or 5 survive a loss", o.expect)
	case o.workers < 1 || o.workers > 1024:
		return bad("--workers %d: must be 1 to 1024", o.workers)
	case o.cores < 0:
		return bad("--cores %d: must be 0 or more", o.cores)
	case (o.cert == "") != (o.key == "") || o.cert != "" && o.ca == "":
		return bad("TLS needs --tls-ca, --tls-cert and --tls-key together")
	case o.silence < 500*time.Millisecond:
		return bad("--silence %v: must be 500ms or more; heartbeats come every 200ms", o.silence)
	}
	return nil
}
