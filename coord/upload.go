package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Upload is one piece of an entry that is larger than a message: a submission
// with its fabric file. Pieces come in order; the answer to the last one is
// that of the entry.
type Upload struct {
	Sum    string `json:"sum"` // SHA-256 of the whole entry
	Total  int    `json:"total"`
	Offset int    `json:"offset"`
	Piece  []byte `json:"piece"`
}

// UploadAnswer says how much is there; with Done, Result is the entry's.
type UploadAnswer struct {
	Have   int    `json:"have"`
	Done   bool   `json:"done,omitempty"`
	Result Result `json:"result"`
}

// Bounds of uploads.
const (
	// UploadPiece is the most bytes of one piece: with base64 well below the
	// bus's 1 MiB.
	UploadPiece = 512 << 10
	maxUploads  = 4
	uploadKeep  = time.Minute
)

// uploads collects pieces on the coordinator that leads. A change of leader
// loses them: the client is told that nothing is there and begins again.
type uploads struct {
	mu sync.Mutex
	m  map[string]*uploading
}

type uploading struct {
	b     []byte
	touch time.Time
}

// add takes a piece and returns the entry when it is whole.
func (u *uploads) add(x *Upload, now time.Time) (whole []byte, have int, err error) {
	switch {
	case !validSum(x.Sum) || x.Offset < 0 || len(x.Piece) == 0 || len(x.Piece) > UploadPiece || x.Offset+len(x.Piece) > x.Total:
		return nil, 0, fmt.Errorf("a piece at %d of %d with %d bytes", x.Offset, x.Total, len(x.Piece))
	case x.Total > MaxEntry:
		return nil, 0, fmt.Errorf("the submission has %d bytes, at most %d", x.Total, MaxEntry)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for sum, o := range u.m {
		if now.Sub(o.touch) > uploadKeep {
			delete(u.m, sum)
		}
	}
	o := u.m[x.Sum]
	if o == nil {
		if x.Offset > 0 {
			return nil, 0, nil
		}
		if len(u.m) >= maxUploads {
			return nil, 0, fmt.Errorf("%d submissions are under way: try again in a minute", maxUploads)
		}
		o = new(uploading)
		if u.m == nil {
			u.m = map[string]*uploading{}
		}
		u.m[x.Sum] = o
	}
	o.touch = now
	if x.Offset == len(o.b) {
		o.b = append(o.b, x.Piece...)
	}
	if len(o.b) < x.Total {
		return nil, len(o.b), nil
	}
	delete(u.m, x.Sum)
	if SumOf(o.b) != x.Sum {
		return nil, 0, fmt.Errorf("the submission arrived damaged")
	}
	return o.b, x.Total, nil
}

// onUpload serves a client's piece by asking the leader. Once that leads no more
// nobody answers, however long one waits: the client begins again.
func (n *Node) onUpload(b []byte) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	go func() {
		defer cancel()
		n.whileLed(ctx)
	}()
	a, err := n.ctl.Request(ctx, subjPiece, b)
	if err != nil {
		return UploadAnswer{Result: Result{Err: NoLeader}}, nil
	}
	return json.RawMessage(a), nil
}

// whileLed returns when there is no leader, or another, or ctx has ended.
func (n *Node) whileLed(ctx context.Context) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for lead := n.cons.leader(); lead != "" && n.cons.leader() == lead; {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// onPiece is the leader's part.
func (n *Node) onPiece(m *request) {
	if !n.cons.leads() {
		return
	}
	go func() {
		var a UploadAnswer
		if err := n.piece(m.Data, &a); err != nil {
			a.Done, a.Result = true, Result{Err: err.Error()}
		}
		if b, err := json.Marshal(&a); err == nil {
			m.Answer(b)
		}
	}()
}

func (n *Node) piece(b []byte, a *UploadAnswer) error {
	var x Upload
	if err := json.Unmarshal(b, &x); err != nil {
		return fmt.Errorf("malformed piece: %w", err)
	}
	whole, have, err := n.uploads.add(&x, time.Now())
	if a.Have = have; err != nil || whole == nil {
		return err
	}
	a.Done = true
	a.Result, err = n.admitLarge(whole)
	return err
}

// admitLarge has a submission that came in pieces committed here, on the
// leader: it fits no message.
func (n *Node) admitLarge(b []byte) (Result, error) {
	e, past, err := n.decode(b, KindSubmit)
	if err != nil || e == nil {
		return past, err
	}
	if b, err = e.Encode(); err != nil {
		return Result{}, err
	}
	r, err := n.commit(b)
	if err != nil {
		r = Result{Err: NoLeader}
	}
	return r, nil
}
