package sim

import (
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
)

// progressEvery is the least real time between two progress reports;
// clockEvery is how many windows pass between two looks at the real clock.
const (
	progressEvery = 200 * time.Millisecond
	clockEvery    = 256
)

func cores() int { return runtime.GOMAXPROCS(0) }

// keep has the run keep what it tells where it is saved on its way, and decides
// when something is due as the options ask.
func (f *Fabric) keep(o *Options) {
	if o.Sample != nil {
		f.told.when[whenSamples] = o.Sampler
	}
	if f.told.keep = len(o.Stops) > 0; f.told.keep && o.Records == nil {
		o.Records = func([]record.Record) {}
	}
}

// observer returns the engine's hook for deadlocks, progress, records and
// samples.
func (f *Fabric) observer(o *Options) func(clock.Time, uint64) {
	last, looks, batches, samples := time.Now(), f.told.when[whenLooks], f.told.when[whenBatches], f.told.when[whenSamples]
	return func(start clock.Time, n uint64) {
		if t, ok := looks.Due(start); ok {
			f.look(t)
			if o.Records == nil && looks.Count%forgetEvery == 0 {
				f.forget()
			}
		}
		cut := looks.Next()
		if o.Sample != nil || f.told.keep { // who restores what is saved may sample
			if t, ok := samples.Due(start); ok && o.Sample != nil {
				o.Sample(t, f)
			}
			cut = min(cut, samples.Next())
		}
		if o.Records != nil {
			if _, ok := batches.Due(start); ok {
				f.drain(o)
			}
			cut = min(cut, batches.Next())
		}
		f.Engine.Cut = cut
		if o.Between != nil {
			o.Between(start, n)
		}
		if o.Progress == nil || n%clockEvery != 0 {
			return
		}
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			f.tell(o, start)
		}
	}
}

func (f *Fabric) tell(o *Options, at clock.Time) {
	t := f.Engine.Totals()
	p := Progress{Virtual: at, Hops: t.Hops, Windows: t.Windows, Wall: time.Since(f.start)}
	p.Until = clock.Time(0).Add(f.Plan.Run.Limit)
	if f.Plan.Run.At > 0 {
		p.Until = f.Plan.Run.At
	}
	for _, d := range f.Engine.Local() {
		p.Outstanding += f.Engine.Status(d).Outstanding
	}
	o.Progress(p)
}

// forgetEvery is the number of looks after which records that nobody takes are
// thrown away: they would fill memory.
const forgetEvery = 16

// forget throws away the records made so far.
func (f *Fabric) forget() {
	for _, n := range f.Nodes {
		f.rec = n.TakeRecords(f.rec[:0])
	}
}

// drain hands over the records made so far, in order.
func (f *Fabric) drain(o *Options) {
	if o.Records == nil {
		return
	}
	if f.rec = f.TakeRecords(f.rec[:0]); len(f.rec) == 0 {
		return
	}
	f.told.add(f.rec)
	o.Records(f.rec)
}

// TakeRecords appends the records that the hosted devices made since the last
// call, in order of (time, device, number), and forgets them.
func (f *Fabric) TakeRecords(dst []record.Record) []record.Record {
	f.asked = true
	from := len(dst)
	for _, n := range f.Nodes {
		if n != nil {
			dst = n.TakeRecords(dst)
		}
	}
	made := len(dst)
	dst = f.dead.Records(dst)
	f.sortRecords(dst[from:], len(dst) == made)
	return dst
}

// sortRecords orders by (time, device, number). Those of devices come in order
// of device and number, so that place decides for them among equal instants: a
// word holds both. Notes of deadlocks have no number; with them, records are
// compared in full.
func (f *Fabric) sortRecords(recs []record.Record, numbered bool) {
	const bits = 20
	if len(recs) < 2 {
		return
	}
	first, last := recs[0].At, recs[0].At
	for i := range recs {
		first, last = min(first, recs[i].At), max(last, recs[i].At)
	}
	if !numbered || len(recs) >= 1<<bits || last-first >= 1<<(63-bits) {
		slices.SortFunc(recs, record.Compare)
		return
	}
	f.keys = f.keys[:0]
	for i := range recs {
		f.keys = append(f.keys, uint64(recs[i].At-first)<<bits|uint64(i))
	}
	slices.Sort(f.keys)
	f.unsorted = append(f.unsorted[:0], recs...)
	for n, k := range f.keys {
		recs[n] = f.unsorted[k&(1<<bits-1)]
	}
}

// cost measures what a run takes of the machine.
type cost struct {
	wall time.Time
	cpu  float64
}

func startCost() cost { return cost{wall: time.Now(), cpu: CPUSeconds()} }

func (c cost) done() report.Engine {
	return report.Engine{WallS: time.Since(c.wall).Seconds(), CPUS: CPUSeconds() - c.cpu, PeakRSSBytes: peakRSS()}
}

// CPUSeconds is what this process has used of the processors so far; for cost
// figures alone.
func CPUSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	t := func(v syscall.Timeval) float64 { return float64(v.Sec) + float64(v.Usec)/1e6 }
	return t(u.Utime) + t(u.Stime)
}

func peakRSS() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss * 1024
}
