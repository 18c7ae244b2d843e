package emu

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/telemetry/split"
	"github.com/rocemu/rocemu/topology"
)

// Notes puts the notes of all shares of a run together: it hands out batches of
// records and samples in the order, and cut, in which one process would make
// them, and finds the deadlocks that one process would find. What a share noted again after a replay is handed out once.
type Notes struct {
	// Records and Sample receive what is complete. A sample's At is the instant
	// it is of; last says that it is the run's end.
	Records func([]record.Record)
	Sample  func(s *counters.Snapshot, last bool)
	// Split takes the frames of watched flows, where the run notes them.
	Split *split.Watcher

	plan    *topology.Plan
	dead    *sim.Deadlocks
	devices []string
	shares  []shareNotes
	done    uint64 // entries up to it were handed out
	unseen  uint64 // sightings that are missing
	rec     []record.Record
	snap    counters.Snapshot
}

// shareNotes is what one share noted.
type shareNotes struct {
	upTo    uint64
	entries []entry // after Notes.done, in order
	points  []counters.Point
	seen    uint64 // sightings handed out, and missing
}

// NewNotes is for a run of that many shares.
func NewNotes(plan *topology.Plan, shares int) *Notes {
	m := &Notes{plan: plan, dead: sim.NewDeadlocks(plan), shares: make([]shareNotes, shares)}
	for i := range plan.Devices {
		m.devices = append(m.devices, plan.Devices[i].Name)
	}
	return m
}

// Cursor is the number up to which notes of a share are known.
func (m *Notes) Cursor(share int) uint64 { return m.shares[share].upTo }

// Add takes a piece of a share's log that is complete up to a number, and hands
// out what is complete now.
func (m *Notes) Add(share int, b []byte, upTo uint64) error {
	s := &m.shares[share]
	err := unpack(b, func(e *entry) error {
		if e.n <= s.upTo || e.n > upTo {
			return nil
		}
		s.entries = append(s.entries, *e)
		return nil
	})
	if err != nil {
		return fmt.Errorf("share %d: %w", share, err)
	}
	s.upTo = max(s.upTo, upTo)
	slices.SortStableFunc(s.entries, func(a, b entry) int { return cmp.Compare(a.n, b.n) })
	return m.release()
}

// release hands out what all shares have.
func (m *Notes) release() error {
	all := ^uint64(0)
	for i := range m.shares {
		all = min(all, m.shares[i].upTo)
	}
	for {
		next := ^uint64(0)
		for i := range m.shares {
			if e := m.shares[i].entries; len(e) > 0 {
				next = min(next, e[0].n)
			}
		}
		if next > all || next == ^uint64(0) {
			m.done = max(m.done, all)
			return nil
		}
		if err := m.group(next); err != nil {
			return err
		}
	}
}

// group hands out the entries of number n.
func (m *Notes) group(n uint64) error {
	m.rec = m.rec[:0]
	var waits []fabric.WaitState
	batch, sampled, last := false, false, false
	for i := range m.shares {
		s := &m.shares[i]
		for len(s.entries) > 0 && s.entries[0].n == n {
			e := &s.entries[0]
			switch e.kind {
			case entryRecords:
				batch, m.rec = true, append(m.rec, e.recs...)
			case entryWaits:
				if !fits(m.plan, e.waits) {
					return fmt.Errorf("share %d: %w", i, errNotes)
				}
				waits = append(waits, e.waits...)
			case entrySightings:
				if err := m.sight(s, e); err != nil {
					return fmt.Errorf("share %d: %w", i, err)
				}
			case entryEnd:
				last = true
			default:
				sampled, m.snap.At = true, e.at
				if err := s.apply(e); err != nil {
					return fmt.Errorf("share %d: %w", i, err)
				}
			}
			s.entries = s.entries[1:]
		}
	}
	m.dead.Look(waits)
	if sampled && m.Sample != nil {
		m.sample(last)
	}
	if batch {
		m.rec = m.dead.Records(m.rec)
	}
	if len(m.rec) > 0 && m.Records != nil {
		slices.SortFunc(m.rec, record.Compare)
		m.Records(m.rec)
	}
	return nil
}

// apply brings a share's points up to a sample.
func (s *shareNotes) apply(e *entry) error {
	if e.kind == entryFull {
		s.points = e.points
		return nil
	}
	for _, c := range e.diff {
		if c.index >= len(s.points) {
			return errNotes
		}
		s.points[c.index].Value += c.delta
	}
	return nil
}

// sample joins the shares' points, by device.
func (m *Notes) sample(last bool) {
	m.snap.Devices = m.devices
	m.snap.Points = m.snap.Points[:0]
	for i := range m.shares {
		m.snap.Points = append(m.snap.Points, m.shares[i].points...)
	}
	slices.SortStableFunc(m.snap.Points, func(a, b counters.Point) int { return cmp.Compare(a.Dev, b.Dev) })
	m.Sample(&m.snap, last)
}

// Collect hands out all notes of an ended run that come after what m has.
func (m *Notes) Collect(run *coord.Run, fetch func(sum string) ([]byte, error)) error {
	for i := range run.Slots {
		d := run.Slots[i].Done
		if d == nil {
			return fmt.Errorf("slot %d has not ended", i)
		}
		var log []byte
		for _, sum := range d.Notes {
			b, err := fetch(sum)
			if err != nil {
				return fmt.Errorf("notes of slot %d: %w", i, err)
			}
			log = append(log, b...)
		}
		if err := m.Add(i, log, ^uint64(0)); err != nil {
			return err
		}
	}
	return nil
}
