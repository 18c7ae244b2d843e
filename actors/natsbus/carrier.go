package natsbus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rocemu/rocemu/actors"
)

// Config describes one process's place in a run.
type Config struct {
	Run    string  // a subject token
	Key    uint64  // hash of run, build and topology: messages of others are refused
	Self   int     // this process
	Owner  []int32 // process by device
	Procs  int
	Resume uint64 // first window to exchange; above zero after a restore
	// GiveUp is how long one batch may stay missing before the run fails. Time for
	// which this process itself was stopped is not of it.
	GiveUp time.Duration
	// Mourn is how long a batch that its sender says it has collected is asked
	// for all the same: when everybody goes back to an earlier checkpoint, the
	// answer may come from an incarnation that has not heard of it yet, and its
	// successor will produce the batch anew. 0 = 10 s.
	Mourn  time.Duration
	Retain int // bytes of sent batches in memory, over all destinations; 0 = 256 MiB
	// Hub sends summaries through process 0 and frames only to processes that
	// get any: 2 × Procs small messages a window instead of Procs², for one more
	// hop. All processes must agree on it.
	Hub bool
	Dir string // where more of them go; "" = nowhere, which is an error at the limit
	// Renewed: others may be far ahead, ask for their batches at once.
	Renewed bool
}

// Limits of a carrier.
const (
	nakMin   = 20 * time.Millisecond
	nakMax   = 50 * time.Millisecond
	nakSlow  = time.Second
	nakRange = 512       // windows asked for at once
	ahead    = 1024      // windows buffered ahead of the next
	nakBytes = 4 << 20   // served for one NAK
	inDepth  = 1 << 14   // messages buffered for the engine
	seenMax  = 1 << 20   // hashes of past batches kept to compare with
	pendMax  = 256 << 20 // bytes buffered ahead
)

// Carrier joins one process to the others of its run. It implements
// actors.Carrier.
type Carrier struct {
	cfg Config
	bus Bus
	in  Sub
	nak Sub

	peers []peer
	enc   []byte
	msg   []byte
	out   [][]actors.Remote // by destination, this window's
	read  reader

	mu     sync.Mutex // guards retain, head and nmsg against the NAK server
	retain []retention
	head   uint64 // latest window produced, plus one
	served []time.Time
	stop   chan struct{}
	done   sync.WaitGroup

	timer  *time.Timer   // of await
	window time.Duration // smoothed wall time of a window
	last   time.Time
	pend   int
	stats  counters
}

// peer is what is known of another process.
type peer struct {
	next   uint64 // first window not yet taken from it
	head   uint64 // latest window it is known to have produced, plus one
	parts  map[uint64]*assembly
	seen   []Hash // of windows seenAt.. < next
	seenAt uint64
	asked  time.Time
	wait   time.Duration
	until  uint64 // last window asked for
	// gone, mourned: when the awaited window was last and first said to be
	// collected, zero = never.
	gone, mourned time.Time
}

// New joins the run; it subscribes before it returns.
func New(bus Bus, cfg Config) (*Carrier, error) {
	if cfg.Procs < 1 || cfg.Procs > maxProcs || cfg.Self < 0 || cfg.Self >= cfg.Procs {
		return nil, fmt.Errorf("natsbus: process %d of %d", cfg.Self, cfg.Procs)
	}
	if cfg.GiveUp <= 0 {
		cfg.GiveUp = 2 * time.Minute
	}
	if cfg.Mourn <= 0 {
		cfg.Mourn = min(10*time.Second, cfg.GiveUp)
	}
	if cfg.Retain <= 0 {
		cfg.Retain = 256 << 20
	}
	c := &Carrier{
		cfg: cfg, bus: bus, peers: make([]peer, cfg.Procs), retain: make([]retention, cfg.Procs),
		out: make([][]actors.Remote, cfg.Procs), served: make([]time.Time, cfg.Procs), stop: make(chan struct{}),
	}
	for i := range c.peers {
		c.peers[i] = peer{next: cfg.Resume, seenAt: cfg.Resume, parts: map[uint64]*assembly{}, wait: nakMin}
		c.retain[i] = retention{limit: cfg.Retain / cfg.Procs, dir: cfg.Dir}
	}
	var err error
	if c.in, err = bus.Subscribe(BatchSubject(cfg.Run, cfg.Self), inDepth); err != nil {
		return nil, err
	}
	if c.nak, err = bus.Subscribe(NakSubject(cfg.Run, cfg.Self), 256); err != nil {
		c.in.Close()
		return nil, err
	}
	c.timer = time.NewTimer(time.Hour)
	c.timer.Stop()
	c.done.Add(1)
	go c.serveNaks()
	return c, nil
}

// BatchSubject is where a process listens for batches.
func BatchSubject(run string, proc int) string { return fmt.Sprintf("emu.b.%s.%d", run, proc) }

// NakSubject is where a process is asked for batches again.
func NakSubject(run string, proc int) string { return fmt.Sprintf("emu.n.%s.%d", run, proc) }

// Close leaves the run.
func (c *Carrier) Close() {
	close(c.stop)
	c.in.Close()
	c.nak.Close()
	c.done.Wait()
	for i := range c.retain {
		c.retain[i].close()
	}
}

// Exchange implements actors.Carrier (W4, W5): it sends batch n to every other
// process, waits for theirs, delivers their frames and merges their summaries.
func (c *Carrier) Exchange(ctx context.Context, e *actors.Engine, n uint64, mine actors.Summary) (actors.Summary, error) {
	c.tick()
	if c.cfg.Hub {
		return c.viaHub(ctx, e, n, mine)
	}
	c.sort(e)
	for dst := range c.peers {
		if dst == c.cfg.Self {
			continue
		}
		if err := c.send(dst, n, &Content{Now: e.Now(), Summary: mine, Remotes: c.out[dst]}); err != nil {
			return mine, err
		}
	}
	t0 := time.Now()
	sum := mine
	for src := range c.peers {
		if src == c.cfg.Self {
			continue
		}
		a, err := c.await(ctx, src, n)
		if err != nil {
			return mine, err
		}
		if err := c.take(e, src, n, a, &sum); err != nil {
			return mine, err
		}
	}
	c.stats.wait.Add(int64(time.Since(t0)))
	c.stats.windows.Add(1)
	return sum, nil
}

// tick measures the pace of windows, which sets the patience before a NAK.
func (c *Carrier) tick() {
	now := time.Now()
	if !c.last.IsZero() {
		c.window += (now.Sub(c.last) - c.window) / 8
	}
	c.last = now
}

// sort takes the window's frames by the process that gets them.
func (c *Carrier) sort(e *actors.Engine) {
	for i := range c.out {
		c.out[i] = c.out[i][:0]
	}
	e.TakeRemote(func(r actors.Remote) {
		p := c.cfg.Owner[r.Dst]
		c.out[p] = append(c.out[p], r)
	})
}

// send retains and publishes batch n for one process.
func (c *Carrier) send(dst int, n uint64, x *Content) error {
	c.enc = x.Encode(c.enc[:0])
	if len(c.enc) > MaxContent {
		return fmt.Errorf("natsbus: batch %d to process %d has %d bytes, limit %d", n, dst, len(c.enc), MaxContent)
	}
	h := HashOf(c.enc)
	if err := c.keep(dst, n, c.enc, h); err != nil {
		return err
	}
	c.msg = c.publish(c.msg, dst, n, n+1, c.enc, h)
	return nil
}

func (c *Carrier) keep(dst int, n uint64, content []byte, h Hash) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head = n + 1
	return c.retain[dst].add(n, content, h)
}

// publish sends one batch in parts. A bus that is down loses them; the
// receivers will ask again.
func (c *Carrier) publish(buf []byte, dst int, n, head uint64, content []byte, hash Hash) []byte {
	size := min(PartBytes, c.bus.MaxPayload()-headerLen)
	parts := max(1, (len(content)+size-1)/size)
	subject := BatchSubject(c.cfg.Run, dst)
	h := header{
		kind: kindBatch, src: uint16(c.cfg.Self), dst: uint16(dst), parts: uint16(parts), run: c.cfg.Key, n: n, head: head,
		total: uint32(len(content)), hash: hash,
	}
	for i := range parts {
		h.part = uint16(i)
		buf = h.put(buf[:0])
		buf = append(buf, content[i*size:min(len(content), (i+1)*size)]...)
		if c.bus.Publish(subject, buf) != nil {
			c.stats.unsent.Add(1)
		}
		c.stats.bytesOut.Add(uint64(len(buf)))
	}
	c.stats.sent.Add(1)
	return buf
}

// take delivers a complete batch and merges its summary.
func (c *Carrier) take(e *actors.Engine, src int, n uint64, a *assembly, sum *actors.Summary) error {
	x, err := c.deliver(e, src, n, a)
	if err == nil {
		sum.Merge(x.Summary)
	}
	return err
}

func (c *Carrier) deliver(e *actors.Engine, src int, n uint64, a *assembly) (*Content, error) {
	x, err := c.read.decode(a.done)
	if err != nil {
		return nil, fmt.Errorf("natsbus: batch %d from process %d: %w", n, src, err)
	}
	if x.Now != e.Now() {
		return nil, &DivergedError{Src: src, N: n, Why: fmt.Sprintf("it starts after %v, here after %v", x.Now, e.Now())}
	}
	for _, r := range x.Remotes {
		if r.Src < 0 || int(r.Src) >= len(c.cfg.Owner) || int(c.cfg.Owner[r.Src]) != src {
			return nil, fmt.Errorf("natsbus: batch %d from process %d speaks for device %d", n, src, r.Src)
		}
		if err := e.Deliver(r); err != nil {
			return nil, fmt.Errorf("natsbus: batch %d from process %d: %w", n, src, err)
		}
	}
	c.pend -= len(a.done)
	c.consumed(src, n, a.hash)
	return x, nil
}

// consumed moves past window n of a process.
func (c *Carrier) consumed(src int, n uint64, h Hash) {
	p := &c.peers[src]
	delete(p.parts, n)
	p.next = n + 1
	if len(p.seen) >= seenMax {
		p.seen = append([]Hash(nil), p.seen[seenMax/2:]...)
		p.seenAt += seenMax / 2
	}
	p.seen = append(p.seen, h)
}

// await returns batch n of src, reading the bus and asking again as needed.
func (c *Carrier) await(ctx context.Context, src int, n uint64) (*assembly, error) {
	p := &c.peers[src]
	if a := p.parts[n]; a != nil && a.done != nil {
		return a, nil
	}
	p.wait = min(max(8*c.window, nakMin), nakMax)
	p.gone, p.mourned = time.Time{}, time.Time{}
	if c.cfg.Renewed && n == c.cfg.Resume {
		c.ask(src, n)
	} else {
		p.asked = time.Now()
	}
	// By what was meant to pass between two questions, not by the clock: who was
	// stopped meanwhile, as in a container that is paused, has the answer still
	// before him.
	var waited time.Duration
	timer := c.timer
	timer.Reset(p.wait)
	defer timer.Stop()
	up := c.bus.Reconnected()
	for {
		select {
		case m, ok := <-c.in.C():
			if !ok {
				return nil, fmt.Errorf("natsbus: the subscription was closed")
			}
			if err := c.accept(m); err != nil {
				return nil, err
			}
			if a := p.parts[n]; a != nil && a.done != nil {
				return a, nil
			}
			if p.head > n+1 && p.until < n && time.Since(p.asked) > nakMin/4 { // it is known to exist
				c.ask(src, n)
			}
		case <-up:
			up = c.bus.Reconnected()
			c.ask(src, n)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			if !p.gone.IsZero() && time.Since(p.mourned) > c.cfg.Mourn && time.Since(p.gone) < 2*nakSlow {
				return nil, &GapError{Src: src, From: n, To: max(n, p.head), Waited: c.cfg.Mourn, Gone: true}
			}
			if waited += p.wait; waited > c.cfg.GiveUp {
				return nil, &GapError{Src: src, From: n, To: max(n, p.head), Waited: c.cfg.GiveUp, Gone: !p.gone.IsZero()}
			}
			c.ask(src, n)
			p.wait = min(2*p.wait, nakSlow)
			timer.Reset(p.wait)
		}
	}
}

// ask sends a NAK for windows from n on.
func (c *Carrier) ask(src int, n uint64) {
	p := &c.peers[src]
	p.asked = time.Now()
	p.until = n
	if p.head > n {
		p.until = min(p.head-1, n+nakRange-1)
	} else if c.cfg.Renewed {
		p.until = n + nakRange - 1
	}
	h := header{kind: kindNak, src: uint16(c.cfg.Self), dst: uint16(src), parts: 1, run: c.cfg.Key, n: n, head: p.until}
	c.stats.naks.Add(1)
	if c.bus.Publish(NakSubject(c.cfg.Run, src), h.put(nil)) != nil {
		c.stats.unsent.Add(1)
	}
}

// accept files one message. What is malformed or not for us is counted and
// dropped; only a contradiction of a batch already used is an error.
func (c *Carrier) accept(m *nats.Msg) error {
	h, body, err := parseHeader(m.Data, c.cfg.Key, c.cfg.Procs)
	if err != nil || int(h.dst) != c.cfg.Self || int(h.src) == c.cfg.Self {
		c.stats.refused.Add(1)
		return nil
	}
	c.stats.bytesIn.Add(uint64(len(m.Data)))
	p := &c.peers[h.src]
	if h.kind == kindGone {
		if h.n == p.next {
			if p.gone = time.Now(); p.mourned.IsZero() {
				p.mourned = p.gone
			}
		}
		return nil
	}
	if h.kind != kindBatch {
		c.stats.refused.Add(1)
		return nil
	}
	p.head = max(p.head, min(h.head, h.n+1<<40))
	if h.n < p.next {
		c.stats.repeated.Add(1)
		if h.n >= p.seenAt && p.seen[h.n-p.seenAt] != h.hash {
			return &DivergedError{Src: int(h.src), N: h.n, Why: "two productions of the batch differ"}
		}
		return nil
	}
	if h.n >= p.next+ahead || c.pend > pendMax {
		c.stats.dropped.Add(1)
		return nil
	}
	a := p.parts[h.n]
	if a == nil {
		a = new(assembly)
		p.parts[h.n] = a
	}
	if a.done != nil {
		c.stats.repeated.Add(1)
		if a.hash != h.hash {
			return &DivergedError{Src: int(h.src), N: h.n, Why: "two productions of the batch differ"}
		}
		return nil
	}
	whole, err := a.add(&h, body)
	if err != nil {
		c.stats.refused.Add(1)
	}
	if whole {
		c.pend += len(a.done)
	}
	return nil
}

// Committed says that a checkpoint taken after the exchange of window n is
// safe: nobody will ask for batches up to n any more.
func (c *Carrier) Committed(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.retain {
		c.retain[i].drop(n)
	}
}

// Pressure is how full the memory for sent batches is, 0 to 1.
func (c *Carrier) Pressure() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for i := range c.retain {
		n += c.retain[i].bytes
	}
	return float64(n) / float64(c.cfg.Retain)
}

// serveNaks sends retained batches again; it runs beside the engine, so that a
// process that computes or waits for a grant still helps others.
func (c *Carrier) serveNaks() {
	defer c.done.Done()
	var buf []byte
	for {
		select {
		case <-c.stop:
			return
		case m, ok := <-c.nak.C():
			if !ok {
				return
			}
			h, _, err := parseHeader(m.Data, c.cfg.Key, c.cfg.Procs)
			if err != nil || h.kind != kindNak || int(h.dst) != c.cfg.Self || int(h.src) == c.cfg.Self {
				c.stats.refused.Add(1)
				continue
			}
			buf = c.serve(buf, &h)
		}
	}
}

func (c *Carrier) serve(buf []byte, h *header) []byte {
	dst, bytes := int(h.src), 0
	for n := h.n; n <= h.head && n < h.n+nakRange && bytes < nakBytes; n++ {
		c.mu.Lock()
		r := &c.retain[dst]
		b, hash, ok := r.get(n)
		head, base, some := c.head, r.base, len(r.kept) > 0
		c.mu.Unlock()
		if !ok {
			if some && n < base && n == h.n {
				g := header{kind: kindGone, src: uint16(c.cfg.Self), dst: h.src, parts: 1, run: c.cfg.Key, n: n, head: head}
				_ = c.bus.Publish(BatchSubject(c.cfg.Run, dst), g.put(nil))
			}
			return buf
		}
		c.stats.resent.Add(1)
		bytes += len(b)
		buf = c.publish(buf, dst, n, head, b, hash)
	}
	return buf
}

var _ actors.Carrier = (*Carrier)(nil)
