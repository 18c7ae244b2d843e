package report

import (
	"fmt"
	"iter"

	"github.com/rocemu/rocemu/clock"
)

// FlowRow is one single flow, as in flows.csv.
type FlowRow struct {
	Name          string // NAME, or NAME[rnic2>rnic8#1] when its line has several flows
	From, To      string
	Verb          string
	Requests      int64
	Completed     int64
	Failed        int64
	Status        Status
	Bytes         int64 // payload of completed requests; received payload of datagrams
	BytesDone     int64 // the same, with acknowledged parts of unfinished requests
	First, Last   clock.Time
	FCT           clock.Duration // last end - first start
	Slowdown      float64        // of the mean request, 0 when the ideal is not known
	GoodputBPS    int64
	Retransmitted uint64
	LastProgress  clock.Time
	Why           string
}

// Rows yields every single flow in id order. It yields nothing for a result
// that was read from a file.
func (r *Result) Rows() iter.Seq[FlowRow] {
	return func(yield func(FlowRow) bool) {
		if r.Detail == nil {
			return
		}
		for id := range r.Detail.agg {
			if !yield(r.Detail.row(int32(id))) {
				return
			}
		}
	}
}

// row describes single flow id.
func (d *Detail) row(id int32) FlowRow {
	w, fm := d.figures(id), d.meta.Flow(id)
	w.From, w.To, w.Verb = d.meta.RNIC(fm.From), d.meta.RNIC(fm.To), d.meta.Lines[fm.Line].Verb
	w.Name = d.name(fm)
	return w
}

// name is the flow's line, with its ends and number when the line has several.
func (d *Detail) name(fm FlowMeta) string {
	line := &d.meta.Lines[fm.Line]
	if line.Flows == 1 {
		return line.Name
	}
	return fmt.Sprintf("%s[%s>%s#%d]", line.Name, d.meta.RNIC(fm.From), d.meta.RNIC(fm.To), fm.Ordinal)
}

// figures are a row without its names, which cost more than all the rest.
func (d *Detail) figures(id int32) FlowRow {
	a, fm := &d.agg[id], d.meta.Flow(id)
	w := FlowRow{Requests: fm.Count, Completed: a.completed, Failed: a.failed, First: a.first, Last: a.last, LastProgress: a.last}
	var more FlowPart
	if a.more > 0 {
		more = d.more[a.more-1]
		w.Retransmitted, w.Why = more.Retransmitted, more.Why
		w.LastProgress = clock.Max(w.LastProgress, more.LastProgress)
	}
	if fm.Count < 0 {
		w.Requests = max(more.Posted, a.completed+a.failed)
	}
	w.Bytes = a.completed * fm.Size
	w.BytesDone = w.Bytes + more.BytesDone
	if fm.Datagram {
		w.Bytes, w.BytesDone = a.recvBytes, a.recvBytes
	}
	w.Status = a.status(fm)
	if w.Status != Unfinished {
		w.Why = ""
	} else if w.Why == "" {
		w.Why = fmt.Sprintf("no completion yet; last progress at %v", w.LastProgress)
	}
	stall, still := d.stalled(fm.Line, more.Oldest)
	if still && w.Status == Success {
		w.Why = stallText(NS(more.Oldest), stall.median) + ": " + more.Why
	}
	if !a.seen {
		w.First = fm.Start
		return w
	}
	w.FCT = a.last.Sub(a.first)
	span := w.FCT
	if still {
		span = d.end.Sub(a.first)
	}
	if span > 0 {
		w.GoodputBPS = goodput(w.Bytes, span)
	}
	if fm.Ideal > 0 && a.completed == 1 {
		w.Slowdown = round4(float64(w.FCT) / float64(fm.Ideal))
	}
	return w
}

// status is the first error, else whether all requests completed. A flow
// without a count is never unfinished once something completed.
func (a *flowAgg) status(fm FlowMeta) Status {
	switch {
	case a.failed > 0:
		return a.errStatus
	case fm.Count < 0 && (a.completed > 0 || a.recvBytes > 0):
		return Success
	case fm.Count >= 0 && a.completed >= fm.Count:
		return Success
	}
	return Unfinished
}
