package coord

import (
	"bytes"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rocemu/rocemu/clock"
)

// simLedger stands for Raft: one log, of which every voter has a lagging copy.
// What a leader proposes is committed after a while, unless it ceases to lead
// before: then a coin decides whether its successor has the entry, and the
// proposer is told an error either way.
type simLedger struct {
	log      [][]byte
	truth    *Replica
	leader   *simLife
	inflight []*simProposal
	hung     time.Duration // the leader's disk answers from then on
	quorum   time.Duration // there is none before
	isolated map[*simProc]bool
	electing bool
	applyHi  time.Duration // lag of followers, at most
}

type simProposal struct {
	l    *simLife
	b    []byte
	done chan simOutcome
	gone bool // committed, or lost
}

type simOutcome struct {
	r   Result
	err error
}

func (p *simProposal) before(q *simProposal) bool {
	if p.l != q.l {
		return p.l.id < q.l.id
	}
	return bytes.Compare(p.b, q.b) < 0
}

func (p *simProposal) reply(r Result, err error) {
	select {
	case p.done <- simOutcome{r, err}:
	default:
	}
}

// simVoter is a life's view of the ledger.
type simVoter struct{ l *simLife }

func (v simVoter) propose(b []byte, wait time.Duration) (Result, error) {
	l := v.l
	if err := l.hold(); err != nil {
		return Result{}, err
	}
	if !v.leads() {
		return Result{}, raft.ErrNotLeader
	}
	p := &simProposal{l: l, b: bytes.Clone(b), done: make(chan simOutcome, 1)}
	l.w.mu.Lock()
	l.w.props = append(l.w.props, p)
	l.w.mu.Unlock()
	l.w.poke()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case o := <-p.done:
		return o.r, o.err
	case <-l.dead:
		return Result{}, raft.ErrRaftShutdown
	case <-timer.C:
		if v.leads() {
			return Result{}, errHung
		}
		return Result{}, raft.ErrLeadershipLost
	}
}

func (v simVoter) leads() bool {
	v.l.w.mu.Lock()
	defer v.l.w.mu.Unlock()
	return v.l.leads && !v.l.isDead()
}

func (v simVoter) leader() string {
	v.l.w.mu.Lock()
	defer v.l.w.mu.Unlock()
	if l := v.l.w.led.leader; l != nil {
		return l.proc.name
	}
	return ""
}

// barrier and heardOf are for the services of micro, which no one uses here.
func (v simVoter) barrier(time.Duration) error       { return raft.ErrNotLeader }
func (v simVoter) heardOf() time.Duration            { return 0 }
func (v simVoter) told() string                      { return "at-" + v.l.proc.name }
func (v simVoter) bootstrapped() bool                { return true }
func (v simVoter) bootstrap(map[string]string) error { return nil }
func (v simVoter) addVoter(string, string) error     { return nil }
func (v simVoter) heard(string, string)              {}
func (v simVoter) close()                            {}
func (v simVoter) kill()                             {}
func (v simVoter) voters() map[string]string {
	m := map[string]string{}
	for _, p := range v.l.w.procs {
		if p.votes {
			m[p.name] = "at-" + p.name
		}
	}
	return m
}

// proposed takes a proposal from a node.
func (w *simWorld) proposed(p *simProposal) {
	w.trace.add(w.now(), fmt.Sprintf("%s proposes %s", p.l.id, p.b))
	if p.l != w.led.leader {
		w.send(p.l, w.draw(time.Millisecond, 20*time.Millisecond), "", func() { p.reply(Result{}, raft.ErrLeadershipLost) })
		return
	}
	w.led.inflight = append(w.led.inflight, p)
	w.at(max(w.draw(time.Millisecond, 15*time.Millisecond), w.led.hung-w.now()), "", func() { w.commit(p) })
}

// commit enters a proposal of the leader's; its answer comes when the leader
// has applied it.
func (w *simWorld) commit(p *simProposal) {
	if p.gone {
		return
	}
	if d := w.led.hung - w.now(); d > 0 {
		w.at(d, "", func() { w.commit(p) })
		return
	}
	w.enter(p)
	if w.chance(0.01) {
		w.trace.add(w.now(), "its outcome stays unknown")
		w.send(p.l, time.Millisecond, "", func() { p.reply(Result{}, raft.ErrEnqueueTimeout) })
		return
	}
	p.l.waits[len(w.led.log)] = p
}

// enter appends to the log.
func (w *simWorld) enter(p *simProposal) {
	p.gone = true
	for i, x := range w.led.inflight {
		if x == p {
			w.led.inflight = append(w.led.inflight[:i:i], w.led.inflight[i+1:]...)
			break
		}
	}
	w.append(p.b)
}

func (w *simWorld) append(b []byte) {
	w.led.log = append(w.led.log, b)
	before := w.ledgerBefore()
	r := w.led.truth.Apply(b)
	w.trace.add(w.now(), fmt.Sprintf("entry %d is %s: %v", len(w.led.log), b, r))
	w.checkEntry(before, b, r)
	if w.led.truth.View(func(s *State) { w.running = w.running || s.Run != nil && s.Run.Phase == Running }); w.running && !w.began {
		w.began = true
		w.placed()
	}
	if e, err := DecodeEntry(b); err == nil && r.Err == "" {
		w.tender(e.Kind)
		w.entered(e, r)
	}
	for _, q := range w.procs {
		if q.votes && q.life != nil {
			w.pump(q.life)
		}
	}
}

// pump has a voter apply what it lacks, entry by entry.
func (w *simWorld) pump(l *simLife) {
	if l.applying || l.applied >= len(w.led.log) {
		return
	}
	l.applying = true
	d := w.draw(50*time.Microsecond, w.led.applyHi)
	if l == w.led.leader || l.applied+8 < len(w.led.log) { // it catches up in one go
		d = w.draw(20*time.Microsecond, 500*time.Microsecond)
	}
	i := l.applied + 1
	w.send(l, d, fmt.Sprintf("%s applies %d", l.id, i), func() {
		l.applying = false
		r := l.node.rep.Apply(w.led.log[l.applied])
		l.applied++
		if p := l.waits[i]; p != nil {
			delete(l.waits, i)
			p.reply(r, nil)
		}
		w.pump(l)
	})
}

// lose ends the leader's term.
func (w *simWorld) lose(why string) {
	old := w.led.leader
	if old != nil {
		w.trace.add(w.now(), fmt.Sprintf("%s leads no more: %s", old.id, why))
		w.led.hung = 0
		w.setLeader(nil)
		if old.pause == nil {
			w.deposed(old)
		}
		for _, p := range w.led.inflight {
			if p.gone = true; w.chance(0.5) {
				w.append(p.b)
			}
			w.send(old, w.draw(time.Millisecond, 50*time.Millisecond), "", func() { p.reply(Result{}, raft.ErrLeadershipLost) })
		}
		w.led.inflight = nil
		for i, p := range old.waits { // applied, and the leader does not know it any more
			delete(old.waits, i)
			p.reply(Result{}, raft.ErrLeadershipLost)
		}
	}
	if !w.led.electing {
		w.led.electing = true
		w.at(w.draw(300*time.Millisecond, 1200*time.Millisecond), "election", w.elect)
	}
}

// deposed tells a process that it leads no more; one that was stopped believes
// it a little longer.
func (w *simWorld) deposed(l *simLife) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.leads = false
}

func (w *simWorld) setLeader(l *simLife) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.led.leader = l; l != nil {
		l.leads = true
	}
}

func (w *simWorld) elect() {
	var can []*simLife
	n := 0
	for _, p := range w.procs {
		if p.votes {
			n++
			if l := p.life; l != nil && l.pause == nil && !w.led.isolated[p] {
				can = append(can, l)
			}
		}
	}
	if len(can) <= n/2 || w.now() < w.led.quorum {
		w.at(200*time.Millisecond, "", w.elect)
		return
	}
	w.led.electing = false
	l := can[w.rng.IntN(len(can))]
	w.trace.add(w.now(), l.id+" leads")
	w.setLeader(l)
}

// checkCopies: the same entries give the same state everywhere.
func (w *simWorld) checkCopies() {
	var want []byte
	w.led.truth.View(func(s *State) { want, _ = s.Encode() })
	for _, p := range w.procs {
		if p.life == nil {
			continue
		}
		p.life.node.rep.View(func(s *State) {
			if b, _ := s.Encode(); s.Seq == uint64(len(w.led.log)) && !bytes.Equal(b, want) {
				w.violate("the ledger's state in %s is %s, not %s", p.life.id, b, want)
			}
		})
	}
}

// ledgerBefore is what checkEntry compares with.
func (w *simWorld) ledgerBefore() (x simBefore) {
	w.led.truth.View(func(s *State) {
		if s.Run == nil {
			return
		}
		x.run, x.grant = s.Run.Spec.ID, s.Run.Grant
		for i := range s.Run.Slots {
			x.incs = append(x.incs, s.Run.Slots[i].Inc)
		}
	})
	return x
}

type simBefore struct {
	run   string
	grant clock.Time
	incs  []uint64
}

// checkEntry holds the ledger to I6 and I7 after an entry.
func (w *simWorld) checkEntry(before simBefore, b []byte, r Result) {
	e, err := DecodeEntry(b)
	if err != nil {
		w.violate("entry %s: %v", b, err)
		return
	}
	w.led.truth.View(func(s *State) {
		if s.Run == nil || s.Run.Spec.ID != before.run {
			return
		}
		if s.Run.Grant < before.grant {
			w.violate("I7: the grant fell from %v to %v", before.grant, s.Run.Grant)
		}
		for i := range s.Run.Faults {
			if f := &s.Run.Faults[i]; f.Seq == s.Seq && f.Eff < before.grant {
				w.violate("I7: fault %q at %v, granted is %v", f.Text, f.Eff, before.grant)
			}
		}
		if e.Kind != KindCkptCommit || r.Err != "" {
			return
		}
		w.ckpts++
		c := s.Run.Ckpts[len(s.Run.Ckpts)-1]
		for i, x := range c.Blobs {
			k := simState{before.run, i, x.N}
			if old, ok := w.states[k]; ok && old != x.Sum {
				w.violate("I4: two states of slot %d before window %d", i, x.N)
			}
			w.states[k] = x.Sum
			if x.Inc != before.incs[i] {
				w.violate("I6: slot %d of the checkpoint at %v is of incarnation %d, current is %d", i, c.B, x.Inc, before.incs[i])
			}
		}
	})
}
