package actors

import (
	"context"
	"fmt"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Ports is how the engine is told of cables: port p of device d (numbers from
// 1) leads to PeerPort of Peer.
type Ports struct{ Peer, PeerPort int32 }

// Config describes a run to the engine. It is the same in every process.
type Config struct {
	Seed   uint64
	Names  []string  // by device id
	Cables [][]Ports // by device id, then port number - 1
	Window clock.Duration
	Settle clock.Duration
	Limit  clock.Time // verdict limit when reached
	Until  clock.Time // verdict complete when reached; Never = until idle
	Live   bool       // until stopped: neither idle nor stalled ends the run
	Stall  clock.Duration
}

// End says why a run ended.
type End uint8

// Ends.
const (
	Running   End = iota
	Idle          // all work done
	AtUntil       // the asked virtual time was reached
	AtLimit       // the limit was reached first
	Stalled       // work is left and nothing moves
	Cancelled     // the caller asked to stop
	Held          // the instant set with HoldAt was reached; the run may go on
)

// Carrier joins the processes of one run. The engine calls Exchange once
// before each window; it must deliver the frames other processes sent in the
// window before through e.Deliver and return the merged summary.
type Carrier interface {
	Exchange(ctx context.Context, e *Engine, n uint64, mine Summary) (Summary, error)
}

// Gate holds back virtual time. Await blocks until every instant before end
// may be executed (W1), then returns the earliest instant of a fault that no
// window has covered yet (Never = none), of those that every process must know
// of when it passes end: the answer is the same everywhere. When that lies
// before start it has changed nothing and the engine begins the window there
// instead (W0); otherwise it has handed all faults before end, and only those,
// to e's actors. It may call e.Stop, with an instant that every process learns before
// its grant passes it. With end = Never it returns at the first fault or stop.
type Gate interface {
	Await(ctx context.Context, e *Engine, start, end clock.Time) (fault clock.Time, err error)
}

// Engine advances the actors of one process.
type Engine struct {
	cfg     Config
	actors  []Actor // nil where another process hosts the device
	local   []int32 // hosted device ids, ascending
	docks   []dock
	chans   []*Channel
	remote  []*Channel   // channels from here to other processes, dirty in the last window
	taken   []wire.Frame // frames that TakeRemote handed out last
	st      []Status
	next    []clock.Time // earliest event or arrival
	work    []clock.Time // the same, non-periodic
	active  []int32
	workers int
	pool    *pool
	scratch []scratch // one a worker
	hints   []Hinter

	Carrier Carrier
	Gate    Gate
	// Observe, when set, is called between windows with the next window's
	// start; it may read actors but must not change them.
	Observe func(start clock.Time, n uint64)
	// Ending, when set, is called once in place of Observe where the run ends:
	// no window begins before that instant any more, however far the last one
	// lies behind it.
	Ending func(at clock.Time, n uint64)

	// Cut is an instant that no window passes, to be set in Observe: then
	// Observe is called when exactly what lies before it is done. Every process
	// must set the same.
	Cut clock.Time
	// Stride, when larger than 1, lets so many windows pass between two calls of
	// Observe and between two questions to the gate: they are run as rounds, which
	// is quicker. Every process must set the same.
	Stride int
	rounds *rounds
	alone  bool    // neighbours do not run at the same time
	ran    int     // actors that had something to do in the last leg
	within Summary // of all processes, in the middle of a round

	now     clock.Time // start of the next window
	hold    clock.Time // windows are cut here, and Step stops; 0 = nowhere
	windows uint64
	stop    clock.Time
	merged  Summary // of the running window
	wide    int     // windows that it spans, one unless it begins a round
	resume  bool    // merged and wide were restored: the next window needs no exchange
}

// New builds an engine over the hosted actors; hosted[d] is nil for a device
// of another process.
func New(cfg Config, hosted []Actor, workers int) (*Engine, error) {
	if cfg.Window <= 0 {
		return nil, fmt.Errorf("actors: window %v must be positive", cfg.Window)
	}
	if len(cfg.Names) != len(hosted) || len(cfg.Cables) != len(hosted) {
		return nil, fmt.Errorf("actors: %d names and %d cable lists for %d devices", len(cfg.Names), len(cfg.Cables), len(hosted))
	}
	e := &Engine{cfg: cfg, actors: hosted, workers: max(1, workers), stop: clock.Never, Cut: clock.Never}
	e.scratch = make([]scratch, e.workers)
	for i := range e.scratch {
		w := &e.scratch[i]
		w.in.w, w.out.w = w, w
		w.in.seed, w.in.far = cfg.Seed, len(hosted) >= hintActors
	}
	if len(hosted) >= hintActors {
		e.hints = make([]Hinter, len(hosted))
	}
	n := len(hosted)
	e.docks, e.st = make([]dock, n), make([]Status, n)
	e.next, e.work = make([]clock.Time, n), make([]clock.Time, n)
	ends := 0
	for d := range hosted {
		ends += 2 * len(cfg.Cables[d])
	}
	table := make([]*Channel, ends)
	for d := range hosted {
		n := 2 * len(cfg.Cables[d])
		e.docks[d].init(table[:n:n])
		table = table[n:]
		e.next[d], e.work[d] = clock.Never, clock.Never
		if hosted[d] != nil {
			e.local = append(e.local, int32(d))
			if e.hints != nil {
				e.hints[d], _ = hosted[d].(Hinter)
			}
		}
	}
	if err := e.connect(); err != nil {
		return nil, err
	}
	for _, d := range e.local {
		e.next[d], e.work[d] = 0, 0 // let every actor look at its start
		e.st[d] = Status{NextFault: clock.Never}
	}
	if e.workers > 1 {
		e.pool = newPool(e.workers - 1)
	}
	return e, nil
}

// connect makes a channel for each direction of each cable that touches a
// hosted actor.
func (e *Engine) connect() error {
	for d := range e.cfg.Cables {
		for p, c := range e.cfg.Cables[d] {
			if c.Peer < 0 || int(c.Peer) >= len(e.actors) || c.PeerPort < 1 || int(c.PeerPort) > len(e.cfg.Cables[c.Peer]) {
				return fmt.Errorf("actors: %s:%d leads to no port", e.cfg.Names[d], p+1)
			}
			back := e.cfg.Cables[c.Peer][c.PeerPort-1]
			if int(back.Peer) != d || int(back.PeerPort) != p+1 {
				return fmt.Errorf("actors: %s:%d is not the other end of its cable", e.cfg.Names[d], p+1)
			}
			if e.actors[d] == nil && e.actors[c.Peer] == nil {
				continue
			}
			key := clock.Mix(clock.HashString(e.cfg.Seed, e.cfg.Names[d]), uint64(p+1), 0x63)
			ch := newChannel(key, int32(d), c.Peer, uint16(p+1), uint16(c.PeerPort))
			ch.remote = e.actors[c.Peer] == nil
			e.chans = append(e.chans, ch)
			e.docks[d].out()[p] = ch
			e.docks[c.Peer].in()[c.PeerPort-1] = ch
		}
	}
	return nil
}

// Stop asks the run to end at the first window end; it may be called from
// another goroutine through a context instead.
func (e *Engine) Stop(at clock.Time) { e.stop = min(e.stop, at) }

// HoldAt makes Step return [Held] once everything before t was executed and
// nothing else: the state of an exact instant, to be saved or looked at. 0 ends
// it. It is for an engine that hosts every actor.
func (e *Engine) HoldAt(t clock.Time) { e.hold = t }

// Close ends the worker goroutines.
func (e *Engine) Close() {
	if e.pool != nil {
		e.pool.close()
		e.pool = nil
	}
}

// Now is the start of the next window; Windows counts executed ones.
func (e *Engine) Now() clock.Time { return e.now }

// Windows counts executed windows; in rounds between processes, exchanges, of
// which a round of n windows takes n+1.
func (e *Engine) Windows() uint64 { return e.windows }

// Hosts reports whether device d runs here.
func (e *Engine) Hosts(d int32) bool { return e.actors[d] != nil }

// Actor returns a hosted actor, nil otherwise.
func (e *Engine) Actor(d int32) Actor { return e.actors[d] }

// Workers is the number of goroutines that share a window.
func (e *Engine) Workers() int { return e.workers }

// Local lists the hosted devices.
func (e *Engine) Local() []int32 { return e.local }

// Wake makes the engine look at device d from instant t on: something outside
// (a fault) was scheduled in its actor.
func (e *Engine) Wake(d int32, t clock.Time) {
	e.next[d] = min(e.next[d], t)
	e.st[d].NextFault = min(e.st[d].NextFault, t)
}

// Result is how a run ended.
type Result struct {
	End      End
	At       clock.Time // virtual time executed up to
	LastWork clock.Time
	Summary  Summary
}

// Instant is what the result of a run is of: its end, or where all work had
// ended. The windows that were run to be sure of that hold periodic events only,
// whose frames are counted; times are not counted beyond the instant.
func (r Result) Instant() clock.Time {
	if r.End == Idle {
		return r.LastWork
	}
	return r.At
}

// Run executes windows until the run ends by itself, the context is cancelled
// (a stop at a window end, no error) or the carrier or gate fails.
func (e *Engine) Run(ctx context.Context) (Result, error) {
	for {
		r, err := e.Step(ctx)
		if err != nil || r.End != Running {
			return r, err
		}
	}
}

// Step executes one window, or a round.
func (e *Engine) Step(ctx context.Context) (Result, error) {
	if ctx.Err() != nil && e.Carrier == nil && e.Gate == nil {
		e.stop = min(e.stop, e.now)
	}
	again := e.resume
	s, err := e.exchange(ctx)
	if err != nil {
		return Result{At: e.now}, err
	}
	for {
		at, why := e.cut(&s)
		start := s.Next
		over := start >= at || start == clock.Never
		if e.hold > 0 && start >= e.hold {
			return Result{End: Held, At: e.hold, LastWork: s.LastWork, Summary: s}, nil
		}
		if e.Gate == nil {
			e.wide = 1
		} else if !again { // what the gate lets pass is fixed before Observe moves Cut
			e.wide = e.span(&s, start, at, e.Cut)
		}
		end := e.reach(start, at)
		if e.Gate != nil {
			f, err := e.Gate.Await(ctx, e, min(start, at), end)
			if err != nil {
				return Result{At: e.now}, err
			}
			if f < start && f < at {
				s.Next = f
				continue
			}
			if e.stop < s.Stop {
				s.Stop = e.stop
				continue
			}
			if over && why == Stalled && f < s.NextFault { // a live fault is to come, as one of the file would be
				s.NextFault = f
				continue
			}
		}
		e.merged = s
		if over {
			if e.wide = 1; e.Ending != nil {
				e.Ending(at, e.windows)
			}
			return e.finish(s, at, why), nil
		}
		if e.Observe != nil {
			e.Observe(start, e.windows)
		}
		if err := e.execute(ctx, start, at); err != nil {
			return Result{At: e.now}, err
		}
		return Result{}, nil
	}
}

// reach is where a step that begins at start ends, if not at at.
func (e *Engine) reach(start, at clock.Time) clock.Time {
	end := min(start.Add(clock.Duration(e.wide)*e.cfg.Window), at)
	if e.hold > 0 {
		end = min(end, e.hold)
	}
	return end
}

// execute runs the step that begins at start; no event from at on.
func (e *Engine) execute(ctx context.Context, start, at clock.Time) error {
	if e.Cut > start {
		at = min(at, e.Cut)
	}
	if e.Gate == nil {
		e.wide = e.span(&e.merged, start, at, clock.Never)
	}
	end := e.reach(start, at)
	if e.wide > 1 {
		return e.stretch(ctx, start, end)
	}
	e.window(end)
	return nil
}

func (e *Engine) finish(s Summary, at clock.Time, why End) Result {
	if at == clock.Never { // nothing will ever happen and nothing ends the run
		at = s.LastWork
	}
	at = max(at, e.now)
	e.now = at
	return Result{End: why, At: at, LastWork: s.LastWork, Summary: s}
}

// window runs every actor that has something before end, then publishes.
func (e *Engine) window(end clock.Time) {
	e.active = e.active[:0]
	for _, d := range e.local {
		if e.next[d] < end {
			e.active = append(e.active, d)
		}
	}
	if e.windows&1 != 0 {
		slices.Reverse(e.active) // see turned
	}
	e.alone = e.pool == nil || len(e.active) < minParallel
	if !e.alone {
		e.pool.run(e, end)
	} else {
		e.hintFirst(e.active)
		for i, d := range e.active {
			e.hint(e.active, i)
			e.advance(d, end, end, &e.scratch[0])
		}
	}
	e.publishAll()
	e.now = end
	e.windows++
}

// minParallel is the number of active actors below which one worker is faster.
const minParallel = 16

// advance runs one actor, which has executed everything before start, up to
// end; it touches nothing of any other. No frame it sends may arrive before
// first.
func (e *Engine) advance(d int32, end, first clock.Time, w *scratch) {
	k, in, out, st := &e.docks[d], &w.in, &w.out, &e.st[d]
	out.first, out.ch = first, k.out()
	if len(out.ch) > hintPorts {
		out.hint()
	}
	in.begin(k, end)
	e.actors[d].Advance(end, in, out, st)
	if in.next != clock.Never {
		panic(fmt.Sprintf("actors: %s left arrivals before the window's end", e.cfg.Names[d]))
	}
	if st.Next < end {
		panic(fmt.Sprintf("actors: %s left an event at %v before the window's end %v", e.cfg.Names[d], st.Next, end))
	}
	n, work := in.rest(e.alone)
	e.next[d] = min(n, st.Next)
	e.work[d] = min(work, st.NextWork)
}

// publishAll makes all visible that was sent, and shares free chunks out.
func (e *Engine) publishAll() {
	for i := range e.scratch {
		e.publish(&e.scratch[i])
	}
	e.lend()
}

// lend shares free chunks out.
func (e *Engine) lend() {
	most, least := 0, 0
	for i := range e.scratch {
		if n := len(e.scratch[i].pool.free); n > len(e.scratch[most].pool.free) {
			most = i
		} else if n < len(e.scratch[least].pool.free) {
			least = i
		}
	}
	from, to := &e.scratch[most].pool, &e.scratch[least].pool
	if len(from.free) > 2*len(to.free)+chunkLend {
		for range chunkLend / 2 {
			to.put(from.get())
		}
	}
}

// chunkLend is how many free chunks more than twice those of another a worker
// may have before it gives some away.
const chunkLend = 64

// publish makes what a worker's actors sent visible.
func (e *Engine) publish(w *scratch) {
	for _, c := range w.dirty {
		if c.remote {
			e.remote = append(e.remote, c)
			continue
		}
		e.show(c)
	}
	w.dirty, w.away = w.dirty[:0], 0
}

// show publishes one channel to a receiver that is not running.
func (e *Engine) show(c *Channel) {
	n, work := c.publish()
	e.docks[c.dst].mark(int(c.dstPort))
	e.next[c.dst] = min(e.next[c.dst], n)
	e.work[c.dst] = min(e.work[c.dst], work)
}
