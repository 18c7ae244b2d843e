package explain

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
)

// classify names what happened and what helps. The order of the tests is the
// order of certainty: what the status says, what the records prove, what is
// left.
func (r *Run) classify(f *report.FlowLine, x *row, c *chain) (class, advice string) {
	switch x.Status {
	case "rem_access_err":
		return Refused, "the responder's memory key, range or rights do not allow it; retrying does not help"
	case "rem_inv_req_err", "loc_len_err", "rem_op_err":
		return Refused, "the request itself is wrong for this QP (length, MTU on both sides, resources); retrying does not help"
	case "rnr_retry_exc_err":
		return NotReady, "post receives faster, or set rnr_retry 7, or a longer min_rnr_timer: the budget is retries x wait"
	case "wr_flush_err":
		return Flushed, "look at the first request of its QP that failed"
	case "retry_exc_err":
		return r.deadPath(x, c)
	case "unfinished":
		return r.stuck(f, x, c)
	}
	return r.slow(f, c)
}

// pauser says who holds the place where frames wait, or that it is not known.
func (c *chain) pauser() string {
	if c.root == nil {
		return "find who pauses"
	}
	return c.root.advice()
}

// deadPath separates the causes of the one status "transport retries exceeded".
func (r *Run) deadPath(x *row, c *chain) (string, string) {
	lost := len(c.losses) > 0
	switch {
	case c.deadlock != "" && !lost:
		return Deadlocked, "break the circle of routes or let a PFC watchdog drop; longer timers only wait longer"
	case !lost && c.pausedShare > 0.2:
		return Paused, "nothing was lost: frames wait behind a pause at " + c.pausedAt + "; " + c.pauser() + ", or take a timeout above the pause"
	case lost && c.losses[0].reason == "mtu":
		return TooLong, c.losses[0].where + " takes shorter frames than this path MTU makes: small messages pass, full frames do not"
	case lost && c.losses[0].reason == "ttl":
		return Loop, "frames circle until their TTL is gone, last seen at " + c.losses[0].where + ": look at the routes there"
	case lost && c.duplicates > 0:
		return AcksLost, "the way back is broken, the way out works: look at the places of the lost answers"
	case x.Completed == 0 && x.BytesDone == 0 && r.sisters(x) > 0:
		return BadBucket, fmt.Sprintf("%d other QPs between the same RNICs work: one hash bucket, or one member of a group, is a hole%s", r.sisters(x), c.place())
	case !r.worked(x, c):
		return NeverWorked, "addresses, routes, MTU or an access list; a longer timeout does not help" + c.place()
	}
	return StoppedWork, r.survive(c)
}

// worked reports whether the pair ever got something through.
func (r *Run) worked(x *row, c *chain) bool {
	if x.Completed > 0 || x.BytesDone > 0 || c.naks+c.outOfSeq+c.duplicates > 0 {
		return true
	}
	for _, o := range r.Rows {
		if (o.From == c.from && o.To == c.to || o.From == c.to && o.To == c.from) && o.Completed > 0 {
			return true
		}
	}
	return false
}

// sisters counts the single flows of the same line and pair that succeeded.
func (r *Run) sisters(x *row) int {
	n := 0
	for _, o := range r.Rows {
		if o.Line == x.Line && o.From == x.From && o.To == x.To && o.Status == "success" {
			n++
		}
	}
	return n
}

// place names where everything was lost, or where the first of it was.
func (c *chain) place() string {
	if len(c.losses) == 0 {
		return ""
	}
	for _, l := range c.losses[1:] {
		if l.where != c.losses[0].where {
			return fmt.Sprintf("; the first was lost at %s (%s)", c.losses[0].where, c.losses[0].reason)
		}
	}
	return fmt.Sprintf("; all was lost at %s (%s)", c.losses[0].where, c.losses[0].reason)
}

// survive says which timeout would have lived through the outage: its last
// retransmission must come after the last loss.
func (r *Run) survive(c *chain) string {
	n := int64(len(c.timeouts))
	if n == 0 || len(c.losses) == 0 {
		return "the budget of retries was too short for the outage"
	}
	first, last, open, held := c.losses[0].first, int64(0), " or longer", false
	for _, l := range c.losses {
		first, last, held = min(first, l.first), max(last, l.last), held || l.reason == "pfc_watchdog"
		if f := r.Result.Faults[l.fault]; f != nil && int64(f.UntilNS) > last {
			last, open = int64(f.UntilNS), ""
		}
	}
	if held || c.timeouts[0] < first {
		return c.heldFirst(first, last)
	}
	for e := range 32 {
		if t := int64(4_096_000) << e; t > c.tail && n*t > last-first {
			return fmt.Sprintf("the outage lasted %s%s; timeout %d would have sent its last retransmission %s after the first loss",
				clock.Duration(last-first), open, e, clock.Duration(n*t))
		}
	}
	return "no timeout survives an outage of " + clock.Duration(last-first).String()
}

// heldFirst is the advice for frames that waited behind a pause before they were
// lost: the silence counts from the pause, and what is lost where depends on
// what the sender repeats meanwhile, so that only another run tells what helps.
func (c *chain) heldFirst(first, last int64) string {
	from := min(c.silence, first)
	return fmt.Sprintf("%s heard nothing for %s or longer, from %s on: %s without an answer, then losses. Other timers lose other frames: `emuctl qp %s QPN -d DIR` runs it again with longer ones and says which survives",
		c.from, clock.Duration(last-from), at(from), clock.Duration(first-from), c.from)
}

// stuck separates the reasons of a flow without completion.
func (r *Run) stuck(f *report.FlowLine, x *row, c *chain) (string, string) {
	switch {
	case x.Why == report.NotDue || f.OnSchedule():
		return NotDue, "nothing of it is outstanding: the run ended before its next request was due; a later run.until lets it go on"
	case c.deadlock != "":
		return Deadlocked, "break the circle of routes or let a PFC watchdog drop"
	case c.rnrs > 0 && c.rnrs >= c.naks:
		return NotReady, "the receiver posts no receives; rnr_retry 7 waits for ever without an error"
	case c.naks > 50:
		return Livelock, "every round meets a loss: go-back-n or selective-repeat instead of go-back-0, or repair the loss" + c.place()
	case c.pausedShare > 0.2:
		return Paused, "frames wait behind a pause at " + c.pausedAt + "; " + c.pauser()
	case len(c.losses) > 0 && len(c.timeouts) == 0 && strings.Contains(x.Why, "local ACK timeout at"):
		return StoppedWork, "what was lost goes again when the local ACK timer runs out, which it had not at the run's end" + c.place()
	case len(c.losses) > 0 && len(c.timeouts) == 0:
		return StoppedWork, "a packet was lost and no timer runs (timeout 0 is off)" + c.place()
	case len(c.losses) > 0:
		return Lossy, "it still retries" + c.place()
	}
	return Starved, "no loss and no pause of its own: others use the bandwidth, or the run ended early"
}

// slow weighs what took a successful flow its time.
func (r *Run) slow(f *report.FlowLine, c *chain) (string, string) {
	timers := int64(len(c.timeouts)) * c.tail
	switch {
	case c.rnrLost > 0 && c.rnrLost >= timers:
		return NotReady, fmt.Sprintf("%s of waiting for receives; a smaller min_rnr_timer at %s costs less each time", clock.Duration(c.rnrLost), c.to)
	case len(c.losses) > 0:
		return Lossy, fmt.Sprintf("%s of timers; look at the place of the losses%s", clock.Duration(timers), c.place())
	case len(c.timeouts) > 0 && c.pausedShare > 0 && f.Retransmitted == 0 && c.resent == 0:
		return Paused, "nothing was lost or sent again, but timers ran out: the timeout is shorter than the pause at " + c.pausedAt
	case len(c.timeouts) > 0 && c.pausedShare > 0:
		return Paused, "retransmitted what was not lost: the timeout is shorter than the pause at " + c.pausedAt
	case c.pausedShare > 0.2 && c.root != nil:
		return Paused, "no loss; frames wait behind a pause at " + c.pausedAt + "; " + c.pauser()
	case c.pausedShare > 0.2:
		return Paused, "no loss; " + c.pausedAt + " was paused: look for the slow receiver or the storm behind it"
	case c.cuts > 0:
		return Congested, "congestion control held it back; its path is shared"
	case f.Retransmitted > 0:
		return Lossy, "packets went again; no record names a loss of this pair"
	}
	switch {
	case f.Stalled():
		return Stalled, "no record says why; `emuctl qp " + c.from + " QPN -d DIR` tells what its queue pair went through"
	case f.Straggled():
		return Straggler, "no record says why; `emuctl qp " + c.from + " QPN -d DIR` tells what its queue pair went through"
	}
	return Unremarkable, ""
}
