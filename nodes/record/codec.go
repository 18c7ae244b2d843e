package record

import (
	"encoding/binary"
	"errors"

	"github.com/rocemu/rocemu/clock"
)

// The canonical bytes of a batch of records: their number, then each record as
// varints in the order of [Record]'s fields, instants as the difference to the
// record before. The same records have the same bytes in every process.

var errBatch = errors.New("record: malformed batch")

// AppendBatch appends the canonical bytes of recs.
func AppendBatch(dst []byte, recs []Record) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(recs)))
	last := clock.Time(0)
	for i := range recs {
		r := &recs[i]
		for _, v := range [...]int64{int64(r.At - last), r.X, r.Y} {
			dst = binary.AppendVarint(dst, v)
		}
		for _, v := range [...]uint32{uint32(r.Dev), r.Src, r.Dst, r.QPN, r.PSN, uint32(r.Fault), uint32(r.Port), r.Seq} {
			dst = binary.AppendUvarint(dst, uint64(v))
		}
		dst = append(dst, uint8(r.Kind), r.Reason, r.Prio, r.Op, r.Iter)
		last = r.At
	}
	return dst
}

// leastBytes is the length of a record of zeros.
const leastBytes = 3 + 8 + 5

// DecodeBatch appends the records of one batch to dst and returns what follows
// it. Any input that AppendBatch did not write is an error.
func DecodeBatch(dst []Record, b []byte) ([]Record, []byte, error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)/leastBytes) {
		return dst, nil, errBatch
	}
	b = b[k:]
	last := clock.Time(0)
	for range n {
		var r Record
		var s [3]int64
		for i := range s {
			if s[i], k = binary.Varint(b); k <= 0 {
				return dst, nil, errBatch
			}
			b = b[k:]
		}
		var u [8]uint32
		for i := range u {
			v, k := binary.Uvarint(b)
			if k <= 0 || v > 1<<32-1 {
				return dst, nil, errBatch
			}
			u[i], b = uint32(v), b[k:]
		}
		if len(b) < 5 || u[6] > 1<<16-1 {
			return dst, nil, errBatch
		}
		r.At, r.X, r.Y = last+clock.Time(s[0]), s[1], s[2]
		r.Dev, r.Src, r.Dst, r.QPN, r.PSN, r.Fault, r.Port, r.Seq = int32(u[0]), u[1], u[2], u[3], u[4], int32(u[5]), uint16(u[6]), u[7]
		r.Kind, r.Reason, r.Prio, r.Op, r.Iter = Kind(b[0]), b[1], b[2], b[3], b[4]
		dst, b, last = append(dst, r), b[5:], r.At
	}
	return dst, b, nil
}
