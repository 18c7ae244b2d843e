package wire

import "encoding/binary"

// DefaultPKey is the full-member default partition key.
const DefaultPKey = 0xffff

// BTH is a view of a base transport header (transport §1.2):
//
//	0 opcode  1 SE 7, M 6, PadCnt 5:4, TVer 3:0  2-3 P_Key
//	4 FECN 7, BECN 6, reserved 5:0  5-7 destination QPN
//	8 A 7, reserved 6:0  9-11 PSN
type BTH []byte

// BTHFields are the values of a BTH, reserved bits included, so that a decoded
// header can be written back unchanged.
type BTHFields struct {
	Op         Opcode
	SE, M      bool
	PadCnt     uint8 // 0..3
	TVer       uint8 // 0; anything else is dropped silently
	PKey       uint16
	FECN, BECN bool
	Resv6      uint8 // 6 bits
	DstQPN     uint32
	AckReq     bool
	Resv7      uint8 // 7 bits
	PSN        PSN
}

// ParseBTH cuts the header off b.
func ParseBTH(b []byte) (h BTH, rest []byte, err error) {
	if len(b) < BTHSize {
		return nil, nil, short("BTH", len(b), BTHSize)
	}
	return b[:BTHSize:BTHSize], b[BTHSize:], nil
}

// Op, PadCnt, DstQPN and PSN read single fields.
func (h BTH) Op() Opcode     { return Opcode(h[0]) }
func (h BTH) PadCnt() uint8  { return h[1] >> 4 & 3 }
func (h BTH) DstQPN() uint32 { return binary.BigEndian.Uint32(h[4:]) & PSNMask }
func (h BTH) PSN() PSN       { return PSN(binary.BigEndian.Uint32(h[8:]) & PSNMask) }

// Fields decodes the header.
func (h BTH) Fields() BTHFields {
	return BTHFields{
		Op: h.Op(), SE: h[1]&0x80 != 0, M: h[1]&0x40 != 0, PadCnt: h.PadCnt(), TVer: h[1] & 15,
		PKey: binary.BigEndian.Uint16(h[2:]),
		FECN: h[4]&0x80 != 0, BECN: h[4]&0x40 != 0, Resv6: h[4] & 0x3f, DstQPN: h.DstQPN(),
		AckReq: h[8]&0x80 != 0, Resv7: h[8] & 0x7f, PSN: h.PSN(),
	}
}

// Append writes the header.
func (f *BTHFields) Append(dst []byte) []byte {
	flags := bit(f.SE, 0x80) | bit(f.M, 0x40) | f.PadCnt&3<<4 | f.TVer&15
	cong := bit(f.FECN, 0x80) | bit(f.BECN, 0x40) | f.Resv6&0x3f
	ack := bit(f.AckReq, 0x80) | f.Resv7&0x7f
	dst = append(dst, byte(f.Op), flags)
	dst = binary.BigEndian.AppendUint16(dst, f.PKey)
	dst = binary.BigEndian.AppendUint32(dst, uint32(cong)<<24|f.DstQPN&PSNMask)
	return binary.BigEndian.AppendUint32(dst, uint32(ack)<<24|uint32(f.PSN)&PSNMask)
}

func bit(on bool, v byte) byte {
	if on {
		return v
	}
	return 0
}

// KeyMatch reports whether two partition keys match: equal in the low 15 bits,
// not zero there, and at least one a full member (transport §1.2).
func KeyMatch(a, b uint16) bool {
	return a&0x7fff != 0 && (a^b)&0x7fff == 0 && (a|b)&0x8000 != 0
}
