package coord

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
)

// ckptPlan fixes the boundary at or after the grant: everybody learns of it
// before anybody can pass it.
func (s *State) ckptPlan(e *Entry) Result {
	r, name := s.Run, e.Name
	if r.Plan != nil {
		if e.Why == "" && (name == "" || r.Plan.Name != "") {
			return refuse("a checkpoint at %v is under way", r.Plan.B)
		}
		if name == "" { // a plan that got stuck is made again
			name = r.Plan.Name
		}
	}
	res := Result{At: max(e.At, r.Grant)}
	if e.Name != "" {
		if bad := s.promise(e, res.At); bad != "" {
			return refuse("%s", bad)
		}
		if old := s.saved(name); old != nil {
			res.OldRun, res.OldAt = old.Run, old.Ckpt.B
		}
	}
	r.Plan = &Ckpt{B: res.At, Name: name}
	return res
}

// promise says why there is no snapshot by a name at an instant, "" = there will
// be.
func (s *State) promise(e *Entry, at clock.Time) (bad string) {
	r, old := s.Run, s.saved(e.Name)
	switch end := r.ends(); {
	case e.Firm && e.At < r.Grant:
		return r.gone(e.At)
	case at >= end:
		return fmt.Sprintf("the run ends at %v: there is no snapshot at %v", end, at)
	case old == nil && len(s.Saved) >= maxSaved:
		return fmt.Sprintf("there are %d snapshots, no more are kept: replace one of them by its name and --force", len(s.Saved))
	case old != nil && e.New:
		return fmt.Sprintf("a snapshot %q is there already, of run %s at %v: save under another name, or replace it with --force", e.Name, old.Run, old.Ckpt.B)
	}
	return ""
}

// ckptCommit accepts a checkpoint whose reports all come from current
// incarnations (I6): a superseded one may have run ahead of its successor, and
// collecting batches on its word would starve that one.
func (s *State) ckptCommit(e *Entry) Result {
	r, c := s.Run, e.Ckpt
	if c == nil || r.Plan == nil || c.B != r.Plan.B {
		return refuse("no checkpoint is planned there")
	}
	if len(c.Blobs) != len(r.Slots) {
		return refuse("%d blobs for %d slots", len(c.Blobs), len(r.Slots))
	}
	for i, b := range c.Blobs {
		if b.Inc != r.Slots[i].Inc {
			return refuse("slot %d reports as incarnation %d, current is %d", i, b.Inc, r.Slots[i].Inc)
		}
		if b.N != c.N {
			return refuse("slot %d was cut before window %d, others before %d", i, b.N, c.N)
		}
	}
	x := *c
	x.Name = r.Plan.Name
	r.Ckpts = append(r.Ckpts, x)
	if len(r.Ckpts) > maxCkpts {
		r.Ckpts = r.Ckpts[1:]
	}
	r.Plan = nil
	s.granted()
	if x.Name != "" {
		s.save(x)
	}
	return Result{At: c.B}
}

// reached is the instant before which a run that goes on from c can change
// nothing any more.
func (c *Ckpt) reached() clock.Time {
	t := c.B
	for i := range c.Blobs {
		t = max(t, c.Blobs[i].Now)
	}
	return t
}

// errNoStart: there is nothing before a snapshot to go back to.
const errNoStart = "the snapshot that the run began from cannot be read"

// rollback forgets the checkpoint at e.At and starts all slots again from the
// one before, or from zero: nobody retains batches older than the last commit.
// What is planned stays planned: all will come to it again.
func (r *Run) rollback(e *Entry) Result {
	n := len(r.Ckpts)
	switch {
	case n > 0 && r.Ckpts[n-1].B == e.At:
		r.Ckpts = r.Ckpts[:n-1]
	case n == 0 && r.Start != nil && r.Start.B == e.At:
		return refuse(errNoStart)
	default:
		return refuse("the last checkpoint is not at %v", e.At)
	}
	for i := range r.Slots {
		r.Slots[i].Inc++
		r.Slots[i].Done = nil
	}
	r.Moves += len(r.Slots)
	return Result{}
}

func (s *State) save(c Ckpt) {
	r := s.Run
	sv := Saved{Name: c.Name, Run: r.Spec.ID, Ckpt: c, Spec: r.Spec, Owner: r.Owner, Hash: r.Hash}
	sv.Fault = append(sv.Fault, r.Faults...)
	if old := s.saved(c.Name); old != nil {
		*old = sv
		return
	}
	s.Saved = append(s.Saved, sv)
}

// blobs are the states and parts that the ledger still refers to.
func (s *State) blobs() map[string]bool {
	keep := map[string]bool{}
	add := func(c *Ckpt) {
		if c == nil {
			return
		}
		for _, b := range c.Blobs {
			keep[b.Sum] = true
			for _, sum := range b.Notes {
				keep[sum] = true
			}
		}
	}
	for _, r := range append([]*Run{s.Run}, s.Past...) {
		if r == nil {
			continue
		}
		add(r.Start)
		if r.Phase == Running {
			for i := range r.Ckpts {
				add(&r.Ckpts[i])
			}
		}
		for i := range r.Slots {
			if d := r.Slots[i].Done; d != nil {
				keep[d.Parts] = true
				for _, sum := range d.Notes {
					keep[sum] = true
				}
			}
		}
	}
	for i := range s.Saved {
		add(&s.Saved[i].Ckpt)
	}
	return keep
}

// Ckpt returns the checkpoint a slot starts from: the last committed one, else
// the snapshot the run began from, else nil (time zero).
func (r *Run) Ckpt() *Ckpt {
	if n := len(r.Ckpts); n > 0 {
		return &r.Ckpts[n-1]
	}
	return r.Start
}
