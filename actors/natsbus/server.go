package natsbus

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerOptions describe an embedded nats-server.
type ServerOptions struct {
	Name     string
	Host     string // "" = 127.0.0.1
	Port     int    // 0 = any free port
	StoreDir string // of JetStream; "" = no JetStream
	// Members and People are the public NKeys that may connect, on all subjects
	// of this system and on its services alone; none = anybody connects.
	Members, People []string
	TLS             *tls.Config
	// Cluster, when set, joins servers into one: listen address and routes.
	Cluster     string
	ClusterPort int
	Routes      []*url.URL
	Log         server.Logger
}

// Limits of a server (the reasons are in docs/adr/0004): a client that stops
// reading is cut only when it is hopeless, since one window outstanding bounds
// what can be pending.
const (
	maxPayload    = 1 << 20
	maxPending    = 512 << 20
	writeDeadline = 30 * time.Second
	pingInterval  = time.Second
	pingsOut      = 3
)

// StartServer runs a nats-server inside this process.
func StartServer(o ServerOptions) (*server.Server, error) {
	opts := &server.Options{
		ServerName: o.Name, Host: o.Host, Port: o.Port, NoSigs: true, NoLog: o.Log == nil,
		MaxPayload: maxPayload, MaxPending: maxPending, WriteDeadline: writeDeadline,
		PingInterval: pingInterval * 5, MaxPingsOut: pingsOut,
		TLSConfig: o.TLS, TLS: o.TLS != nil, TLSTimeout: 5,
	}
	if o.Host == "" {
		opts.Host = "127.0.0.1"
	}
	if o.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if o.StoreDir != "" {
		opts.JetStream, opts.StoreDir, opts.SyncAlways = true, o.StoreDir, true
	}
	for _, k := range o.Members {
		opts.Nkeys = append(opts.Nkeys, &server.NkeyUser{Nkey: k, Permissions: allow(MemberPublish, MemberSubscribe)})
	}
	for _, k := range o.People {
		opts.Nkeys = append(opts.Nkeys, &server.NkeyUser{Nkey: k, Permissions: allow(PersonPublish, PersonSubscribe)})
	}
	if o.Cluster != "" {
		opts.Cluster = server.ClusterOpts{Name: o.Cluster, Host: opts.Host, Port: o.ClusterPort, TLSConfig: o.TLS, TLSTimeout: 5}
		opts.Routes = o.Routes
	}
	return start(opts, o.Log)
}

// StartFile runs a nats-server from its configuration file; it logs to standard
// error.
func StartFile(path string) (*server.Server, error) {
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		return nil, fmt.Errorf("nats-server: %w", err)
	}
	opts.NoSigs = true
	return start(opts, nil)
}

func start(opts *server.Options, log server.Logger) (*server.Server, error) {
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("nats-server: %w", err)
	}
	if log != nil {
		s.SetLoggerV2(log, false, false, false)
	} else {
		s.ConfigureLogger() // none when the options say so
	}
	go s.Start()
	if !ready(s, 10*time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("nats-server: not ready on %s:%d after 10 s", opts.Host, opts.Port)
	}
	return s, nil
}

// ready waits until a server takes connections. Its own wait looks at once and
// then every 25 ms: by the first look it is never there.
func ready(s *server.Server, limit time.Duration) bool {
	for end := time.Now().Add(limit); s.Addr() == nil && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return s.ReadyForConnections(limit)
}

// allow limits a key to some subjects.
func allow(pub, sub []string) *server.Permissions {
	return &server.Permissions{Publish: &server.SubjectPermission{Allow: pub}, Subscribe: &server.SubjectPermission{Allow: sub}}
}
