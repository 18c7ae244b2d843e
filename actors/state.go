package actors

import (
	"fmt"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// Totals are the engine's counters over the hosted actors.
type Totals struct{ Events, Hops, Windows uint64 }

// Totals sums the counters.
func (e *Engine) Totals() Totals {
	t := Totals{Windows: e.windows}
	for _, d := range e.local {
		t.Events += e.st[d].Events
		t.Hops += e.st[d].Hops
	}
	return t
}

// Digest folds the chains of the hosted actors; sums of processes add up.
func (e *Engine) Digest() Digest {
	var g Digest
	for _, d := range e.local {
		g.Add(clock.HashString(e.cfg.Seed, e.cfg.Names[d]), e.actors[d].Chain())
	}
	return g
}

// Status returns what a hosted actor last reported.
func (e *Engine) Status(d int32) Status { return e.st[d] }

// InFlight counts frames and bytes still on the cable toward port p of hosted
// device d, PFC apart.
func (e *Engine) InFlight(d int32, p int) (frames, bytes uint64) {
	c := e.docks[d].in()[p-1]
	if c == nil {
		return 0, 0
	}
	return c.inFlight()
}

// SnapshotDevice writes one hosted device at a window boundary: its actor, its
// status and what is in flight to it.
func (e *Engine) SnapshotDevice(d int32, w *snap.Writer) {
	st := &e.st[d]
	for _, t := range []clock.Time{e.next[d], e.work[d], st.Next, st.NextWork, st.NextFault, st.LastWork, st.LastProgress, st.LastEvent} {
		w.Time(t)
	}
	w.I64(st.Outstanding)
	w.U64(st.Events)
	w.U64(st.Hops)
	e.actors[d].Snapshot(w)
	w.Len(len(e.docks[d].in()))
	for _, c := range e.docks[d].in() {
		c.snapshot(w)
	}
}

// RestoreDevice reads what SnapshotDevice wrote into a freshly built engine.
func (e *Engine) RestoreDevice(d int32, r *snap.Reader) error {
	st := &e.st[d]
	for _, t := range []*clock.Time{&e.next[d], &e.work[d], &st.Next, &st.NextWork, &st.NextFault, &st.LastWork, &st.LastProgress, &st.LastEvent} {
		*t = r.Time()
	}
	st.Outstanding = r.I64()
	st.Events = r.U64()
	st.Hops = r.U64()
	if err := e.actors[d].Restore(r); err != nil {
		return fmt.Errorf("actors: restore %s: %w", e.cfg.Names[d], err)
	}
	r.Expect("port count of "+e.cfg.Names[d], r.Len(), len(e.docks[d].in()))
	for i, c := range e.docks[d].in() {
		if r.Err != nil {
			break
		}
		c.restore(r, &e.scratch[0].pool)
		e.docks[d].mark(i + 1)
	}
	if r.Err != nil {
		return fmt.Errorf("actors: restore %s: %w", e.cfg.Names[d], r.Err)
	}
	return nil
}

// SetClock places a restored engine at window n starting no earlier than now.
func (e *Engine) SetClock(now clock.Time, n uint64) { e.now, e.windows = now, n }
