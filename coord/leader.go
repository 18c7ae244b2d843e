package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"sync"
	"time"
)

// leader is what a coordinator knows beside the ledger, and what it does about
// it while it leads: found the cluster, admit and evict members, place, grant
// virtual time, plan and commit checkpoints. Losing all of it loses nothing.
type leader struct {
	n  *Node
	mu sync.Mutex
	// By member.
	beats map[string]*seen
	ran   time.Time          // when this process last told that it runs, zero = not yet
	ckpts map[int]ckptReport // by slot, for the planned boundary

	wake    chan struct{}
	layout  chan layoutDone
	busy    string // run whose layout is being resolved
	placed  *Layout
	placeID string
	since   time.Time // when the run was first seen unplaced
	grants  granter
	balance balancer
	lastCk  time.Time
	plan    planKey // checkpoint being waited for: a window after planN is past it
	planN   uint64
	planAt  time.Time // when one of them was first run
	swept   time.Time
	beacon  time.Time
}

type seen struct {
	heartbeat
	at   time.Time
	left time.Time // when it first said that it leaves
}

type layoutDone struct {
	run string
	l   *Layout
	err error
}

func newLeader(n *Node) *leader {
	return &leader{n: n, beats: map[string]*seen{}, ckpts: map[int]ckptReport{}, wake: make(chan struct{}, 1), layout: make(chan layoutDone, 1)}
}

func (l *leader) onBeat(m *request) {
	var h heartbeat
	if json.Unmarshal(m.Data, &h) != nil || h.Member.Name == "" || len(h.Member.Name) > 256 {
		return
	}
	if c := l.n.cons; c != nil {
		c.heard(h.Member.Name, h.Member.Raft)
	}
	l.mu.Lock()
	old := l.beats[h.Member.Name]
	s := &seen{heartbeat: h, at: time.Now()}
	if h.Leaving {
		s.left = s.at
		if old != nil && !old.left.IsZero() {
			s.left = old.left
		}
	}
	l.beats[h.Member.Name] = s
	l.mu.Unlock()
	l.poke()
}

func (l *leader) onReport(m *request) {
	var k ckptReport
	if json.Unmarshal(m.Data, &k) != nil || k.Slot < 0 || !validSum(k.Blob.Sum) {
		return
	}
	l.mu.Lock()
	l.ckpts[k.Slot] = k
	l.mu.Unlock()
	l.poke()
}

func (l *leader) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run is the leader's loop; it does nothing while another coordinator leads.
func (l *leader) run(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	led := false
	l.poke()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.wake:
		case d := <-l.layout:
			l.resolved(d)
		}
		l.drain(tick.C)
		l.found()
		if !l.n.cons.leads() {
			led = false
			continue
		}
		if !led {
			led = true
			l.elected()
		}
		l.duties(ctx)
	}
}

// drain takes all that is due: how often the loop goes round must not depend on
// which of several causes it took first.
func (l *leader) drain(tick <-chan time.Time) {
	for {
		select {
		case <-tick:
		case <-l.wake:
		case d := <-l.layout:
			l.resolved(d)
		default:
			return
		}
	}
}

// elected starts a term: everybody gets the benefit of the doubt, and grants
// begin again from what the ledger says.
func (l *leader) elected() {
	l.mu.Lock()
	now := time.Now()
	for _, b := range l.beats {
		b.at = now
	}
	l.mu.Unlock()
	l.grants, l.balance = granter{}, balancer{}
	l.lastCk = now
	l.n.log.Info("this coordinator leads", "name", l.n.cfg.Name)
}

func (l *leader) duties(ctx context.Context) {
	if time.Since(l.beacon) > 100*time.Millisecond {
		l.beacon = time.Now()
		l.n.sendFeed(feed{Leader: l.n.cfg.Name, Seq: l.n.rep.Seq()})
	}
	l.voters()
	l.members()
	l.place()
	l.failover()
	l.grant()
	l.checkpoint()
	l.rebalance()
	if time.Since(l.swept) > 15*time.Second {
		l.swept = time.Now()
		go l.n.sweep(true)
	}
}

// commit proposes an entry of the leader's own; what is refused is only noted,
// since the next round sees the new state.
func (l *leader) commit(e *Entry) bool {
	b, err := e.Encode()
	if err != nil {
		l.n.log.Error("entry", "kind", e.Kind, "err", err)
		return false
	}
	r, err := l.n.commit(b)
	if err != nil {
		l.n.log.Warn("not committed", "kind", e.Kind, "err", err)
		return false
	}
	if r.Err != "" {
		l.n.log.Debug("refused", "kind", e.Kind, "why", r.Err)
		return false
	}
	return true
}

// found bootstraps Raft once enough coordinators are heard; the first by name
// does it, the others are contacted by it.
func (l *leader) found() {
	c := l.n.cons
	if c.leader() != "" || c.bootstrapped() {
		return
	}
	voters := map[string]string{l.n.cfg.Name: c.told()}
	l.mu.Lock()
	for name, b := range l.beats {
		if b.Member.Raft != "" {
			voters[name] = b.Member.Raft
		}
	}
	l.mu.Unlock()
	if len(voters) < max(1, l.n.cfg.Expect) {
		return
	}
	for name := range voters {
		if name < l.n.cfg.Name {
			return
		}
	}
	if err := c.bootstrap(voters); err != nil {
		l.n.log.Error("bootstrap", "err", err)
	}
}

// voters admits coordinators that came later or at another address.
func (l *leader) voters() {
	l.mu.Lock()
	want := map[string]string{}
	for name, b := range l.beats {
		if b.Member.Raft != "" && time.Since(b.at) < l.n.cfg.Silence {
			want[name] = b.Member.Raft
		}
	}
	l.mu.Unlock()
	have := l.n.cons.voters()
	for name, addr := range want {
		if have[name] != addr && len(have) > 0 {
			if err := l.n.cons.addVoter(name, addr); err != nil {
				l.n.log.Warn("voter", "name", name, "err", err)
				return
			}
		}
	}
}

// stoodFrom is how long a process does nothing before it counts as stopped: its
// heartbeats come more often.
const stoodFrom = 500 * time.Millisecond

// runs notes that this process runs. When it did not for a while, stopped or
// without a core, it has heard nobody meanwhile: that is not the others' silence.
func (l *leader) runs() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awake(time.Now())
}

// awake is runs under l.mu.
func (l *leader) awake(now time.Time) {
	if stood := now.Sub(l.ran); stood > stoodFrom && !l.ran.IsZero() {
		for _, b := range l.beats {
			if b.at = b.at.Add(stood); b.at.After(now) {
				b.at = now
			}
		}
	}
	l.ran = now
}

// members enters who is heard and evicts who is silent.
func (l *leader) members() {
	known := map[string]Member{}
	l.n.rep.View(func(s *State) {
		for n, m := range s.Members {
			known[n] = *m
		}
	})
	now := time.Now()
	l.mu.Lock()
	if !l.ran.IsZero() {
		l.awake(now)
	}
	for name, m := range known { // not heard yet: its time begins when the ledger's copy here has it, which may be after the election
		if m.Up && l.beats[name] == nil {
			l.beats[name] = &seen{heartbeat: heartbeat{Member: m}, at: now}
		}
	}
	var in, out []*seen
	for name, b := range l.beats {
		k, ok := known[name]
		alive := now.Sub(b.at) < l.n.cfg.Silence
		switch {
		case alive && !b.Leaving && (!ok || !k.Up || k.Boot != b.Member.Boot):
			in = append(in, b)
		case !alive && ok && k.Up:
			out = append(out, b)
		}
	}
	l.mu.Unlock()
	byName(in)
	byName(out)
	for _, b := range in {
		m := b.Member
		if old, ok := known[m.Name]; ok && old.Up && old.Boot != m.Boot { // it came back before it was missed
			l.n.log.Warn("member restarted", "member", m.Name)
			l.replace(m.Name, m.Boot)
		}
		if l.commit(&Entry{Kind: KindMember, Member: &m}) {
			l.n.log.Info("member joins", "member", m.Name, "cores", m.Cores)
		}
	}
	for _, b := range out {
		l.n.log.Warn("member is silent", "member", b.Member.Name, "for", now.Sub(b.at))
		l.commit(&Entry{Kind: KindEvict, To: b.Member.Name, Why: "silent"})
	}
}

// byName orders members: what a leader does must not hang on a map's order.
func byName(l []*seen) {
	sort.Slice(l, func(i, j int) bool { return l[i].Member.Name < l[j].Member.Name })
}

// replace renews the slots of a member that was started again under its name.
func (l *leader) replace(name, boot string) {
	var moves []*Entry
	l.n.rep.View(func(s *State) {
		if s.Run == nil || s.Run.Phase != Running {
			return
		}
		for i, x := range s.Run.Slots {
			if x.Owner == name {
				moves = append(moves, &Entry{Kind: KindMove, Run: s.Run.Spec.ID, Slot: i, Inc: x.Inc, To: name, Cmd: fmt.Sprintf("again-%s-%d-%d-%s", s.Run.Spec.ID, i, x.Inc, boot)})
			}
		}
	})
	for _, e := range moves {
		l.commit(e)
	}
}

// up lists the members that can take slots, by name.
func (l *leader) up(build string) []*Member {
	var out []*Member
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n.rep.View(func(s *State) {
		for n, m := range s.Members {
			b := l.beats[n]
			if m.Up && !m.NoSlots && (build == "" || m.Build == build) && b != nil && !b.Leaving {
				c := *m
				out = append(out, &c)
			}
		}
	})
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// place resolves a new run beside the loop and assigns its slots.
func (l *leader) place() {
	var spec *RunSpec
	var fixed []int32
	l.n.rep.View(func(s *State) {
		if s.Run != nil && s.Run.Phase == Placing {
			c := s.Run.Spec
			spec, fixed = &c, s.Run.Owner
		}
	})
	if spec == nil {
		l.busy = ""
		return
	}
	if l.busy != spec.ID {
		l.busy, l.placed, l.since = spec.ID, nil, time.Now()
		go func() {
			lay, err := l.n.cfg.Model.Layout(spec)
			l.layout <- layoutDone{spec.ID, lay, err}
		}()
	}
	if l.placed == nil || l.placeID != spec.ID {
		return
	}
	members := l.up(l.n.cfg.Build)
	if len(members) < max(1, spec.Members) || spec.Members == 0 && time.Since(l.since) < time.Second {
		return
	}
	if spec.Members > 0 {
		members = members[:spec.Members]
	}
	owner, slots, err := place(l.placed, members, fixed)
	if err != nil {
		if time.Since(l.since) > 30*time.Second {
			l.commit(&Entry{Kind: KindFail, Run: spec.ID, Why: err.Error()})
		}
		return
	}
	l.commit(&Entry{Kind: KindPlace, Run: spec.ID, Owner: owner, Slots: slots, Hash: l.placed.Hash, Window: l.placed.Window, End: l.placed.End})
}

func (l *leader) resolved(d layoutDone) {
	if d.err != nil {
		l.commit(&Entry{Kind: KindFail, Run: d.run, Why: d.err.Error()})
		return
	}
	l.placed, l.placeID = d.l, d.run
}

// failover gives the slots of lost and leaving members to others.
func (l *leader) failover() {
	type lost struct {
		slot int
		inc  uint64
	}
	var ls []lost
	var run, build string
	var slots []Slot
	leaving := map[string]time.Time{}
	l.mu.Lock()
	for name, b := range l.beats {
		if b.Leaving {
			leaving[name] = b.left
		}
	}
	l.mu.Unlock()
	plan := false
	l.n.rep.View(func(s *State) {
		r := s.Run
		if r == nil || r.Phase != Running {
			return
		}
		run, build = r.Spec.ID, r.Spec.Build
		for i, x := range r.Slots {
			m := s.Members[x.Owner]
			t, goes := leaving[x.Owner]
			switch {
			case m == nil || !m.Up || m.Build != build:
				ls = append(ls, lost{i, x.Inc})
			case goes && (l.lastCk.After(t) || time.Since(t) > 4*time.Second):
				ls = append(ls, lost{i, x.Inc})
			default:
				slots = append(slots, x)
				plan = plan || goes && r.Plan == nil
			}
		}
	})
	if plan { // hand over at a checkpoint
		l.commit(&Entry{Kind: KindCkptPlan, Run: run})
	}
	if len(ls) == 0 {
		return
	}
	members := l.up(build)
	if len(members) == 0 {
		return
	}
	for _, x := range ls {
		to := lightest(members, slots)
		if l.commit(&Entry{Kind: KindMove, Run: run, Slot: x.slot, Inc: x.inc, To: to}) {
			l.n.log.Warn("slot moves", "slot", x.slot, "to", to)
			slots = append(slots, Slot{Owner: to, Weight: 1})
		}
	}
}

// front is how far the run's current incarnations are.
func (l *leader) front(r *Run) (f front) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.beats {
		for _, s := range b.Slots {
			if s.Run == r.Spec.ID && s.Slot < len(r.Slots) && s.Inc == r.Slots[s.Slot].Inc {
				f.m, f.want, f.n = max(f.m, s.M), max(f.want, s.Want), max(f.n, s.N)
			}
		}
	}
	return f
}
