package coord_test

import (
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/pki"
)

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// keys makes a cluster's keys and a server that demands them.
func keys(t *testing.T) (dir string, own *tls.Config, url string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "keys")
	if _, err := pki.Init(pki.Options{Dir: dir, Hosts: []string{"localhost", "node2"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.Init(pki.Options{Dir: dir}); err == nil {
		t.Error("keys were overwritten")
	}
	own = must[*tls.Config](t)(pki.Load(filepath.Join(dir, pki.CAFile), filepath.Join(dir, "localhost.pem"), filepath.Join(dir, "localhost.key")))
	srv, err := natsbus.StartServer(natsbus.ServerOptions{
		TLS: own, StoreDir: filepath.Join(dir, "js"),
		Members: []string{must[string](t)(pki.PublicKey(filepath.Join(dir, pki.MemberSeed)))},
		People:  []string{must[string](t)(pki.PublicKey(filepath.Join(dir, pki.UserSeed)))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	return dir, own, srv.ClientURL()
}

func TestSecureCluster(t *testing.T) {
	t.Parallel()
	dir, own, url := keys(t)
	member, user := filepath.Join(dir, pki.MemberSeed), filepath.Join(dir, pki.UserSeed)
	c := &cluster{t: t, dir: t.TempDir(), nodes: map[string]*running{}}
	secure := func(cfg *coord.Config) {
		cfg.Dialer = natsbus.Dialer{URL: url, Seed: member, TLS: own, Wait: 5 * time.Second}
		cfg.RaftTLS = own
	}
	c.srv = must2(natsbus.StartServer(natsbus.ServerOptions{}))
	t.Cleanup(c.close)
	for _, n := range []string{"c1", "c2", "c3"} {
		c.start(n, true, 3, secure)
	}
	var err error
	if c.cl, err = client.Dial(natsbus.Dialer{URL: url, Seed: user, TLS: own, Wait: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	r := c.wait(c.submit(small, members(3)))
	if got, want := r.Digest(), oracle(small); got != want {
		t.Errorf("digest %s, oracle %s", got, want)
	}

	if _, err := client.Dial(natsbus.Dialer{URL: url, TLS: own}); err == nil {
		t.Error("connected without a key")
	}
	if _, err := client.Dial(natsbus.Dialer{URL: url, Seed: user}); err == nil {
		t.Error("connected without TLS")
	}
	other := filepath.Join(t.TempDir(), "other")
	if _, err := pki.Init(pki.Options{Dir: other}); err != nil {
		t.Fatal(err)
	}
	foreign := must[*tls.Config](t)(pki.Load(filepath.Join(other, pki.CAFile), filepath.Join(other, "localhost.pem"), filepath.Join(other, "localhost.key")))
	if _, err := client.Dial(natsbus.Dialer{URL: url, Seed: user, TLS: foreign}); err == nil {
		t.Error("connected with a certificate of another authority")
	}
	if _, err := client.Dial(natsbus.Dialer{URL: url, Seed: filepath.Join(other, pki.UserSeed), TLS: own}); err == nil {
		t.Error("connected with a key of another cluster")
	}
	// A person's key reads no batch and feeds no ledger.
	denied := make(chan error, 8)
	p, err := natsbus.Dialer{URL: url, Seed: user, TLS: own, Wait: time.Second, Note: func(_ string, err error) { denied <- err }}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, _ = p.Subscribe("emu.b.>", 8)
	_ = p.Publish("emu.l", []byte("{}"))
	for range 2 {
		select {
		case err := <-denied:
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
				t.Errorf("want a permissions violation, got %v", err)
			}
		case <-time.After(3 * time.Second):
			t.Error("a person's key may read batches or write the ledger's feed")
		}
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A process of another build gets no slot and its batches are refused.
func TestWrongBuildIsLeftOut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, relays{}, true)
	c.start("e1", true, 1, nil)
	c.start("e2", false, 0, func(cfg *coord.Config) { cfg.Build = "other" })
	c.until("e2 is known", func(s *coord.Status) bool { return len(s.Nodes) == 2 })
	r := c.wait(c.submit(small, nil))
	if len(r.Slots) != 1 || r.Slots[0].Owner != "e1" {
		t.Errorf("slots %+v", r.Slots)
	}
	if _, err := c.cl.Submit(deadline(t), coord.RunSpec{Files: []coord.File{{Name: "x", Text: `{"Relays":1}`}}}); err == nil || errors.Is(err, client.ErrUnreachable) {
		t.Errorf("a fabric with one relay: %v", err)
	}
}
