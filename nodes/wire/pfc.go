package wire

import (
	"encoding/binary"

	"github.com/rocemu/rocemu/clock"
)

// MAC control opcodes.
const (
	ControlPause = 0x0001 // 802.3x
	ControlPFC   = 0x0101 // 802.1Qbb
)

// QuantumBits is the unit of a pause time in bit times of the link.
const QuantumBits = 512

// Sizes of the control bodies after the EtherType, pad not included.
const (
	pfcBody   = 20
	pauseBody = 4
)

// PFC is a view of a MAC control body: opcode 0-1, class-enable vector 2-3,
// time[0..7] 4-19 (switch §3.1).
type PFC []byte

// PFCFields are the values of a priority pause.
type PFCFields struct {
	Vector uint16    // bit n: Time[n] is valid; the high byte is 0
	Time   [8]uint16 // quanta; 0 = resume
}

// ParsePFC checks opcode and length and returns the pad behind the body.
func ParsePFC(b []byte) (h PFC, pad []byte, err error) {
	if len(b) < pfcBody {
		return nil, nil, short("PFC", len(b), pfcBody)
	}
	if op := int(binary.BigEndian.Uint16(b)); op != ControlPFC {
		return nil, nil, &Error{Layer: "PFC", Field: "opcode", Got: op, Want: "0x0101", Cause: ErrUnsupported}
	}
	return b[:pfcBody:pfcBody], b[pfcBody:], nil
}

// Fields decodes the body.
func (h PFC) Fields() PFCFields {
	f := PFCFields{Vector: binary.BigEndian.Uint16(h[2:])}
	for i := range f.Time {
		f.Time[i] = binary.BigEndian.Uint16(h[4+2*i:])
	}
	return f
}

// Append writes the body without pad.
func (f *PFCFields) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, ControlPFC)
	dst = binary.BigEndian.AppendUint16(dst, f.Vector)
	for _, t := range f.Time {
		dst = binary.BigEndian.AppendUint16(dst, t)
	}
	return dst
}

// Pause is a view of an 802.3x body: opcode 0-1, quanta 2-3.
type Pause []byte

// ParsePause checks opcode and length and returns the pad behind the body.
func ParsePause(b []byte) (h Pause, pad []byte, err error) {
	if len(b) < pauseBody {
		return nil, nil, short("PAUSE", len(b), pauseBody)
	}
	if op := int(binary.BigEndian.Uint16(b)); op != ControlPause {
		return nil, nil, &Error{Layer: "PAUSE", Field: "opcode", Got: op, Want: "0x0001", Cause: ErrUnsupported}
	}
	return b[:pauseBody:pauseBody], b[pauseBody:], nil
}

// Quanta reads the pause time.
func (h Pause) Quanta() uint16 { return binary.BigEndian.Uint16(h[2:]) }

// QuantaSpan is the time q quanta last at rate r, rounded up to a picosecond:
// q·512 bits. At 100G one quantum is 5.12 ns (switch §3.1).
func QuantaSpan(q uint16, r clock.Rate) clock.Duration {
	return r.Span(int64(q) * (QuantumBits / 8))
}
