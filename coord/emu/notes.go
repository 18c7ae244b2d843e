package emu

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/split"
)

// A share's notes are a log of entries: the exceptional records of its devices,
// batch by batch, samples of their counters, what their switches wait for, and
// frames of watched flows. Entries bear the number of the
// window before which they were made. Windows are the same in every process,
// so entries of one number from all shares are what one process would have
// noted there; see [Notes]. (An entry's number is the window's plus 1: 0 is
// before everything.) On its way the log is a sequence of chunks, each its
// length and a zstd frame: it may be cut between chunks and put together again.

// Kinds of entries.
const (
	entryRecords   = 'R' // a batch as package record writes it
	entryFull      = 'F' // a sample: all points
	entryDiff      = 'D' // a sample: what changed since the one before
	entryWaits     = 'W' // what changed in the waits of switches
	entrySightings = 'S' // frames of watched flows that crossed cables
	entryEnd       = 'E' // the sample that comes next is of the run's end
)

const (
	chunkRaw   = 256 << 10 // bytes of entries that are packed together
	maxUntaken = 64 << 20  // packed bytes that may wait for a checkpoint; further notes are left out
	maxKept    = 16 << 20  // packed bytes kept for who looks at a running fabric
	maxUnpack  = 64 << 20  // bytes of one chunk, unpacked
)

var zipper, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))

// chunk is a packed stretch of the log: entries with numbers from..to.
type chunk struct {
	from, to uint64
	z        []byte
}

// log is the notes of one share. It is used from the engine's goroutine.
type noteLog struct {
	raw      []byte
	from, to uint64
	chunks   []chunk // oldest first
	taken    int     // chunks[:taken] were handed over
	wait     int     // bytes of the others
	kept     int     // bytes of all
	base     uint64  // entries up to it are not here
	lost     uint64  // entries left out
	ends     bool    // the run is over: what comes now is noted in any case
}

// open starts an entry; what follows is appended to raw.
func (l *noteLog) open(kind byte, n uint64) bool {
	if l.wait > maxUntaken && !l.ends {
		l.lost++
		return false
	}
	if len(l.raw) == 0 {
		l.from = n
	}
	l.to = n
	l.raw = append(l.raw, kind)
	l.raw = binary.AppendUvarint(l.raw, n)
	return true
}

// done ends an entry.
func (l *noteLog) done() {
	if len(l.raw) >= chunkRaw {
		l.pack()
	}
}

// pack closes the running chunk and lets go of old ones that were handed over.
func (l *noteLog) pack() {
	if len(l.raw) == 0 {
		return
	}
	f := zipper.EncodeAll(l.raw, nil)
	z := append(binary.AppendUvarint(make([]byte, 0, len(f)+4), uint64(len(f))), f...)
	l.chunks = append(l.chunks, chunk{l.from, l.to, z})
	l.raw = l.raw[:0]
	l.wait += len(z)
	l.kept += len(z)
	for l.taken > 0 && l.kept > maxKept {
		l.base = l.chunks[0].to
		l.kept -= len(l.chunks[0].z)
		l.chunks = l.chunks[1:]
		l.taken--
	}
}

// take returns what was not handed over yet.
func (l *noteLog) take() (out []byte) {
	l.pack()
	for _, c := range l.chunks[l.taken:] {
		out = append(out, c.z...)
	}
	l.taken, l.wait = len(l.chunks), 0
	return out
}

// since returns chunks with entries after number n, about limit bytes, and the
// number up to which they are complete, given that the log is up to now.
func (l *noteLog) since(n, now uint64, limit int) (out []byte, upTo uint64) {
	l.pack()
	for _, c := range l.chunks {
		if c.to <= n {
			continue
		}
		if len(out) > limit {
			return out, min(now, c.from-1)
		}
		out = append(out, c.z...)
	}
	return out, now
}

// records notes a batch.
func (l *noteLog) records(n uint64, recs []record.Record) {
	if l.open(entryRecords, n) {
		l.raw = record.AppendBatch(l.raw, recs)
		l.done()
	}
}

// end notes that the sample which comes next is the last.
func (l *noteLog) end(n uint64) {
	if l.open(entryEnd, n) {
		l.done()
	}
}

// sample notes the counters at t: all points, or where last has the same ones
// what changed. It says whether they are in the log.
func (l *noteLog) sample(n uint64, s *counters.Snapshot, last []counters.Point) bool {
	kind := byte(entryDiff)
	if len(last) != len(s.Points) {
		kind = entryFull
	}
	if !l.open(kind, n) {
		return false
	}
	b := binary.AppendVarint(l.raw, int64(s.At))
	if kind == entryFull {
		b = binary.AppendUvarint(b, uint64(len(s.Points)))
		for _, p := range s.Points {
			b = append(binary.AppendUvarint(b, uint64(p.Dev)), byte(p.ID), byte(p.Index))
			b = binary.AppendVarint(binary.AppendUvarint(b, uint64(uint16(p.Port))), p.Value)
		}
	} else {
		skip := uint64(1) // 0 ends the list
		for i := range s.Points {
			if d := s.Points[i].Value - last[i].Value; d != 0 {
				b, skip = binary.AppendVarint(binary.AppendUvarint(b, skip), d), 0
			}
			skip++
		}
		b = append(b, 0)
	}
	l.raw = b
	l.done()
	return true
}

var errNotes = errors.New("emu: malformed notes")

// entry is one entry as read.
type entry struct {
	kind   byte
	n      uint64
	recs   []record.Record
	at     clock.Time
	points []counters.Point // full
	diff   []change
	waits  []fabric.WaitState
	first  uint64 // of seen: how many came before
	seen   []split.Sighting
}

type change struct {
	index int
	delta int64
}

// unpack visits the entries of a log.
func unpack(b []byte, visit func(e *entry) error) error {
	z, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxUnpack), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	var raw []byte
	for len(b) > 0 {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return errNotes
		}
		if raw, err = z.DecodeAll(b[k:k+int(n)], raw[:0]); err != nil {
			return fmt.Errorf("emu: notes: %w", err)
		}
		if err := entries(raw, visit); err != nil {
			return err
		}
		b = b[k+int(n):]
	}
	return nil
}

// entries visits the entries of one chunk.
func entries(raw []byte, visit func(e *entry) error) (err error) {
	for len(raw) > 0 {
		e := entry{kind: raw[0]}
		r := cursor{b: raw[1:]}
		e.n = r.uint()
		switch e.kind {
		case entryRecords:
			if !r.bad {
				if e.recs, r.b, err = record.DecodeBatch(nil, r.b); err != nil {
					return err
				}
			}
		case entryFull, entryDiff:
			e.at = clock.Time(r.int())
			r.sample(&e)
		case entryWaits:
			r.waits(&e)
		case entrySightings:
			r.sightings(&e)
		case entryEnd:
		default:
			return errNotes
		}
		if r.bad {
			return errNotes
		}
		if err := visit(&e); err != nil {
			return err
		}
		raw = r.b
	}
	return nil
}

// cursor reads numbers; bad stays set after the first mistake.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) uint() uint64 {
	v, k := binary.Uvarint(c.b)
	if k <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[k:]
	return v
}

func (c *cursor) int() int64 {
	v, k := binary.Varint(c.b)
	if k <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[k:]
	return v
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.bad = true
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

// sample reads the points of an entry.
func (c *cursor) sample(e *entry) {
	if e.kind == entryFull {
		n := c.uint()
		if n > uint64(len(c.b)) {
			c.bad = true
			return
		}
		e.points = make([]counters.Point, 0, n)
		for range n {
			p := counters.Point{Dev: int32(c.uint()), ID: counters.ID(c.byte()), Index: int8(c.byte())}
			p.Port, p.Value = int16(c.uint()), c.int()
			if c.bad || int(p.ID) >= len(counters.Metrics) {
				c.bad = true
				return
			}
			e.points = append(e.points, p)
		}
		return
	}
	for i := -1; !c.bad; {
		skip := c.uint()
		if skip == 0 || skip > 1<<31 {
			return
		}
		i += int(skip)
		e.diff = append(e.diff, change{i, c.int()})
	}
}
