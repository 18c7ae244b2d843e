package emu

import (
	"encoding/binary"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// noter makes the notes of a share.
type noter struct {
	log     noteLog
	sampler *sim.Sampler // nil: no samples
	snap    counters.Snapshot
	last    []counters.Point
	rec     []record.Record
	batches *sim.Sampler // when batches of records are due
	upTo    uint64       // they are noted up to this number
	looks   *sim.Sampler // when waits are noted
	anew    bool         // of every switch: what is in the log is not known
	waited  bool         // waits were noted since the last batch of records
	spotter spotter
}

// begin decides when what is noted.
func (t *noter) begin(p *topology.Plan, series bool) {
	t.batches, t.looks = sim.Batches(p), sim.Looks(p)
	if series {
		t.sampler = sim.NewSampler(p)
	}
}

// between notes what is due before window n. Records come in the batches in
// which one process would drain them.
func (t *noter) between(f *sim.Fabric, start clock.Time, n uint64) {
	t.spotter.read()
	if at, ok := t.looks.Due(start); ok {
		t.waits(f, at, n+1)
	}
	f.Engine.Cut = t.looks.Next()
	if t.sampler != nil {
		if at, ok := t.sampler.Due(start); ok {
			t.sample(f, at, n+1)
		}
		f.Engine.Cut = min(f.Engine.Cut, t.sampler.Next())
	}
	if _, ok := t.batches.Due(start); ok {
		t.records(f, n+1)
		t.upTo = n + 1
	}
	f.Engine.Cut = min(f.Engine.Cut, t.batches.Next())
}

// waits notes what changed in the waits of switches.
func (t *noter) waits(f *sim.Fabric, at clock.Time, n uint64) {
	if w := f.Waits(at, t.anew); len(w) > 0 {
		t.anew = !t.log.waits(n, at, w)
		t.waited = true
	}
}

func (t *noter) sample(f *sim.Fabric, at clock.Time, n uint64) {
	f.Snapshot(at, &t.snap)
	if !t.log.sample(n, &t.snap, t.last) {
		t.last = t.last[:0] // the next one is whole
		return
	}
	t.last = append(t.last[:0], t.snap.Points...)
}

// records notes a batch. An empty one marks where one process hands out what it
// made of the waits before.
func (t *noter) records(f *sim.Fabric, n uint64) {
	if t.rec = f.TakeRecords(t.rec[:0]); len(t.rec) > 0 || t.waited {
		t.log.records(n, t.rec)
	}
	t.waited = false
	t.spotter.flush(&t.log, n)
}

// take hands over what was noted and not handed over yet, right before window n:
// a checkpoint keeps nothing of what was seen.
func (t *noter) take(n uint64) []byte {
	t.spotter.flush(&t.log, n+1)
	return t.log.take()
}

// finish notes what there is at the end of a run. Its result is of at.
func (t *noter) finish(f *sim.Fabric, end, at clock.Time, n uint64) {
	t.log.ends = true
	t.spotter.read()
	t.waits(f, end, n+1)
	if t.sampler != nil && t.sampler.Count > 0 {
		t.log.end(n + 1)
		t.sample(f, at, n+1)
	}
	t.records(f, n+1)
}

// samplers are what decides when something is due.
func (t *noter) samplers() []*sim.Sampler {
	if t.sampler == nil {
		return []*sim.Sampler{t.batches, t.looks}
	}
	return []*sim.Sampler{t.batches, t.looks, t.sampler}
}

// keep is what a checkpoint needs to go on from here.
func (t *noter) keep() []byte {
	b := binary.AppendUvarint(nil, t.upTo)
	waited := uint64(0)
	if t.waited {
		waited = 1
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, waited), t.spotter.told)
	for _, s := range t.samplers() {
		for _, v := range s.State() {
			b = binary.AppendVarint(b, v)
		}
	}
	return b
}

// resume is the inverse, right before window n.
func (t *noter) resume(b []byte, n uint64) error {
	t.log.base, t.anew = n+1, true
	c := cursor{b: b}
	t.upTo, t.waited, t.spotter.told = c.uint(), c.uint() > 0, c.uint()
	if t.spotter.taps != nil {
		t.spotter.taps.Skip()
	}
	for _, s := range t.samplers() {
		s.SetState([4]int64{c.int(), c.int(), c.int(), c.int()})
	}
	if c.bad {
		return errNotes
	}
	return nil
}
