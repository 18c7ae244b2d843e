package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rocemu/rocemu/coord"
)

// ErrIncomplete: not every slot answered a [Client.Look] in time.
var ErrIncomplete = errors.New("not every process answered")

// Look asks every slot of a run and returns their answers by slot. It ends when
// all have answered, or with what there is when ctx ends.
func (c *Client) Look(ctx context.Context, slots int, q coord.Look) ([]coord.Seen, error) {
	b, err := json.Marshal(&q)
	if err != nil {
		return nil, err
	}
	nc := c.conn.NATS()
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(-1, 1<<30); err != nil {
		return nil, err
	}
	if err := nc.PublishRequest("emu.ctl.look", inbox, b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	g := gather{seen: make([]coord.Seen, slots), next: make([]int, slots)}
	for g.left = slots; g.left > 0; {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return g.seen, fmt.Errorf("%w: %d of %d did", ErrIncomplete, slots-g.left, slots)
		}
		var s coord.Seen
		if json.Unmarshal(m.Data, &s) == nil && s.Run == q.Run && s.Slot >= 0 && s.Slot < slots {
			g.add(&s)
		}
	}
	return g.seen, g.err
}

// gather puts the pieces of answers together; they come in order.
type gather struct {
	seen []coord.Seen
	next []int // piece that comes next, -1 = complete
	left int
	err  error
}

func (g *gather) add(s *coord.Seen) {
	x := &g.seen[s.Slot]
	if s.Inc > x.Inc { // a successor answers: what its predecessor said is void
		if g.next[s.Slot] < 0 {
			g.left++
		}
		*x, g.next[s.Slot] = coord.Seen{Inc: s.Inc}, 0
	}
	if s.Inc < x.Inc || s.Piece != g.next[s.Slot] {
		return
	}
	body := append(x.Body, s.Body...)
	if s.Piece == 0 {
		*x = *s
	}
	x.Body = body
	g.next[s.Slot]++
	if g.next[s.Slot] < s.Pieces {
		return
	}
	g.next[s.Slot] = -1
	g.left--
	if s.Err != "" && g.err == nil {
		g.err = fmt.Errorf("slot %d: %s", s.Slot, s.Err)
	}
}

// LookTogether is Look right before the same window in every slot: a first
// answer tells how far they are, a second look is for a window that all have
// yet to come to. Slots that do not meet answer where they are; the answers
// say so.
func (c *Client) LookTogether(ctx context.Context, slots int, q coord.Look) ([]coord.Seen, error) {
	where := coord.Look{Run: q.Run, What: "where"}
	for try := uint64(0); try < 3 && slots > 1; try++ {
		t0 := time.Now()
		s, err := c.Look(ctx, slots, where)
		if err != nil {
			return nil, err
		}
		lo, hi := s[0].N, s[0].N
		for i := range s {
			lo, hi = min(lo, s[i].N), max(hi, s[i].N)
		}
		// In the time of one answer they get about this much further.
		q.N = hi + (hi-lo+32)<<try
		if lo == hi && time.Since(t0) < time.Millisecond {
			q.N = hi + 64<<try
		}
		got, err := c.Look(ctx, slots, q)
		if err != nil || Together(got) {
			return got, err
		}
	}
	q.N = 0
	return c.Look(ctx, slots, q)
}

// Together says whether answers are of one window.
func Together(s []coord.Seen) bool {
	for i := range s {
		if s[i].N != s[0].N {
			return false
		}
	}
	return true
}
