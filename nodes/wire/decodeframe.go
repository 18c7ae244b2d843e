package wire

import (
	"encoding/binary"
	"fmt"
)

// damage is the set of flags that say what a fault did to a frame.
const damage = FlagBadFCS | FlagBadICRC | FlagBadHdr

// DecodeFrame reads the bytes of a frame, destination MAC through FCS, into its
// value: the inverse of AppendFrame for every value whose unused fields are
// zero. A wrong FCS, ICRC or IPv4 checksum is a flag, not an error, and so is
// an EtherType that AppendFrame damaged. Bytes that
// do not parse give a frame of KindOther with their length, flagged
// FlagBadHdr, and the error; protocols that are not in use give KindOther.
func DecodeFrame(b []byte, ctx FrameContext) (Frame, error) {
	var f Frame
	if ctx.Beside != nil {
		f = *ctx.Beside
	}
	f.Kind, f.Len = KindOther, uint16(min(len(b), 0xffff))
	f.Clear(damage)
	if len(b) > 0xffff {
		return f, &Error{Layer: "Ethernet", Field: "length", Got: len(b), Want: "at most 65535", Cause: ErrLength}
	}
	mended, wrong := mendType(b)
	p, err := DecodeFCS(mended)
	if err != nil {
		f.Set(FlagBadHdr)
		return f, err
	}
	if !CheckFCS(b) {
		f.Set(FlagBadFCS)
	}
	if p.NVLAN == 0 {
		f.fill(&p)
	}
	if wrong {
		f.Set(DamagedType)
	}
	return f, nil
}

// mendType returns the bytes with the EtherType that they had before a fault
// damaged it, and whether one did.
func mendType(b []byte) (mended []byte, wrong bool) {
	if len(b) < EthHeader {
		return b, false
	}
	switch binary.BigEndian.Uint16(b[2*MACSize:]) ^ typeDamage<<8 {
	case TypeIPv4, TypeControl:
		mended = append(mended, b...)
		mended[2*MACSize] ^= typeDamage
		return mended, true
	}
	return b, false
}

// fill sets what the packet's headers hold.
func (f *Frame) fill(p *Packet) {
	switch p.Net {
	case NetPFC:
		f.Kind, f.A, f.B, f.D = KindPFC, 0, 0, 0
		for i, t := range p.PFC.Time {
			f.SetPFCTime(i, t)
		}
		f.D = uint32(p.PFC.Vector)
	case NetPause:
		f.Kind, f.A = KindPause, uint64(p.Quant)
	case NetIPv4:
		f.Src, f.Dst = p.IPv4.Src-NetBase, p.IPv4.Dst-NetBase
		f.TOS, f.TTL = p.IPv4.TOS, p.IPv4.TTL
		bad := !p.ipv4OK()
		switch {
		case p.IsRoCE:
			f.fillRoCE(p)
		default:
			f.fillFlow(p)
		}
		if bad {
			f.BreakIP()
		}
	}
}

// ipv4OK reports whether the header checksum is right.
func (p *Packet) ipv4OK() bool {
	var b [60]byte
	return IPv4(p.IPv4.Append(b[:0])).Valid()
}

func (f *Frame) fillRoCE(p *Packet) {
	h := &p.BTH
	f.Kind, f.SPort = KindOf(h.Op), p.UDP.SrcPort
	f.SetOp(h.Op, h.DstQPN)
	f.SetPSN(h.PSN)
	f.setIf(FlagAckReq, h.AckReq)
	f.setIf(FlagSE, h.SE)
	f.setIf(FlagM, h.M)
	f.setIf(FlagBECN, h.BECN)
	f.setIf(FlagFECN, h.FECN)
	f.setIf(FlagBadICRC, !p.ICRCOK())
	ext := h.Op.Ext()
	switch {
	case ext&ExtRETH != 0:
		f.A, f.B = p.RETH.VA, uint64(p.RETH.RKey)<<32|uint64(p.RETH.DMALen)
	case ext&ExtAtomic != 0:
		f.A, f.B, f.C, f.D = p.Atomic.VA, p.Atomic.SwapAdd, p.Atomic.Compare, p.Atomic.RKey
	case ext&ExtAtomicAck != 0:
		f.B = p.Orig
	case h.Op.HasPayload():
		f.B = uint64(len(p.Payload))
	}
	switch {
	case ext&ExtAETH != 0:
		f.SetAETH(p.AETH.Syndrome, p.AETH.MSN)
	case ext&ExtImm != 0:
		f.D = p.Imm
	case ext&ExtIETH != 0:
		f.D = p.IETH
	case ext&ExtFETH != 0:
		f.D = p.FETH
	}
	if h.Op.HasPayload() && len(p.Payload) >= 8 {
		f.C = binary.BigEndian.Uint64(p.Payload)
	}
}

// setIf raises or lowers a flag.
func (f *Frame) setIf(x Flags, on bool) {
	f.Clear(x)
	if on {
		f.Set(x)
	}
}

// fillFlow reads UDP, TCP and other frames back.
func (f *Frame) fillFlow(p *Packet) {
	body := p.Payload
	switch {
	case p.IsUDP && p.UDP.DstPort == FlowPort:
		f.Kind, f.SPort = KindUDP, p.UDP.SrcPort
	case p.IPv4.Proto == ProtoTCP && len(body) >= TCPHeader && binary.BigEndian.Uint16(body[2:]) == FlowPort:
		f.Kind, f.SPort = KindTCP, binary.BigEndian.Uint16(body)
		f.A = f.A&^0xffffffff | uint64(binary.BigEndian.Uint32(body[4:]))
		f.B = f.B&^0xffffffff | uint64(binary.BigEndian.Uint32(body[8:]))
		body = body[TCPHeader:]
	case p.IPv4.Proto == ProtoTest && len(body) >= 2:
		f.SPort = binary.BigEndian.Uint16(body)
		body = body[2:]
	default:
		return
	}
	if len(body) >= wordsSize {
		keep := f.Flags() & damage
		f.words(body)
		f.Clear(damage)
		f.Set(keep)
	}
}

// words reads what appendWords wrote.
func (f *Frame) words(b []byte) {
	f.qpn = binary.BigEndian.Uint32(b)
	f.psn = binary.BigEndian.Uint32(b[4:])
	f.D = binary.BigEndian.Uint32(b[8:])
	f.A = binary.BigEndian.Uint64(b[12:])
	f.B = binary.BigEndian.Uint64(b[20:])
	f.C = binary.BigEndian.Uint64(b[28:])
}

// String prints a frame on one line for logs and test failures.
func (f *Frame) String() string {
	switch f.Kind {
	case KindPFC:
		return fmt.Sprintf("pfc vector %02x times %016x%016x", f.D, f.B, f.A)
	case KindPause:
		return fmt.Sprintf("pause %d quanta", f.A)
	case KindData, KindAck, KindCNP:
		return fmt.Sprintf("%v %d>%d qpn 0x%x psn %d len %d tos 0x%02x flags %02x", f.Op(), f.Src, f.Dst, f.DstQPN(), f.PSN(), f.Len, f.TOS, uint8(f.Flags()))
	}
	return fmt.Sprintf("kind %d %d>%d sport %d len %d", f.Kind, f.Src, f.Dst, f.SPort, f.Len)
}
