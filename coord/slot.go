package coord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/clock"
)

// runner executes one incarnation of one slot: restore, replay, run, report.
type runner struct {
	node   *Node
	run    string
	spec   RunSpec
	owner  []int32
	slots  int
	slot   int
	inc    uint64
	start  *Ckpt   // state to begin with, nil = time zero
	first  bool    // start is the snapshot that the run began from
	faults []Fault // live ones, in the ledger's order, when the slot started
	hash   string
	log    hclog.Logger

	cancel  context.CancelFunc
	carrier atomic.Pointer[natsbus.Carrier]
	gate    *gate
	fab     Fabric
	notes   notes
	looks   chan *look
	later   []*look              // for a window that has not come; the engine's goroutine
	stored  atomic.Pointer[Blob] // the state stored last
	taken   clock.Time           // boundary of the last checkpoint taken here, -1 = none yet

	// Progress, written by the engine's goroutine and by starve.
	n, windows atomic.Uint64
	m, want    atomic.Int64
	phase      atomic.Pointer[string]
	t0         time.Time // start; not changed after it
	cpu0       int64     // processor time of the process when execution began
	ended      atomic.Bool
	work       atomic.Pointer[Work]
	asked      atomic.Bool // somebody has read work since it was counted
}

// hubFrom is the number of slots from which summaries go through one of them:
// below it all-to-all batches save a hop, above it their number costs more.
const hubFrom = 5

func (r *runner) state(s string) { r.phase.Store(&s) }

// execute runs to the end of the run or of ctx. An error other than a fence or
// ctx's end is a reason to fail the run.
func (r *runner) execute(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // an invariant of the model broke: the run is wrong, not the process
			r.log.Error("a slot panicked", "slot", r.slot, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("slot %d: %v", r.slot, p)
		}
	}()
	r.cpu0, r.taken = r.node.usage().cpu, -1
	r.state("restoring")
	fab, err := r.node.cfg.Model.Build(&r.spec, func(d int32) bool { return int(r.owner[d]) == r.slot }, r.node.cfg.Workers)
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	if x, ok := fab.(io.Closer); ok {
		defer x.Close()
	}
	e := fab.Engine()
	defer e.Close()
	also := e.Observe // the fabric's own look between windows
	r.fab = fab
	if x, ok := fab.(Speaker); ok {
		defer x.Speak(r.node.say)()
	}
	r.gate = newGate(r.node.rep, r.run, r.slot, r.inc, fab, r.starve)
	r.gate.looks, r.gate.look = r.looks, r.answer
	resume, err := r.restore(ctx, e)
	if err != nil {
		return err
	}
	key := r.node.key(r.run, r.hash)
	c, err := natsbus.New(r.node.bus, natsbus.Config{
		Run: r.run, Key: key, Self: r.slot, Owner: r.owner, Procs: r.slots, Resume: resume, Hub: r.slots >= hubFrom,
		GiveUp: r.node.cfg.GiveUp, Dir: r.node.cfg.Data, Renewed: r.inc > 1 || r.start != nil, Retain: r.node.cfg.Retain,
	})
	if err != nil {
		return err
	}
	r.carrier.Store(c)
	defer c.Close()
	if r.slots > 1 {
		e.Carrier = c
	}
	e.Gate, e.Observe = r.gate, func(start clock.Time, n uint64) {
		if also != nil {
			also(start, n)
		}
		r.observe(ctx, e, start, n)
	}
	e.Ending = func(at clock.Time, n uint64) {
		// A leap from before it to the end, or a stop right there, which is
		// younger than the plan.
		if b := r.gate.plan; b < at || b == at && r.gate.stop == at {
			r.take(ctx, e, n)
		}
	}
	r.state("running")
	res, err := e.Run(ctx)
	if err != nil {
		return err
	}
	r.count(e)
	if err := r.report(ctx, fab, res); err != nil {
		return err
	}
	r.ended.Store(true)
	r.state("done")
	return r.linger(ctx, e, res.At) // others may still ask for batches
}

// giveUp is how long the run waits for what is away.
func (n *Node) giveUp() time.Duration {
	if n.cfg.GiveUp > 0 {
		return n.cfg.GiveUp
	}
	return 2 * time.Minute
}

// restore loads the slot's state and returns the first window to exchange.
func (r *runner) restore(ctx context.Context, e *actors.Engine) (uint64, error) {
	if r.start == nil {
		return 0, nil
	}
	b, err := r.fetch(ctx)
	if err != nil {
		return 0, &lostState{r.start.B, err}
	}
	known := r.faults
	held := map[uint64]bool{}
	c, err := loadSlot(e, r.stateKey(), b, func(c cut) error {
		for _, seq := range c.held {
			held[seq] = true
		}
		known = sortFaults(known[:min(c.known, len(known))])
		for i := range known {
			if f := &known[i]; !f.Clear && !held[f.Seq] {
				if err := r.gate.fab.Schedule(f); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, &lostState{r.start.B, err}
	}
	for i := range known { // ends that were known and not yet reached
		if f := &known[i]; f.Clear && f.Eff >= c.now && !held[f.Seq] {
			if err := r.gate.fab.Schedule(f); err != nil {
				return 0, err
			}
		}
	}
	if t, ok := r.fab.(Noter); ok {
		if err := t.Resume(c.kept, c.n); err != nil {
			return 0, &lostState{r.start.B, err}
		}
		r.notes.begin(r.start.Blobs[r.slot].Notes)
	}
	r.gate.known, r.gate.held = c.known, held
	r.n.Store(c.n)
	r.m.Store(int64(c.now))
	return c.n + 1, nil
}

// fetch reads the state that the slot begins with. From a lost checkpoint the
// run goes back; a snapshot is all that it has, and who keeps it may be on its
// way back.
func (r *runner) fetch(ctx context.Context) ([]byte, error) {
	limit := r.node.giveUp()
	if r.first { // sooner than those give up who wait for this slot
		limit /= 2
	}
	for end := time.Now().Add(limit); ; {
		b, err := fetchBlob(ctx, r.node.blobs, r.start.Blobs[r.slot].Sum, limit)
		if err == nil || !r.first || time.Now().After(end) {
			return b, err
		}
		r.log.Warn("the snapshot cannot be read yet", "slot", r.slot, "err", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// stateKey names what a state may be restored into: a snapshot outlives its
// run, so the run's id is not part of it.
func (r *runner) stateKey() uint64 { return r.node.key("", r.hash) }

// lostState: a committed state cannot be read; everybody has to go back.
type lostState struct {
	B   clock.Time
	err error
}

func (l *lostState) Error() string {
	return fmt.Sprintf("the checkpoint at %v cannot be read: %v", l.B, l.err)
}
func (l *lostState) Unwrap() error { return l.err }

// observe runs between windows: progress and checkpoints.
func (r *runner) observe(ctx context.Context, e *actors.Engine, start clock.Time, n uint64) {
	r.n.Store(n)
	r.m.Store(int64(start))
	r.windows.Add(1)
	r.tally(e)
	r.lookAt(start, n)
	if r.gate.plan <= start {
		r.take(ctx, e, n)
	}
}

// take cuts the state for the planned checkpoint, once.
func (r *runner) take(ctx context.Context, e *actors.Engine, n uint64) {
	b := r.gate.plan
	if b == clock.Never || b == r.taken {
		return
	}
	r.taken = b
	c := cut{key: r.stateKey(), n: n, now: e.Now(), known: r.gate.seen, held: r.gate.pending()}
	c.merged, c.wide = e.Merged()
	noted := 0
	if t, ok := r.fab.(Noter); ok {
		noted, c.kept = r.notes.cut(t.TakeNotes()), t.Keep()
	}
	go r.keep(ctx, b, &c, saveSlot(e, c), noted)
}

// tally counts the work when the last count has been told, and first when there
// is any.
func (r *runner) tally(e *actors.Engine) {
	told := r.work.Load() != nil
	if !told && e.Totals().Events > 0 || told && r.asked.Load() {
		r.asked.Store(false)
		r.count(e)
	}
}

// count runs in the engine's goroutine, between windows.
func (r *runner) count(e *actors.Engine) {
	t := e.Totals()
	w := &Work{Hops: t.Hops, Events: t.Events}
	for _, d := range e.Local() {
		w.Outstanding += e.Status(d).Outstanding
	}
	r.work.Store(w)
}

// keep stores a state in the background and reports it to the leader, for as
// long as the ledger plans that checkpoint: a disk may have room again, and a
// report may be lost or meet a leader that is no more.
func (r *runner) keep(ctx context.Context, b clock.Time, c *cut, blob []byte, noted int) {
	var stored *Blob
	for r.planned(b) {
		if stored == nil {
			if stored = r.store(ctx, b, c, blob, noted); stored != nil {
				r.stored.Store(stored)
			}
		}
		if stored != nil {
			r.node.report(ckptReport{Run: r.run, Slot: r.slot, B: b, Blob: *stored})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// planned reports whether the ledger waits for this incarnation's state at b.
func (r *runner) planned(b clock.Time) (yes bool) {
	r.node.rep.View(func(s *State) {
		p := s.Run
		yes = p != nil && p.Spec.ID == r.run && p.Plan != nil && p.Plan.B == b && r.slot < len(p.Slots) && p.Slots[r.slot].Inc == r.inc
	})
	return yes
}

// store puts a state and its notes into blobs; nil = it could not.
func (r *runner) store(ctx context.Context, b clock.Time, c *cut, blob []byte, noted int) *Blob {
	t0 := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	sum, err := storeBlob(ctx, r.node.blobs, blob, 2*time.Minute)
	var log []string
	if err == nil {
		log, err = r.notes.store(ctx, r.node.blobs, noted)
	}
	if err != nil {
		r.log.Warn("a checkpoint could not be stored", "slot", r.slot, "boundary", b, "err", err)
		return nil
	}
	r.log.Debug("checkpoint stored", "slot", r.slot, "boundary", b, "window", c.n, "bytes", len(blob), "took", time.Since(t0))
	return &Blob{Inc: r.inc, N: c.n, Now: c.now, Sum: sum, Size: int64(len(blob)), Notes: log}
}

// starve tells the leader at once that the grant is short.
func (r *runner) starve(start, end clock.Time) {
	r.m.Store(int64(start))
	if r.want.Swap(int64(end)) != int64(end) {
		r.node.beat()
	}
}

// report stores the slot's parts and enters its end in the ledger.
func (r *runner) report(ctx context.Context, fab Fabric, res actors.Result) error {
	r.awaitSnapshot(ctx) // before its notes are overtaken by those of the end
	b, err := fab.Parts(res.At, res.Instant())
	if err != nil {
		return err
	}
	sum, err := storeBlob(ctx, r.node.blobs, b, r.node.giveUp())
	if err != nil {
		return fmt.Errorf("the result of slot %d cannot be stored: %w", r.slot, err)
	}
	var log []string
	if t, ok := fab.(Noter); ok {
		if log, err = r.notes.store(ctx, r.node.blobs, r.notes.cut(t.TakeNotes())); err != nil {
			return err
		}
	}
	e := fab.Engine()
	g := e.Digest()
	d := &Done{
		End: int(res.End), At: res.At, LastWork: res.LastWork, Progress: res.Summary.LastProgress, NextWork: res.Summary.NextWork,
		Outstanding: res.Summary.Outstanding, Windows: e.Windows(), Digest: [2]uint64{g.Hi, g.Lo}, Parts: sum, Notes: log, Cost: r.cost(),
	}
	for {
		rs, err := r.node.propose(ctx, &Entry{Cmd: fmt.Sprintf("done-%s-%d-%d", r.run, r.slot, r.inc), Kind: KindDone, Run: r.run, Slot: r.slot, Inc: r.inc, Done: d})
		if err == nil && rs.Err != "" {
			return fmt.Errorf("%w: the end of slot %d was refused: %s", errFenced, r.slot, rs.Err)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		r.log.Warn("the end of a slot is not in the ledger yet", "slot", r.slot, "err", err)
	}
}

// snapshotWait bounds how long the end of a run waits for a snapshot that was
// asked for before it: a lost process is missed and its slot executed again
// meanwhile.
const snapshotWait = 2 * time.Minute

// awaitSnapshot lets a snapshot by name that lies before the run's end be
// committed: once the run is over, its checkpoints are.
func (r *runner) awaitSnapshot(ctx context.Context) {
	limit := time.NewTimer(snapshotWait)
	defer limit.Stop()
	for {
		changed := r.node.rep.Changed()
		if !r.named() || !r.planned(r.taken) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-limit.C:
			r.log.Warn("the run ends before its snapshot was stored everywhere", "boundary", r.taken)
			return
		case <-changed:
		}
	}
}

// named reports whether somebody asked for the planned checkpoint.
func (r *runner) named() (yes bool) {
	r.node.rep.View(func(s *State) { yes = s.Run != nil && s.Run.Plan != nil && s.Run.Plan.Name != "" })
	return yes
}

// cost is what the slot took since it started here. The system counts processor
// time and memory by process: two slots of one both tell what it took, and the
// peak of memory is the process's since it began.
func (r *runner) cost() Cost {
	s := r.stats()
	u := r.node.usage()
	return Cost{
		WallNS: int64(time.Since(r.t0)), WaitNS: int64(s.Wait), CPUNS: u.cpu - r.cpu0, RSS: u.rss, BytesOut: s.BytesOut,
		Workers: max(1, r.node.cfg.Workers), Resent: s.Resent, Naks: s.Naks,
	}
}

func (r *runner) stats() natsbus.Stats {
	if c := r.carrier.Load(); c != nil {
		return c.Stats()
	}
	return natsbus.Stats{}
}

// harmless errors end a runner without failing the run.
func harmless(err error) bool {
	return err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errFenced)
}
