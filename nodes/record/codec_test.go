package record

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rocemu/rocemu/clock"
)

func TestBatchRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Record {
			u32 := func(name string) uint32 { return rapid.Uint32().Draw(t, name) }
			u8 := func(name string) uint8 { return rapid.Uint8().Draw(t, name) }
			return Record{
				At: clock.Time(rapid.Int64Range(0, math.MaxInt64).Draw(t, "at")), X: rapid.Int64().Draw(t, "x"), Y: rapid.Int64().Draw(t, "y"),
				Dev: int32(u32("dev")), Src: u32("src"), Dst: u32("dst"), QPN: u32("qpn"), PSN: u32("psn"), Fault: int32(u32("fault")),
				Port: rapid.Uint16().Draw(t, "port"), Kind: Kind(u8("kind")), Reason: u8("reason"), Prio: u8("prio"), Op: u8("op"), Iter: u8("iter"), Seq: u32("seq"),
			}
		})).Draw(t, "recs")
		b := AppendBatch(nil, recs)
		got, rest, err := DecodeBatch(nil, append(b, 7))
		if err != nil || len(rest) != 1 || !slices.Equal(got, recs) {
			t.Fatalf("%v: %d records, want %d; %d bytes left", err, len(got), len(recs), len(rest))
		}
		for n := range b {
			if _, _, err := DecodeBatch(nil, b[:n]); err == nil {
				t.Fatalf("cut to %d of %d bytes and still read", n, len(b))
			}
		}
	})
}
