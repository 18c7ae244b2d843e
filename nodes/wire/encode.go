package wire

import (
	"encoding/binary"
	"fmt"
)

// FrameContext is what the bytes of a frame hold and its value does not, and
// the other way round.
type FrameContext struct {
	SrcMAC, DstMAC MAC    // of this leg: switches rewrite them. PFC and PAUSE use SrcMAC only
	IPID           uint16 // IPv4 identification
	// Beside supplies, on decoding, what bytes cannot: At, Index, Iter, the
	// arrival in A of acks and READ responses, and C when the payload is
	// shorter than its 8-byte tag. For UDP, TCP and other frames too short to
	// carry the words of their transport it supplies those too. Nil: zeros.
	Beside *Frame
}

// Ports and ethertypes of what is not RoCE.
const (
	FlowPort  = 5001 // destination port of `transport: udp` and `tcp` flows
	TCPHeader = 20
)

// typeDamage is the bit of an EtherType's first byte that a fault flips: 0x0800
// becomes 0x0900 and 0x8808 becomes 0x8908, which no receiver knows.
const typeDamage = 1

// wordsSize is the block of a frame's transport words that leads the payload of
// UDP, TCP and other frames: opcode and QPN, flags and PSN, D, A, B, C.
const wordsSize = 36

// AppendFrame writes the frame as it stands on the wire, destination MAC
// through FCS, f.Len bytes. What a fault damaged is really wrong in the bytes:
// one bit of the FCS, of the ICRC, of the IPv4 header checksum, or of the
// EtherType. It does not allocate when dst has room. A Len below the opcode's headers is a bug and
// panics.
func AppendFrame(dst []byte, f *Frame, ctx FrameContext) []byte {
	start := len(dst)
	switch f.Kind {
	case KindPFC, KindPause:
		dst = appendControl(dst, f, ctx)
	case KindData, KindAck, KindCNP:
		dst = appendRoCE(dst, f, ctx)
	default:
		dst = appendFlow(dst, f, ctx)
	}
	if f.Has(DamagedType) {
		dst[start+2*MACSize] ^= typeDamage
	}
	fcs := FCS(dst[start:])
	if f.Has(FlagBadFCS) {
		fcs ^= 1
	}
	dst = binary.LittleEndian.AppendUint32(dst, fcs)
	if n := len(dst) - start; n != int(f.Len) {
		panic(fmt.Sprintf("wire: frame kind %d opcode %v: %d bytes written, Len is %d", f.Kind, f.Op(), n, f.Len))
	}
	return dst
}

// appendZeros pads with n zero bytes.
func appendZeros(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, 0)
	}
	return dst
}

func appendControl(dst []byte, f *Frame, ctx FrameContext) []byte {
	start := len(dst)
	dst = EthernetFields{Dst: ControlMAC, Src: ctx.SrcMAC, Type: TypeControl}.Append(dst)
	if f.Kind == KindPause {
		dst = binary.BigEndian.AppendUint16(dst, ControlPause)
		dst = binary.BigEndian.AppendUint16(dst, uint16(f.A))
	} else {
		p := PFCFields{Vector: uint16(f.D)}
		for i := range p.Time {
			p.Time[i] = f.PFCTime(i)
		}
		dst = p.Append(dst)
	}
	return appendZeros(dst, start+MinFrame-FCSSize-len(dst))
}

// appendIPv4 writes Ethernet and IPv4 for n bytes behind the IP header.
func appendIPv4(dst []byte, f *Frame, ctx FrameContext, proto uint8, n int) []byte {
	dst = EthernetFields{Dst: ctx.DstMAC, Src: ctx.SrcMAC, Type: TypeIPv4}.Append(dst)
	ip := len(dst)
	h := IPv4Fields{
		TOS: f.TOS, TotalLen: uint16(IPv4Header + n), ID: ctx.IPID, Frag: IPv4DF,
		TTL: f.TTL, Proto: proto, Src: NetBase + f.Src, Dst: NetBase + f.Dst,
	}
	dst = h.Append(dst)
	sum := ^onesSum(0, dst[ip:])
	if f.Flags()&DamagedType == FlagBadHdr {
		sum ^= 1 // a change by one is never 0 modulo 0xffff
	}
	binary.BigEndian.PutUint16(dst[ip+10:], sum)
	return dst
}

func appendRoCE(dst []byte, f *Frame, ctx FrameContext) []byte {
	op, pad, payload := f.Op(), f.Pad(), f.PayloadLen()
	if payload < 0 {
		panic(fmt.Sprintf("wire: opcode %v: Len is %d, allowed: at least %d", op, f.Len, RoCEBase+op.ExtLen()))
	}
	n := UDPHeader + BTHSize + op.ExtLen() + payload + pad + ICRCSize
	start := len(dst)
	dst = appendIPv4(dst, f, ctx, ProtoUDP, n)
	dst = UDPFields{SrcPort: f.SPort, DstPort: RoCEPort, Len: uint16(n)}.Append(dst)
	bth := BTHFields{
		Op: op, SE: f.Has(FlagSE), M: f.Has(FlagM), PadCnt: uint8(pad), PKey: DefaultPKey,
		FECN: f.Has(FlagFECN), BECN: f.Has(FlagBECN), DstQPN: f.DstQPN(),
		AckReq: f.Has(FlagAckReq), PSN: f.PSN(),
	}
	dst = bth.Append(dst)
	dst = appendExt(dst, f, op.Ext())
	dst = AppendFill(dst, f.C, payload)
	dst = appendZeros(dst, pad)
	icrc := ICRCv4(dst[start+EthHeader:])
	if f.Flags()&DamagedType == FlagBadICRC {
		icrc ^= 1
	}
	dst = binary.LittleEndian.AppendUint32(dst, icrc)
	return appendZeros(dst, start+MinFrame-FCSSize-len(dst))
}

// appendExt writes the extension headers from the union A..D.
func appendExt(dst []byte, f *Frame, ext Ext) []byte {
	if ext&ExtFETH != 0 {
		dst = binary.BigEndian.AppendUint32(dst, f.D)
	}
	if ext&ExtRETH != 0 {
		dst = RETHFields{VA: f.A, RKey: uint32(f.B >> 32), DMALen: uint32(f.B)}.Append(dst)
	}
	if ext&ExtAtomic != 0 {
		dst = AtomicFields{VA: f.A, RKey: f.D, SwapAdd: f.B, Compare: f.C}.Append(dst)
	}
	if ext&(ExtAETH|ExtImm|ExtIETH) != 0 { // never two of them
		dst = binary.BigEndian.AppendUint32(dst, f.D)
	}
	if ext&ExtAtomicAck != 0 {
		dst = binary.BigEndian.AppendUint64(dst, f.B)
	}
	if ext&ExtCNP != 0 {
		dst = appendZeros(dst, CNPReserved)
	}
	return dst
}

// appendFlow writes UDP, TCP and other frames: IPv4, the transport header, and
// a payload led by the frame's words when it has room for them.
func appendFlow(dst []byte, f *Frame, ctx FrameContext) []byte {
	start, end := len(dst), len(dst)+int(f.Len)-FCSSize
	n := int(f.Len) - EthHeader - IPv4Header - FCSSize
	if n < flowHeader(f.Kind) || f.Len < MinFrame {
		panic(fmt.Sprintf("wire: frame kind %d: Len is %d, allowed: at least %d", f.Kind, f.Len, MinFrame))
	}
	switch f.Kind {
	case KindUDP:
		dst = appendIPv4(dst, f, ctx, ProtoUDP, n)
		dst = UDPFields{SrcPort: f.SPort, DstPort: FlowPort, Len: uint16(n)}.Append(dst)
	case KindTCP:
		if f.Len == MinFrame {
			n = TCPHeader // a bare segment; the rest is Ethernet padding
		}
		dst = appendIPv4(dst, f, ctx, ProtoTCP, n)
		dst = appendTCP(dst, f)
	default:
		dst = appendIPv4(dst, f, ctx, ProtoTest, n)
		dst = binary.BigEndian.AppendUint16(dst, f.SPort)
	}
	if end-len(dst) >= wordsSize {
		dst = appendWords(dst, f)
	}
	dst = appendZeros(dst, end-len(dst))
	if f.Kind == KindTCP {
		seg := dst[start+EthHeader+IPv4Header : start+EthHeader+IPv4Header+n]
		binary.BigEndian.PutUint16(seg[16:], tcpSum(f, seg))
	}
	return dst
}

// flowHeader is the size of the transport header of a frame that is not RoCE.
func flowHeader(k Kind) int {
	switch k {
	case KindUDP:
		return UDPHeader
	case KindTCP:
		return TCPHeader
	}
	return 2 // KindOther: the port
}

// appendTCP writes a header without options: sequence number = low word of A,
// acknowledgement = low word of B, flags ACK, checksum left 0.
func appendTCP(dst []byte, f *Frame) []byte {
	dst = binary.BigEndian.AppendUint16(dst, f.SPort)
	dst = binary.BigEndian.AppendUint16(dst, FlowPort)
	dst = binary.BigEndian.AppendUint32(dst, uint32(f.A))
	dst = binary.BigEndian.AppendUint32(dst, uint32(f.B))
	return append(dst, TCPHeader/4<<4, 0x10, 0xff, 0xff, 0, 0, 0, 0)
}

// tcpSum is the checksum of a segment under the IPv4 pseudo header, the
// checksum field being 0 (RFC 9293 3.1).
func tcpSum(f *Frame, seg []byte) uint16 {
	var p [12]byte
	binary.BigEndian.PutUint32(p[0:], NetBase+f.Src)
	binary.BigEndian.PutUint32(p[4:], NetBase+f.Dst)
	p[9] = ProtoTCP
	binary.BigEndian.PutUint16(p[10:], uint16(len(seg)))
	return ^onesSum(uint32(onesSum(0, p[:])), seg)
}

func appendWords(dst []byte, f *Frame) []byte {
	dst = binary.BigEndian.AppendUint32(dst, f.qpn)
	dst = binary.BigEndian.AppendUint32(dst, f.psn)
	dst = binary.BigEndian.AppendUint32(dst, f.D)
	dst = binary.BigEndian.AppendUint64(dst, f.A)
	dst = binary.BigEndian.AppendUint64(dst, f.B)
	return binary.BigEndian.AppendUint64(dst, f.C)
}
