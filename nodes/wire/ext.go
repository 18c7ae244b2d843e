package wire

import "encoding/binary"

// RETH is a view of an RDMA extended header: VA 0-7, R_Key 8-11, DMA length 12-15.
type RETH []byte

// RETHFields are the values of a RETH; DMALen is the length of the whole
// message, not of the packet (transport §1.3).
type RETHFields struct {
	VA           uint64
	RKey, DMALen uint32
}

// ParseRETH cuts the header off b.
func ParseRETH(b []byte) (h RETH, rest []byte, err error) {
	if len(b) < RETHSize {
		return nil, nil, short("RETH", len(b), RETHSize)
	}
	return b[:RETHSize:RETHSize], b[RETHSize:], nil
}

// Fields decodes the header.
func (h RETH) Fields() RETHFields {
	return RETHFields{
		VA:   binary.BigEndian.Uint64(h),
		RKey: binary.BigEndian.Uint32(h[8:]), DMALen: binary.BigEndian.Uint32(h[12:]),
	}
}

// Append writes the header.
func (f RETHFields) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, f.VA)
	dst = binary.BigEndian.AppendUint32(dst, f.RKey)
	return binary.BigEndian.AppendUint32(dst, f.DMALen)
}

// AtomicETH is a view: VA 0-7, R_Key 8-11, swap or add 12-19, compare 20-27.
type AtomicETH []byte

// AtomicFields are the values of an AtomicETH; VA is a multiple of 8 or the
// responder answers NAK invalid request (transport §1.4).
type AtomicFields struct {
	VA      uint64
	RKey    uint32
	SwapAdd uint64
	Compare uint64 // 0 for FETCH_ADD
}

// ParseAtomicETH cuts the header off b.
func ParseAtomicETH(b []byte) (h AtomicETH, rest []byte, err error) {
	if len(b) < AtomicSize {
		return nil, nil, short("AtomicETH", len(b), AtomicSize)
	}
	return b[:AtomicSize:AtomicSize], b[AtomicSize:], nil
}

// Fields decodes the header.
func (h AtomicETH) Fields() AtomicFields {
	return AtomicFields{
		VA: binary.BigEndian.Uint64(h), RKey: binary.BigEndian.Uint32(h[8:]),
		SwapAdd: binary.BigEndian.Uint64(h[12:]), Compare: binary.BigEndian.Uint64(h[20:]),
	}
}

// Append writes the header.
func (f AtomicFields) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, f.VA)
	dst = binary.BigEndian.AppendUint32(dst, f.RKey)
	dst = binary.BigEndian.AppendUint64(dst, f.SwapAdd)
	return binary.BigEndian.AppendUint64(dst, f.Compare)
}

// AETH is a view of an acknowledge header: syndrome 0, MSN 1-3.
type AETH []byte

// AETHFields are the values of an AETH.
type AETHFields struct {
	Syndrome uint8
	MSN      uint32 // 24 bits
}

// ParseAETH cuts the header off b.
func ParseAETH(b []byte) (h AETH, rest []byte, err error) {
	if len(b) < AETHSize {
		return nil, nil, short("AETH", len(b), AETHSize)
	}
	return b[:AETHSize:AETHSize], b[AETHSize:], nil
}

// Fields decodes the header.
func (h AETH) Fields() AETHFields {
	w := binary.BigEndian.Uint32(h)
	return AETHFields{Syndrome: uint8(w >> 24), MSN: w & PSNMask}
}

// Append writes the header.
func (f AETHFields) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(f.Syndrome)<<24|f.MSN&PSNMask)
}

// AtomicAckETH is a view: the value before the operation, 0-7.
type AtomicAckETH []byte

// ParseAtomicAckETH cuts the header off b.
func ParseAtomicAckETH(b []byte) (h AtomicAckETH, rest []byte, err error) {
	if len(b) < AtomAckSize {
		return nil, nil, short("AtomicAckETH", len(b), AtomAckSize)
	}
	return b[:AtomAckSize:AtomAckSize], b[AtomAckSize:], nil
}

// Original is the value before the operation.
func (h AtomicAckETH) Original() uint64 { return binary.BigEndian.Uint64(h) }

// Word is a view of a one-word header: ImmDt (opaque), IETH (R_Key to
// invalidate) or FETH (FLUSH: reserved 31:6, selectivity 5:4, placement type 3:0).
type Word []byte

// ParseWord cuts a one-word header off b; layer names it in errors.
func ParseWord(b []byte, layer string) (h Word, rest []byte, err error) {
	if len(b) < ImmSize {
		return nil, nil, short(layer, len(b), ImmSize)
	}
	return b[:ImmSize:ImmSize], b[ImmSize:], nil
}

// Value reads the word.
func (h Word) Value() uint32 { return binary.BigEndian.Uint32(h) }
