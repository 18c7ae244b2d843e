package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rocemu/rocemu/coord"
)

// upload commits an entry that is too large for one message, in pieces. When
// the leader changes meanwhile it begins again.
func (c *Client) upload(ctx context.Context, b []byte) (coord.Result, error) {
	x := coord.Upload{Sum: coord.SumOf(b), Total: len(b)}
	for {
		x.Piece = b[x.Offset:min(len(b), x.Offset+coord.UploadPiece)]
		q, err := json.Marshal(&x)
		if err != nil {
			return coord.Result{}, err
		}
		try := shortTry
		if x.Offset+len(x.Piece) == len(b) { // answered once the run is resolved and in the ledger
			try = longTry
		}
		raw, err := c.keepAsking(ctx, "put", q, try)
		if err != nil {
			return coord.Result{}, err
		}
		var a coord.UploadAnswer
		if err := json.Unmarshal(raw, &a); err != nil {
			return coord.Result{}, fmt.Errorf("malformed answer: %w", err)
		}
		switch {
		case a.Done && a.Result.Err == "":
			return a.Result, nil
		case a.Result.Err != "" && a.Result.Err != coord.NoLeader:
			return a.Result, errors.New(a.Result.Err)
		case a.Result.Err == "" && a.Have > x.Offset && a.Have < len(b):
			x.Offset = a.Have
			continue
		}
		x.Offset = 0
		select {
		case <-ctx.Done():
			return coord.Result{}, fmt.Errorf("%w: the submission did not arrive whole", ErrUnreachable)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
