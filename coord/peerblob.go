package coord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// peerBlobs asks the other processes for what lies on their disks: the last
// resort of a read, and the only one without an object store.
type peerBlobs struct{ bus control }

// How long a piece is waited for, twice as long each time: who has nothing does
// not answer, and a slow disk answers late. Where one piece came from there are
// the others.
const (
	pieceWait  = time.Second
	firstTries = 2
	laterTries = 5
)

// Get asks for a blob piece by piece; whoever has it answers.
func (p peerBlobs) Get(ctx context.Context, sum string) ([]byte, error) {
	var b []byte
	for {
		q, _ := json.Marshal(blobRequest{Sum: sum, Offset: len(b)})
		m, err := p.ask(ctx, q, len(b) == 0)
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

// ask asks for a piece.
func (p peerBlobs) ask(ctx context.Context, q []byte, first bool) (m []byte, err error) {
	tries := laterTries
	if first {
		tries = firstTries
	}
	for wait := pieceWait; tries > 0 && ctx.Err() == nil; tries, wait = tries-1, 2*wait {
		try, cancel := context.WithTimeout(ctx, wait)
		m, err = p.bus.Request(try, subjBlob, q)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return m, errors.Join(err, ctx.Err())
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
