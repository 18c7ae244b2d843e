package wire

import "encoding/binary"

// AppendFill appends the n payload bytes that a content tag stands for: the tag
// big-endian, then a SplitMix64 stream seeded with it. A PSN always carries the
// same tag, hence the same bytes; with 8 bytes or more the tag can be read back.
func AppendFill(dst []byte, tag uint64, n int) []byte {
	if n < 8 {
		var w [8]byte
		binary.BigEndian.PutUint64(w[:], tag)
		return append(dst, w[:max(n, 0)]...)
	}
	dst = binary.BigEndian.AppendUint64(dst, tag)
	s := tag
	for n -= 8; n >= 8; n -= 8 {
		dst = binary.BigEndian.AppendUint64(dst, splitMix(&s))
	}
	w := splitMix(&s)
	for ; n > 0; n-- {
		dst = append(dst, byte(w>>56))
		w <<= 8
	}
	return dst
}

// splitMix is the next word of Steele, Lea and Flood's SplitMix64.
func splitMix(s *uint64) uint64 {
	*s += 0x9e3779b97f4a7c15
	z := *s
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
