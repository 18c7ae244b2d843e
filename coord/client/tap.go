package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rocemu/rocemu/coord"
)

// tapAgain is how often a tap is asked for again.
const tapAgain = time.Second

// Listen receives the messages on a subject while it keeps asking for them with
// q, until ctx or the run ends. A reader that is too slow loses messages; lost
// is told how many.
func (c *Client) Listen(ctx context.Context, slots int, q coord.Look, subject string, take func(*nats.Msg), lost func(int)) error {
	sub, err := c.conn.NATS().SubscribeSync(subject)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	ask := func() error {
		qctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := c.Look(qctx, slots, q)
		return err
	}
	if err := ask(); err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go c.askOn(ctx, cancel, q.Run, ask)
	gone := 0
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if n, e := sub.Dropped(); e == nil && n > gone {
			lost(n - gone)
			gone = n
		}
		switch {
		case err == nil:
			take(m)
		case ctx.Err() != nil:
			return nil
		}
	}
}

// askOn keeps asking; it cancels a little after the run is over.
func (c *Client) askOn(ctx context.Context, cancel func(), run string, ask func() error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(tapAgain):
		}
		_ = ask() // a process that moved is asked the next time
		sctx, stop := context.WithTimeout(ctx, 3*time.Second)
		s, err := c.Status(sctx)
		stop()
		if errors.Is(err, ErrOver) {
			cancel()
			return
		}
		if err == nil && (s.Run == nil || s.Run.ID != run || s.Run.Phase != coord.Running) {
			time.Sleep(tapAgain / 2)
			cancel()
			return
		}
	}
}
