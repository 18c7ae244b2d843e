package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// MAC is a 48-bit hardware address.
type MAC [MACSize]byte

// MACSize is its length.
const MACSize = 6

// String prints the address as 02:00:00:00:00:01.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// ControlMAC is the destination of PFC and PAUSE frames: never forwarded
// (IEEE 802.1Q 8.6.3; switch §3.1).
var ControlMAC = MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}

// RNICMAC is the address of RNIC number k: 02:00:00 and k in 24 bits
// (model-rules, frames).
func RNICMAC(k uint32) MAC {
	return MAC{2, 0, 0, byte(k >> 16), byte(k >> 8), byte(k)}
}

// PortMAC is the address of port number port of switch device id dev:
// 02:01, then both in 16 bits, so that it never meets an RNIC's.
func PortMAC(dev, port uint32) MAC {
	return MAC{2, 1, byte(dev >> 8), byte(dev), byte(port >> 8), byte(port)}
}

// EtherTypes that the codec knows.
const (
	TypeIPv4    = 0x0800
	TypeVLAN    = 0x8100
	TypeQinQ    = 0x88a8
	TypeIPv6    = 0x86dd
	TypeControl = 0x8808 // MAC control: PFC, PAUSE
	TypeRoCEv1  = 0x8915 // GRH follows, no UDP
)

// EthernetII is a view of a 14-byte Ethernet header: dst 0-5, src 6-11, type 12-13.
type EthernetII []byte

// EthernetFields are the values of an Ethernet II header.
type EthernetFields struct {
	Dst, Src MAC
	Type     uint16
}

// ParseEthernet cuts the header off b and returns what follows.
func ParseEthernet(b []byte) (h EthernetII, rest []byte, err error) {
	if len(b) < EthHeader {
		return nil, nil, short("Ethernet", len(b), EthHeader)
	}
	return b[:EthHeader:EthHeader], b[EthHeader:], nil
}

// Dst, Src and Type read the header.
func (h EthernetII) Dst() MAC     { return MAC(h[0:6]) }
func (h EthernetII) Src() MAC     { return MAC(h[6:12]) }
func (h EthernetII) Type() uint16 { return binary.BigEndian.Uint16(h[12:]) }

// Fields decodes the header.
func (h EthernetII) Fields() EthernetFields {
	return EthernetFields{Dst: h.Dst(), Src: h.Src(), Type: h.Type()}
}

// Append writes the header.
func (f EthernetFields) Append(dst []byte) []byte {
	dst = append(dst, f.Dst[:]...)
	dst = append(dst, f.Src[:]...)
	return binary.BigEndian.AppendUint16(dst, f.Type)
}

// VLANSize is the length of one 802.1Q tag as it follows its own EtherType:
// TCI and the inner EtherType.
const VLANSize = 4

// VLAN is a view of a tag: TCI 0-1 (PCP 15:13, DEI 12, VID 11:0), type 2-3.
type VLAN []byte

// VLANFields are the values of one tag.
type VLANFields struct {
	PCP  uint8 // 0..7
	DEI  bool
	VID  uint16 // 0..4095
	Type uint16 // EtherType of what follows
}

// ParseVLAN cuts one tag off b.
func ParseVLAN(b []byte) (h VLAN, rest []byte, err error) {
	if len(b) < VLANSize {
		return nil, nil, short("VLAN", len(b), VLANSize)
	}
	return b[:VLANSize:VLANSize], b[VLANSize:], nil
}

// Fields decodes the tag.
func (h VLAN) Fields() VLANFields {
	tci := binary.BigEndian.Uint16(h)
	return VLANFields{
		PCP: uint8(tci >> 13), DEI: tci&0x1000 != 0, VID: tci & 0xfff,
		Type: binary.BigEndian.Uint16(h[2:]),
	}
}

// Append writes the tag.
func (f VLANFields) Append(dst []byte) []byte {
	tci := uint16(f.PCP)<<13 | f.VID&0xfff
	if f.DEI {
		tci |= 0x1000
	}
	dst = binary.BigEndian.AppendUint16(dst, tci)
	return binary.BigEndian.AppendUint16(dst, f.Type)
}

// FCS is the Ethernet frame check sequence over b, destination MAC through the
// last byte before the FCS. On the wire it is stored least significant byte first.
func FCS(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

// CheckFCS reports whether the last four bytes of a frame are its FCS.
func CheckFCS(frame []byte) bool {
	n := len(frame) - FCSSize
	return n >= 0 && binary.LittleEndian.Uint32(frame[n:]) == FCS(frame[:n])
}
