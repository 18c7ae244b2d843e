package natsbus

import (
	"context"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/internal/halt"
)

// A process that is stopped for longer than a batch may be missing, as in a
// paused container, does not take its own absence for a gap: here process 0
// waits for what process 1 sends once both go on.
func TestStopIsNoGap(t *testing.T) {
	const giveUp = 2 * time.Second
	if halt.Each(t, giveUp*5/4) {
		return
	}
	s := testSpec(8)
	net := NewMemNet(1)
	a, b := join(t, net, s, 0, 2, func(c *Config) { c.GiveUp = giveUp }), join(t, net, s, 1, 2, nil)
	done := make(chan error, 1)
	asks := func(n uint64) {
		for a.c.Stats().Naks < n && len(done) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	b.e.Observe = func(_ clock.Time, n uint64) {
		if n == 40 {
			now := a.c.Stats().Naks
			asks(now + 1) // it waits
			halt.Here(t)
			asks(now + 2)
		}
	}
	go func() { _, err := a.e.Run(context.Background()); done <- err }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := b.e.Run(ctx); err != nil && len(done) == 0 {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want, _ := actortest.New(s).Oracle()
	if g := a.e.Digest().Plus(b.e.Digest()); g != want {
		t.Errorf("digest %v, oracle %v", g, want)
	}
	a.c.Close()
	b.c.Close()
}
