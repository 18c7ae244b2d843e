package coord

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/clock"
)

// simShare is a hosted part of the synthetic fabric.
type simShare struct {
	f *actortest.Fabric
	e *actors.Engine
}

func (s *simShare) Engine() *actors.Engine { return s.e }
func (s *simShare) Schedule(f *Fault) error {
	var dev, id uint64
	if _, err := fmt.Sscanf(f.Text, "disturb %d %d", &dev, &id); err != nil {
		return err
	}
	if s.e.Hosts(int32(dev)) {
		s.f.Relays[dev].Disturb(f.Eff, id)
		s.e.Wake(int32(dev), f.Eff)
	}
	return nil
}
func (s *simShare) Parts(clock.Time) ([]byte, error) { return nil, nil }

// world is a cluster in one process: the real ledger state, gates, carriers,
// checkpoints and engines over a bus that loses, repeats and reorders, with
// replicas that lag, processes that die and zombies that do not know it. All
// choices come from the seed.
type simWorld struct {
	t     *testing.T
	rng   *rand.Rand
	spec  actortest.Spec
	procs int
	hub   bool
	owner []int32
	net   *natsbus.MemNet

	mu    sync.Mutex
	log   [][]byte
	truth *Replica
	grew  chan struct{}
	blobs map[string][]byte
	ckpts map[int]ckptReport
	front clock.Time
	zomb  []*simProc
	cur   []*simProc
	wg    sync.WaitGroup
}

// simProc is one incarnation of one slot.
type simProc struct {
	w    *simWorld
	slot int
	inc  uint64
	rep  *Replica
	lag  time.Duration
	stop context.CancelFunc
}

func (w *simWorld) propose(e *Entry) Result {
	b, err := e.Encode()
	if err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.truth.Apply(b)
	w.log = append(w.log, b)
	close(w.grew)
	w.grew = make(chan struct{})
	return r
}

// start runs the current incarnation of a slot. Its replica begins empty and
// gate must not open before the ledger's faults are known to it.
func (w *simWorld) start(slot int) *simProc {
	var run Run
	w.truth.View(func(s *State) { run = *s.Run; run.Faults = sortFaults(append([]Fault(nil), s.Run.Faults...)) })
	p := &simProc{w: w, slot: slot, inc: run.Slots[slot].Inc, rep: NewReplica(), lag: time.Duration(w.rng.IntN(2000)) * time.Microsecond}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	w.mu.Lock()
	known := len(w.log)
	for _, e := range w.log { // applies the ledger at least to its placement
		p.rep.Apply(e)
	}
	w.mu.Unlock()
	w.wg.Add(2)
	go p.follow(ctx, known)
	go func() {
		defer w.wg.Done()
		if err := p.run(ctx, &run); !harmless(err) {
			w.t.Errorf("slot %d incarnation %d: %v", p.slot, p.inc, err)
		}
	}()
	return p
}

// follow feeds a process's replica, late.
func (p *simProc) follow(ctx context.Context, from int) {
	defer p.w.wg.Done()
	for i := from; ; {
		p.w.mu.Lock()
		grew := p.w.grew
		var e []byte
		if i < len(p.w.log) {
			e = p.w.log[i]
		}
		p.w.mu.Unlock()
		if e != nil {
			p.rep.Apply(e)
			i++
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-grew:
			time.Sleep(p.lag)
		}
	}
}

func (p *simProc) run(ctx context.Context, run *Run) error {
	w := p.w
	f := actortest.New(w.spec)
	e, err := f.Engine(1, func(d int32) bool { return int(w.owner[d]) == p.slot })
	if err != nil {
		return err
	}
	share := &simShare{f, e}
	g := newGate(p.rep, "r", p.slot, p.inc, share, func(start, _ clock.Time) { w.at(start) })
	resume := uint64(0)
	taken := clock.Time(-1)
	if c := run.Ckpt(); c != nil {
		w.mu.Lock()
		b := w.blobs[c.Blobs[p.slot].Sum]
		w.mu.Unlock()
		k, err := loadSlot(e, 1, b, func(k cut) error {
			for i := range run.Faults {
				if run.Faults[i].Eff < k.passed {
					if err := share.Schedule(&run.Faults[i]); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		g.upTo, resume, taken = k.passed, k.n+1, c.B
	}
	c, err := natsbus.New(w.net, natsbus.Config{Run: "r", Key: 7, Self: p.slot, Owner: w.owner, Procs: w.procs, Resume: resume, Hub: w.hub, Renewed: p.inc > 1, GiveUp: 20 * time.Second})
	if err != nil {
		return err
	}
	defer c.Close()
	e.Carrier, e.Gate = c, g
	e.Observe = func(start clock.Time, n uint64) {
		w.at(start)
		if n%32 == 0 {
			p.rep.View(func(s *State) {
				if k := len(s.Run.Ckpts); k > 0 {
					c.Committed(s.Run.Ckpts[k-1].N)
				}
			})
		}
		if g.plan == clock.Never || start < g.plan || taken == g.plan {
			return
		}
		taken = g.plan
		b := saveSlot(e, cut{key: 1, n: n, now: e.Now(), passed: g.passed, merged: e.Merged()})
		w.mu.Lock()
		defer w.mu.Unlock()
		sum := SumOf(b)
		w.blobs[sum] = b
		if old := w.ckpts[p.slot]; old.Blob.Inc <= p.inc { // a zombie's report must not hide its successor's
			w.ckpts[p.slot] = ckptReport{Run: "r", Slot: p.slot, B: taken, Blob: Blob{Inc: p.inc, N: n, Sum: sum}}
		}
	}
	res, err := e.Run(ctx)
	if err != nil {
		return err
	}
	d := e.Digest()
	r := w.propose(&Entry{Kind: KindDone, Run: "r", Slot: p.slot, Inc: p.inc, Done: &Done{End: int(res.End), At: res.At, Windows: e.Windows(), Digest: [2]uint64{d.Hi, d.Lo}}})
	if r.Err != "" {
		return fmt.Errorf("%w: %s", errFenced, r.Err)
	}
	<-ctx.Done()
	return ctx.Err()
}

func (w *simWorld) at(m clock.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.front = max(w.front, m)
}

// tick is one step of the nemesis and the leader.
func (w *simWorld) tick(run *Run, i int) {
	w.mu.Lock()
	front := w.front
	w.mu.Unlock()
	switch r := w.rng.IntN(20); {
	case r < 12:
		w.propose(&Entry{Kind: KindGrant, Run: "r", At: max(run.Grant, front).Add(clock.Duration(1+w.rng.IntN(12)) * 500 * clock.Nanosecond)})
	case r < 14:
		w.propose(&Entry{Cmd: fmt.Sprint("f", i), Kind: KindFault, Run: "r", Fault: &Fault{Text: fmt.Sprintf("disturb %d %d", w.rng.IntN(w.spec.Relays), i)}})
	case r < 16 && run.Plan == nil:
		w.propose(&Entry{Kind: KindCkptPlan, Run: "r"})
	case r < 17 && run.Moves < 5:
		slot := w.rng.IntN(w.procs)
		old := w.cur[slot]
		if w.rng.IntN(3) == 0 {
			w.zomb = append(w.zomb, old)
		} else {
			old.stop()
		}
		w.propose(&Entry{Kind: KindMove, Run: "r", Slot: slot, Inc: old.inc, To: "m"})
		w.cur[slot] = w.start(slot)
	}
	if run.Plan == nil {
		return
	}
	w.mu.Lock()
	c := &Ckpt{B: run.Plan.B}
	for s := range w.procs {
		k, ok := w.ckpts[s]
		if ok && k.B == c.B {
			c.N = k.Blob.N
			c.Blobs = append(c.Blobs, k.Blob)
		}
	}
	w.mu.Unlock()
	if len(c.Blobs) == w.procs {
		w.propose(&Entry{Kind: KindCkptCommit, Run: "r", Ckpt: c})
	}
}

func simulate(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x51))
	w := &simWorld{
		t: t, rng: rng, procs: 2 + rng.IntN(3), hub: rng.IntN(2) == 0, net: natsbus.NewMemNet(seed), truth: NewReplica(), grew: make(chan struct{}),
		blobs: map[string][]byte{}, ckpts: map[int]ckptReport{}, spec: actortest.Spec{Seed: seed, Relays: 6 + rng.IntN(8), Cables: 8, Burst: 30},
	}
	w.net.Loss, w.net.Dup, w.net.Reorder, w.net.Delay = 0.01*rng.Float64(), 0.2*rng.Float64(), 0.2*rng.Float64(), 2*time.Millisecond
	for d := range w.spec.Relays {
		w.owner = append(w.owner, int32(d%w.procs))
	}
	e := &Entry{Kind: KindPlace, Run: "r", Hash: "h", Owner: w.owner, Slots: make([]Slot, w.procs)}
	w.propose(&Entry{Kind: KindMember, Member: &Member{Name: "m", Boot: "1"}})
	w.propose(&Entry{Kind: KindSubmit, Spec: &RunSpec{ID: "r", Files: []File{{Name: "f"}}}})
	w.propose(e)
	for s := range w.procs {
		w.cur = append(w.cur, w.start(s))
	}
	var run Run
	for i := 0; ; i++ {
		w.truth.View(func(s *State) {
			run = *s.Run
			run.Slots, run.Faults = append([]Slot(nil), run.Slots...), append([]Fault(nil), run.Faults...)
		})
		if run.Phase != Running || i > 60_000 || t.Failed() {
			break
		}
		w.tick(&run, i)
		time.Sleep(time.Duration(300+rng.IntN(6000)) * time.Microsecond) // engines wait for grants most of the time
	}
	for _, p := range append(w.zomb, w.cur...) {
		p.stop()
	}
	w.wg.Wait()
	f := actortest.New(w.spec)
	for _, x := range run.Faults {
		var dev, id uint64
		fmt.Sscanf(x.Text, "disturb %d %d", &dev, &id)
		if x.Eff < run.Slots[0].end() {
			f.Relays[dev].Disturb(x.Eff, id)
		}
	}
	want, _ := f.Oracle()
	t.Logf("seed %d: %d processes, reduced %v, %d moves, %d zombies, %d faults, %d checkpoints, end %v", seed, w.procs, w.hub, run.Moves, len(w.zomb), len(run.Faults), len(run.Ckpts), run.Slots[0].end())
	if run.Phase != Ended || run.Digest() != want.String() {
		t.Errorf("seed %d (%d processes, reduced %v, %d moves, %d faults, %d checkpoints): %s %s, digest %s, oracle %s; repeat with SIM_SEED=%d",
			seed, w.procs, w.hub, run.Moves, len(run.Faults), len(run.Ckpts), run.Phase, run.Why, run.Digest(), want, seed)
	}
}

func (s *Slot) end() clock.Time {
	if s.Done == nil {
		return 0
	}
	return s.Done.At
}

// SIM_SEEDS=1000 runs a night's worth, SIM_SEED=n repeats one.
func TestSimulatedCluster(t *testing.T) {
	first, n := uint64(1), uint64(6)
	if s, err := strconv.ParseUint(os.Getenv("SIM_SEED"), 10, 64); err == nil {
		first, n = s, 1
	} else if k, err := strconv.ParseUint(os.Getenv("SIM_SEEDS"), 10, 64); err == nil {
		n = k
	}
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		simulate(t, seed)
	}
}
