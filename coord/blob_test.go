package coord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// answers is a store that gives one error after another, then the blob.
type answers []error

func (a *answers) Put(context.Context, []byte) (string, error) { return "", nil }

func (a *answers) Get(context.Context, string) ([]byte, error) {
	if len(*a) == 0 {
		return []byte("blob"), nil
	}
	err := (*a)[0]
	*a = (*a)[1:]
	return nil, err
}

// A store that is away is waited for: only one that says that the blob is not
// there makes everybody go back to the checkpoint before.
func TestFetchBlob(t *testing.T) {
	away := fmt.Errorf("object store: %w: outbound buffer limit exceeded", errAway)
	for name, c := range map[string]struct {
		say  answers
		want bool
		left int
	}{
		"there":      {answers{}, true, 0},
		"away twice": {answers{away, errors.Join(errors.New("not on disk"), away)}, true, 0},
		"lost":       {answers{errors.New("not on disk"), away}, false, 1},
		"lost later": {answers{away, errors.New("object not found"), away}, false, 1},
	} {
		b, err := fetchBlob(t.Context(), &c.say, "", time.Minute)
		if (err == nil) != c.want || len(c.say) != c.left || c.want && string(b) != "blob" {
			t.Errorf("%s: %q, %v, %d answers left", name, b, err, len(c.say))
		}
	}
	long := make(answers, 1000)
	for i := range long {
		long[i] = away
	}
	if _, err := fetchBlob(t.Context(), &long, "", 300*time.Millisecond); !errors.Is(err, errAway) {
		t.Errorf("away for ever: %v", err)
	}
}

// What one process puts into a directory that all share is there for another
// after the first one's own disk is gone, piece by piece too, and in place of a
// copy that is damaged. Only the leader forgets what lies there.
func TestSharedDirectory(t *testing.T) {
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	node := func(name string) *Node {
		n := newNode(Config{Name: name}, "1")
		n.blobs = layered{local: DirBlobs(filepath.Join(dir, name)), shared: []Blobs{DirBlobs(shared)}}
		return n
	}
	a, b := node("a"), node("b")
	want := bytes.Repeat([]byte("0123456789abcdef"), syncPiece/8)
	want = append(want, 'x')
	sum, err := a.blobs.Put(t.Context(), want)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	must(os.RemoveAll(filepath.Join(dir, "a")))
	read := func() (got []byte) {
		t.Helper()
		for total := 1; len(got) < total; {
			q, _ := json.Marshal(blobRequest{Sum: sum, Offset: len(got)})
			x, err := b.onBlob(q)
			must(err)
			p := x.(syncAnswer)
			got, total = append(got, p.Piece...), p.Total
		}
		return got
	}
	if got := read(); !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, or others", len(got), len(want))
	}
	must(os.WriteFile(filepath.Join(dir, "b", sum), want[1:], 0o600))
	if got := read(); !bytes.Equal(got, want) {
		t.Errorf("after damage %d bytes of %d, or others", len(got), len(want))
	}
	old := time.Now().Add(-2 * sweepAge)
	must(os.Chtimes(filepath.Join(shared, sum), old, old))
	for _, leads := range []bool{false, true} {
		b.sweep(leads)
		if _, err := os.Stat(filepath.Join(shared, sum)); (err == nil) == leads {
			t.Errorf("leader %v: %v", leads, err)
		}
	}
}
