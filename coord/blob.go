package coord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Blobs keeps states and results by the SHA-256 of their bytes. Get returns
// exactly those bytes or an error.
type Blobs interface {
	Put(ctx context.Context, b []byte) (sum string, err error)
	Get(ctx context.Context, sum string) ([]byte, error)
}

// sweeper is a store that can forget blobs nobody refers to.
type sweeper interface {
	sweep(ctx context.Context, keep map[string]bool, older time.Time) error
}

// disk is the store of one process; others read from it piece by piece.
type disk interface {
	Blobs
	sweeper
	// piece is what lies at an offset, at most syncPiece, unchecked, and the
	// size of the whole.
	piece(sum string, offset int) (b []byte, total int, err error)
}

// sweepAge protects blobs whose ledger entry is still on its way.
const sweepAge = 2 * time.Minute

// sweep removes unreferenced blobs from the local disk, and the leader's sweep
// from the shared store. What waits to be in a checkpoint stays.
func (n *Node) sweep(shared bool) {
	var keep map[string]bool
	n.rep.View(func(s *State) { keep = s.blobs() })
	n.waiting(keep)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l, ok := n.blobs.(layered)
	if !ok {
		return
	}
	stores := []Blobs{l.local}
	if shared {
		stores = append(stores, l.shared...)
	}
	for _, b := range stores {
		if s, ok := b.(sweeper); ok {
			if err := s.sweep(ctx, keep, time.Now().Add(-sweepAge)); err != nil {
				n.log.Debug("sweep", "err", err)
			}
		}
	}
}

// waiting adds the states that slots here have stored for a checkpoint that is
// not committed, and those that the leader was told of.
func (n *Node) waiting(keep map[string]bool) {
	add := func(b *Blob) {
		keep[b.Sum] = true
		for _, sum := range b.Notes {
			keep[sum] = true
		}
	}
	n.mu.Lock()
	for _, r := range n.runs {
		if b := r.stored.Load(); b != nil {
			add(b)
		}
	}
	n.mu.Unlock()
	if l := n.lead; l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, k := range l.ckpts {
			add(&k.Blob)
		}
	}
}

func (d DirBlobs) sweep(_ context.Context, keep map[string]bool, older time.Time) error {
	l, err := os.ReadDir(string(d))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, f := range l {
		i, e := f.Info()
		if e == nil && !keep[f.Name()] && i.ModTime().Before(older) {
			e = os.Remove(filepath.Join(string(d), f.Name()))
		}
		err = errors.Join(err, e)
	}
	return err
}

func (j jsBlobs) sweep(ctx context.Context, keep map[string]bool, older time.Time) error {
	l, err := j.os.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil
	}
	for _, o := range l {
		if !keep[o.Name] && o.ModTime.Before(older) {
			err = errors.Join(err, j.os.Delete(ctx, o.Name))
		}
	}
	return err
}

// SumOf is a blob's name.
func SumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func checked(sum string, b []byte) ([]byte, error) {
	if got := SumOf(b); got != sum {
		return nil, fmt.Errorf("coord: blob %.12s holds the bytes of %.12s", sum, got)
	}
	return b, nil
}

func validSum(sum string) bool {
	_, err := hex.DecodeString(sum)
	return err == nil && len(sum) == 2*sha256.Size
}

// DirBlobs keeps blobs as files. They are not synced: they must outlive the
// process, not the machine.
type DirBlobs string

// Put implements Blobs.
func (d DirBlobs) Put(_ context.Context, b []byte) (string, error) {
	sum := SumOf(b)
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(string(d), ".new-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(string(d), sum))
	}
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("coord: blob: %w", err)
	}
	return sum, nil
}

// Get implements Blobs.
func (d DirBlobs) Get(_ context.Context, sum string) ([]byte, error) {
	if !validSum(sum) {
		return nil, fmt.Errorf("coord: %q names no blob", sum)
	}
	b, err := os.ReadFile(filepath.Join(string(d), sum))
	if err != nil {
		return nil, err
	}
	return checked(sum, b)
}

func (d DirBlobs) piece(sum string, offset int) ([]byte, int, error) {
	f, err := os.Open(filepath.Join(string(d), sum))
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if int64(offset) >= st.Size() {
		return nil, 0, io.EOF
	}
	b := make([]byte, min(syncPiece, st.Size()-int64(offset)))
	_, err = f.ReadAt(b, int64(offset))
	return b, int(st.Size()), err
}

// jsBlobs keeps blobs in a JetStream object store. Its acknowledgements are not
// trusted: Put reads back.
type jsBlobs struct{ os jetstream.ObjectStore }

const bucket = "rocemu"

func openObjects(ctx context.Context, js jetstream.JetStream, replicas int) (Blobs, error) {
	o, err := js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucket, Replicas: max(1, replicas), Storage: jetstream.FileStorage})
	if err != nil {
		return nil, fmt.Errorf("coord: object store: %w", err)
	}
	return jsBlobs{o}, nil
}

// awaitObjects opens the object store; servers that form a cluster take seconds
// until they have a leader for it. nil: the servers have no JetStream.
func awaitObjects(ctx context.Context, js jetstream.JetStream, replicas int, wait time.Duration) (Blobs, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		try, stop := context.WithTimeout(ctx, 5*time.Second)
		_, err := js.AccountInfo(try)
		var o Blobs
		if err == nil {
			o, err = openObjects(try, js, replicas)
		}
		stop()
		switch {
		case err == nil:
			return o, nil
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// storeBlob puts a blob, again and again while the shared store is away, for up to
// limit. A full disk is not waited for.
func storeBlob(ctx context.Context, to Blobs, b []byte, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		try, stop := context.WithTimeout(ctx, 10*time.Second+time.Duration(len(b))*time.Microsecond)
		sum, err := to.Put(try, b)
		stop()
		if err == nil || errors.Is(err, syscall.ENOSPC) {
			return sum, err
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// errAway: a store that may have the blob did not answer. Whether the blob is
// lost cannot be told yet.
var errAway = errors.New("a store is away")

// fetchBlob reads a blob, again and again while a store is away, for up to limit.
func fetchBlob(ctx context.Context, from Blobs, sum string, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		b, err := from.Get(ctx, sum)
		if !errors.Is(err, errAway) {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Put implements Blobs.
func (j jsBlobs) Put(ctx context.Context, b []byte) (string, error) {
	sum := SumOf(b)
	if _, err := j.os.GetInfo(ctx, sum); err == nil {
		if _, err = j.Get(ctx, sum); err == nil {
			return sum, nil
		} // damaged: what was stored wrongly once must not stay so
	}
	if _, err := j.os.PutBytes(ctx, sum, b); err != nil {
		return "", fmt.Errorf("coord: object store: %w", err)
	}
	_, err := j.Get(ctx, sum)
	return sum, err
}

// Get implements Blobs.
func (j jsBlobs) Get(ctx context.Context, sum string) ([]byte, error) {
	b, err := j.os.GetBytes(ctx, sum)
	switch {
	case err == nil:
		return checked(sum, b)
	case errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrDigestMismatch):
	default:
		err = fmt.Errorf("%w: %w", errAway, err)
	}
	return nil, fmt.Errorf("coord: object store: blob %.12s: %w", sum, err)
}

// layered writes to every store and reads from the first that has the blob. A
// write counts when all shared stores took it; the local one is a bonus. What
// no store has may still be on another process's disk.
type layered struct {
	local  disk
	shared []Blobs
	peers  peerBlobs
}

// Put implements Blobs.
func (l layered) Put(ctx context.Context, b []byte) (string, error) {
	sum, err := l.local.Put(ctx, b)
	if err != nil && len(l.shared) == 0 {
		return "", err
	}
	for _, s := range l.shared {
		if sum, err = s.Put(ctx, b); err != nil {
			return "", err
		}
	}
	return sum, nil
}

// Get implements Blobs.
func (l layered) Get(ctx context.Context, sum string) ([]byte, error) {
	b, err := l.local.Get(ctx, sum)
	if err == nil {
		return b, nil
	}
	errs := err
	for _, s := range l.shared {
		if b, err = s.Get(ctx, sum); err == nil {
			_, _ = l.local.Put(ctx, b)
			return b, nil
		}
		errs = errors.Join(errs, err)
	}
	if l.peers.bus == nil || ctx.Err() != nil {
		return nil, errs
	}
	if b, err = l.peers.Get(ctx, sum); err != nil {
		return nil, errors.Join(errs, err)
	}
	_, _ = l.local.Put(ctx, b)
	return b, nil
}
