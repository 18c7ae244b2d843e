// Package snap is the canonical byte form of an actor's state: little-endian,
// fixed order, bounded. A Reader never panics on hostile bytes; it latches the
// first error and returns zeros after it.
package snap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// MaxItems bounds any count read from bytes.
const MaxItems = 1 << 28

// ErrShort means that the bytes ended early.
var ErrShort = errors.New("snap: state is cut short")

// Writer appends state.
type Writer struct{ B []byte }

// U8 to Bytes append one value each.
func (w *Writer) U8(v uint8)        { w.B = append(w.B, v) }
func (w *Writer) U16(v uint16)      { w.B = binary.LittleEndian.AppendUint16(w.B, v) }
func (w *Writer) U32(v uint32)      { w.B = binary.LittleEndian.AppendUint32(w.B, v) }
func (w *Writer) U64(v uint64)      { w.B = binary.LittleEndian.AppendUint64(w.B, v) }
func (w *Writer) I64(v int64)       { w.U64(uint64(v)) }
func (w *Writer) Time(v clock.Time) { w.U64(uint64(v)) }
func (w *Writer) Len(n int)         { w.U32(uint32(n)) }
func (w *Writer) String(s string)   { w.Len(len(s)); w.B = append(w.B, s...) }
func (w *Writer) Bytes(b []byte)    { w.Len(len(b)); w.B = append(w.B, b...) }
func (w *Writer) Frame(f *wire.Frame) {
	b := (*[wire.FrameBytes]byte)(unsafe.Pointer(f))
	w.B = append(w.B, b[:]...)
}

// Bool appends one byte.
func (w *Writer) Bool(v bool) {
	if v {
		w.U8(1)
		return
	}
	w.U8(0)
}

// Reader takes state apart in the order it was written.
type Reader struct {
	B   []byte
	Err error
}

func (r *Reader) take(n int) []byte {
	if r.Err != nil {
		return nil
	}
	if n < 0 || len(r.B) < n {
		r.Err = ErrShort
		return nil
	}
	b := r.B[:n]
	r.B = r.B[n:]
	return b
}

// U8 to Bytes read one value each; zero after an error.
func (r *Reader) U8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// U16 reads 16 bits.
func (r *Reader) U16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// U32 reads 32 bits.
func (r *Reader) U32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// U64 reads 64 bits.
func (r *Reader) U64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// I64 reads a signed word.
func (r *Reader) I64() int64 { return int64(r.U64()) }

// Time reads an instant.
func (r *Reader) Time() clock.Time { return clock.Time(r.U64()) }

// Bool reads one byte; anything but 0 and 1 is an error.
func (r *Reader) Bool() bool {
	v := r.U8()
	if v > 1 && r.Err == nil {
		r.Err = fmt.Errorf("snap: %d is not a boolean", v)
	}
	return v == 1
}

// Len reads a count, bounded by what the rest could hold at one byte an item.
func (r *Reader) Len() int {
	n := int(r.U32())
	if r.Err == nil && (n > MaxItems || n > len(r.B)) {
		r.Err = fmt.Errorf("snap: count %d exceeds the %d bytes left", n, len(r.B))
	}
	if r.Err != nil {
		return 0
	}
	return n
}

// String reads a string.
func (r *Reader) String() string { return string(r.take(r.Len())) }

// Bytes reads a byte slice (a view of the input).
func (r *Reader) Bytes() []byte { return r.take(r.Len()) }

// Frame reads a frame value.
func (r *Reader) Frame(f *wire.Frame) {
	if b := r.take(wire.FrameBytes); b != nil {
		copy((*[wire.FrameBytes]byte)(unsafe.Pointer(f))[:], b)
	}
}

// Expect reports an error unless v equals want; it guards structure.
func (r *Reader) Expect(what string, v, want int) {
	if v != want && r.Err == nil {
		r.Err = fmt.Errorf("snap: %s is %d in the state, %d in the plan", what, v, want)
	}
}
