package natsbus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
)

// rolledBack runs two processes to a window past a checkpoint whose batches
// were collected, loses process 1 and starts it again from the beginning.
// Process 0 goes on for a while: it has not heard that everybody goes back.
func rolledBack(t *testing.T, edit func(*Config)) (net *MemNet, old, again *proc, stop context.CancelFunc) {
	t.Helper()
	s := testSpec(11)
	net = NewMemNet(1)
	old = join(t, net, s, 0, 2, nil)
	b := join(t, net, s, 1, 2, nil)
	ctx, kill := context.WithCancel(context.Background())
	b.e.Observe = func(_ clock.Time, n uint64) {
		if n == 60 {
			kill()
		}
	}
	live, stop := context.WithCancel(context.Background())
	go old.e.Run(live)
	if _, err := b.e.Run(ctx); err == nil {
		t.Fatal("process 1 came to the end")
	}
	b.c.Close()
	old.c.Committed(40)
	return net, old, join(t, net, s, 1, 2, func(c *Config) { c.Renewed = true; edit(c) }), stop
}

// An old incarnation says that it has collected what the new one of another
// process asks for; its own successor makes it again.
func TestCollectedBatchComesAgain(t *testing.T) {
	net, old, again, stop := rolledBack(t, func(*Config) {})
	done := make(chan error, 1)
	go func() { _, err := again.e.Run(context.Background()); done <- err }()
	for end := time.Now().Add(10 * time.Second); again.c.Stats().Naks < 4 && len(done) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) { // every batch asked for is answered: it is collected
			t.Fatal("process 1 does not ask on")
		}
	}
	stop()
	old.c.Close()
	select {
	case err := <-done:
		t.Fatalf("process 1 gave up at once: %v", err)
	default:
	}
	next := join(t, net, testSpec(11), 0, 2, func(c *Config) { c.Renewed = true })
	if _, err := next.e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want, _ := actortest.New(testSpec(11)).Oracle()
	if g := next.e.Digest().Plus(again.e.Digest()); g != want {
		t.Errorf("digest %v, oracle %v", g, want)
	}
	next.c.Close()
	again.c.Close()
}

// When nobody makes it again, the run fails and says what is missing.
func TestCollectedBatchIsMissed(t *testing.T) {
	_, old, again, stop := rolledBack(t, func(c *Config) { c.Mourn = 200 * time.Millisecond })
	defer stop()
	_, err := again.e.Run(context.Background())
	var g *GapError
	if !errors.As(err, &g) || g.Src != 0 || g.From != 0 || !g.Gone {
		t.Errorf("want a gap of process 0 at window 0, got %v", err)
	}
	stop()
	old.c.Close()
	again.c.Close()
}
