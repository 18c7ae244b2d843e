// Package wire holds what travels: the frame as a value of one cache line, the
// PSN and opcode types, and the codec between that value and real bytes
// (Ethernet, VLAN, IPv4, IPv6, UDP, BTH and extension headers, ICRC, PFC).
// Frames move through the fabric as values; bytes are made only at the edges
// (captures, golden tests, fuzzers, real equipment). Start at [Frame].
package wire

import (
	"unsafe"

	"github.com/rocemu/rocemu/clock"
)

// Kind says what a frame is on the wire.
type Kind uint8

// Frame kinds. RoCE data means requests with or without payload and READ
// responses; acks, CNPs and PFC frames are control.
const (
	KindData  Kind = iota // RC request, READ response
	KindAck               // ACKNOWLEDGE (ACK, NAK, RNR) and ATOMIC_ACKNOWLEDGE
	KindCNP               // congestion notification
	KindUDP               // datagram of a `transport: udp` flow
	KindTCP               // segment of a `transport: tcp` flow
	KindPFC               // 802.1Qbb, link-local
	KindPause             // 802.3x, link-local
	KindOther             // forged or undecodable, carried by size only
)

// Flags of a frame: BTH bits and what a fault did to it.
type Flags uint8

// Flag bits.
const (
	FlagAckReq  Flags = 1 << iota // BTH A
	FlagSE                        // BTH SE
	FlagM                         // BTH M (MigReq)
	FlagBadFCS                    // damaged on a link: dropped by the next receiver, reason crc
	FlagBadICRC                   // ICRC does not match: dropped by the RNIC, reason icrc
	FlagBadHdr                    // header damaged so that the RNIC drops it, reason bad_header
	FlagBECN                      // BTH BECN
	FlagFECN                      // BTH FECN
)

// DamagedType is both bits: the EtherType is wrong. A receiver sees no IP
// header then, so neither checksum says anything, and the reason is bad_header
// as for FlagBadHdr alone, which is the header checksum.
const DamagedType = FlagBadHdr | FlagBadICRC

// ECN codepoints, the low two bits of the ToS byte.
const (
	NotECT = 0
	ECT1   = 1
	ECT0   = 2
	CE     = 3
)

// Frame is a frame on the move: exactly one cache line, copied by value.
//
// A, B, C and D are a union by opcode:
//
//	RETH (write-first/only, read-request)  A = VA, B = R_Key<<32 | DMA length
//	AtomicETH                              A = VA, B = swap or add, C = compare, D = R_Key
//	payload                                C = content tag (see package qp; bytes: Fill)
//	payload without RETH                   B = payload bytes (SetPad); with RETH the pad follows from the DMA length
//	ImmDt / IETH / FETH                    D
//	AETH (acks, READ responses)            D = syndrome<<24 | MSN; A = arrival of the answered packet's last bit
//	AtomicAckETH                           B = original value, D = AETH
//	PFC                                    A, B = time[0..7], 16 bits each, time[0] lowest; D = class-enable vector
//	PAUSE                                  A = quanta
//	UDP, TCP                               A..D free for the transport
type Frame struct {
	At      clock.Time // when the receiver's state first changes
	A, B, C uint64
	D       uint32
	Src     uint32 // source RNIC number k (IPv4 10.0.0.0+k); 0 for link-local frames
	Dst     uint32 // destination RNIC number
	qpn     uint32 // opcode<<24 | destination QPN
	psn     uint32 // flags<<24 | PSN
	Index   uint32 // psn_index: n-th packet, from 1, of its QP and direction as first sent (mod 2^32); acks: ordinal
	Len     uint16 // destination MAC through FCS, bytes
	SPort   uint16 // UDP source port
	Kind    Kind
	TOS     uint8 // DSCP<<2 | ECN
	TTL     uint8
	Iter    uint8 // transmissions of this packet at its sender, 1 = first, saturating
}

// FrameBytes is the size of a Frame in memory.
const FrameBytes = 64

var (
	_ [FrameBytes - unsafe.Sizeof(Frame{})]struct{}
	_ [unsafe.Sizeof(Frame{}) - FrameBytes]struct{}
)

// Op returns the BTH opcode.
func (f *Frame) Op() Opcode { return Opcode(f.qpn >> 24) }

// DstQPN returns the 24-bit destination QPN.
func (f *Frame) DstQPN() uint32 { return f.qpn & PSNMask }

// SetOp sets opcode and destination QPN.
func (f *Frame) SetOp(op Opcode, qpn uint32) { f.qpn = uint32(op)<<24 | qpn&PSNMask }

// SetBTH sets opcode, destination QPN, sequence number and flags.
func (f *Frame) SetBTH(op Opcode, qpn uint32, p PSN, x Flags) {
	f.qpn, f.psn = uint32(op)<<24|qpn&PSNMask, uint32(x)<<24|uint32(p)&PSNMask
}

// PSN returns the 24-bit sequence number.
func (f *Frame) PSN() PSN { return PSN(f.psn & PSNMask) }

// SetPSN sets the sequence number and keeps the flags.
func (f *Frame) SetPSN(p PSN) { f.psn = f.psn&^uint32(PSNMask) | uint32(p)&PSNMask }

// Flags returns the flag byte.
func (f *Frame) Flags() Flags { return Flags(f.psn >> 24) }

// Has reports whether all bits of x are set.
func (f *Frame) Has(x Flags) bool { return Flags(f.psn>>24)&x == x }

// Set raises flag bits; Clear lowers them.
func (f *Frame) Set(x Flags)   { f.psn |= uint32(x) << 24 }
func (f *Frame) Clear(x Flags) { f.psn &^= uint32(x) << 24 }

// BreakIP damages the IPv4 header checksum and BreakICRC the ICRC, unless a
// damage that the receiver meets first hides it.
func (f *Frame) BreakIP() {
	if !f.Has(DamagedType) {
		f.Clear(FlagBadICRC)
		f.Set(FlagBadHdr)
	}
}

// BreakICRC is the same for the ICRC.
func (f *Frame) BreakICRC() {
	if !f.Has(FlagBadHdr) {
		f.Set(FlagBadICRC)
	}
}

// ECN returns the ECN codepoint, DSCP the differentiated services codepoint.
func (f *Frame) ECN() uint8  { return f.TOS & 3 }
func (f *Frame) DSCP() uint8 { return f.TOS >> 2 }

// Syndrome and MSN of an AETH.
func (f *Frame) Syndrome() uint8 { return uint8(f.D >> 24) }
func (f *Frame) MSN() uint32     { return f.D & PSNMask }

// SetAETH stores syndrome and MSN.
func (f *Frame) SetAETH(syn uint8, msn uint32) { f.D = uint32(syn)<<24 | msn&PSNMask }

// PFCTime returns time[prio] of a PFC frame, in quanta.
func (f *Frame) PFCTime(prio int) uint16 {
	w := f.A
	if prio >= 4 {
		w = f.B
	}
	return uint16(w >> (16 * (prio & 3)))
}

// SetPFCTime sets time[prio] and its bit in the class-enable vector.
func (f *Frame) SetPFCTime(prio int, quanta uint16) {
	s := uint(16 * (prio & 3))
	w := &f.A
	if prio >= 4 {
		w = &f.B
	}
	*w = *w&^(0xffff<<s) | uint64(quanta)<<s
	f.D |= 1 << prio
}

// Header sizes in bytes (transport §1.1).
const (
	EthHeader   = 14
	IPv4Header  = 20
	UDPHeader   = 8
	BTHSize     = 12
	RETHSize    = 16
	AtomicSize  = 28
	AETHSize    = 4
	AtomAckSize = 8
	ImmSize     = 4
	ICRCSize    = 4
	FCSSize     = 4
	Overhead    = 20 // preamble, SFD and inter-packet gap: L + Overhead bytes occupy a hop
	MinFrame    = 64
	PFCFrame    = 64
	RoCEBase    = EthHeader + IPv4Header + UDPHeader + BTHSize + ICRCSize + FCSSize // 62
	CNPFrame    = RoCEBase + 16                                                     // 78
	AckFrame    = RoCEBase + AETHSize                                               // 66
	AtomicAckFr = RoCEBase + AETHSize + AtomAckSize
)

// extLen is the size of the extension headers after the BTH, by opcode.
var extLen = [256]uint8{
	SendLastImm: ImmSize, SendOnlyImm: ImmSize, SendLastInv: 4, SendOnlyInv: 4,
	WriteFirst: RETHSize, WriteOnly: RETHSize, WriteLastImm: ImmSize, WriteOnlyImm: RETHSize + ImmSize,
	ReadRequest: RETHSize, ReadRespFirst: AETHSize, ReadRespLast: AETHSize, ReadRespOnly: AETHSize,
	Acknowledge: AETHSize, AtomicAck: AETHSize + AtomAckSize, CompareSwap: AtomicSize, FetchAdd: AtomicSize,
	CNP: 16, Flush: FETHSize + RETHSize, AtomicWrite: RETHSize,
	UCSendLastImm: ImmSize, UCSendOnlyImm: ImmSize, UCWriteFirst: RETHSize, UCWriteOnly: RETHSize,
	UCWriteLastImm: ImmSize, UCWriteOnlyImm: RETHSize + ImmSize,
}

// RoCELen returns L for an untagged RoCEv2/IPv4 frame of this opcode and
// payload: headers, payload, pad to four, ICRC, FCS, at least 64 bytes.
func RoCELen(op Opcode, payload int) int {
	n := RoCEBase + int(extLen[op]) + (payload+3)&^3
	return max(n, MinFrame)
}

// Payload returns the payload bytes of a RoCE data frame given the path MTU
// independent Len; pad is not part of it, so the caller passes PadCnt. A
// zero-length SEND_ONLY is 0 although its frame has two bytes of Ethernet
// padding behind the ICRC.
func (f *Frame) Payload(pad int) int {
	return f.room() - pad
}

// room is what a RoCE frame holds behind its headers: payload and pad.
func (f *Frame) room() int {
	n := int(f.Len) - RoCEBase - int(extLen[f.Op()])
	if f.Len == MinFrame && extLen[f.Op()] == 0 {
		return 0
	}
	return n
}

// SetPad stores the length of a payload of n bytes where the opcode leaves room
// for it, in B of payload frames without RETH: PadCnt follows from it. Elsewhere
// it does nothing, because the pad follows from the DMA length or there is none.
func (f *Frame) SetPad(n int) {
	if op := f.Op(); op.HasPayload() && op.Ext()&ExtRETH == 0 {
		f.B = uint64(n)
	}
}

// Pad returns the PadCnt of a RoCE frame: what B's low word, payload or DMA
// length, lacks to a multiple of four.
func (f *Frame) Pad() int {
	op := f.Op()
	if f.room() < 4 || !op.HasPayload() || op == WriteFirst || op == UCWriteFirst {
		return 0 // a FIRST carries exactly the path MTU; its DMA length is the message's
	}
	return -int(uint32(f.B)) & 3
}

// PayloadLen returns the payload bytes of a RoCE frame, pad left out.
func (f *Frame) PayloadLen() int { return f.Payload(f.Pad()) }
