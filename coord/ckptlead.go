package coord

import (
	"time"

	"github.com/rocemu/rocemu/clock"
)

// planKey names a planned checkpoint.
type planKey struct {
	run string
	b   clock.Time
}

// stuckAfter is for how long slots may store the states of a checkpoint that all
// have passed.
const stuckAfter = 2 * time.Minute

// checkpoint plans, collects and commits.
func (l *leader) checkpoint() {
	var run Run
	var ok bool
	l.n.rep.View(func(s *State) {
		if s.Run != nil && s.Run.Phase == Running {
			run, ok = *s.Run, true
			run.Slots = append([]Slot(nil), s.Run.Slots...)
		}
	})
	if !ok {
		l.lastCk = time.Now()
		return
	}
	every := time.Duration(run.Spec.CkptMS) * time.Millisecond
	if every == 0 {
		every = 10 * time.Second
	}
	if run.Plan == nil {
		if every > 0 && !run.Paused && (time.Since(l.lastCk) > every || l.pressure() > 0.8 && time.Since(l.lastCk) > time.Second) {
			l.commit(&Entry{Kind: KindCkptPlan, Run: run.Spec.ID})
		}
		return
	}
	c := l.collect(&run)
	if c == nil {
		if l.stuck(&run) {
			l.planAt = time.Now()
			l.commit(&Entry{Kind: KindCkptPlan, Run: run.Spec.ID, Why: "not all states were stored"})
		}
		return
	}
	if l.commit(&Entry{Kind: KindCkptCommit, Run: run.Spec.ID, Ckpt: c}) {
		l.lastCk = time.Now()
		l.n.log.Info("checkpoint", "boundary", c.B, "window", c.N)
	}
}

// stuck reports whether a state could not be stored. Time that stands still, or
// has not come there, is no reason: who waits for a window has not passed it.
func (l *leader) stuck(r *Run) bool {
	const none = ^uint64(0)
	p, f := planKey{r.Spec.ID, r.Plan.B}, l.front(r)
	switch {
	case p != l.plan || f.m <= p.b:
		l.plan, l.planN = p, none
	case l.planN == none:
		l.planN = f.n
	}
	if l.planN == none || f.n <= l.planN {
		l.planAt = time.Now()
	}
	return time.Since(l.planAt) > stuckAfter
}

func (l *leader) pressure() (p float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.beats {
		for i := range b.Slots {
			p = max(p, b.Slots[i].Pressure)
		}
	}
	return p
}

// collect returns the planned checkpoint once every current incarnation has
// reported it.
func (l *leader) collect(r *Run) *Ckpt {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Ckpt{B: r.Plan.B}
	for i := range r.Slots {
		k, ok := l.ckpts[i]
		if !ok || k.Run != r.Spec.ID || k.B != r.Plan.B || k.Blob.Inc != r.Slots[i].Inc {
			return nil
		}
		c.N = k.Blob.N
		c.Blobs = append(c.Blobs, k.Blob)
	}
	return c
}
