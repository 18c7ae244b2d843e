package natsbus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Content is what one process tells another before a window: its summary and
// the frames of the window before. It is a pure function of the run, so two
// productions of the same batch are byte for byte equal.
type Content struct {
	Now     clock.Time // end of the window before: processes that differ have diverged
	Summary actors.Summary
	Remotes []actors.Remote
	// Mask is used where summaries go through one process: to it, the set of
	// processes that get frames of this window; from it, the set of processes
	// that have frames for the receiver.
	Mask []uint64
}

// Bounds of what a decoder accepts.
const (
	maxPort     = 1 << 12
	maxProcs    = 1 << 12
	minFrameEnc = 4 // slot, mask, time
)

// errContent is wrapped by every decoding error.
var errContent = errors.New("natsbus: malformed batch")

// Fields of a frame that differ from the prediction, one bit each.
const (
	fA = 1 << iota
	fB
	fC
	fD
	fSrc
	fDst
	fOp
	fQPN
	fPSN
	fFlags
	fIndex
	fLen
	fSPort
	fKind
	fTOS
	fHops // TTL and Iter
)

// predictor remembers the last frame of each of 64 classes of (source,
// destination, QP) inside one batch; a frame is written as its difference from
// that one, with PSN and Index expected to step by one.
type predictor struct {
	last [64]wire.Frame
	set  uint64
}

func slotOf(f *wire.Frame) uint8 {
	h := uint64(f.Src)*0x9E3779B97F4A7C15 ^ uint64(f.Dst)*0xC2B2AE3D27D4EB4F ^ uint64(f.DstQPN())*0x165667B19E3779F9
	return uint8((h * 0x9E3779B97F4A7C15) >> 58)
}

var zeroFrame wire.Frame

func (p *predictor) at(slot uint8) *wire.Frame {
	if p.set>>slot&1 == 0 {
		return &zeroFrame
	}
	return &p.last[slot]
}

func (p *predictor) keep(slot uint8, f *wire.Frame) {
	p.last[slot] = *f
	p.set |= 1 << slot
}

// Encode appends c.
func (c *Content) Encode(b []byte) []byte {
	var p predictor
	b = putTime(b, c.Now)
	b = putSummary(b, &c.Summary)
	b = append(b, byte(len(c.Mask)))
	for _, w := range c.Mask {
		b = binary.AppendUvarint(b, w)
	}
	b = binary.AppendUvarint(b, uint64(len(c.Remotes)))
	for i := range c.Remotes {
		r := &c.Remotes[i]
		b = binary.AppendUvarint(b, uint64(r.Src))
		b = binary.AppendUvarint(b, uint64(r.SrcPort))
		b = binary.AppendUvarint(b, uint64(r.Dst))
		b = binary.AppendUvarint(b, uint64(r.DstPort))
		b = binary.AppendUvarint(b, uint64(len(r.Frames)))
		b = binary.AppendUvarint(b, uint64(len(r.Late)))
		at := c.Now
		for k := range r.Frames {
			b = p.put(b, &r.Frames[k], at)
			at = r.Frames[k].At
		}
		at = c.Now
		for k := range r.Late {
			b = p.put(b, &r.Late[k], at)
			at = r.Late[k].At
		}
	}
	return b
}

func (p *predictor) put(b []byte, f *wire.Frame, prev clock.Time) []byte {
	slot := slotOf(f)
	q := p.at(slot)
	m := diff(f, q)
	b = append(b, slot, byte(m), byte(m>>8))
	b = binary.AppendVarint(b, int64(f.At-prev))
	if m&fA != 0 {
		b = binary.AppendVarint(b, int64(f.A-q.A))
	}
	if m&fB != 0 {
		b = binary.AppendVarint(b, int64(f.B-q.B))
	}
	if m&fC != 0 {
		b = binary.LittleEndian.AppendUint64(b, f.C)
	}
	if m&fD != 0 {
		b = binary.AppendVarint(b, int64(int32(f.D-q.D)))
	}
	if m&fSrc != 0 {
		b = binary.AppendUvarint(b, uint64(f.Src))
	}
	if m&fDst != 0 {
		b = binary.AppendUvarint(b, uint64(f.Dst))
	}
	b = p.putHeader(b, f, q, m)
	p.keep(slot, f)
	return b
}

func (p *predictor) putHeader(b []byte, f, q *wire.Frame, m uint16) []byte {
	if m&fOp != 0 {
		b = append(b, byte(f.Op()))
	}
	if m&fQPN != 0 {
		b = binary.AppendUvarint(b, uint64(f.DstQPN()))
	}
	if m&fPSN != 0 {
		b = binary.AppendVarint(b, int64(f.PSN())-int64(q.PSN()))
	}
	if m&fFlags != 0 {
		b = append(b, byte(f.Flags()))
	}
	if m&fIndex != 0 {
		b = binary.AppendVarint(b, int64(int32(f.Index-q.Index)))
	}
	if m&fLen != 0 {
		b = binary.AppendUvarint(b, uint64(f.Len))
	}
	if m&fSPort != 0 {
		b = binary.AppendUvarint(b, uint64(f.SPort))
	}
	if m&fKind != 0 {
		b = append(b, byte(f.Kind))
	}
	if m&fTOS != 0 {
		b = append(b, f.TOS)
	}
	if m&fHops != 0 {
		b = append(b, f.TTL, f.Iter)
	}
	return b
}

func nextPSN(q *wire.Frame) wire.PSN { return wire.PSN((uint32(q.PSN()) + 1) & wire.PSNMask) }

// diff marks the fields of f that the prediction from q misses.
func diff(f, q *wire.Frame) (m uint16) {
	set := func(bit uint16, differs bool) {
		if differs {
			m |= bit
		}
	}
	set(fA, f.A != q.A)
	set(fB, f.B != q.B)
	set(fC, f.C != q.C)
	set(fD, f.D != q.D)
	set(fSrc, f.Src != q.Src)
	set(fDst, f.Dst != q.Dst)
	set(fOp, f.Op() != q.Op())
	set(fQPN, f.DstQPN() != q.DstQPN())
	set(fPSN, f.PSN() != nextPSN(q))
	set(fFlags, f.Flags() != q.Flags())
	set(fIndex, f.Index != q.Index+1)
	set(fLen, f.Len != q.Len)
	set(fSPort, f.SPort != q.SPort)
	set(fKind, f.Kind != q.Kind)
	set(fTOS, f.TOS != q.TOS)
	set(fHops, f.TTL != q.TTL || f.Iter != q.Iter)
	return m
}

func putTime(b []byte, t clock.Time) []byte { return binary.AppendUvarint(b, uint64(t+1)&^(1<<63)) }

func putSummary(b []byte, s *actors.Summary) []byte {
	for _, t := range []clock.Time{s.Next, s.NextWork, s.NextFault, s.LastWork, s.LastProgress, s.LastEvent, s.Stop} {
		b = putTime(b, t)
	}
	return binary.AppendVarint(b, s.Outstanding)
}

// Decode reads what Encode wrote. It never panics, allocates no more than a
// small multiple of len(b), and refuses anything with bytes left over.
func Decode(b []byte) (*Content, error) { return new(reader).decode(b) }

// reader decodes one batch after another into the same memory.
type reader struct {
	remotes []actors.Remote
	frames  []wire.Frame
}

// decode is Decode; what it returns is valid until the next call.
func (r *reader) decode(b []byte) (*Content, error) {
	d := decoder{b: b, reader: r, spare: r.frames}
	c := &Content{Now: d.time()}
	for _, t := range []*clock.Time{&c.Summary.Next, &c.Summary.NextWork, &c.Summary.NextFault, &c.Summary.LastWork, &c.Summary.LastProgress, &c.Summary.LastEvent, &c.Summary.Stop} {
		*t = d.time()
	}
	c.Summary.Outstanding = d.varint()
	for range min(int(d.u8()), maxProcs/64) {
		c.Mask = append(c.Mask, d.uvarint())
	}
	n := d.count(6)
	r.remotes = r.remotes[:0]
	for range n {
		r.remotes = append(r.remotes, d.remote(c.Now))
		if d.err != nil {
			return nil, d.err
		}
	}
	if n > 0 {
		c.Remotes = r.remotes
	}
	if d.err == nil && len(d.b) != 0 {
		d.fail("%d bytes after the end", len(d.b))
	}
	if d.err != nil {
		return nil, d.err
	}
	return c, nil
}

type decoder struct {
	*reader
	b     []byte
	err   error
	p     predictor
	spare []wire.Frame // of the reader's, not used by this batch
}

// leastSpare is the least number of frames that a reader makes room for.
const leastSpare = 256

// room returns memory for n frames.
func (d *decoder) room(n int) []wire.Frame {
	if len(d.spare) < n {
		d.reader.frames = make([]wire.Frame, max(n, 2*len(d.reader.frames), leastSpare))
		d.spare = d.reader.frames
	}
	fs := d.spare[:n:n]
	d.spare = d.spare[n:]
	return fs
}

func (d *decoder) fail(format string, a ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", errContent, fmt.Sprintf(format, a...))
		d.b = nil
	}
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("number cut short")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail("number cut short")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) time() clock.Time {
	v := d.uvarint()
	if v >= 1<<63 {
		d.fail("instant out of range")
	}
	if v == 0 {
		return clock.Never
	}
	return clock.Time(v - 1)
}

// bounded reads a number that must not exceed limit.
func (d *decoder) bounded(what string, limit uint64) uint64 {
	v := d.uvarint()
	if v > limit {
		d.fail("%s is %d, at most %d", what, v, limit)
		return 0
	}
	return v
}

// count reads a count of items of at least size bytes each.
func (d *decoder) count(size int) int { return int(d.bounded("count", uint64(len(d.b)/size))) }

func (d *decoder) u8() byte {
	if len(d.b) == 0 {
		d.fail("frame cut short")
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) remote(now clock.Time) (r actors.Remote) {
	r.Src = int32(d.bounded("device", 1<<30))
	r.SrcPort = uint16(d.bounded("port", maxPort))
	r.Dst = int32(d.bounded("device", 1<<30))
	r.DstPort = uint16(d.bounded("port", maxPort))
	n := d.count(minFrameEnc)
	m := d.count(minFrameEnc)
	r.Frames = d.list(n, now)
	r.Late = d.list(m, now)
	return r
}

func (d *decoder) list(n int, at clock.Time) []wire.Frame {
	if n == 0 || d.err != nil {
		return nil
	}
	fs := d.room(n)
	for i := range fs {
		d.frame(&fs[i], at)
		if d.err != nil {
			return nil
		}
		at = fs[i].At
	}
	return fs
}

func (d *decoder) frame(f *wire.Frame, prev clock.Time) {
	slot := d.u8()
	m := uint16(d.u8()) | uint16(d.u8())<<8
	if slot >= 64 {
		d.fail("slot %d", slot)
		return
	}
	q := d.p.at(slot)
	*f = *q
	f.At = prev + clock.Time(d.varint())
	f.SetPSN(nextPSN(q))
	f.Index = q.Index + 1
	if m&fA != 0 {
		f.A = q.A + uint64(d.varint())
	}
	if m&fB != 0 {
		f.B = q.B + uint64(d.varint())
	}
	if m&fC != 0 {
		if len(d.b) < 8 {
			d.fail("frame cut short")
			return
		}
		f.C = binary.LittleEndian.Uint64(d.b)
		d.b = d.b[8:]
	}
	if m&fD != 0 {
		f.D = q.D + uint32(d.varint())
	}
	if m&fSrc != 0 {
		f.Src = uint32(d.bounded("source", 1<<32-1))
	}
	if m&fDst != 0 {
		f.Dst = uint32(d.bounded("destination", 1<<32-1))
	}
	d.header(f, q, m)
	if d.err == nil && f.At < 0 {
		d.fail("arrival out of range")
	}
	d.p.keep(slot, f)
}

func (d *decoder) header(f, q *wire.Frame, m uint16) {
	op, qpn := f.Op(), f.DstQPN()
	if m&fOp != 0 {
		op = wire.Opcode(d.u8())
	}
	if m&fQPN != 0 {
		qpn = uint32(d.bounded("QPN", wire.PSNMask))
	}
	f.SetOp(op, qpn)
	if m&fPSN != 0 {
		f.SetPSN(wire.PSN(uint32(int64(q.PSN())+d.varint()) & wire.PSNMask))
	}
	if m&fFlags != 0 {
		f.Clear(0xff)
		f.Set(wire.Flags(d.u8()))
	}
	if m&fIndex != 0 {
		f.Index = q.Index + uint32(d.varint())
	}
	if m&fLen != 0 {
		f.Len = uint16(d.bounded("length", 1<<16-1))
	}
	if m&fSPort != 0 {
		f.SPort = uint16(d.bounded("source port", 1<<16-1))
	}
	if m&fKind != 0 {
		f.Kind = wire.Kind(d.u8())
		if f.Kind > wire.KindOther {
			d.fail("frame kind %d", f.Kind)
		}
	}
	if m&fTOS != 0 {
		f.TOS = d.u8()
	}
	if m&fHops != 0 {
		f.TTL, f.Iter = d.u8(), d.u8()
	}
}

// Hash names a batch's content: 128 bits, no secret; a guard against bugs and
// damage, not against forgery (that is what credentials are for).
type Hash struct{ Hi, Lo uint64 }

// HashOf folds 16 bytes a step through a 64×64→128 multiply.
func HashOf(b []byte) Hash {
	h := Hash{Hi: 0x9E3779B97F4A7C15, Lo: uint64(len(b)) ^ 0xC2B2AE3D27D4EB4F}
	for len(b) >= 16 {
		h = h.step(binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]))
		b = b[16:]
	}
	var t [16]byte
	copy(t[:], b)
	h = h.step(binary.LittleEndian.Uint64(t[:]), binary.LittleEndian.Uint64(t[8:]))
	return h.step(h.Hi, 0x165667B19E3779F9)
}

func (h Hash) step(x, y uint64) Hash {
	hi, lo := bits.Mul64(h.Lo^x^0xD6E8FEB86659FD93, h.Hi^y|1)
	return Hash{Hi: bits.RotateLeft64(h.Lo, 31) + hi ^ y, Lo: lo ^ bits.RotateLeft64(h.Hi, 17) + x}
}
