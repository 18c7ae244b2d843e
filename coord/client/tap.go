package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rocemu/rocemu/coord"
)

// tapAgain is how often a tap is asked for again, lastWords how long after the
// run what is still on its way is waited for.
const (
	tapAgain  = time.Second
	lastWords = 10 * time.Second
)

// Listen receives the messages on a subject while it keeps asking for them with
// q, until ctx ends or the run has and all was said. A reader that is too slow loses messages; lost
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
	said := make(chan struct{})
	go c.askOn(ctx, cancel, q.Run, ask, said)
	gone, ends := 0, map[string]bool{}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if n, e := sub.Dropped(); e == nil && n > gone {
			lost(n - gone)
			gone = n
		}
		switch {
		case err == nil && m.Header.Get(coord.HeaderEnd) != "":
			if ends[m.Header.Get(coord.HeaderEnd)] = true; len(ends) == slots && said != nil {
				close(said)
				said = nil
			}
		case err == nil:
			take(m)
		case ctx.Err() != nil:
			return nil
		}
	}
}

// askOn keeps asking; it cancels once the run is over and all is said.
func (c *Client) askOn(ctx context.Context, cancel func(), run string, ask func() error, said <-chan struct{}) {
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
			wait := tapAgain / 2
			if ask() == nil { // it is answered: whoever ran a share says when it has said all
				wait = lastWords
			}
			select {
			case <-said:
			case <-ctx.Done():
			case <-time.After(wait):
			}
			cancel()
			return
		}
	}
}
