package emu

import (
	"encoding/binary"
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/telemetry/split"
)

// spotter notes the frames of watched flows that arrive at a share's devices,
// for the splits of the flows' time. They are few by package split's bounds; in
// the log they count up, so that who reads it knows what did not fit.
type spotter struct {
	taps *split.Taps // nil: nobody asked
	seen []split.Sighting
	told uint64 // sightings in the log, and left out there
}

// read takes what crossed cables in the last window.
func (t *spotter) read() {
	if t.taps != nil {
		t.taps.Read(func(s *split.Sighting) { t.seen = append(t.seen, *s) })
	}
}

// flush notes what was seen; at the end of a run also that it was all. Its place
// among other notes does not matter.
func (t *spotter) flush(l *noteLog, n uint64) {
	if len(t.seen) > 0 || l.ends && t.taps != nil {
		l.sightings(n, t.told, t.seen)
		t.told += uint64(len(t.seen))
		t.seen = t.seen[:0]
	}
}

// sightings notes frames, of which first were noted before.
func (l *noteLog) sightings(n, first uint64, list []split.Sighting) {
	if !l.open(entrySightings, n) {
		return
	}
	b := binary.AppendUvarint(binary.AppendUvarint(l.raw, first), uint64(len(list)))
	psn, at := uint32(0), clock.Time(0)
	for i := range list {
		s := &list[i]
		toward := byte(0)
		if s.Toward {
			toward = 1
		}
		b = append(b, toward, s.Op, s.Iter)
		for _, v := range [...]uint32{uint32(s.Pair), uint32(s.Dev), uint32(s.Port), s.Index, s.Len} {
			b = binary.AppendUvarint(b, uint64(v))
		}
		b = binary.AppendVarint(binary.AppendVarint(b, int64(s.PSN)-int64(psn)), int64(s.At-at))
		psn, at = s.PSN, s.At
	}
	l.raw = b
	l.done()
}

// sightings reads an entry of sightings.
func (c *cursor) sightings(e *entry) {
	e.first = c.uint()
	psn, at := uint32(0), clock.Time(0)
	for range c.count() {
		s := split.Sighting{Toward: c.byte() > 0, Op: c.byte(), Iter: c.byte()}
		for _, v := range [...]*int32{&s.Pair, &s.Dev, &s.Port} {
			*v = int32(c.uint())
		}
		s.Index, s.Len = uint32(c.uint()), uint32(c.uint())
		psn, at = uint32(int64(psn)+c.int()), at+clock.Time(c.int())
		s.PSN, s.At = psn, at
		if c.bad {
			return
		}
		e.seen = append(e.seen, s)
	}
}

// sight hands out a share's sightings, each once. Where some are missing, none is
// of use.
func (m *Notes) sight(s *shareNotes, e *entry) error {
	if m.Split == nil {
		return nil
	}
	again := uint64(0)
	if e.first > s.seen {
		m.unseen += e.first - s.seen
	} else {
		again = min(s.seen-e.first, uint64(len(e.seen)))
	}
	s.seen = max(s.seen, e.first+uint64(len(e.seen)))
	for i := range e.seen[again:] {
		if !m.Split.See(&e.seen[int(again)+i]) {
			return errNotes
		}
	}
	return nil
}

// Splits tells where the time of watched flows went, once all notes are
// collected; done are the requests that finished.
func (m *Notes) Splits(done []sim.Sample) ([]split.Split, error) {
	if m.Split == nil {
		return nil, nil
	}
	if m.unseen > 0 {
		return nil, fmt.Errorf("%d frames were left out of the notes, which were full", m.unseen)
	}
	return m.Split.Finish(done), nil
}
