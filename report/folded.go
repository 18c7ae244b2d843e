package report

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/rocemu/rocemu/clock"
)

// KeptSamples is how many completions, and how many latencies, an RNIC lists one
// by one: 4.4 MB. Those that come later are folded: counted by flow and by how
// long they took, so that a fabric which runs for ever keeps its size. Counts,
// means, least and largest values stay exact, percentiles are right to 1/512.
const KeptSamples = 1 << 17

// Folded are the completions of a flow that are not listed one by one.
type Folded struct {
	Flow      int32
	First     clock.Time // the earliest start
	Last      clock.Time // the latest end
	ErrAt     clock.Time // end of the first that failed
	ErrStatus Status     // and its status
	Statuses  [NumStatuses]int64
	Spans     Spans // of those that succeeded and started after the warm-up
}

// FoldedLatencies are the latencies of a flow that are not listed one by one.
type FoldedLatencies struct {
	Flow  int32
	Spans Spans
}

// Fold counts one completion; timed = it belongs into the distributions.
func (s *Samples) Fold(flow int32, start, end clock.Time, st Status, timed bool) {
	i, ok := slices.BinarySearchFunc(s.Folded, flow, func(f Folded, id int32) int { return int(f.Flow - id) })
	if !ok {
		s.Folded = slices.Insert(s.Folded, i, Folded{Flow: flow, First: start, ErrAt: clock.Never})
	}
	f := &s.Folded[i]
	f.First, f.Last = clock.Min(f.First, start), clock.Max(f.Last, end)
	f.Statuses[st]++
	if st != Success {
		if end < f.ErrAt {
			f.ErrAt, f.ErrStatus = end, st
		}
		return
	}
	if timed {
		f.Spans.Add(end.Sub(start))
	}
}

// Fold counts one latency.
func (l *Latencies) Fold(flow int32, d clock.Duration) {
	i, ok := slices.BinarySearchFunc(l.Folded, flow, func(f FoldedLatencies, id int32) int { return int(f.Flow - id) })
	if !ok {
		l.Folded = slices.Insert(l.Folded, i, FoldedLatencies{Flow: flow})
	}
	l.Folded[i].Spans.Add(d)
}

// Spans counts spans in classes of a 256th of an octave; classes that nothing
// fell into take no room.
type Spans struct {
	N        int64
	Hi, Lo   uint64 // sum
	Min, Max clock.Duration
	Class    []int32  // in order; see classOf
	Count    []uint64 // by index into Class
}

// Add counts a span; negative ones do not occur.
func (s *Spans) Add(d clock.Duration) {
	if s.N == 0 || d < s.Min {
		s.Min = d
	}
	s.Max = max(s.Max, d)
	s.N++
	var c uint64
	s.Lo, c = bits.Add64(s.Lo, uint64(d), 0)
	s.Hi += c
	s.count(classOf(d), 1)
}

func (s *Spans) count(class int32, n uint64) {
	i, ok := slices.BinarySearch(s.Class, class)
	if !ok {
		s.Class, s.Count = slices.Insert(s.Class, i, class), slices.Insert(s.Count, i, 0)
	}
	s.Count[i] += n
}

// classBits is the number of bits of a span that tell its class within an octave.
const classBits = 8

// classOf is the exponent of a span, 8 from 256 ps on, and its next 8 bits.
// Below 256 ps a span is a class.
func classOf(d clock.Duration) int32 {
	exp := bits.Len64(uint64(d)) - 1
	if exp < classBits {
		return int32(d)
	}
	return int32(exp)<<classBits | int32(uint64(d)>>(exp-classBits))&(1<<classBits-1)
}

// middle is the middle of a class.
func middle(class int32) clock.Duration {
	exp, k := class>>classBits, uint64(class&(1<<classBits-1))
	if exp < classBits {
		return clock.Duration(k)
	}
	width := uint64(1) << (exp - classBits)
	return clock.Duration((1<<classBits+k)*width + width/2)
}

// plus adds what another one counted.
func (s *Spans) plus(x *Spans) {
	if x.N == 0 {
		return
	}
	if s.N == 0 || x.Min < s.Min {
		s.Min = x.Min
	}
	s.Max = max(s.Max, x.Max)
	s.N += x.N
	var c uint64
	s.Lo, c = bits.Add64(s.Lo, x.Lo, 0)
	s.Hi += x.Hi + c
	for i, class := range x.Class {
		s.count(class, x.Count[i])
	}
}

// each gives a value of each class with its count: the class's middle, but none
// outside of what was seen.
func (s *Spans) each(give func(v clock.Duration, n int64)) {
	for i, class := range s.Class {
		give(min(max(middle(class), s.Min), s.Max), int64(s.Count[i]))
	}
}

// weighed is a value and how often it came.
type weighed[T cmp.Ordered] struct {
	v T
	n int64
}

// ranks finds percentiles by nearest rank among values that are listed, sorted,
// and such that are counted.
type ranks[T cmp.Ordered] struct {
	list []T
	more []weighed[T]
	n    int64
}

func newRanks[T cmp.Ordered](sorted []T, more []weighed[T]) ranks[T] {
	slices.SortFunc(more, func(a, b weighed[T]) int { return cmp.Compare(a.v, b.v) })
	r := ranks[T]{sorted, more, int64(len(sorted))}
	for _, w := range more {
		r.n += w.n
	}
	return r
}

// at is the value of a rank; permille 990 is p99.
func (r *ranks[T]) at(permille int64) (v T) {
	left := max((r.n*permille+999)/1000, 1)
	list, more := r.list, r.more
	for left > 0 {
		if len(more) == 0 {
			return list[left-1]
		}
		if len(list) > 0 && list[0] <= more[0].v {
			v, list, left = list[0], list[1:], left-1
			continue
		}
		v, left, more = more[0].v, left-more[0].n, more[1:]
	}
	return v
}

// ratios are slowdowns of requests that are counted and not listed.
type ratios struct {
	of               []weighed[float64]
	sum, least, most float64
}

// add takes spans of which ideal is the least that one can be.
func (r *ratios) add(s *Spans, ideal float64) {
	least, most := float64(s.Min)/ideal, float64(s.Max)/ideal
	if len(r.of) == 0 || least < r.least {
		r.least = least
	}
	r.most = max(r.most, most)
	r.sum += (float64(s.Hi)*(1<<64) + float64(s.Lo)) / ideal
	s.each(func(v clock.Duration, n int64) { r.of = append(r.of, weighed[float64]{float64(v) / ideal, n}) })
}
