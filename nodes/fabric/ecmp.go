package fabric

import (
	"hash/crc32"
	"math/bits"

	"github.com/rocemu/rocemu/nodes/wire"
)

// HashKey is the flow key of ECMP in network order: source and destination
// IPv4 address, UDP or TCP source and destination port, protocol.
type HashKey struct {
	Src, Dst     uint32
	SPort, DPort uint16
	Proto        uint8
}

// KeyOf returns the flow key of a frame.
func KeyOf(f *wire.Frame) HashKey {
	k := HashKey{Src: wire.NetBase + f.Src, Dst: wire.NetBase + f.Dst, SPort: f.SPort, DPort: wire.RoCEPort, Proto: wire.ProtoUDP}
	switch f.Kind {
	case wire.KindUDP:
		k.DPort = wire.FlowPort
	case wire.KindTCP:
		k.DPort, k.Proto = wire.FlowPort, wire.ProtoTCP
	}
	return k
}

const (
	murmurC1 = 0xcc9e2d51
	murmurC2 = 0x1b873593
)

func murmurBlock(h, k uint32) uint32 {
	k = bits.RotateLeft32(k*murmurC1, 15) * murmurC2
	return bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
}

// Murmur3 is MurmurHash3 x86 32-bit over the 13 bytes of the key.
func Murmur3(k HashKey, seed uint32) uint32 {
	h := murmurBlock(seed, bits.ReverseBytes32(k.Src))
	h = murmurBlock(h, bits.ReverseBytes32(k.Dst))
	h = murmurBlock(h, bits.ReverseBytes32(uint32(k.SPort)<<16|uint32(k.DPort)))
	h ^= bits.RotateLeft32(uint32(k.Proto)*murmurC1, 15) * murmurC2
	h ^= 13
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// roceMurmur3 is Murmur3 of the key of a RoCE frame.
func roceMurmur3(src, dst uint32, sport uint16, seed uint32) uint32 {
	const tail = wire.ProtoUDP * murmurC1 & 0xFFFFFFFF
	h := murmurBlock(seed, bits.ReverseBytes32(wire.NetBase+src))
	h = murmurBlock(h, bits.ReverseBytes32(wire.NetBase+dst))
	h = murmurBlock(h, bits.ReverseBytes32(uint32(sport)<<16|wire.RoCEPort))
	h ^= bits.RotateLeft32(tail, 15)*murmurC2 ^ 13
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// CRC32 is the IEEE CRC over the seed in network order and the 13 bytes of the key.
func CRC32(k HashKey, seed uint32) uint32 {
	h := ^uint32(0)
	for _, w := range [4]uint32{seed, k.Src, k.Dst, uint32(k.SPort)<<16 | uint32(k.DPort)} {
		for s := 24; s >= 0; s -= 8 {
			h = crcTable[byte(h)^byte(w>>s)] ^ h>>8
		}
	}
	return ^(crcTable[byte(h)^k.Proto] ^ h>>8)
}

var crcTable = crc32.MakeTable(crc32.IEEE)
