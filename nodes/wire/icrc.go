package wire

import "hash/crc32"

// icrcSeed is the CRC of the eight 0xff bytes that stand in for the LRH
// (transport §1.9: 0xDEBB20E3 before the final inversion).
const icrcSeed = ^uint32(0xdebb20e3)

// ICRCv4 is the invariant CRC of a RoCEv2 packet over IPv4. b starts at the IP
// header and ends before the ICRC; ToS, TTL, header checksum, UDP checksum and
// BTH byte 4 count as all ones. b is not changed. It is stored least
// significant byte first.
func ICRCv4(b []byte) uint32 {
	ihl := int(b[0]&15) * 4
	head := ihl + UDPHeader + BTHSize
	crc := ^icrcSeed
	for i, v := range b[:head] {
		switch i {
		case 1, 8, 10, 11, ihl + 6, ihl + 7, ihl + UDPHeader + 4:
			v = 0xff
		}
		crc = crc32.IEEETable[byte(crc)^v] ^ crc>>8
	}
	return crc32.Update(^crc, crc32.IEEETable, b[head:])
}

// ICRCv6 is the same over IPv6: traffic class, flow label, hop limit, UDP
// checksum and BTH byte 4 count as all ones.
func ICRCv6(b []byte) uint32 { return icrc6(b, UDPHeader) }

// ICRCv1 is the ICRC of RoCEv1; b starts at the GRH.
func ICRCv1(b []byte) uint32 { return icrc6(b, 0) }

func icrc6(b []byte, udp int) uint32 {
	head := IPv6Header + udp + BTHSize
	crc := ^icrcSeed
	for i, v := range b[:head] {
		switch {
		case i == 0:
			v |= 0x0f
		case i <= 3, i == 7, i == IPv6Header+udp+4, udp > 0 && (i == IPv6Header+6 || i == IPv6Header+7):
			v = 0xff
		}
		crc = crc32.IEEETable[byte(crc)^v] ^ crc>>8
	}
	return crc32.Update(^crc, crc32.IEEETable, b[head:])
}
