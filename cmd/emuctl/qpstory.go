package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// storyLine is one line of a story. Counters are there where an event changed
// them; budget is the time from then until the last retry would give up.
type storyLine struct {
	AtNS     report.NS `json:"at_ns"`
	UntilNS  report.NS `json:"until_ns,omitempty"` // of a run of packets
	What     string    `json:"what"`
	Cause    string    `json:"cause,omitempty"`
	Retries  *int64    `json:"retries_left,omitempty"`
	BudgetNS report.NS `json:"budget_ns,omitempty"`
	Overlaps []string  `json:"overlaps,omitempty"`
}

// storyWriter turns events into lines.
type storyWriter struct {
	plan    *topology.Plan
	story   *sim.Story
	timer   clock.Duration // in force, 0 = off
	retries int64
	lines   []storyLine
	counts  qpCounts
}

func (w *storyWriter) line(e *sim.Event) {
	l := storyLine{AtNS: report.NS(e.At)}
	if e.Until != e.At {
		l.UntilNS = report.NS(e.Until)
	}
	switch e.Kind {
	case sim.EventSent:
		w.sent(e, &l)
	case sim.EventAnswer:
		l.What = fmt.Sprintf("answered: %s%s", wire.Opcode(e.Op), psns(e))
	case sim.EventLost:
		w.counts.Losses += e.Count
		r := &e.Record
		l.What = fmt.Sprintf("lost at %s: %s%s, %s%s", w.plan.PortName(r.Dev, int(r.Port)), wire.Opcode(e.Op), psns(e), record.Reason(r.Reason), w.byFault(r.Fault))
	default:
		if !w.note(e, &l) {
			return
		}
	}
	w.lines = append(w.lines, l)
}

func (w *storyWriter) sent(e *sim.Event, l *storyLine) {
	w.counts.Sent += e.Count
	l.What = fmt.Sprintf("sent %s%s", wire.Opcode(e.Op), psns(e))
	if e.Iter > 1 {
		w.counts.Again += e.Count
		l.What = fmt.Sprintf("sent again (transmission %d) %s%s", e.Iter, wire.Opcode(e.Op), psns(e))
		l.Cause = causeWord(e.Cause)
	}
}

func causeWord(k record.Kind) string {
	switch k {
	case record.Timeout:
		return "local ACK timeout"
	case record.NakRecv:
		return "sequence NAK"
	case record.RnrRecv:
		return "RNR wait over"
	case record.ImpliedNak:
		return "implied NAK"
	case record.None:
		return ""
	}
	return kindName(k)
}

func psns(e *sim.Event) string {
	if e.Count == 1 {
		return fmt.Sprintf(" PSN %d", e.First)
	}
	return fmt.Sprintf(" PSN %d..%d (%d packets)", e.First, e.Last, e.Count)
}

// note words an exceptional record; false leaves it out.
func (w *storyWriter) note(e *sim.Event, l *storyLine) bool {
	r := &e.Record
	switch r.Kind {
	case record.OutOfSeq:
		l.What = fmt.Sprintf("responder sees a gap: PSN %d came, %d was expected", r.X, r.PSN)
	case record.NakSent:
		l.What = fmt.Sprintf("responder sends NAK 0x%02x for PSN %d", r.Reason, r.PSN)
	case record.NakRecv:
		w.counts.NAKs++
		l.What = fmt.Sprintf("NAK 0x%02x received: PSN %d is missing", r.Reason, r.PSN)
		w.left(l, r.X)
	case record.RnrSent:
		l.What = fmt.Sprintf("responder is not ready: RNR NAK for PSN %d, timer code %d", r.PSN, r.X)
	case record.RnrRecv:
		w.counts.RNRs++
		l.What = fmt.Sprintf("RNR NAK received for PSN %d: waits %v", r.PSN, clock.Duration(r.X))
		if r.Y < 7 {
			l.What += fmt.Sprintf(", %d RNR retries left", r.Y)
		}
	case record.ImpliedNak:
		w.counts.Implied++
		l.What = fmt.Sprintf("implied NAK: PSN %d answered while %d is not", r.X, r.PSN)
		w.left(l, r.Y)
	case record.Timeout:
		w.counts.Timeouts++
		l.What = fmt.Sprintf("local ACK timeout after %v: no answer to PSN %d", clock.Duration(r.Y), r.PSN)
		w.left(l, r.X)
		l.Overlaps = w.overlaps(r.At.Add(-clock.Duration(r.Y)), r.At)
	case record.Duplicate:
		l.What = fmt.Sprintf("responder sees a duplicate: %s PSN %d", wire.Opcode(r.Op), r.PSN)
	case record.QPError:
		l.What = "queue pair fails: " + qp.Status(r.Reason).String()
		l.Overlaps = w.overlaps(r.At.Add(-w.timer), r.At)
	case record.ReqDone:
		l.What = fmt.Sprintf("request %d completes after it was sent again: %s", r.X+1, qp.Status(r.Y))
	case record.Clamp:
		l.What = fmt.Sprintf("timeout %v is below the device's floor: %v", clock.Duration(r.X), clock.Duration(r.Y))
	case record.Migrate:
		l.What = "path migrates back"
		if r.X == 1 {
			l.What = "path migrates to the alternate"
		}
	case record.Ignored:
		l.What = fmt.Sprintf("response for PSN %d ignored", r.PSN)
	default:
		return false
	}
	return true
}

// left books a retry: how many remain, and how long they last.
func (w *storyWriter) left(l *storyLine, retries int64) {
	l.Retries = &retries
	l.BudgetNS = report.NS(w.timer) * report.NS(retries+1)
}

func (w *storyWriter) byFault(n int32) string {
	if n > 0 && int(n) <= len(w.plan.Faults) {
		return " (" + w.plan.Faults[n-1].Name + ")"
	}
	return ""
}

// overlaps words what stood in the way between two instants; pauses of one
// port are added up.
func (w *storyWriter) overlaps(from, to clock.Time) []string {
	var out []string
	type place struct {
		dev  int32
		port uint16
	}
	paused := map[place]clock.Duration{}
	var order []place
	for _, v := range w.story.Overlaps(from, to) {
		a, b := clock.Max(v.From, from), clock.Min(v.To, to)
		switch {
		case v.RNR:
			out = append(out, fmt.Sprintf("RNR wait for %v", b.Sub(a)))
		case v.Fault > 0 && int(v.Fault) <= len(w.plan.Faults):
			f := &w.plan.Faults[v.Fault-1]
			end := "for good"
			switch {
			case v.To != clock.Never:
				end = "until " + v.To.String()
			case f.For > 0: // it outlasts the run
				end = "until " + f.At.Add(f.For).String()
			}
			out = append(out, fmt.Sprintf("fault %s (%s %s) from %v %s", f.Name, f.Kind, f.Target, v.From, end))
		default:
			p := place{v.Dev, v.Port}
			if _, ok := paused[p]; !ok {
				order = append(order, p)
			}
			paused[p] += b.Sub(a)
		}
	}
	for _, p := range order {
		out = append(out, fmt.Sprintf("%s paused for %v", w.plan.PortName(p.dev, int(p.port)), paused[p]))
	}
	return out
}

// qpSurvival is one answer to "what would have survived".
type qpSurvival struct {
	Change   string    `json:"change"`
	TimerNS  report.NS `json:"timeout_ns,omitempty"`
	Survives bool      `json:"survives"`
	EndNS    report.NS `json:"end_ns,omitempty"` // of its last request
}

// survival runs the fabric again with other attributes of the requester: ever
// longer timeouts until one survives, or RNR retries without end.
func survival(ctx context.Context, load func() (*topology.Plan, error), q *topology.QP, status string) ([]qpSurvival, error) {
	try := func(what string, change func(*topology.QPParams)) (qpSurvival, error) {
		plan, err := load()
		if err != nil {
			return qpSurvival{}, err
		}
		p := &plan.QPs[q.ID]
		par := *p.Params
		change(&par)
		p.Params = &par
		s := qpSurvival{Change: what}
		if status == report.RetryExcErr.String() {
			s.TimerNS = report.NS(qp.AckTimeout(par.Timeout))
		}
		room := clock.Duration(s.TimerNS) * clock.Duration(par.RetryCnt+2)
		plan.Run.ListAll = true
		plan.Run.Limit, plan.Run.Stall = plan.Run.Limit+room, max(plan.Run.Stall, 2*clock.Duration(s.TimerNS))
		var fabric *sim.Fabric
		res, err := sim.Run(ctx, plan, sim.Options{OnBuild: func(f *sim.Fabric) error { fabric = f; return nil }})
		if err != nil {
			return s, err
		}
		s.Survives = true
		for _, r := range requestsOf(plan, p, fabric.Samples(clock.Time(res.VirtualNS))) {
			s.Survives = s.Survives && r.Status == report.Success.String()
			s.EndNS = max(s.EndNS, r.EndNS)
		}
		return s, ctx.Err()
	}
	if status == report.RNRRetryExcErr.String() {
		s, err := try("rnr_retry 7 (for ever)", func(p *topology.QPParams) { p.RNRRetry = 7 })
		return []qpSurvival{s}, err
	}
	if status != report.RetryExcErr.String() {
		return nil, nil
	}
	var out []qpSurvival
	for n := q.Params.Timeout + 1; n <= 24; n++ {
		s, err := try(fmt.Sprintf("timeout %d", n), func(p *topology.QPParams) { p.Timeout, p.TimeoutMode, p.ConnectCM = n, topology.TimeoutIBTA, false })
		if err != nil {
			return out, err
		}
		if out = append(out, s); s.Survives {
			break
		}
	}
	return out, nil
}

func (a *app) showQP(o *qpOut) error {
	if a.json {
		return a.printJSON(o)
	}
	c := &o.Context
	n := &o.Counts
	if err := a.printf("%s QP 0x%x, %s, to %s QP 0x%x\n%s\n%s\n", o.Device, o.QPN, c.Role, c.Peer, c.PeerQPN, contextText(c),
		fmt.Sprintf("story       %d packets sent, %d of them again; %d timeouts, %d sequence NAKs, %d RNR NAKs, %d implied NAKs, %d losses",
			n.Sent, n.Again, n.Timeouts, n.NAKs, n.RNRs, n.Implied, n.Losses)); err != nil {
		return err
	}
	t := report.NewTable("at", "until", "what", "retries left", "budget")
	for _, l := range o.Story {
		what := l.What
		if l.Cause != "" {
			what += ": " + l.Cause
		}
		for _, x := range l.Overlaps {
			what += "\n  meanwhile " + x
		}
		t.AppendRow([]any{l.AtNS, orBlank(l.UntilNS), what, pointer(l.Retries), orBlank(l.BudgetNS)})
	}
	if err := a.printf("%s\n", t.Render()); err != nil {
		return err
	}
	if o.Left > 0 {
		if err := a.printf("… %d lines more (--max 0 shows all)\n", o.Left); err != nil {
			return err
		}
	}
	return a.printf("%s%s", requestText(o.Requests), survivalText(o.Survive))
}

func orBlank(n report.NS) any {
	if n == 0 {
		return ""
	}
	return n
}

func pointer(n *int64) any {
	if n == nil {
		return ""
	}
	return *n
}

func contextText(c *qpContext) string {
	timer := fmt.Sprintf("proposed %v, negotiated %v (%s, %s), floor %v, in force %v", c.ProposedNS, c.NegotNS, c.Connect, c.Mode, c.FloorNS, c.EffectiveNS)
	if c.EffectiveNS == 0 {
		timer = "off: an unanswered request waits for ever"
	}
	if c.Clamped {
		timer += ": clamped to the floor"
	}
	rnr := fmt.Sprintf("%d of %d", c.RNRLeft, c.RNRRetry)
	if c.RNRRetry == 7 {
		rnr = "for ever"
	}
	return fmt.Sprintf(`state       %s, path %s (%s): %s
timeout     %s
budget      %d of %d retries left, fails %v after the last progress; RNR: wait %v, retries %s
PSNs        una %d, next %d, max %d, expected %d, MSN %d; %d requests outstanding, %d receives posted
wire        MTU %d, UDP source port %d, DSCP %d`,
		c.State, c.Path, c.Migration, strings.Join(c.Hops, " "), timer, c.RetryLeft, c.RetryCnt, c.EffectiveNS*report.NS(int64(c.RetryLeft)+1), c.RNRWaitNS, rnr,
		c.Una, c.Next, c.MaxPSN, c.EPSN, c.MSN, c.Outstanding, c.Receives, c.MTU, c.SPort, c.DSCP)
}

// maxRequests bounds the requests that a person is shown.
const maxRequests = 20

func requestText(reqs []qpRequest) string {
	t := report.NewTable("request", "posted", "completed", "status")
	for i, r := range reqs {
		if i == maxRequests {
			t.AppendRow([]any{fmt.Sprintf("and %d more", len(reqs)-i)})
			break
		}
		t.AppendRow([]any{fmt.Sprintf("%s %d", r.Flow, r.Number), r.PostedNS, orBlank(r.EndNS), r.Status})
	}
	return t.Render() + "\n"
}

func survivalText(s []qpSurvival) string {
	if len(s) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("what would have survived (each run again)\n")
	for _, x := range s {
		verdict := "fails too"
		if x.Survives {
			verdict = "survives"
		}
		fmt.Fprintf(&b, "  %s", x.Change)
		if x.TimerNS > 0 {
			fmt.Fprintf(&b, " (%v)", x.TimerNS)
		}
		fmt.Fprintf(&b, ": %s, last request ends at %v\n", verdict, x.EndNS)
	}
	if !s[len(s)-1].Survives {
		b.WriteString("  none: what stood in the way did not end in time\n")
	}
	return b.String()
}
