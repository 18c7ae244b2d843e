package natsbus

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
)

func testSpec(seed uint64) actortest.Spec {
	return actortest.Spec{Seed: seed, Relays: 12, Cables: 16, Burst: 25}
}

func owners(n, procs int) []int32 {
	o := make([]int32, n)
	for d := range o {
		o[d] = int32(clock.Mix(77, uint64(d), 1) % uint64(procs))
	}
	return o
}

// proc is one process of a test run.
type proc struct {
	e *actors.Engine
	c *Carrier
}

func join(t testing.TB, bus Bus, s actortest.Spec, self, procs int, edit func(*Config)) *proc {
	t.Helper()
	own := owners(s.Relays, procs)
	e, err := actortest.New(s).Engine(1, func(d int32) bool { return own[d] == int32(self) })
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Run: "r1", Key: 42, Self: self, Owner: own, Procs: procs, GiveUp: 20 * time.Second}
	if edit != nil {
		edit(&cfg)
	}
	c, err := New(bus, cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.Carrier = c
	return &proc{e, c}
}

// finish runs all processes to the end and returns the digest.
func finish(t testing.TB, ps []*proc) (actors.Digest, []Stats) {
	t.Helper()
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := p.e.Run(context.Background()); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}()
	}
	wg.Wait()
	var g actors.Digest
	var st []Stats
	for _, p := range ps {
		g = g.Plus(p.e.Digest())
		st = append(st, p.c.Stats())
		p.c.Close()
	}
	return g, st
}

func TestDigestOverBadBus(t *testing.T) {
	s := testSpec(5)
	want, _ := actortest.New(s).Oracle()
	for _, x := range []struct {
		name             string
		procs            int
		loss, dup, order float64
		hub              bool
	}{
		{"clean", 2, 0, 0, 0, false},
		{"clean", 5, 0, 0, 0, false},
		{"loss", 3, 0.03, 0, 0, false},
		{"all", 3, 0.02, 0.3, 0.4, false},
		{"hub", 2, 0, 0, 0, true},
		{"hub", 7, 0, 0, 0, true},
		{"hub, all", 4, 0.01, 0.3, 0.4, true},
	} {
		net := NewMemNet(11)
		net.Loss, net.Dup, net.Reorder, net.Delay = x.loss, x.dup, x.order, 3*time.Millisecond
		var ps []*proc
		for i := range x.procs {
			ps = append(ps, join(t, net, s, i, x.procs, func(c *Config) { c.Hub = x.hub }))
		}
		g, st := finish(t, ps)
		if g != want {
			t.Errorf("%s, %d processes: digest %v, oracle %v", x.name, x.procs, g, want)
		}
		if x.loss > 0 && (net.Lost == 0 || st[0].Resent+st[1].Resent+st[2].Resent == 0) {
			t.Errorf("%s: nothing was lost or nothing sent again: %+v", x.name, st)
		}
	}
}

// A process that is lost and started again from zero asks for the batches it
// had, sends its own again, and the run ends as if nothing had happened.
func TestReplayFromZero(t *testing.T) {
	for _, viaHub := range []bool{false, true} {
		for lost := range 2 {
			replay(t, viaHub, lost)
		}
	}
}

func replay(t *testing.T, viaHub bool, lost int) {
	s := testSpec(6)
	want, _ := actortest.New(s).Oracle()
	net := NewMemNet(1)
	mode := func(c *Config) { c.Hub = viaHub }
	a, b := join(t, net, s, 1-lost, 2, mode), join(t, net, s, lost, 2, mode)
	ctx, kill := context.WithCancel(context.Background())
	b.e.Observe = func(_ clock.Time, n uint64) {
		if n == 80 {
			kill()
		}
	}
	done := make(chan error, 1)
	go func() { _, err := a.e.Run(context.Background()); done <- err }()
	if _, err := b.e.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the killed process ended with %v", err)
	}
	b.c.Close()
	again := join(t, net, s, lost, 2, func(c *Config) { c.Renewed, c.Hub = true, viaHub })
	if _, err := again.e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if g := a.e.Digest().Plus(again.e.Digest()); g != want {
		t.Errorf("digest %v, oracle %v", g, want)
	}
	if a.c.Stats().Repeated == 0 {
		t.Error("the survivor compared no repeated batch")
	}
	a.c.Close()
	again.c.Close()
}

func TestDivergenceIsSeen(t *testing.T) {
	s := testSpec(7)
	net := NewMemNet(1)
	a, b := join(t, net, s, 0, 2, nil), join(t, net, s, 1, 2, nil)
	ctx, kill := context.WithCancel(context.Background())
	b.e.Observe = func(_ clock.Time, n uint64) {
		if n == 60 {
			kill()
		}
	}
	done := make(chan error, 1)
	go func() { _, err := a.e.Run(context.Background()); done <- err }()
	b.e.Run(ctx)
	b.c.Close()
	s.Burst = 1 // another model: its batches differ
	again := join(t, net, s, 1, 2, func(c *Config) { c.Renewed = true })
	ctx2, stop := context.WithCancel(context.Background())
	go again.e.Run(ctx2)
	var d *DivergedError
	if err := <-done; !errors.As(err, &d) {
		t.Errorf("want a DivergedError, got %v", err)
	}
	stop()
}

func TestGapIsNamed(t *testing.T) {
	s := testSpec(8)
	net := NewMemNet(1)
	a, b := join(t, net, s, 0, 2, func(c *Config) { c.GiveUp = 200 * time.Millisecond }), join(t, net, s, 1, 2, nil)
	ctx, kill := context.WithCancel(context.Background())
	b.e.Observe = func(_ clock.Time, n uint64) {
		if n == 40 {
			net.Cut(BatchSubject("r1", 0), true)
		}
	}
	go b.e.Run(ctx)
	_, err := a.e.Run(context.Background())
	kill()
	var g *GapError
	if !errors.As(err, &g) || g.Src != 1 || g.From < 40 || g.From > 42 {
		t.Errorf("want a gap of process 1 near window 40, got %v", err)
	}
}

// After a rollback a process that has not heard of it says that it collected
// the first batches. Its successor makes them again: that is no gap. Without a
// successor it is one, and named so.
func TestCollectedBatchesAreWaitedFor(t *testing.T) {
	s := testSpec(8)
	want, _ := actortest.New(s).Oracle()
	net := NewMemNet(1)
	old := join(t, net, s, 1, 2, func(c *Config) { c.Resume = 65 })
	if err := old.c.keep(0, 65, nil, Hash{}); err != nil {
		t.Fatal(err)
	}
	a := join(t, net, s, 0, 2, func(c *Config) { c.Renewed, c.GiveUp = true, 200*time.Millisecond })
	_, err := a.e.Run(context.Background())
	var g *GapError
	if !errors.As(err, &g) || !g.Gone || g.From != 0 {
		t.Errorf("want a gap that is gone for good, got %v", err)
	}
	a.c.Close()
	a = join(t, net, s, 0, 2, func(c *Config) { c.Renewed = true })
	done := make(chan error, 1)
	go func() { _, err := a.e.Run(context.Background()); done <- err }()
	for old.c.Stats().Resent == 0 && a.c.Stats().BytesIn == 0 { // until it was told
		time.Sleep(time.Millisecond)
	}
	old.c.Close()
	next := join(t, net, s, 1, 2, func(c *Config) { c.Renewed = true })
	if _, err := next.e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if g := a.e.Digest().Plus(next.e.Digest()); g != want {
		t.Errorf("digest %v, oracle %v", g, want)
	}
	a.c.Close()
	next.c.Close()
}

func TestMalformedIsRefused(t *testing.T) {
	s := testSpec(9)
	want, _ := actortest.New(s).Oracle()
	net := NewMemNet(1)
	ps := []*proc{join(t, net, s, 0, 2, nil), join(t, net, s, 1, 2, nil)}
	bad := header{kind: kindBatch, src: 1, dst: 0, parts: 1, run: 42, total: 3, hash: Hash{1, 2}}
	other := bad
	other.run = 7
	for _, m := range [][]byte{nil, []byte("hello"), append(bad.put(nil), "abc"...), append(bad.put(nil), "abcdef"...), other.put(nil)} {
		net.Publish(BatchSubject("r1", 0), m)
		net.Publish(NakSubject("r1", 0), m)
	}
	g, st := finish(t, ps)
	if g != want {
		t.Errorf("digest %v, oracle %v", g, want)
	}
	if st[0].Refused < 8 {
		t.Errorf("%d messages refused, want at least 8", st[0].Refused)
	}
}

func TestRetentionSpillsAndDrops(t *testing.T) {
	r := retention{limit: 1000, dir: t.TempDir()}
	defer r.close()
	for n := range uint64(200) {
		b := make([]byte, 50+n%7)
		b[0] = byte(n)
		if err := r.add(n, b, HashOf(b)); err != nil {
			t.Fatal(err)
		}
	}
	if r.spilled == 0 || r.bytes > 1000 {
		t.Fatalf("%d bytes in memory, %d batches in the file", r.bytes, r.spilled)
	}
	r.drop(49)
	for n := range uint64(210) {
		b, h, ok := r.get(n)
		if want := n > 49 && n < 200; ok != want {
			t.Fatalf("batch %d there: %v", n, ok)
		}
		if ok && (b[0] != byte(n) || HashOf(b) != h) {
			t.Fatalf("batch %d came back different", n)
		}
	}
	full := retention{limit: 100}
	if err := full.add(0, make([]byte, 101), Hash{}); err == nil {
		t.Error("a full memory without a directory was not refused")
	}
}
