package natsbus

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// A member with a key reads a blob of many messages back from the object store
// at the pace of the network, and no subject is denied.
func TestMemberReadsLargeObjects(t *testing.T) {
	k, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := k.Seed()
	pub, _ := k.PublicKey()
	file := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	srv, err := StartServer(ServerOptions{StoreDir: t.TempDir(), Members: []string{pub}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown()
	note := func(what string, err error) {
		if what == "error" {
			t.Errorf("%s: %v", what, err)
		}
	}
	c, err := Dialer{URL: srv.ClientURL(), Seed: file, Wait: 5 * time.Second, Note: note}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	js, err := jetstream.New(c.NATS())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: "large"})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 16<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(want)
	if _, err := o.PutBytes(ctx, "x", want); err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	got, err := o.GetBytes(ctx, "x")
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d of %d bytes after %v: %v", len(got), len(want), time.Since(t0), err)
	}
	t.Logf("%d bytes in %v", len(got), time.Since(t0))
}
