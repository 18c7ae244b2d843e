package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
)

// Records in order of device and number, as devices hand them over, come out in
// order of time, device and number, whatever way they are sorted.
func TestSortRecords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, span := range []int64{3, 1 << 40, 1 << 60} {
		for n := range 40 {
			var recs []record.Record
			for dev := range int32(5) {
				for seq := range uint32(rnd.IntN(n + 1)) {
					recs = append(recs, record.Record{At: clock.Time(rnd.Int64N(span)), Dev: dev, Seq: seq + 1})
				}
			}
			want := slices.Clone(recs)
			slices.SortFunc(want, func(a, b record.Record) int {
				return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Dev, b.Dev), cmp.Compare(a.Seq, b.Seq))
			})
			for _, numbered := range []bool{true, false} {
				got := slices.Clone(recs)
				new(Fabric).sortRecords(got, numbered)
				if !slices.Equal(got, want) {
					t.Fatalf("%d records within %d ps, numbered %v", len(recs), span, numbered)
				}
			}
		}
	}
}
