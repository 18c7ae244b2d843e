package pki

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/rocemu/rocemu/actors/natsbus"
)

// TestSeveralServers: nats-server reads every configuration, and each server
// tells others a name that is in its certificate.
func TestSeveralServers(t *testing.T) {
	dir := t.TempDir()
	names := []string{"nats", "nats2", "nats3"}
	files, err := Init(Options{Dir: dir, Hosts: []string{"emud"}, NATS: names, Store: dir + "/js", Monitor: "127.0.0.1:8222", NoCAKey: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f == CAKeyFile {
			t.Error("the authority's key is there")
		}
	}
	for _, n := range names {
		o, err := server.ProcessConfigFile(filepath.Join(dir, NATSConfOf(n)))
		if err != nil {
			t.Fatal(err)
		}
		if o.ServerName != n || o.HTTPPort != 8222 || len(o.Routes) != 2 || o.Cluster.TLSConfig == nil || !o.JetStream || len(o.Nkeys) != 2 {
			t.Errorf("%s: name %q, monitor %d, routes %v", n, o.ServerName, o.HTTPPort, o.Routes)
		}
		for i, want := range [][2][]string{{natsbus.MemberPublish, natsbus.MemberSubscribe}, {natsbus.PersonPublish, natsbus.PersonSubscribe}} {
			if p := o.Nkeys[i].Permissions; !slices.Equal(p.Publish.Allow, want[0]) || !slices.Equal(p.Subscribe.Allow, want[1]) {
				t.Errorf("%s: key %d may publish %v and hear %v, want %v", n, i, p.Publish.Allow, p.Subscribe.Allow, want)
			}
		}
		b, err := os.ReadFile(filepath.Join(dir, CertFile(n)))
		if err != nil {
			t.Fatal(err)
		}
		p, _ := pem.Decode(b)
		c, err := x509.ParseCertificate(p.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []string{o.Cluster.Advertise, o.ClientAdvertise} {
			host, _, _ := strings.Cut(to, ":")
			if err := c.VerifyHostname(host); err != nil {
				t.Errorf("%s advertises %q: %v", n, to, err)
			}
		}
	}
	if more, err := Init(Options{Dir: dir, Keep: true}); err != nil || more != nil {
		t.Errorf("keep: %v, %v", more, err)
	}
	if _, err := Init(Options{Dir: dir}); err == nil {
		t.Error("keys were overwritten")
	}
}
