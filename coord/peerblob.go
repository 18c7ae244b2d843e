package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
)

// peerBlobs asks the other processes for what lies on their disks: the last
// resort of a read, and the only one without an object store.
type peerBlobs struct{ nc *nats.Conn }

// Get asks for a blob piece by piece; whoever has it answers.
func (p peerBlobs) Get(ctx context.Context, sum string) ([]byte, error) {
	var b []byte
	for {
		q, _ := json.Marshal(blobRequest{Sum: sum, Offset: len(b)})
		try, cancel := context.WithTimeout(ctx, time.Second)
		m, err := p.nc.RequestWithContext(try, subjBlob, q)
		cancel()
		if err != nil && p.nc.Status() != nats.CONNECTED {
			err = fmt.Errorf("%w: %w", errAway, err)
		}
		if err != nil {
			return nil, fmt.Errorf("coord: no process has blob %.12s: %w", sum, err)
		}
		var a syncAnswer
		if err := json.Unmarshal(m.Data, &a); err != nil || a.Offset != len(b) || a.Total > 1<<31 || len(a.Piece) == 0 {
			return nil, fmt.Errorf("coord: blob %.12s: a malformed piece at %d", sum, len(b))
		}
		if b = append(b, a.Piece...); len(b) >= a.Total {
			return checked(sum, b)
		}
	}
}

// onPeerBlob answers with a piece of what is on this disk, or not at all. Who
// asks checks the bytes.
func (n *Node) onPeerBlob(m *nats.Msg) {
	var q blobRequest
	if json.Unmarshal(m.Data, &q) != nil || !validSum(q.Sum) || q.Offset < 0 {
		return
	}
	go func() {
		f, err := os.Open(filepath.Join(n.cfg.Data, "blobs", q.Sum))
		if err != nil {
			return
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil || int64(q.Offset) >= st.Size() {
			return
		}
		a := syncAnswer{Offset: q.Offset, Total: int(st.Size()), Piece: make([]byte, min(syncPiece, st.Size()-int64(q.Offset)))}
		if _, err := f.ReadAt(a.Piece, int64(q.Offset)); err != nil {
			return
		}
		if b, err := json.Marshal(&a); err == nil {
			_ = m.Respond(b)
		}
	}()
}
