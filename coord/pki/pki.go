// Package pki makes and loads the keys of a cluster: a certificate authority
// that signs one certificate a host for NATS and Raft (mutual TLS 1.3), and
// NKeys that say who may connect. Start at [Init].
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/rocemu/rocemu/actors/natsbus"
)

// Load builds the TLS settings of one member: both ends present a certificate
// that ca signed.
func Load(ca, cert, key string) (*tls.Config, error) {
	pemCA, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pemCA) {
		return nil, fmt.Errorf("%s: holds no certificate", ca)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cert, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Files of a cluster's directory.
const (
	CAFile     = "ca.pem"
	CAKeyFile  = "ca.key" // stays with who makes certificates
	NATSConf   = "nats-server.conf"
	MemberSeed = "emud.nk"   // NKey seed of members
	UserSeed   = "emuctl.nk" // NKey seed of people
)

// Options of Init.
type Options struct {
	Dir   string
	Hosts []string // one certificate for each; names and addresses
	Port  int      // of NATS in the configuration written
	Years int      // validity, 0 = 2
	// NATS names the hosts that run NATS servers; each gets its own
	// configuration [NATSConfOf], and several form a cluster. Empty: the first of
	// Hosts, in [NATSConf].
	NATS  []string
	Store string // directory of JetStream in the configuration, default "jetstream"
	Keep  bool   // keys that are there already are left as they are, without an error
	// NoCAKey keeps the authority's key out of the directory: nobody can make more
	// certificates, which a directory that every process reads should not allow.
	NoCAKey bool
	Monitor string // address of NATS' health endpoint in the configuration; "" = none
}

// NATSConfOf names the configuration of one of several NATS hosts.
func NATSConfOf(host string) string { return "nats-" + fileName(host) + ".conf" }

// Init writes keys, certificates and a configuration for nats-server. It
// refuses a directory that has them already.
func Init(o Options) ([]string, error) {
	if len(o.Hosts) == 0 {
		o.Hosts = []string{"localhost"}
	}
	if o.Port == 0 {
		o.Port = 4222
	}
	if o.Years == 0 {
		o.Years = 2
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	if o.Store == "" {
		o.Store = "jetstream"
	}
	if _, err := os.Stat(filepath.Join(o.Dir, CAFile)); err == nil {
		if o.Keep {
			return nil, nil
		}
		return nil, fmt.Errorf("%s: a cluster's keys are there already; keep them or remove them", o.Dir)
	}
	w := &writer{dir: o.Dir}
	ca, caKey, err := authority(w, o)
	if err != nil {
		return nil, err
	}
	for _, h := range hostsOf(o) {
		if err := certificate(w, ca, caKey, h, o.Years); err != nil {
			return nil, err
		}
	}
	member, err := nkey(w, MemberSeed)
	if err != nil {
		return nil, err
	}
	user, err := nkey(w, UserSeed)
	if err != nil {
		return nil, err
	}
	if len(o.NATS) == 0 {
		w.put(NATSConf, []byte(conf(o, o.Hosts[0], NATSConf, member, user)), 0o600)
	}
	for _, h := range o.NATS {
		w.put(NATSConfOf(h), []byte(conf(o, h, NATSConfOf(h), member, user)+routes(o, h)), 0o600)
	}
	return w.names, w.err
}

// hostsOf lists every host that gets a certificate, once.
func hostsOf(o Options) []string {
	var out []string
	for _, h := range append(slices.Clone(o.Hosts), o.NATS...) {
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// ClusterPort is where the NATS servers of a cluster reach one another.
const ClusterPort = 6222

// routes is what makes a NATS server one of several: mutual TLS among them.
func routes(o Options, host string) string {
	if len(o.NATS) < 2 {
		return ""
	}
	var to []string
	for _, h := range o.NATS {
		if h != host {
			to = append(to, fmt.Sprintf("\"nats-route://%s:%d\"", h, ClusterPort))
		}
	}
	// Servers tell each other and clients where else to connect: by the name that
	// is in the certificate, not by the address they happen to have.
	return fmt.Sprintf(`server_name: "%[1]s"
client_advertise: "%[1]s:%[7]d"
cluster {
  name: "rocemu"
  port: %[2]d
  advertise: "%[1]s:%[2]d"
  routes: [%[3]s]
  tls {
    cert_file: "%[4]s"
    key_file: "%[5]s"
    ca_file: "%[6]s"
    verify: true
    timeout: 5
  }
}
`, host, ClusterPort, strings.Join(to, ", "), o.path(CertFile(host)), o.path(KeyFile(host)), o.path(CAFile), o.Port)
}

// path is how a configuration names a file: an absolute directory is written
// out, so that the server may be started anywhere.
func (o Options) path(file string) string {
	if filepath.IsAbs(o.Dir) {
		return filepath.Join(o.Dir, file)
	}
	return file
}

// writer writes the files of a directory and remembers the first error.
type writer struct {
	dir   string
	names []string
	err   error
}

func (w *writer) put(name string, b []byte, mode os.FileMode) {
	if w.err != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	w.err = err
	w.names = append(w.names, name)
}

func (w *writer) pem(name, kind string, der []byte, mode os.FileMode) {
	w.put(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

func serial() (*big.Int, error) { return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) }

func authority(w *writer, o Options) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	sn, err := serial()
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: sn, Subject: pkix.Name{CommonName: "rocemu cluster"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(o.Years, 0, 0),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	if !o.NoCAKey {
		if err := putKey(w, CAKeyFile, key); err != nil {
			return nil, nil, err
		}
	}
	w.pem(CAFile, "CERTIFICATE", der, 0o644)
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func putKey(w *writer, name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	w.pem(name, "PRIVATE KEY", der, 0o600)
	return w.err
}

// CertFile names a host's certificate.
func CertFile(host string) string { return fileName(host) + ".pem" }

// KeyFile names a host's private key.
func KeyFile(host string) string { return fileName(host) + ".key" }

func fileName(host string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r == '*' {
			return '_'
		}
		return r
	}, host)
}

// certificate signs a host's certificate, good for both ends of a connection.
// Every host's certificate also names localhost, for health checks and tunnels.
func certificate(w *writer, ca *x509.Certificate, caKey *ecdsa.PrivateKey, host string, years int) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	sn, err := serial()
	if err != nil {
		return err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: sn, Subject: pkix.Name{CommonName: host}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(years, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = append(t.IPAddresses, ip)
	} else if host != "localhost" {
		t.DNSNames = append(t.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, ca, &key.PublicKey, caKey)
	if err != nil {
		return err
	}
	w.pem(CertFile(host), "CERTIFICATE", der, 0o644)
	return putKey(w, KeyFile(host), key)
}

// nkey writes a user's seed and returns the public key.
func nkey(w *writer, name string) (string, error) {
	k, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	seed, err := k.Seed()
	if err != nil {
		return "", err
	}
	w.put(name, append(seed, '\n'), 0o600)
	pub, err := k.PublicKey()
	return pub, errors.Join(err, w.err)
}

// conf is a nats-server configuration: TLS both ways, nothing without a key,
// members on the subjects of this system only, people on its services only.
func conf(o Options, h, file, member, user string) string {
	return fmt.Sprintf(`# NATS for an emulated fabric. Start it in this directory: nats-server -c %s
port: %d
%smax_payload: 1MB
max_pending: 512MB
write_deadline: "30s"
ping_interval: "5s"
ping_max: 3
jetstream { store_dir: "%s", sync_interval: always }
tls {
  cert_file: "%s"
  key_file: "%s"
  ca_file: "%s"
  verify: true
  timeout: 5
}
authorization {
  users: [
    { nkey: %s, permissions: {
        publish: { allow: %s }
        subscribe: { allow: %s } } }
    { nkey: %s, permissions: {
        publish: { allow: %s }
        subscribe: { allow: %s } } }
  ]
}
`, file, o.Port, o.monitor(), o.Store, o.path(CertFile(h)), o.path(KeyFile(h)), o.path(CAFile),
		member, list(natsbus.MemberPublish), list(natsbus.MemberSubscribe), user, list(natsbus.PersonPublish), list(natsbus.PersonSubscribe))
}

// list writes subjects as the configuration does.
func list(subjects []string) string { return `["` + strings.Join(subjects, `", "`) + `"]` }

// monitor is the line of the health endpoint, if any.
func (o Options) monitor() string {
	if o.Monitor == "" {
		return ""
	}
	return fmt.Sprintf("http: \"%s\"\n", o.Monitor)
}

// PublicKey reads a seed file and returns the key to allow.
func PublicKey(seedFile string) (string, error) {
	b, err := os.ReadFile(seedFile)
	if err != nil {
		return "", err
	}
	k, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(b))))
	if err != nil {
		return "", fmt.Errorf("%s: %w", seedFile, err)
	}
	return k.PublicKey()
}
