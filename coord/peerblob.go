package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// peerBlobs asks the other processes for what lies on their disks: the last
// resort of a read, and the only one without an object store.
type peerBlobs struct{ bus control }

// Get asks for a blob piece by piece; whoever has it answers.
func (p peerBlobs) Get(ctx context.Context, sum string) ([]byte, error) {
	var b []byte
	for {
		q, _ := json.Marshal(blobRequest{Sum: sum, Offset: len(b)})
		try, cancel := context.WithTimeout(ctx, time.Second)
		m, err := p.bus.Request(try, subjBlob, q)
		cancel()
		if err != nil && !p.bus.Connected() {
			err = fmt.Errorf("%w: %w", errAway, err)
		}
		if err != nil {
			return nil, fmt.Errorf("coord: no process has blob %.12s: %w", sum, err)
		}
		var a syncAnswer
		if err := json.Unmarshal(m, &a); err != nil || a.Offset != len(b) || a.Total > 1<<31 || len(a.Piece) == 0 {
			return nil, fmt.Errorf("coord: blob %.12s: a malformed piece at %d", sum, len(b))
		}
		if b = append(b, a.Piece...); len(b) >= a.Total {
			return checked(sum, b)
		}
	}
}

// onPeerBlob answers with a piece of what is on this disk, or not at all. Who
// asks checks the bytes.
func (n *Node) onPeerBlob(m *request) {
	var q blobRequest
	if json.Unmarshal(m.Data, &q) != nil || !validSum(q.Sum) || q.Offset < 0 {
		return
	}
	go func() {
		l, ok := n.blobs.(layered)
		if !ok {
			return
		}
		p, total, err := l.local.piece(q.Sum, q.Offset)
		if err != nil {
			return
		}
		if b, err := json.Marshal(&syncAnswer{Offset: q.Offset, Total: total, Piece: p}); err == nil {
			m.Answer(b)
		}
	}()
}
