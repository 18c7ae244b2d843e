package report

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// NotDue is what a flow waits for that has nothing outstanding and is on
// schedule.
const NotDue = "no request outstanding: the next one is not due"

// A request is far behind the others of its line when it takes farFactor times
// their median, and at least farLeast.
const (
	farFactor = 20
	farLeast  = NS(clock.Millisecond)
)

// Stalled reports whether a line that has completed requests stands still at
// the run's end: its oldest outstanding request has waited far longer than the
// others took. A line that goes on for ever succeeds all the same, since no
// request of it failed.
func (o *FlowLine) Stalled() bool {
	after := o.stallAfter()
	return after > 0 && o.OldestNS >= after
}

// stallAfter is the age from which an outstanding request is a stall, 0 when
// nothing completed that it could be compared with.
func (o *FlowLine) stallAfter() NS {
	if o.FCT == nil {
		return 0
	}
	return max(farLeast, farFactor*o.FCT.P50, o.FCT.P99+1)
}

// Straggled reports whether the slowest request of a line took far longer than
// its median. Requests of several sizes are compared by their slowdown.
func (o *FlowLine) Straggled() bool {
	d, s := o.FCT, o.Slowdown
	if d == nil || d.Max < max(farLeast, farFactor*d.P50) {
		return false
	}
	return s == nil || s.Max >= farFactor*s.P50
}

// OnSchedule reports whether an unfinished line only waits for its next
// request's time.
func (o *FlowLine) OnSchedule() bool {
	return o.Status == Unfinished.String() && o.OldestNS == 0 && strings.Contains(o.Why, NotDue)
}

// StallText says how long the oldest outstanding request has waited, against
// what the completed ones took.
func (o *FlowLine) StallText() string { return stallText(o.OldestNS, o.FCT.P50) }

// TailText says how long the slowest request took, against the median.
func (o *FlowLine) TailText() string {
	return fmt.Sprintf("its slowest request took %s, %d times the median of %s", Span(o.FCT.Max), o.FCT.Max/max(o.FCT.P50, 1), Span(o.FCT.P50))
}

func stallText(age, median NS) string {
	return fmt.Sprintf("its oldest request has waited %s at the run's end, %d times the median of %s", Span(age), age/max(median, 1), Span(median))
}

// noteStalls tells single flows which age is a stall of their line, and lines
// that count as successful what their oldest request waits for.
func (d *Detail) noteStalls(acc []lineAcc, end clock.Time) {
	d.end, d.stall = end, make([]lineStall, len(acc))
	for i := range acc {
		l := &acc[i]
		if !l.out.Stalled() {
			continue
		}
		d.stall[i] = lineStall{l.out.stallAfter(), l.out.FCT.P50}
		if l.out.Status == Success.String() {
			l.out.Why = d.name(d.meta.Flow(l.oldestFlow)) + ": " + d.figures(l.oldestFlow).Why
		}
	}
}

// lineStall is the age from which a line's requests stall, 0 when none does,
// and their median.
type lineStall struct{ after, median NS }

// stalled is the stall of a flow with an outstanding request of that age.
func (d *Detail) stalled(line int32, age clock.Duration) (lineStall, bool) {
	if len(d.stall) == 0 || d.stall[line].after == 0 || NS(age) < d.stall[line].after {
		return lineStall{}, false
	}
	return d.stall[line], true
}
