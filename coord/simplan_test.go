package coord

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/clock"
)

// simPlan is what a seed decides beforehand.
type simPlan struct {
	spec     actortest.Spec
	text     string // of the run's file
	hash     string
	agents   int
	voters   int
	pure     bool // coordinators run no slots
	store    bool // there is an object store
	torn     uint64
	disk     time.Duration // of a blob operation, at most
	giveUp   time.Duration
	retain   int
	stride   int           // windows of a round, 0 = no rounds
	patience time.Duration // from the last harm to the end
	span     time.Duration // in which the first harms and commands fall
	run      RunSpec
	net      simWeather
}

func newSimWorld(seed uint64) *simWorld {
	w := &simWorld{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 0x51)), t0: time.Now(), poked: make(chan struct{}, 1), harms: map[string]int{},
		shared: map[string][]byte{}, windows: map[simStep]simWindow{}, batches: map[simBatch]uint64{}, states: map[simState]string{},
	}
	w.client.cmds = map[string]*simCommand{}
	w.led.truth, w.led.isolated = NewReplica(), map[*simProc]bool{}
	w.saves = newSimSaves(seed)
	w.decide()
	for i := range w.plan.voters + w.plan.agents {
		p := &simProc{w: w, name: fmt.Sprintf("p%d", i), index: i, votes: i < w.plan.voters, files: map[string]simFile{}}
		w.procs = append(w.procs, p)
		w.at(time.Duration(1+i)*1370*time.Microsecond, "start "+p.name, func() { w.start(p) })
	}
	w.lose("the beginning")
	w.command(10*time.Millisecond, Entry{Kind: KindSubmit, Run: simRun, Spec: &w.plan.run})
	w.commands(w.rng.IntN(6), w.plan.span)
	w.nemesis(w.rng.IntN(4), w.plan.span)
	w.beat()
	return w
}

// beat keeps the driver looking while nothing happens.
func (w *simWorld) beat() { w.at(time.Second, "", w.beat) }

func (w *simWorld) decide() {
	r := w.rng
	p := &w.plan
	p.spec = actortest.Spec{Seed: w.seed, Relays: 6 + r.IntN(7), Cables: 3 + r.IntN(6), Burst: 3 + r.IntN(8)}
	if r.IntN(3) == 0 { // two colours, so that batch runs have rounds
		p.spec.Even, p.spec.Private, p.stride = true, p.spec.Relays/3, 4+r.IntN(13)
	}
	b, _ := json.Marshal(p.spec)
	p.text, p.hash = string(b), SumOf(b)
	p.voters, p.agents = 1+2*r.IntN(2), 1+r.IntN(4)
	p.pure = p.agents > 1 && r.IntN(3) == 0
	p.store = r.IntN(2) == 0
	if r.IntN(3) == 0 {
		p.torn = 2 + r.Uint64N(30)
	}
	p.disk = w.draw(100*time.Microsecond, 3*time.Second)
	p.giveUp, p.patience = 2*time.Minute, 4*time.Minute
	if p.retain = 64 << 20; r.IntN(4) == 0 { // most batches go to a file
		p.retain = 1<<10 + r.IntN(16<<10)
	}
	p.span = w.draw(300*time.Millisecond, 10*time.Second)
	p.run = RunSpec{ID: simRun, Files: []File{{Name: "f", Text: p.text}}, Batch: r.IntN(2) == 0, CkptMS: 20 + r.IntN(300)}
	if r.IntN(4) > 0 {
		p.run.Members = p.agents
	}
	p.run.Pause = w.saves.chance(0.4)
	w.net = simWeather{lo: 20 * time.Microsecond, hi: w.draw(200*time.Microsecond, 30*time.Millisecond)}
	if r.IntN(3) > 0 {
		w.net.loss, w.net.dup = 0.02*r.Float64(), 0.1*r.Float64()
	}
	p.net = w.net
	w.led.applyHi = w.draw(2*time.Millisecond, 400*time.Millisecond)
}

// placed is when most harm begins: while the run runs.
func (w *simWorld) placed() {
	span := w.draw(50*time.Millisecond, 4*time.Second)
	w.commands(w.rng.IntN(10), span)
	w.nemesis(w.rng.IntN(8)/len(w.saves.runs), span)
}

// commands plans what the client asks for.
func (w *simWorld) commands(faults int, span time.Duration) {
	in := func() time.Duration { return time.Duration(w.rng.Int64N(int64(span))) }
	run := w.saves.run
	if w.saves.quiet {
		faults = 0
	}
	for range faults {
		f := &Fault{Text: fmt.Sprintf("disturb %d %d", w.rng.IntN(w.plan.spec.Relays), len(w.client.cmds)+1)}
		if w.chance(0.3) {
			f.Want = clock.Time(w.rng.Int64N(int64(300 * clock.Microsecond)))
		}
		w.command(in(), Entry{Kind: KindFault, Run: run, Fault: f})
	}
	if w.chance(0.2) {
		t := in()
		w.command(t, Entry{Kind: KindPause, Run: run})
		w.command(t+in(), Entry{Kind: KindStep, Run: run, At: clock.Time(5 * clock.Microsecond)})
	}
	if w.chance(0.3) {
		w.command(in(), Entry{Kind: KindCkptPlan, Run: run, Name: "kept"})
	}
	if clock.Mix(w.seed, 1, 6)%4 == 0 { // a stop in the past is refused, and the run goes on
		w.at(time.Duration(clock.Mix(w.seed, 2, 6)%uint64(span)), "", func() {
			granted := false
			w.led.truth.View(func(s *State) { granted = s.Run != nil && s.Run.Grant > 1 })
			if granted {
				w.command(0, Entry{Kind: KindStop, Run: run, At: 1})
			}
		})
	}
	for range w.rng.IntN(3) {
		w.command(in(), Entry{Kind: KindWish, Run: run, Slot: w.rng.IntN(3), To: fmt.Sprintf("p%d", w.rng.IntN(w.plan.voters+w.plan.agents))})
	}
}

// nemesis plans n harms.
func (w *simWorld) nemesis(n int, span time.Duration) {
	kinds := []struct {
		name string
		odds int
		do   func() time.Duration
	}{
		{"kill", 6, w.harmKill},
		{"kill all", 1, w.harmKillAll},
		{"stop", 5, w.harmStop},
		{"leave", 2, w.harmLeave},
		{"cut off", 4, w.harmCut},
		{"leader", 3, w.harmLeader},
		{"no quorum", 2, w.harmQuorum},
		{"hung disk", 1, w.harmHung},
		{"full disk", 2, w.harmFull},
		{"damage", 3, w.harmDamage},
		{"no store", 2, w.harmStore},
		{"storm", 3, w.harmStorm},
	}
	odds := 0
	for _, k := range kinds {
		odds += k.odds
	}
	for range n {
		x := w.rng.IntN(odds)
		i := 0
		for ; x >= kinds[i].odds; i++ {
			x -= kinds[i].odds
		}
		k := kinds[i]
		w.at(30*time.Millisecond+time.Duration(w.rng.Int64N(int64(span))), "harm: "+k.name, func() {
			w.harms[k.name]++
			w.calm = max(w.calm, w.now()+k.do())
		})
	}
	w.calm = max(w.calm, w.now()+span)
}

// tender harms when it hurts most: just after a checkpoint was planned or
// committed, a slot was moved, or one has ended.
func (w *simWorld) tender(k Kind) {
	switch k {
	case KindCkptPlan, KindCkptCommit, KindMove, KindRollback, KindDone:
	default:
		return
	}
	if w.tenders >= 4 || !w.chance(0.12) {
		return
	}
	w.tenders++
	w.at(w.draw(time.Millisecond, 200*time.Millisecond), fmt.Sprintf("harm: at a %s", k), func() {
		w.harms["tender"]++
		d := time.Duration(0)
		switch w.rng.IntN(5) {
		case 0, 1:
			d = w.harmKill()
		case 2:
			d = w.harmLeader()
		default:
			d = w.harmStop()
		}
		w.calm = max(w.calm, w.now()+d)
	})
}

// victim is a process that is up, nil when there is none.
func (w *simWorld) victim() *simLife {
	var up []*simLife
	for _, p := range w.procs {
		if p.life != nil {
			up = append(up, p.life)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[w.rng.IntN(len(up))]
}

func (w *simWorld) harmKill() time.Duration {
	l := w.victim()
	if l == nil {
		return 0
	}
	w.kill(l, "harm")
	if w.chance(0.25) && w.spare(l.proc) {
		w.harms["kill for good"]++
		l.proc.gone = true
		return 0
	}
	d := w.draw(20*time.Millisecond, 6*time.Second)
	w.restart(l.proc, d, w.chance(0.25))
	return d
}

// spare reports whether the run can go on without a process for good: it is
// placed, others run slots, and no voter is lost.
func (w *simWorld) spare(p *simProc) (ok bool) {
	rest := w.plan.agents
	if !w.plan.pure {
		rest += w.plan.voters
	}
	for _, q := range w.procs {
		if q.gone {
			rest--
		}
	}
	w.led.truth.View(func(s *State) { ok = s.Run != nil && s.Run.Phase == Running })
	return ok && rest > 1 && !p.votes
}

func (w *simWorld) harmKillAll() (last time.Duration) {
	for _, p := range w.procs {
		if p.life != nil {
			w.kill(p.life, "harm")
		}
		d := w.draw(20*time.Millisecond, 6*time.Second)
		w.restart(p, d, w.chance(0.1))
		last = max(last, d)
	}
	return last
}

// harmStop is SIGSTOP and, later, SIGCONT: what a node is about to do waits, so
// does all that comes for it, and others may take it for dead meanwhile.
func (w *simWorld) harmStop() time.Duration {
	l := w.victim()
	if l == nil || l.pause != nil {
		return 0
	}
	w.trace.add(w.now(), "stop "+l.id)
	w.mu.Lock()
	l.pause = make(chan struct{})
	w.mu.Unlock()
	d := w.draw(20*time.Millisecond, 7*time.Second)
	w.at(w.draw(300*time.Millisecond, time.Second), "", func() {
		if w.led.leader == l && l.pause != nil {
			w.lose("it is stopped")
		}
	})
	w.at(d, "continue "+l.id, func() { w.cont(l) })
	return d
}

func (w *simWorld) cont(l *simLife) {
	if l.pause == nil {
		return
	}
	w.mu.Lock()
	close(l.pause)
	l.pause = nil
	w.mu.Unlock()
	for _, e := range l.held {
		w.send(l, w.draw(time.Microsecond, 2*time.Millisecond), e.what, e.do)
	}
	l.held = nil
	if w.led.leader != l && l.leads { // it learns of its successor soon
		w.send(l, w.draw(time.Millisecond, 50*time.Millisecond), l.id+" is told that it leads no more", func() {
			if w.led.leader != l {
				w.deposed(l)
			}
		})
	}
}

// harmLeave is SIGTERM: the process hands its slots over.
func (w *simWorld) harmLeave() time.Duration {
	l := w.victim()
	if l == nil {
		return 0
	}
	w.trace.add(w.now(), "terminate "+l.id)
	l.stop()
	w.at(w.draw(time.Second, 9*time.Second), "", func() {
		if !l.isDead() {
			w.kill(l, "it was asked to go")
			w.restart(l.proc, w.draw(50*time.Millisecond, time.Second), false)
		}
	})
	return 11 * time.Second
}

func (w *simWorld) harmCut() time.Duration {
	l := w.victim()
	if l == nil {
		return 0
	}
	c := simCut{true, true}
	switch w.rng.IntN(4) {
	case 0:
		c.in = false
	case 1:
		c.out = false
	}
	both := [2]simCut{c, c}
	switch w.rng.IntN(4) {
	case 0:
		both[simBatches] = simCut{} // it will be taken for dead and works on
	case 1:
		both[simCtl] = simCut{}
	}
	w.trace.add(w.now(), fmt.Sprintf("cut off %s: %v", l.id, both))
	w.cutOff(l, both)
	d := w.draw(20*time.Millisecond, 8*time.Second)
	w.send(l, d, "connect "+l.id, func() { w.cutOff(l, [2]simCut{}) })
	return d
}

// harmLeader takes the office away, by isolation or only so.
func (w *simWorld) harmLeader() time.Duration {
	l := w.led.leader
	if l == nil {
		return 0
	}
	w.lose("harm")
	d := w.draw(100*time.Millisecond, 3*time.Second)
	if p := l.proc; w.chance(0.5) {
		w.led.isolated[p] = true
		w.at(d, p.name+" is back among the voters", func() { delete(w.led.isolated, p) })
	}
	return d
}

func (w *simWorld) harmQuorum() time.Duration {
	d := w.draw(100*time.Millisecond, 8*time.Second)
	w.led.quorum = w.now() + d
	w.lose("no quorum")
	return d
}

func (w *simWorld) harmHung() time.Duration {
	d := w.draw(500*time.Millisecond, 9*time.Second)
	w.led.hung = w.now() + d
	return d
}

func (w *simWorld) harmFull() time.Duration {
	l := w.victim()
	if l == nil {
		return 0
	}
	w.trace.add(w.now(), "the disk of "+l.proc.name+" fails")
	set := func(x bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		l.proc.full = x
	}
	set(true)
	d := w.draw(100*time.Millisecond, 10*time.Second)
	w.at(d, "the disk of "+l.proc.name+" works again", func() { set(false) })
	return d
}

// harmDamage flips a bit of a blob, or loses it.
func (w *simWorld) harmDamage() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.procs[w.rng.IntN(len(w.procs))]
	if l := sums(w.shared); len(l) > 0 && w.chance(0.5) {
		s := l[w.rng.IntN(len(l))]
		w.shared[s] = torn(w.shared[s], w.rng.Uint64()&^1, 2)
	}
	l := sums(p.files)
	if len(l) == 0 {
		return 0
	}
	s := l[w.rng.IntN(len(l))]
	if w.chance(0.5) {
		delete(p.files, s)
		return 0
	}
	p.files[s] = simFile{torn(p.files[s].b, w.rng.Uint64()&^1, 2), p.files[s].at}
	return 0
}

func (w *simWorld) harmStore() time.Duration {
	set := func(x bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.away = x
	}
	set(true)
	d := w.draw(100*time.Millisecond, 8*time.Second)
	w.at(d, "the object store is back", func() { set(false) })
	return d
}

// harmStorm is a bus that loses and delays a lot.
func (w *simWorld) harmStorm() time.Duration {
	w.storms++
	w.net.loss, w.net.dup, w.net.hi = 0.25*w.rng.Float64(), 0.3*w.rng.Float64(), w.draw(5*time.Millisecond, 300*time.Millisecond)
	d := w.draw(50*time.Millisecond, 4*time.Second)
	w.at(d, "the storm is over", func() {
		if w.storms--; w.storms == 0 {
			w.net = w.plan.net
		}
	})
	return d
}
