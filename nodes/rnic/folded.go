package rnic

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
)

// sample books the end of a request.
func (r *RNIC) sample(fl *flow, start, end clock.Time, st report.Status) {
	if s := &r.st.samples; len(s.Flow) < report.KeptSamples || r.plan.Run.ListAll {
		s.Add(fl.f.ID, start, end, st)
	} else {
		s.Fold(fl.f.ID, start, end, st, start >= clock.Time(0).Add(r.plan.Run.Warmup))
	}
}

// latency books what a one-packet request took on the network.
func (t *stats) latency(flow int32, d clock.Duration) {
	if l := &t.latencies; len(l.Flow) < report.KeptSamples {
		l.Add(flow, d)
	} else {
		l.Fold(flow, d)
	}
}

func saveFolded(w *snap.Writer, l []report.Folded) {
	w.Len(len(l))
	for i := range l {
		f := &l[i]
		w.U32(uint32(f.Flow))
		w.Time(f.First)
		w.Time(f.Last)
		w.Time(f.ErrAt)
		w.U8(uint8(f.ErrStatus))
		for _, n := range f.Statuses {
			w.I64(n)
		}
		saveSpans(w, &f.Spans)
	}
}

func restoreFolded(s *snap.Reader) (l []report.Folded) {
	for n := s.Len(); n > 0 && s.Err == nil; n-- {
		f := report.Folded{Flow: int32(s.U32()), First: s.Time(), Last: s.Time(), ErrAt: s.Time(), ErrStatus: report.Status(s.U8())}
		for i := range f.Statuses {
			f.Statuses[i] = s.I64()
		}
		restoreSpans(s, &f.Spans)
		l = append(l, f)
	}
	return l
}

func saveSpans(w *snap.Writer, x *report.Spans) {
	w.I64(x.N)
	w.U64(x.Hi)
	w.U64(x.Lo)
	w.I64(int64(x.Min))
	w.I64(int64(x.Max))
	w.Len(len(x.Class))
	for i, class := range x.Class {
		w.U32(uint32(class))
		w.U64(x.Count[i])
	}
}

func restoreSpans(s *snap.Reader, x *report.Spans) {
	x.N, x.Hi, x.Lo = s.I64(), s.U64(), s.U64()
	x.Min, x.Max = clock.Duration(s.I64()), clock.Duration(s.I64())
	for n := s.Len(); n > 0 && s.Err == nil; n-- {
		x.Class, x.Count = append(x.Class, int32(s.U32())), append(x.Count, s.U64())
	}
}
