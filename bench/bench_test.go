// Package bench measures the emulator on the workloads that its peers are
// measured on. `make bench` runs it; README.md says what the figures mean. The
// tests keep what must not slip: no allocation in steady state, long idle
// spans that cost nothing, long runs that do not grow.
package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// load resolves a workload file of this directory.
func load(tb testing.TB, file string, sets ...string) *topology.Plan {
	tb.Helper()
	p, _, err := topology.Load(topology.LoadOptions{Files: []string{file}, Sets: sets})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// cpu is the user and system time of this process.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("bench: " + err.Error())
	}
	t := func(v syscall.Timeval) float64 { return float64(v.Sec) + float64(v.Usec)/1e6 }
	return t(u.Utime) + t(u.Stime)
}

// forget starts the account of peak memory anew, where the system can.
func forget() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// peak is the largest resident size since forget.
func peak() float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, l := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 64)
			return kb / 1024
		}
	}
	return 0
}

// heap is what lives, after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// run measures whole runs of a plan: the plan itself is not counted.
func run(b *testing.B, p *topology.Plan, o sim.Options) {
	b.ReportAllocs()
	var hops, events, windows, mib float64
	forget()
	begin := cpu()
	for b.Loop() {
		r, err := sim.Run(context.Background(), p, o)
		if err != nil {
			b.Fatal(err)
		}
		if r.Verdict != report.Complete {
			b.Fatalf("verdict %s: %s", r.Verdict, r.VerdictReason)
		}
		hops += float64(r.Engine.FrameHops)
		events += float64(r.Engine.Events)
		windows += float64(r.Engine.Windows)
	}
	spent := cpu() - begin
	mib = peak()
	n := float64(b.N)
	b.ReportMetric(hops/spent/1e6, "Mhops/cpu-s")
	b.ReportMetric(spent/hops*1e9, "cpu-ns/hop")
	b.ReportMetric(spent/n, "cpu-s/run")
	b.ReportMetric(hops/n, "hops")
	b.ReportMetric(events/hops, "events/hop")
	b.ReportMetric(windows/n, "windows")
	b.ReportMetric(mib, "peak-MiB")
}

// BenchmarkWorkload runs W1 to W4 on one worker.
func BenchmarkWorkload(b *testing.B) {
	for _, w := range []string{"w1", "w2", "w3", "w4"} {
		b.Run(w, func(b *testing.B) { run(b, load(b, w+".yaml"), sim.Options{Workers: 1}) })
	}
}

// BenchmarkSize runs the permutation of W1 on fabrics of four times the hosts
// each: how the cost of a hop grows.
func BenchmarkSize(b *testing.B) {
	for _, leaves := range []int{2, 8, 32, 128} {
		b.Run(fmt.Sprintf("hosts=%d", 16*leaves), func(b *testing.B) {
			size := fmt.Sprintf("workload.perm.size=%dB", 64_000_000/leaves) // the same bytes in all
			run(b, load(b, "w1.yaml", fmt.Sprintf("topology.leaves=%d", leaves), size, "switches.all.buffer.size=64MiB"), sim.Options{Workers: 1})
		})
	}
}

// BenchmarkWorkers runs W1 and W3 on one worker and on two.
func BenchmarkWorkers(b *testing.B) {
	for _, w := range []string{"w1", "w3"} {
		for _, n := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", w, n), func(b *testing.B) { run(b, load(b, w+".yaml"), sim.Options{Workers: n}) })
		}
	}
}

// BenchmarkLoss runs a shorter W1 with frames lost on every uplink of leaf1.
func BenchmarkLoss(b *testing.B) {
	for _, rate := range []string{"0", "1e-5", "1e-4", "1e-3"} {
		b.Run("loss="+rate, func(b *testing.B) {
			sets := []string{"workload.perm.size=2MB"}
			if rate != "0" {
				var f []string
				for u := 1; u <= 4; u++ {
					f = append(f, fmt.Sprintf("{name: l%d, kind: loss, target: 'leaf1:uplink%d', at: 0us, probability: %s}", u, u, rate))
				}
				sets = append(sets, "faults=["+strings.Join(f, ", ")+"]")
			}
			run(b, load(b, "w1.yaml", sets...), sim.Options{Workers: 1})
		})
	}
}

// BenchmarkTelemetry runs a shorter W1 bare, and with records and samples
// taken.
func BenchmarkTelemetry(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("on=%v", on), func(b *testing.B) {
			o := sim.Options{Workers: 1}
			if on {
				o.Records = func([]record.Record) {}
				o.Sampler = sim.Every(10 * clock.Microsecond)
				o.Sample = func(_ clock.Time, f *sim.Fabric) { f.Engine.Totals() }
			}
			run(b, load(b, "w1.yaml", "workload.perm.size=2MB"), o)
		})
	}
}

// BenchmarkMemory reports bytes a host, idle and sending, a queue pair in use,
// and a queued frame.
func BenchmarkMemory(b *testing.B) {
	var host, qp, frame float64
	for b.Loop() {
		p := load(b, "w3.yaml")
		before := heap()
		f := build(b, p)
		built := heap()
		step(b, f, 30*clock.Microsecond)
		active := heap()
		host = float64(built-before) / float64(len(p.RNICs))
		qp = float64(active-built) / float64(2*len(p.QPs))
		f.Engine.Close()
		frame = queued(b)
	}
	b.ReportMetric(host, "B/host")
	b.ReportMetric(qp, "B/QP-end")
	b.ReportMetric(frame, "B/queued-frame")
}

// queued is what a frame in a switch's queue takes: an incast without PFC and
// without loss, at two instants.
func queued(b *testing.B) float64 {
	p := load(b, "w2.yaml", "switches.all.pfc.xoff=10MB", "switches.all.ecn=off", "switches.all.buffer.size=200MB", "rnics.all.congestion=none")
	f := build(b, p)
	defer f.Engine.Close()
	at := func(d clock.Duration) (int64, uint64) {
		step(b, f, d)
		n := uint64(0)
		for _, part := range f.Parts(f.Engine.Now()) {
			n += part.Balance.Stored.Frames
		}
		return heap(), n
	}
	h1, n1 := at(40 * clock.Microsecond)
	h2, n2 := at(160 * clock.Microsecond)
	if n2 <= n1 {
		b.Fatalf("%d frames stored, then %d", n1, n2)
	}
	return float64(h2-h1) / float64(n2-n1)
}

func build(tb testing.TB, p *topology.Plan) *sim.Fabric {
	tb.Helper()
	f, err := sim.Build(p, nil, 1)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// step runs windows up to an instant.
func step(tb testing.TB, f *sim.Fabric, upTo clock.Duration) {
	tb.Helper()
	for f.Engine.Now() < clock.Time(upTo) {
		if _, err := f.Engine.Step(context.Background()); err != nil {
			tb.Fatal(err)
		}
	}
}
