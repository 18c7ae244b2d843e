package fabric

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand"
	"testing"

	"github.com/rocemu/rocemu/nodes/wire"
)

// murmurBytes is MurmurHash3 x86 32 over any bytes, written after the
// published description, as a check on the unrolled form.
func murmurBytes(b []byte, h uint32) uint32 {
	rot := func(x uint32, r uint) uint32 { return x<<r | x>>(32-r) }
	i := 0
	for ; i+4 <= len(b); i += 4 {
		k := binary.LittleEndian.Uint32(b[i:]) * 0xcc9e2d51
		h = rot(h^rot(k, 15)*0x1b873593, 13)*5 + 0xe6546b64
	}
	var k uint32
	for j := len(b) - 1; j >= i; j-- {
		k = k<<8 | uint32(b[j])
	}
	h ^= rot(k*0xcc9e2d51, 15) * 0x1b873593
	h ^= uint32(len(b))
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

func keyBytes(k HashKey) []byte {
	b := binary.BigEndian.AppendUint32(nil, k.Src)
	b = binary.BigEndian.AppendUint32(b, k.Dst)
	b = binary.BigEndian.AppendUint16(b, k.SPort)
	b = binary.BigEndian.AppendUint16(b, k.DPort)
	return append(b, k.Proto)
}

// TestHashes: the unrolled hashes equal the plain ones, which equal published vectors.
func TestHashes(t *testing.T) {
	for _, v := range []struct {
		s    string
		seed uint32
		want uint32
	}{{"", 0, 0}, {"", 1, 0x514E28B7}, {"test", 0, 0xba6bd213}, {"Hello, world!", 0, 0xc0363e43}} {
		if got := murmurBytes([]byte(v.s), v.seed); got != v.want {
			t.Errorf("murmur3(%q, %d) = %#x, want %#x", v.s, v.seed, got, v.want)
		}
	}
	rnd := rand.New(rand.NewSource(1))
	for range 1000 {
		k := HashKey{rnd.Uint32(), rnd.Uint32(), uint16(rnd.Uint32()), uint16(rnd.Uint32()), uint8(rnd.Uint32())}
		seed := rnd.Uint32()
		if got, want := Murmur3(k, seed), murmurBytes(keyBytes(k), seed); got != want {
			t.Fatalf("%+v: %#x, want %#x", k, got, want)
		}
		b := binary.BigEndian.AppendUint32(nil, seed)
		if got, want := CRC32(k, seed), crc32.ChecksumIEEE(append(b, keyBytes(k)...)); got != want {
			t.Fatalf("%+v: crc %#x, want %#x", k, got, want)
		}
	}
}

// TestKeyOf: addresses, ports and protocol of the frame kinds.
func TestKeyOf(t *testing.T) {
	f := wire.Frame{Src: 1, Dst: 258, SPort: 49458}
	if k := KeyOf(&f); k != (HashKey{0x0a000001, 0x0a000102, 49458, 4791, 17}) {
		t.Errorf("%+v", k)
	}
	f.Kind = wire.KindTCP
	if k := KeyOf(&f); k.Proto != 6 || k.DPort != wire.FlowPort {
		t.Errorf("%+v", k)
	}
}

// TestR31Polarisation: 4096 flows over two tiers of four members: the same
// seed uses 4 of 16 paths, different seeds all, evenly.
func TestR31Polarisation(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, same := range []bool{true, false} {
			var paths [16]int
			for i := range 4096 {
				f := wire.Frame{Src: 1, Dst: 900, SPort: uint16(0xc000 + i)}
				one, two := Hasher{CRC: crc, Seed: 0x1234}, Hasher{CRC: crc, Seed: 0x9876abcd}
				if same {
					two.Seed = one.Seed
				}
				paths[one.Of(&f)%4*4+two.Of(&f)%4]++
			}
			used := 0
			for _, n := range paths {
				if n > 0 {
					used++
				}
				if !crc && !same && (n < 256-77 || n > 256+77) {
					t.Errorf("a path has %d flows, want 256±77", n)
				}
			}
			if same && used != 4 || !crc && !same && used != 16 {
				t.Errorf("crc %v same seed %v: %d paths", crc, same, used)
			}
			if crc && !same && used != 4 {
				t.Errorf("CRC is linear: another seed only permutes, yet %d paths are in use", used)
			}
		}
	}
}

// TestShortHash: the hash of a RoCE frame is that of its key, and a pick
// without a division is the remainder.
func TestShortHash(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 10_000 {
		f := wire.Frame{Src: rnd.Uint32(), Dst: rnd.Uint32(), SPort: uint16(rnd.Uint32()), Kind: wire.Kind(rnd.Intn(int(wire.KindOther) + 1))}
		h := Hasher{Seed: rnd.Uint32()}
		if got, want := h.Of(&f), Murmur3(KeyOf(&f), h.Seed); got != want {
			t.Fatalf("%+v: %#x, want %#x", f, got, want)
		}
		if x, n := rnd.Uint32(), 1+rnd.Uint32()%70; pick(x, n) != x%n {
			t.Fatalf("pick(%d, %d) = %d", x, n, pick(x, n))
		}
	}
}
