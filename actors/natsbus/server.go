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
	// Users are the public NKeys that may connect; empty = anybody. With keys
	// nobody connects without one.
	Users []string
	// Account limits each key to the subjects of this system.
	TLS *tls.Config
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
	for _, k := range o.Users {
		opts.Nkeys = append(opts.Nkeys, &server.NkeyUser{Nkey: k, Permissions: permissions()})
	}
	if o.Cluster != "" {
		opts.Cluster = server.ClusterOpts{Name: o.Cluster, Host: opts.Host, Port: o.ClusterPort, TLSConfig: o.TLS, TLSTimeout: 5}
		opts.Routes = o.Routes
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("nats-server: %w", err)
	}
	if o.Log != nil {
		s.SetLoggerV2(o.Log, false, false, false)
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("nats-server: not ready on %s:%d after 10 s", opts.Host, o.Port)
	}
	return s, nil
}

// permissions are the subjects a member may use: those of this system, the
// services' discovery, replies, and the object store.
func permissions() *server.Permissions {
	all := &server.SubjectPermission{Allow: []string{"emu.>", "$SRV.>", "_INBOX.>", "$JS.API.>", "$JS.ACK.>", "$O.>"}}
	return &server.Permissions{Publish: all, Subscribe: all}
}
