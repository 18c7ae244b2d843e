package bench

import (
	"context"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/sim"
)

// BenchmarkSeries runs a shorter W1 in turns bare, with all counters sampled
// each 100 us, and with the samples kept and written to series.csv, and reports
// the medians of the CPU seconds. Take -benchtime 7x or more.
func BenchmarkSeries(b *testing.B) {
	var bare, sampled, kept, more, most []float64
	for b.Loop() {
		x, y, z := keep(b, false, false), keep(b, true, false), keep(b, true, true)
		bare, sampled, kept = append(bare, x), append(sampled, y), append(kept, z)
		more, most = append(more, y/x), append(most, z/x)
	}
	b.ReportMetric(median(bare), "bare-cpu-s")
	b.ReportMetric(median(sampled), "sampled-cpu-s")
	b.ReportMetric(median(kept), "kept-cpu-s")
	b.ReportMetric(median(more), "sampled/bare")
	b.ReportMetric(median(most), "kept/bare")
}

// keep runs it once and writes the files of a result.
func keep(b *testing.B, sample, series bool) float64 {
	b.Helper()
	plan, o := load(b, "w1.yaml", "workload.perm.size=2MB"), sim.Options{Workers: 1}
	dir, err := report.OpenDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	forget()
	before := cpu()
	var snap counters.Snapshot
	var s counters.Series
	take := func(at clock.Time, f *sim.Fabric) {
		f.Snapshot(at, &snap)
		if series {
			s.Add(&snap)
		}
	}
	if sample {
		o.Sampler, o.Sample = sim.Every(100*clock.Microsecond), take
	}
	r, err := sim.Run(context.Background(), plan, o)
	if err != nil {
		b.Fatal(err)
	}
	r.Detail.Series = s.All()
	if err := dir.Write(r); err != nil {
		b.Fatal(err)
	}
	return cpu() - before
}
