package wire

import (
	"encoding/binary"
	"net/netip"
)

// IP protocol numbers and ports in use.
const (
	ProtoTCP  = 6
	ProtoUDP  = 17
	ProtoIBA  = 0x1b // GRH next header: a BTH follows
	ProtoTest = 253  // RFC 3692 experimentation: frames of KindOther
	RoCEPort  = 4791 // UDP destination of RoCEv2
)

// NetBase is 10.0.0.0; RNIC number k has NetBase+k (model-rules, frames).
const NetBase = 0x0a000000

// IPv4Flags: the three bits above the fragment offset.
const (
	IPv4DF = 0x4000
	IPv4MF = 0x2000
)

// IPv4 is a view of a header with its options:
//
//	0 version|IHL  1 ToS  2-3 total length  4-5 identification  6-7 flags|offset
//	8 TTL  9 protocol  10-11 checksum  12-15 source  16-19 destination  20- options
type IPv4 []byte

// IPv4Fields are the values of an IPv4 header.
type IPv4Fields struct {
	TOS      uint8 // DSCP<<2 | ECN
	TotalLen uint16
	ID       uint16
	Frag     uint16 // flags in 15:13, offset in 12:0
	TTL      uint8
	Proto    uint8
	Checksum uint16
	Src, Dst uint32
	Options  []byte // multiple of 4, at most 40; aliases the decoded frame
}

// ParseIPv4 checks version, IHL and total length, and returns the header and
// the payload that the total length announces; Ethernet padding is cut off.
func ParseIPv4(b []byte) (h IPv4, payload []byte, err error) {
	if len(b) < IPv4Header {
		return nil, nil, short("IPv4", len(b), IPv4Header)
	}
	if v := int(b[0] >> 4); v != 4 {
		return nil, nil, &Error{Layer: "IPv4", Field: "version", Got: v, Want: "4", Cause: ErrVersion}
	}
	ihl := int(b[0]&15) * 4
	if ihl < IPv4Header || ihl > len(b) {
		return nil, nil, &Error{Layer: "IPv4", Field: "header length", Got: ihl, Want: "20 to 60, inside the frame", Cause: ErrLength}
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total < ihl || total > len(b) {
		return nil, nil, &Error{Layer: "IPv4", Field: "total length", Got: total, Want: "header length to bytes present", Cause: ErrLength}
	}
	return b[:ihl:ihl], b[ihl:total:total], nil
}

// TOS, TTL, ID, Src, Dst and Checksum read single fields.
func (h IPv4) TOS() uint8       { return h[1] }
func (h IPv4) ID() uint16       { return binary.BigEndian.Uint16(h[4:]) }
func (h IPv4) TTL() uint8       { return h[8] }
func (h IPv4) Proto() uint8     { return h[9] }
func (h IPv4) Checksum() uint16 { return binary.BigEndian.Uint16(h[10:]) }
func (h IPv4) Src() uint32      { return binary.BigEndian.Uint32(h[12:]) }
func (h IPv4) Dst() uint32      { return binary.BigEndian.Uint32(h[16:]) }

// SetTOS and SetTTL rewrite what routers rewrite and refresh the checksum.
func (h IPv4) SetTOS(v uint8) { h[1] = v; h.refresh() }
func (h IPv4) SetTTL(v uint8) { h[8] = v; h.refresh() }

func (h IPv4) refresh() {
	h[10], h[11] = 0, 0
	binary.BigEndian.PutUint16(h[10:], ^onesSum(0, h))
}

// Valid reports whether the header checksum is right.
func (h IPv4) Valid() bool { return onesSum(0, h) == 0xffff }

// Fields decodes the header.
func (h IPv4) Fields() IPv4Fields {
	f := IPv4Fields{
		TOS: h.TOS(), TotalLen: binary.BigEndian.Uint16(h[2:]), ID: h.ID(),
		Frag: binary.BigEndian.Uint16(h[6:]), TTL: h.TTL(), Proto: h.Proto(),
		Checksum: h.Checksum(), Src: h.Src(), Dst: h.Dst(),
	}
	if len(h) > IPv4Header {
		f.Options = h[IPv4Header:]
	}
	return f
}

// Append writes the header with the checksum it holds.
func (f *IPv4Fields) Append(dst []byte) []byte {
	ihl := byte(IPv4Header+len(f.Options)) / 4
	dst = append(dst, 0x40|ihl, f.TOS)
	dst = binary.BigEndian.AppendUint16(dst, f.TotalLen)
	dst = binary.BigEndian.AppendUint16(dst, f.ID)
	dst = binary.BigEndian.AppendUint16(dst, f.Frag)
	dst = append(dst, f.TTL, f.Proto)
	dst = binary.BigEndian.AppendUint16(dst, f.Checksum)
	dst = binary.BigEndian.AppendUint32(dst, f.Src)
	dst = binary.BigEndian.AppendUint32(dst, f.Dst)
	return append(dst, f.Options...)
}

// onesSum is the 16-bit one's complement sum of b added to start (RFC 1071).
func onesSum(start uint32, b []byte) uint16 {
	s := uint64(start)
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(b[0])<<8 | uint64(b[1])
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// IPv6Header is the size of an IPv6 header and of a GRH, which has its layout.
const IPv6Header = 40

// IPv6 is a view of an IPv6 header, or of the GRH of RoCEv1:
//
//	0-3 version 31:28, traffic class 27:20, flow label 19:0
//	4-5 payload length  6 next header  7 hop limit  8-23 source  24-39 destination
type IPv6 []byte

// IPv6Fields are the values of an IPv6 header or GRH.
type IPv6Fields struct {
	Class      uint8  // traffic class: DSCP<<2 | ECN
	Flow       uint32 // 20-bit flow label
	PayloadLen uint16 // bytes after this header
	Next       uint8
	HopLimit   uint8
	Src, Dst   netip.Addr // GIDs in a GRH
}

// ParseIPv6 checks version and payload length; layer names the header in
// errors ("IPv6" or "GRH").
func ParseIPv6(b []byte, layer string) (h IPv6, payload []byte, err error) {
	if len(b) < IPv6Header {
		return nil, nil, short(layer, len(b), IPv6Header)
	}
	if v := int(b[0] >> 4); v != 6 {
		return nil, nil, &Error{Layer: layer, Field: "version", Got: v, Want: "6", Cause: ErrVersion}
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n > len(b)-IPv6Header {
		return nil, nil, &Error{Layer: layer, Field: "payload length", Got: n, Want: "at most the bytes present", Cause: ErrLength}
	}
	return b[:IPv6Header:IPv6Header], b[IPv6Header : IPv6Header+n : IPv6Header+n], nil
}

// Fields decodes the header.
func (h IPv6) Fields() IPv6Fields {
	w := binary.BigEndian.Uint32(h)
	return IPv6Fields{
		Class: uint8(w >> 20), Flow: w & 0xfffff, PayloadLen: binary.BigEndian.Uint16(h[4:]),
		Next: h[6], HopLimit: h[7],
		Src: netip.AddrFrom16([16]byte(h[8:24])), Dst: netip.AddrFrom16([16]byte(h[24:40])),
	}
}

// Append writes the header. Addresses that are unset are written as ::.
func (f *IPv6Fields) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, 6<<28|uint32(f.Class)<<20|f.Flow&0xfffff)
	dst = binary.BigEndian.AppendUint16(dst, f.PayloadLen)
	dst = append(dst, f.Next, f.HopLimit)
	for _, a := range [2]netip.Addr{f.Src, f.Dst} {
		if !a.IsValid() {
			a = netip.IPv6Unspecified()
		}
		b := a.As16()
		dst = append(dst, b[:]...)
	}
	return dst
}

// UDP is a view of a UDP header: source 0-1, destination 2-3, length 4-5, checksum 6-7.
type UDP []byte

// UDPFields are the values of a UDP header.
type UDPFields struct {
	SrcPort, DstPort uint16
	Len              uint16 // 8 + payload
	Checksum         uint16 // 0 = not used, usual on IPv4 (transport §1.1)
}

// ParseUDP reads the header at the start of an IP payload. The UDP length must
// equal the IP payload: that is how the ICRC is found (transport §1.1).
func ParseUDP(b []byte) (h UDP, payload []byte, err error) {
	if len(b) < UDPHeader {
		return nil, nil, short("UDP", len(b), UDPHeader)
	}
	if n := int(binary.BigEndian.Uint16(b[4:])); n != len(b) {
		return nil, nil, &Error{Layer: "UDP", Field: "length", Got: n, Want: "the IP payload's length", Cause: ErrLength}
	}
	return b[:UDPHeader:UDPHeader], b[UDPHeader:], nil
}

// Fields decodes the header.
func (h UDP) Fields() UDPFields {
	return UDPFields{
		SrcPort: binary.BigEndian.Uint16(h), DstPort: binary.BigEndian.Uint16(h[2:]),
		Len: binary.BigEndian.Uint16(h[4:]), Checksum: binary.BigEndian.Uint16(h[6:]),
	}
}

// Append writes the header.
func (f UDPFields) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, f.SrcPort)
	dst = binary.BigEndian.AppendUint16(dst, f.DstPort)
	dst = binary.BigEndian.AppendUint16(dst, f.Len)
	return binary.BigEndian.AppendUint16(dst, f.Checksum)
}
