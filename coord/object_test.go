package coord

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// badObjects is an object store that damages the first object it is given.
type badObjects struct {
	jetstream.ObjectStore
	m    map[string][]byte
	puts int
}

func (o *badObjects) GetInfo(_ context.Context, name string, _ ...jetstream.GetObjectInfoOpt) (*jetstream.ObjectInfo, error) {
	if o.m[name] == nil {
		return nil, jetstream.ErrObjectNotFound
	}
	return &jetstream.ObjectInfo{}, nil
}

func (o *badObjects) GetBytes(_ context.Context, name string, _ ...jetstream.GetObjectOpt) ([]byte, error) {
	return o.m[name], nil
}

func (o *badObjects) PutBytes(_ context.Context, name string, b []byte) (*jetstream.ObjectInfo, error) {
	if o.puts++; o.puts == 1 {
		b = b[:1]
	}
	o.m[name] = b
	return &jetstream.ObjectInfo{}, nil
}

// An object that was stored damaged is stored again: a result that could not be
// stored ended the run, however often it was tried.
func TestDamagedObjectIsReplaced(t *testing.T) {
	o := &badObjects{m: map[string][]byte{}}
	j := jsBlobs{o}
	want := []byte("a state")
	if _, err := j.Put(context.Background(), want); err == nil {
		t.Fatal("a damaged object was taken for stored")
	}
	sum, err := j.Put(context.Background(), want)
	if err != nil {
		t.Fatalf("the second try: %v", err)
	}
	if got, err := j.Get(context.Background(), sum); err != nil || string(got) != string(want) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := j.Put(context.Background(), want); err != nil || o.puts != 2 {
		t.Errorf("what is whole was stored again: %d times, %v", o.puts, err)
	}
}
