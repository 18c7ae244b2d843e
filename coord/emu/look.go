package emu

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/nodes/rnic"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/topology"
)

// What a share can be asked, see [coord.Look].
const (
	AskWhere    = "where"    // nothing: how far it is
	AskCounters = "counters" // all points, see [Counters]
	AskNotes    = "notes"    // arg: the number after which; see [Notes.Take]
	AskQPs      = "qps"      // arg: name of an RNIC; []rnic.QPContext as JSON
)

// mostNotes is about how many bytes of notes are in one answer.
const mostNotes = 4 << 20

// Look implements coord.Looker.
func (s *share) Look(what string, arg []byte, start clock.Time, n uint64) ([]byte, error) {
	switch what {
	case AskWhere:
		return nil, nil
	case AskCounters:
		var snap counters.Snapshot
		s.f.Snapshot(s.now(start), &snap)
		var l noteLog
		l.sample(n, &snap, nil)
		return l.take(), nil
	case AskNotes:
		var from uint64
		if err := json.Unmarshal(arg, &from); err != nil {
			return nil, err
		}
		return s.tellNotes(from, n), nil
	case AskQPs:
		var name string
		if err := json.Unmarshal(arg, &name); err != nil {
			return nil, err
		}
		return s.queuePairs(name)
	case AskTap:
		if s.ended {
			return nil, s.taps.last(s.f.Engine.Local()[0], arg)
		}
		return nil, s.taps.ask(s.f, arg)
	}
	return nil, fmt.Errorf("a fabric has no %q to look at", what)
}

// now is the instant up to which everything is done.
func (s *share) now(start clock.Time) clock.Time {
	if start == clock.Never {
		return s.f.Engine.Now()
	}
	return start
}

// tellNotes answers AskNotes: the number up to which older notes are not here,
// the number up to which the answer is complete, and the log.
func (s *share) tellNotes(from, n uint64) []byte {
	now := s.notes.upTo // not what n says: who waits at a gate has yet to note what comes before window n
	if s.ended {
		now = n + 1
	}
	log, upTo := s.notes.log.since(from, now, mostNotes)
	b := binary.AppendUvarint(nil, s.notes.log.base)
	return append(binary.AppendUvarint(b, upTo), log...)
}

func (s *share) queuePairs(name string) ([]byte, error) {
	out := []rnic.QPContext{}
	for i := range s.f.Nodes {
		r, ok := s.f.Nodes[i].(*rnic.RNIC)
		if !ok || s.f.Plan.Devices[i].Name != name {
			continue
		}
		for _, qpn := range r.QPNs() {
			if c, ok := r.QPContext(qpn); ok {
				out = append(out, c)
			}
		}
	}
	return json.Marshal(out)
}

// Counters joins the answers to AskCounters. Its instant is the latest of them.
func Counters(plan *topology.Plan, seen []coord.Seen) (*counters.Snapshot, error) {
	var out *counters.Snapshot
	m := NewNotes(plan, len(seen))
	m.Sample = func(s *counters.Snapshot, _ bool) { out = s }
	at := clock.Time(0)
	for i := range seen {
		err := unpack(seen[i].Body, func(e *entry) error {
			m.shares[i].points = e.points
			at = max(at, e.at)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("slot %d: %w", i, err)
		}
	}
	m.snap.At = at
	m.sample(false)
	return out, nil
}

// Arg writes the argument of a question.
func Arg(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("emu: argument of a look: " + err.Error()) // a number or a name
	}
	return b
}

// QueuePairs joins the answers to AskQPs: one slot has the device.
func QueuePairs(seen []coord.Seen) (out []rnic.QPContext, err error) {
	for i := range seen {
		var l []rnic.QPContext
		if err := json.Unmarshal(seen[i].Body, &l); err != nil {
			return nil, fmt.Errorf("slot %d: %w", i, err)
		}
		out = append(out, l...)
	}
	return out, nil
}

// Take adds the answers to AskNotes. Where a share has let go of notes that m
// has not seen, they come from its blobs.
func (m *Notes) Take(seen []coord.Seen, fetch func(sum string) ([]byte, error)) error {
	for i := range seen {
		c := cursor{b: seen[i].Body}
		base, upTo := c.uint(), c.uint()
		if c.bad {
			return errNotes
		}
		if base > m.Cursor(i) {
			var old []byte
			for _, sum := range seen[i].Notes {
				b, err := fetch(sum)
				if err != nil {
					return err
				}
				old = append(old, b...)
			}
			if err := m.Add(i, old, base); err != nil {
				return err
			}
		}
		if err := m.Add(i, c.b, upTo); err != nil {
			return err
		}
	}
	return nil
}

// Ask is the question for the notes that m has not seen.
func (m *Notes) Ask(run string) coord.Look {
	q := coord.Look{Run: run, What: AskNotes}
	for i := range m.shares {
		q.Args = append(q.Args, Arg(m.Cursor(i)))
	}
	return q
}

var _ coord.Looker = (*share)(nil)
