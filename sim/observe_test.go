package sim

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
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

// TestNobodyMissesRecords: a run of which nobody takes the records says nothing
// about those that were not kept, and does not collect them all.
func TestNobodyMissesRecords(t *testing.T) {
	const text = `
schema: 1
name: many-records
topology: {spines: 0, leaves: 1, servers: 2, links: {server: {rate: 100Gbps, length: 100m}}}
workload: [{name: u, from: rnic1, to: rnic2, transport: udp, size: 18B, count: 50000, rate: 20Gbps}]
faults: ["drop leaf1:1 name=all dir=in"]
`
	plan, _, err := topology.ParseBytes("records.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var f *Fabric
	quiet, err := Run(context.Background(), plan, Options{OnBuild: func(b *Fabric) error { f = b; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if kept := len(f.TakeRecords(nil)); kept > 20_000 {
		t.Errorf("%d records are kept for nobody", kept)
	}
	taken := 0
	asked, err := Run(context.Background(), plan, Options{Records: func(b []record.Record) { taken += len(b) }})
	if err != nil {
		t.Fatal(err)
	}
	if quiet.Digest != asked.Digest || quiet.Totals.DroppedFrames != 50_000 || taken < 100_000 {
		t.Errorf("digests %s and %s, %d frames dropped, %d records", quiet.Digest, asked.Digest, quiet.Totals.DroppedFrames, taken)
	}
	for _, r := range []*report.Result{quiet, asked} {
		for _, x := range r.Findings {
			if x.Code == report.CodeRecordsLost {
				t.Errorf("%v", x)
			}
		}
	}
}
