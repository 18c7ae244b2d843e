package coord

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reconcile makes the running slots those that the ledger gives this process.
func (n *Node) reconcile() {
	n.mu.Lock() // before the replica's, which View takes
	defer n.mu.Unlock()
	want := map[int]*runner{}
	var commit uint64
	var id string
	n.rep.View(func(s *State) {
		r := s.Run
		if r == nil || r.Phase != Running {
			return
		}
		// A coordinator that was started again reads its old log first: what is
		// older than its own joining says nothing of what to run now.
		if m := s.Members[n.cfg.Name]; m == nil || m.Boot != n.boot {
			return
		}
		id = r.Spec.ID
		if k := len(r.Ckpts); k > 0 {
			commit = r.Ckpts[k-1].N
		}
		for i := range r.Slots {
			if x := &r.Slots[i]; x.Owner == n.cfg.Name {
				want[i] = &runner{node: n, run: id, slot: i, inc: x.Inc}
				n.fill(want[i], r)
			}
		}
	})
	for i, r := range n.runs {
		w := want[i]
		if w == nil || w.run != r.run || w.inc != r.inc {
			r.cancel()
			delete(n.runs, i)
			continue
		}
		if c := r.carrier.Load(); c != nil && commit > 0 {
			c.Committed(commit)
		}
		delete(want, i)
	}
	for i, w := range want {
		if n.leaving.Load() {
			break
		}
		n.start(i, w)
	}
}

// fill copies what a runner needs of the run; both locks are held.
func (n *Node) fill(w *runner, r *Run) {
	if n.runs[w.slot] != nil && n.runs[w.slot].inc == w.inc && n.runs[w.slot].run == w.run {
		return // it runs already
	}
	w.spec, w.owner, w.slots, w.hash = r.Spec, append([]int32(nil), r.Owner...), len(r.Slots), r.Hash
	w.faults = append([]Fault(nil), r.Faults...)
	if c := r.Ckpt(); c != nil {
		x := *c
		x.Blobs = append([]Blob(nil), c.Blobs...)
		w.start, w.first = &x, len(r.Ckpts) == 0
	}
}

func (n *Node) start(slot int, w *runner) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.log, w.t0, w.looks = cancel, n.log, time.Now(), make(chan *look, maxLooks)
	n.runs[slot] = w
	n.log.Info("slot starts", "run", w.run, "slot", slot, "incarnation", w.inc, "checkpoint", w.start != nil)
	go func() {
		defer cancel()
		err := n.refuse(w)
		if err == nil {
			err = w.execute(ctx)
		}
		if harmless(err) {
			n.log.Info("slot stops", "run", w.run, "slot", slot, "incarnation", w.inc)
			return
		}
		n.log.Error("slot failed", "run", w.run, "slot", slot, "err", err)
		n.fail(ctx, w, err)
	}()
}

// refuse checks that this process resolves the plan the leader resolved.
func (n *Node) refuse(w *runner) error {
	if w.spec.Build != n.cfg.Build {
		return fmt.Errorf("%s is build %s, the run wants %s", n.cfg.Name, n.cfg.Build, w.spec.Build)
	}
	l, err := n.cfg.Model.Layout(&w.spec)
	if err != nil {
		return err
	}
	if l.Hash != w.hash {
		return fmt.Errorf("%s resolves plan %.12s, the leader %.12s", n.cfg.Name, l.Hash, w.hash)
	}
	return nil
}

// fail ends the run with a reason, or takes everybody back when a checkpoint is
// lost.
func (n *Node) fail(ctx context.Context, w *runner, why error) {
	e := &Entry{Cmd: fmt.Sprintf("fail-%s-%d-%d", w.run, w.slot, w.inc), Kind: KindFail, Run: w.run, Slot: w.slot, Inc: w.inc, Why: why.Error()}
	var lost *lostState
	if errors.As(why, &lost) {
		e.Kind, e.At = KindRollback, lost.B
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	res, err := n.propose(ctx, e)
	if err == nil && res.Err == errNoStart {
		e.Kind, e.Cmd = KindFail, e.Cmd+"-start"
		_, err = n.propose(ctx, e)
	}
	if err != nil {
		n.log.Error("the failure is not in the ledger", "err", err)
	}
}

func (n *Node) stopAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, r := range n.runs {
		r.cancel()
		delete(n.runs, i)
	}
}
