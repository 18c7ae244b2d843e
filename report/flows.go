package report

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/rocemu/rocemu/clock"
)

// lineAcc collects one workload line while parts are merged.
type lineAcc struct {
	fct        []clock.Duration
	slow       []float64
	lat        []clock.Duration
	folded     Spans // requests that are not listed one by one
	slowMore   ratios
	latFolded  Spans
	statuses   [NumStatuses]int64
	first      clock.Time
	last       clock.Time
	errAt      clock.Time
	errFlow    int32
	errStatus  Status
	why        string
	stuck      int64
	idle       bool           // why is of a flow that is on schedule
	oldest     clock.Duration // age of the oldest outstanding request
	oldestFlow int32
	sendCPU    clock.Duration // of server cores
	recvCPU    clock.Duration
	out        *FlowLine
}

// mergeFlows builds the entries of workload lines and the single-flow table.
func mergeFlows(r *Result, parts []*Part, end clock.Time) {
	d := r.Detail
	acc := make([]lineAcc, len(d.meta.Lines))
	for i, l := range d.meta.Lines {
		acc[i].out = &FlowLine{From: l.From, To: l.To, Verb: l.Verb, Statuses: map[string]int64{}}
		acc[i].first, acc[i].errAt = clock.Never, clock.Never
		r.Flows[l.Name] = acc[i].out
	}
	for _, p := range parts {
		d.addSamples(&p.Samples, acc)
		d.addFolded(p, acc)
		for i, f := range p.Latencies.Flow {
			if fm := d.meta.Flow(f); fm.Start >= d.meta.Warmup {
				a := &acc[fm.Line]
				a.lat = append(a.lat, p.Latencies.Span[i])
			}
		}
		for _, f := range p.Flows {
			d.more = append(d.more, f)
			d.agg[f.Flow].more = int32(len(d.more))
			acc[d.meta.Flow(f.Flow).Line].sendCPU += f.CPU
		}
		for _, v := range p.Received {
			d.agg[v.Flow].recvBytes += v.Bytes
			acc[d.meta.Flow(v.Flow).Line].recvCPU += v.CPU
		}
	}
	for _, p := range parts {
		for _, w := range p.Words {
			if m := d.agg[w.Flow].more; m > 0 && d.more[m-1].Atomic != nil {
				d.more[m-1].Atomic.Memory = w.Value
			}
		}
	}
	for id := range d.agg {
		d.closeFlow(r, int32(id), acc, end)
	}
	for i := range acc {
		acc[i].finish(end)
		r.Totals.Bytes += acc[i].out.Bytes
	}
	d.noteStalls(acc, end)
}

// addSamples spreads a requester's completions over flows and lines.
func (d *Detail) addSamples(s *Samples, acc []lineAcc) {
	for i, f := range s.Flow {
		a, start, stop, st := &d.agg[f], s.Start[i], s.End[i], s.Status[i]
		fm := d.meta.Flow(f)
		l := &acc[fm.Line]
		if !a.seen || start < a.first {
			a.first = start
		}
		a.last = clock.Max(a.last, stop)
		l.first, l.last = clock.Min(l.first, start), clock.Max(l.last, stop)
		l.statuses[st]++
		if st != Success {
			if a.failed == 0 || stop < a.errAt {
				a.errAt, a.errStatus = stop, st
			}
			if stop < l.errAt || stop == l.errAt && f < l.errFlow {
				l.errAt, l.errFlow, l.errStatus = stop, f, st
			}
			a.failed++
			a.seen = true
			continue
		}
		a.seen = true
		a.completed++
		if start < d.meta.Warmup {
			continue
		}
		span := stop.Sub(start)
		l.fct = append(l.fct, span)
		if fm.Ideal > 0 {
			l.slow = append(l.slow, float64(span)/float64(fm.Ideal))
		}
	}
}

// addFolded is addSamples, and the same of latencies, for those that are counted
// and not listed.
func (d *Detail) addFolded(p *Part, acc []lineAcc) {
	for i := range p.Samples.Folded {
		x := &p.Samples.Folded[i]
		a, fm := &d.agg[x.Flow], d.meta.Flow(x.Flow)
		l := &acc[fm.Line]
		if !a.seen || x.First < a.first {
			a.first = x.First
		}
		a.last = clock.Max(a.last, x.Last)
		l.first, l.last = clock.Min(l.first, x.First), clock.Max(l.last, x.Last)
		failed := int64(0)
		for st, n := range x.Statuses {
			l.statuses[st] += n
			l.out.Folded += n
			if Status(st) != Success {
				failed += n
			}
		}
		if failed > 0 && (a.failed == 0 || x.ErrAt < a.errAt) {
			a.errAt, a.errStatus = x.ErrAt, x.ErrStatus
		}
		if failed > 0 && (x.ErrAt < l.errAt || x.ErrAt == l.errAt && x.Flow < l.errFlow) {
			l.errAt, l.errFlow, l.errStatus = x.ErrAt, x.Flow, x.ErrStatus
		}
		a.seen = true
		a.failed += failed
		a.completed += x.Statuses[Success]
		l.folded.plus(&x.Spans)
		if fm.Ideal > 0 && x.Spans.N > 0 {
			l.slowMore.add(&x.Spans, float64(fm.Ideal))
		}
	}
	for i := range p.Latencies.Folded {
		x := &p.Latencies.Folded[i]
		if fm := d.meta.Flow(x.Flow); fm.Start >= d.meta.Warmup {
			acc[fm.Line].latFolded.plus(&x.Spans)
		}
	}
}

// closeFlow adds a single flow to its line and the totals.
func (d *Detail) closeFlow(r *Result, id int32, acc []lineAcc, end clock.Time) {
	a, fm := &d.agg[id], d.meta.Flow(id)
	l := &acc[fm.Line]
	o := l.out
	row := d.figures(id)
	o.Flows++
	o.Requests += row.Requests
	o.Completed += a.completed
	o.Failed += a.failed
	o.Bytes += row.Bytes
	o.Retransmitted += row.Retransmitted
	l.sendCPU += fm.PostCPU * clock.Duration(a.completed)
	l.recvCPU += fm.RecvCPU * clock.Duration(a.completed)
	if a.more > 0 && d.more[a.more-1].Atomic != nil {
		o.Atomic = d.more[a.more-1].Atomic
	}
	if !a.seen && fm.Start < end {
		l.first = clock.Min(l.first, fm.Start)
	}
	if a.more > 0 && d.more[a.more-1].Oldest > l.oldest {
		l.oldest, l.oldestFlow = d.more[a.more-1].Oldest, id
	}
	r.Totals.Flows++
	switch row.Status {
	case Success:
		r.Totals.Completed++
	case Unfinished:
		l.stuck++
		if l.why == "" || l.idle && row.Why != NotDue {
			l.why, l.idle = d.name(fm)+": "+row.Why, row.Why == NotDue
		}
	default:
		r.Totals.Failed++
	}
}

// finish turns what was collected into the line's entry.
func (l *lineAcc) finish(end clock.Time) {
	o := l.out
	l.statuses[Unfinished] = max(o.Requests-o.Completed-o.Failed, 0)
	for st, n := range l.statuses {
		if n > 0 {
			o.Statuses[Status(st).String()] = n
		}
	}
	switch {
	case o.Failed > 0:
		o.Status = l.errStatus.String()
	case l.stuck > 0:
		o.Status = Unfinished.String()
	default:
		o.Status = Success.String()
	}
	if l.stuck > 0 {
		o.Why = l.why
		if l.stuck > 1 {
			o.Why += fmt.Sprintf(" (and %d more)", l.stuck-1)
		}
	}
	if l.first != clock.Never {
		o.FirstStartNS = NS(l.first)
	}
	o.LastEndNS = NS(l.last)
	o.FCT, o.Slowdown, o.OldestNS = newDist(l.fct, &l.folded), newRatios(l.slow, &l.slowMore), NS(l.oldest)
	last := l.last
	if o.Stalled() {
		last = end
	}
	if span := last.Sub(l.first); l.first != clock.Never && span > 0 {
		o.GoodputBPS = goodput(o.Bytes, span)
	}
	if l.sendCPU+l.recvCPU > 0 {
		o.CPU = &HostCPU{NS(l.sendCPU), NS(l.recvCPU)}
	}
	if d := newDist(l.lat, &l.latFolded); d != nil {
		o.Latency = &LatencyDist{d.Min, d.P50, d.Max}
	}
}

// goodput returns floor(bytes·8 / span) in bit/s.
func goodput(bytes int64, span clock.Duration) int64 {
	hi, lo := bits.Mul64(uint64(bytes), 8_000_000_000_000)
	if hi >= uint64(span) {
		return 0 // beyond 2^63 bit/s: no such line
	}
	q, _ := bits.Div64(hi, lo, uint64(span))
	return int64(q)
}

// newDist summarises spans that are listed, which it sorts, and such that are
// counted. Nil without either.
func newDist(v []clock.Duration, more *Spans) *Dist {
	if len(v) == 0 && more.N == 0 {
		return nil
	}
	slices.Sort(v)
	hi, lo, least, most := more.Hi, more.Lo, more.Min, more.Max
	for _, x := range v {
		var c uint64
		lo, c = bits.Add64(lo, uint64(x), 0)
		hi += c
	}
	if len(v) > 0 {
		if more.N == 0 || v[0] < least {
			least = v[0]
		}
		most = max(most, v[len(v)-1])
	}
	var counted []weighed[clock.Duration]
	more.each(func(x clock.Duration, n int64) { counted = append(counted, weighed[clock.Duration]{x, n}) })
	r := newRanks(v, counted)
	mean, _ := bits.Div64(hi, lo, uint64(r.n))
	return &Dist{
		Min: NS(least), Mean: NS(mean), P50: NS(r.at(500)), P95: NS(r.at(950)),
		P99: NS(r.at(990)), P999: NS(r.at(999)), Max: NS(most),
	}
}

// newRatios is newDist for ratios.
func newRatios(v []float64, more *ratios) *Ratios {
	if len(v) == 0 && len(more.of) == 0 {
		return nil
	}
	slices.Sort(v)
	sum := more.sum
	for _, x := range v {
		sum += x
	}
	r := newRanks(v, more.of)
	least, most := r.at(0), r.at(1000)
	if len(more.of) > 0 {
		least, most = min(least, more.least), max(most, more.most)
	}
	return &Ratios{
		Min: round4(least), Mean: round4(sum / float64(r.n)), P50: round4(r.at(500)), P95: round4(r.at(950)),
		P99: round4(r.at(990)), P999: round4(r.at(999)), Max: round4(most),
	}
}

func round4(x float64) float64 { return float64(int64(x*10000+0.5)) / 10000 }
