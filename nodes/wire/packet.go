package wire

import "encoding/binary"

// Net says what follows the Ethernet header of a packet.
type Net uint8

// Network layers of a [Packet].
const (
	NetOther Net = iota // unknown EtherType: everything behind it is Payload
	NetIPv4
	NetIPv6
	NetGRH // RoCEv1
	NetPFC
	NetPause
)

// Packet is a frame with all its layers decoded. Byte slices alias the decoded
// frame. What Decode accepts, Append writes back byte for byte.
type Packet struct {
	Eth   EthernetFields
	VLANs [2]VLANFields // outer first; NVLAN are in use
	NVLAN int

	Net   Net
	IPv4  IPv4Fields // with NetIPv4
	IPv6  IPv6Fields // with NetIPv6 and NetGRH
	PFC   PFCFields  // with NetPFC
	Quant uint16     // pause time, with NetPause

	IsUDP  bool // UDP holds a header; false under NetGRH and for other protocols
	UDP    UDPFields
	IsRoCE bool // BTH, extension headers by BTH.Op and ICRC are present
	BTH    BTHFields
	RETH   RETHFields
	Atomic AtomicFields
	AETH   AETHFields
	Orig   uint64 // AtomicAckETH
	Imm    uint32
	IETH   uint32 // R_Key to invalidate
	FETH   uint32
	CNP    [CNPReserved]byte

	Payload []byte // without pad
	PadByte [3]byte
	ICRC    uint32 // value; on the wire least significant byte first
	Trailer []byte // Ethernet padding behind the network layer
	HasFCS  bool
	FCS     uint32
}

// vlanTag reports whether the EtherType t announces a VLAN tag.
func vlanTag(t uint16) bool { return t == TypeVLAN || t == TypeQinQ }

// EtherType is the type behind the VLAN tags.
func (p *Packet) EtherType() uint16 {
	if p.NVLAN > 0 {
		return p.VLANs[p.NVLAN-1].Type
	}
	return p.Eth.Type
}

// Append writes the packet as it is: lengths, checksums, ICRC and FCS are taken
// from their fields. [Packet.Seal] computes them.
func (p *Packet) Append(dst []byte) []byte {
	dst = p.Eth.Append(dst)
	for i := 0; i < p.NVLAN; i++ {
		dst = p.VLANs[i].Append(dst)
	}
	switch p.Net {
	case NetIPv4:
		dst = p.IPv4.Append(dst)
	case NetIPv6, NetGRH:
		dst = p.IPv6.Append(dst)
	case NetPFC:
		dst = p.PFC.Append(dst)
	case NetPause:
		dst = binary.BigEndian.AppendUint16(dst, ControlPause)
		dst = binary.BigEndian.AppendUint16(dst, p.Quant)
	}
	if p.IsUDP {
		dst = p.UDP.Append(dst)
	}
	if p.IsRoCE {
		dst = p.appendIBA(dst)
	} else {
		dst = append(dst, p.Payload...)
	}
	dst = append(dst, p.Trailer...)
	if p.HasFCS {
		dst = binary.LittleEndian.AppendUint32(dst, p.FCS)
	}
	return dst
}

// appendIBA writes BTH, extension headers, payload, pad and ICRC.
func (p *Packet) appendIBA(dst []byte) []byte {
	dst = p.BTH.Append(dst)
	ext := p.BTH.Op.Ext()
	if ext&ExtFETH != 0 {
		dst = binary.BigEndian.AppendUint32(dst, p.FETH)
	}
	if ext&ExtRETH != 0 {
		dst = p.RETH.Append(dst)
	}
	if ext&ExtAtomic != 0 {
		dst = p.Atomic.Append(dst)
	}
	if ext&ExtAETH != 0 {
		dst = p.AETH.Append(dst)
	}
	if ext&ExtAtomicAck != 0 {
		dst = binary.BigEndian.AppendUint64(dst, p.Orig)
	}
	if ext&ExtImm != 0 {
		dst = binary.BigEndian.AppendUint32(dst, p.Imm)
	}
	if ext&ExtIETH != 0 {
		dst = binary.BigEndian.AppendUint32(dst, p.IETH)
	}
	if ext&ExtCNP != 0 {
		dst = append(dst, p.CNP[:]...)
	}
	dst = append(dst, p.Payload...)
	dst = append(dst, p.PadByte[:p.BTH.PadCnt&3]...)
	return binary.LittleEndian.AppendUint32(dst, p.ICRC)
}

// ibaLen is the length of what appendIBA writes.
func (p *Packet) ibaLen() int {
	return BTHSize + p.BTH.Op.ExtLen() + len(p.Payload) + int(p.BTH.PadCnt&3) + ICRCSize
}

// Seal fills in what follows from the rest: PadCnt (and zero pad bytes), UDP
// and IP lengths, IPv4 header checksum, ICRC, Ethernet padding to the minimum
// and, with HasFCS, the FCS. It allocates.
func (p *Packet) Seal() {
	n := len(p.Payload)
	if p.IsRoCE {
		p.BTH.PadCnt, p.PadByte = uint8(-n&3), [3]byte{}
		n = p.ibaLen()
	}
	if p.IsUDP {
		n += UDPHeader
		p.UDP.Len = uint16(n)
	}
	switch p.Net {
	case NetIPv4:
		n += IPv4Header + len(p.IPv4.Options)
		p.IPv4.TotalLen, p.IPv4.Checksum = uint16(n), 0
		p.IPv4.Checksum = ^onesSum(0, p.IPv4.Append(nil))
	case NetIPv6, NetGRH:
		p.IPv6.PayloadLen = uint16(n)
		n += IPv6Header
	case NetPFC:
		n += pfcBody
	case NetPause:
		n += pauseBody
	}
	n += EthHeader + p.NVLAN*VLANSize
	p.Trailer = make([]byte, max(0, MinFrame-FCSSize-n))
	if p.IsRoCE {
		p.ICRC, _ = p.ComputeICRC()
	}
	if p.HasFCS {
		b := p.Append(nil)
		p.FCS = FCS(b[:len(b)-FCSSize])
	}
}

// ComputeICRC returns the ICRC the packet should have; ok is false when it is
// not a RoCE packet.
func (p *Packet) ComputeICRC() (icrc uint32, ok bool) {
	if !p.IsRoCE {
		return 0, false
	}
	q := *p
	q.Trailer, q.HasFCS = nil, false
	b := q.Append(nil)
	b = b[EthHeader+p.NVLAN*VLANSize : len(b)-ICRCSize]
	switch p.Net {
	case NetIPv4:
		return ICRCv4(b), true
	case NetIPv6:
		return ICRCv6(b), true
	}
	return ICRCv1(b), true
}

// ICRCOK reports whether a RoCE packet's ICRC is right.
func (p *Packet) ICRCOK() bool {
	v, ok := p.ComputeICRC()
	return ok && v == p.ICRC
}
