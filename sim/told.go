package sim

import (
	"errors"
	"fmt"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/topology"
)

// maxTold bounds the records that a saved fabric has with it, in packed bytes, 20
// or so each. What does not fit is left out; who joins records into chains counts
// it as missing.
const maxTold = 1 << 27

// told is what a run has told so far: a saved fabric takes it along, so that a
// restored run tells the same as one that was not interrupted.
type told struct {
	keep    bool   // records are kept: the run is saved on its way
	records []byte // batches of records as they were handed out, packed
	full    bool   // maxTold is reached
	past    []byte // batches of a restored fabric, to be handed out once
	when    [3]*Sampler
}

// What when decides: when waits are looked at, records handed over, counters
// sampled.
const (
	whenLooks = iota
	whenBatches
	whenSamples
	numWhen
)

func newTold(p *topology.Plan) told {
	return told{when: [numWhen]*Sampler{whenLooks: Looks(p), whenBatches: Batches(p), whenSamples: NewSampler(p)}}
}

// add keeps a batch that was handed out.
func (t *told) add(batch []record.Record) {
	if !t.keep || t.full {
		return
	}
	n := len(t.records)
	if t.records = record.AppendBatch(t.records, batch); len(t.records) > maxTold {
		t.records, t.full = t.records[:n], true
	}
}

// again hands out what was told before the fabric was saved, in the same batches.
func (t *told) again(to func([]record.Record)) error {
	var batch []record.Record
	for b := t.past; len(b) > 0; {
		var err error
		if batch, b, err = record.DecodeBatch(batch[:0], b); err != nil {
			return fmt.Errorf("saved fabric: %w", err)
		}
		t.add(batch)
		to(batch)
	}
	t.past = nil
	return nil
}

// save appends what was told, and when something is due next.
func (t *told) save(w *snap.Writer) {
	w.Bytes(t.records)
	w.Bool(t.full)
	w.Bool(t.keep)
	for _, s := range t.when {
		for _, v := range s.State() {
			w.I64(v)
		}
	}
}

// restore is the inverse, into a run of a fabric saved at an instant. A fabric
// that was not run by [Run] knows of no instants: they begin anew from there.
func (t *told) restore(r *snap.Reader, at clock.Time) {
	t.past, t.full = r.Bytes(), r.Bool()
	kept := r.Bool()
	for _, s := range t.when {
		state := [4]int64{r.I64(), r.I64(), r.I64(), r.I64()}
		switch {
		case kept && s.takes(state):
			s.SetState(state)
		default:
			s.from(at)
		}
	}
}

// takes says whether a state is of a sampler of this plan.
func (s *Sampler) takes(v [4]int64) bool {
	return v[0] >= 0 && v[1] >= int64(s.Base) && v[1]%int64(s.Base) == 0 && v[2]%int64(s.Base) == 0 && v[2] >= 0 && v[3] >= 0
}

// from leaves out the instants before t.
func (s *Sampler) from(t clock.Time) {
	s.tick = t.Add(s.Base - 1)
	s.tick -= s.tick % clock.Time(s.Base)
}

// save appends the deadlocks found so far.
func (d *Deadlocks) save(w *snap.Writer) {
	w.Len(d.told)
	w.Len(len(d.found))
	for i := range d.found {
		w.Time(d.found[i].At)
		w.Len(len(d.found[i].Cycle))
		for _, n := range d.found[i].Cycle {
			w.U32(uint32(n.Dev))
			w.U16(n.Port)
			w.U8(n.Prio)
		}
	}
}

// errDeadlocks is a list that no fabric of these devices has saved.
var errDeadlocks = errors.New("saved fabric: malformed deadlocks")

// restore is the inverse: what was found is not found again.
func (d *Deadlocks) restore(r *snap.Reader) error {
	d.told = int(r.U32())
	for range r.Len() {
		x := fabric.Deadlock{At: r.Time()}
		for range r.Len() {
			n := fabric.Node{Dev: int32(r.U32()), Port: r.U16(), Prio: r.U8()}
			if n.Dev < 0 || int(n.Dev) >= len(d.plan.Devices) {
				return errDeadlocks
			}
			x.Cycle = append(x.Cycle, n)
		}
		if r.Err != nil || len(x.Cycle) == 0 {
			return errDeadlocks
		}
		d.found = append(d.found, x)
	}
	if r.Err != nil || len(r.B) != 0 || d.told < 0 || d.told > len(d.found) {
		return errDeadlocks
	}
	d.watch.Known(d.found)
	return nil
}
