package natsbus

import (
	"context"
	"fmt"
	"time"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
)

// hub is the process that reduces summaries where Config.Hub is set.
const hub = 0

// viaHub is Exchange for many processes with few neighbours each (W4, W5 with
// the reduction by one process): everybody tells the hub its summary and whom
// it has frames for; the hub answers everybody with the merged summary and
// whose frames to wait for. Frames go straight from process to process.
func (c *Carrier) viaHub(ctx context.Context, e *actors.Engine, n uint64, mine actors.Summary) (actors.Summary, error) {
	c.sort(e)
	var err error
	t0 := time.Now()
	if c.cfg.Self == hub {
		mine, err = c.reduce(ctx, e, n, mine)
	} else {
		mine, err = c.reduced(ctx, e, n, mine)
	}
	c.stats.wait.Add(int64(time.Since(t0)))
	c.stats.windows.Add(1)
	return mine, err
}

// direct sends frames to all but the hub; a process without frames is skipped,
// which the mask tells it.
func (c *Carrier) direct(e *actors.Engine, n uint64, mask []uint64) error {
	for dst := range c.peers {
		if dst == c.cfg.Self || dst == hub {
			continue
		}
		if len(c.out[dst]) == 0 {
			if err := c.keep(dst, n, nil, Hash{}); err != nil {
				return err
			}
			continue
		}
		mask[dst>>6] |= 1 << (dst & 63)
		if err := c.send(dst, n, &Content{Now: e.Now(), Summary: none, Remotes: c.out[dst]}); err != nil {
			return err
		}
	}
	return nil
}

// none is the summary that changes nothing when merged.
var none = actors.Summary{Next: clock.Never, NextWork: clock.Never, NextFault: clock.Never, Stop: clock.Never}

func (c *Carrier) newMask() []uint64 { return make([]uint64, (c.cfg.Procs+63)/64) }

// reduced is the part of everybody but the hub.
func (c *Carrier) reduced(ctx context.Context, e *actors.Engine, n uint64, mine actors.Summary) (actors.Summary, error) {
	mask := c.newMask()
	if err := c.direct(e, n, mask); err != nil {
		return mine, err
	}
	if err := c.send(hub, n, &Content{Now: e.Now(), Summary: mine, Remotes: c.out[hub], Mask: mask}); err != nil {
		return mine, err
	}
	a, err := c.await(ctx, hub, n)
	if err != nil {
		return mine, err
	}
	x, err := c.deliver(e, hub, n, a)
	if err != nil {
		return mine, err
	}
	if len(x.Mask) != len(mask) {
		return mine, fmt.Errorf("natsbus: batch %d of the reducing process has %d mask words", n, len(x.Mask))
	}
	for src := range c.peers {
		if src == hub || src == c.cfg.Self {
			continue
		}
		if x.Mask[src>>6]>>(src&63)&1 == 0 {
			c.consumed(src, n, Hash{})
			continue
		}
		a, err := c.await(ctx, src, n)
		if err != nil {
			return mine, err
		}
		if _, err := c.deliver(e, src, n, a); err != nil {
			return mine, err
		}
	}
	return x.Summary, nil
}

// reduce is the hub's part.
func (c *Carrier) reduce(ctx context.Context, e *actors.Engine, n uint64, sum actors.Summary) (actors.Summary, error) {
	masks := make([][]uint64, c.cfg.Procs) // by receiver: who has frames for it
	for i := range masks {
		masks[i] = c.newMask()
	}
	for src := range c.peers {
		if src == hub {
			continue
		}
		a, err := c.await(ctx, src, n)
		if err != nil {
			return sum, err
		}
		x, err := c.deliver(e, src, n, a)
		if err != nil {
			return sum, err
		}
		if len(x.Mask) != len(masks[src]) {
			return sum, fmt.Errorf("natsbus: batch %d of process %d has %d mask words", n, src, len(x.Mask))
		}
		sum.Merge(x.Summary)
		for dst := range c.peers {
			if x.Mask[dst>>6]>>(dst&63)&1 != 0 {
				masks[dst][src>>6] |= 1 << (src & 63)
			}
		}
	}
	// Frames of the hub itself travel with its answer.
	for dst := range c.peers {
		if dst == hub {
			continue
		}
		if err := c.send(dst, n, &Content{Now: e.Now(), Summary: sum, Remotes: c.out[dst], Mask: masks[dst]}); err != nil {
			return sum, err
		}
	}
	return sum, nil
}
