package coord

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestUploads(t *testing.T) {
	var u uploads
	now := time.Unix(0, 0)
	b := bytes.Repeat([]byte("abc"), UploadPiece/2)
	sum := SumOf(b)
	piece := func(off int) *Upload {
		return &Upload{Sum: sum, Total: len(b), Offset: off, Piece: b[off:min(len(b), off+UploadPiece)]}
	}
	if _, have, err := u.add(piece(UploadPiece), now); have != 0 || err != nil {
		t.Fatalf("a piece without its beginning: %d %v", have, err)
	}
	for range 2 { // a repeated piece changes nothing
		if _, have, err := u.add(piece(0), now); have != UploadPiece || err != nil {
			t.Fatalf("first piece: %d %v", have, err)
		}
	}
	whole, _, err := u.add(piece(UploadPiece), now)
	if err != nil || !bytes.Equal(whole, b) {
		t.Fatalf("whole: %d bytes, %v", len(whole), err)
	}
	for i := range maxUploads {
		x := piece(0)
		x.Sum = SumOf([]byte{byte(i)})
		if _, _, err := u.add(x, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := u.add(piece(0), now); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("one too many: %v", err)
	}
	if _, _, err := u.add(piece(0), now.Add(2*uploadKeep)); err != nil {
		t.Errorf("after the others were given up: %v", err)
	}
	bad := piece(0)
	bad.Sum = SumOf([]byte("x"))
	bad.Total, bad.Piece = 3, []byte("abc")
	if _, _, err := u.add(bad, now.Add(2*uploadKeep)); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("damaged: %v", err)
	}
	for _, x := range []*Upload{{}, {Sum: sum, Total: MaxEntry + 1, Piece: []byte{1}}, {Sum: sum, Total: 1, Offset: -1, Piece: []byte{1}}} {
		if _, _, err := u.add(x, now); err == nil {
			t.Errorf("%+v was accepted", x)
		}
	}
}

// mute is a control plane on which nobody answers, and a voter that knows a
// leader for a while.
type mute struct {
	control
	voter
	until time.Time
}

func (*mute) Request(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (m *mute) leader() string {
	if time.Now().Before(m.until) {
		return "b"
	}
	return ""
}

// A piece that meets the end of a leader's term is answered when that is known,
// not when all patience is at its end: the client had one attempt each 20 s.
func TestUploadWithoutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, led := range []time.Duration{0, 330 * time.Millisecond} {
			start := time.Now()
			m := &mute{until: start.Add(led)}
			n := newNode(Config{Name: "a", Build: "b", Log: hclog.NewNullLogger()}, "1")
			n.ctl, n.cons = m, m
			a, err := n.onUpload(nil)
			if x, ok := a.(UploadAnswer); err != nil || !ok || x.Result.Err != NoLeader {
				t.Errorf("answer %+v, %v", a, err)
			}
			if took := time.Since(start) - led; took < 0 || took > 100*time.Millisecond {
				t.Errorf("answered %v after there was no leader", took)
			}
		}
	})
}
