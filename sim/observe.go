package sim

import (
	"cmp"
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

// observer returns the engine's hook for deadlocks, progress, records and
// samples, nil when there is nothing to do.
func (f *Fabric) observer(o *Options) func(clock.Time, uint64) {
	if o.Progress == nil && o.Records == nil && o.Sample == nil && o.Between == nil && f.dead.watch == nil {
		return nil
	}
	last := time.Now()
	return func(start clock.Time, n uint64) {
		f.look(start, false)
		if o.Sample != nil && o.SampleEvery > 0 && start >= f.nextS {
			o.Sample(f.nextS, f)
			skip := start.Sub(f.nextS)/o.SampleEvery + 1
			f.nextS = f.nextS.Add(skip * o.SampleEvery)
		}
		if o.Records != nil && n%64 == 0 {
			f.drain(o)
		}
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

// drain hands over the records made so far, in order.
func (f *Fabric) drain(o *Options) {
	if o.Records == nil {
		return
	}
	if f.rec = f.TakeRecords(f.rec[:0]); len(f.rec) == 0 {
		return
	}
	o.Records(f.rec)
}

// TakeRecords appends the records that the hosted devices made since the last
// call, in order of (time, device, number), and forgets them.
func (f *Fabric) TakeRecords(dst []record.Record) []record.Record {
	from := len(dst)
	for _, n := range f.Nodes {
		if n != nil {
			dst = n.TakeRecords(dst)
		}
	}
	dst = f.deadlockRecords(dst)
	f.sortRecords(dst[from:])
	return dst
}

// recordKey is what records are ordered by, and where one stands.
type recordKey struct {
	at  clock.Time
	dev int32
	seq uint32
	i   int32
}

// sortRecords orders by (time, device, number). A record is four times as large
// as its key, and each device's are nearly in order.
func (f *Fabric) sortRecords(recs []record.Record) {
	f.keys = f.keys[:0]
	for i := range recs {
		f.keys = append(f.keys, recordKey{recs[i].At, recs[i].Dev, recs[i].Seq, int32(i)})
	}
	slices.SortFunc(f.keys, func(a, b recordKey) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.dev != b.dev:
			return cmp.Compare(a.dev, b.dev)
		case a.seq != b.seq:
			return cmp.Compare(a.seq, b.seq)
		}
		return cmp.Compare(a.i, b.i)
	})
	f.unsorted = append(f.unsorted[:0], recs...)
	for n, k := range f.keys {
		recs[n] = f.unsorted[k.i]
	}
}

// cost measures what a run takes of the machine.
type cost struct {
	wall time.Time
	cpu  float64
}

func startCost() cost { return cost{wall: time.Now(), cpu: cpuSeconds()} }

func (c cost) done() report.Engine {
	return report.Engine{WallS: time.Since(c.wall).Seconds(), CPUS: cpuSeconds() - c.cpu, PeakRSSBytes: peakRSS()}
}

func cpuSeconds() float64 {
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
