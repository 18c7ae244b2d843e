// Package chaos draws faults for a fabric from a seed, within limits that any
// correct fabric survives, and judges whether the run converged: every fault
// heals, so every request must complete with success, frames must be conserved
// and nothing may hang. Equal plan, seed and horizon draw equal faults. Start
// at [Draw].
package chaos

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// Limits of one draw. They stay far inside a retry budget of timeout 14,
// retry_cnt 7: 469 ms.
const (
	MaxFaults  = 6
	MinSpan    = 20 * clock.Microsecond
	MaxSpan    = 5 * clock.Millisecond
	MinHorizon = 100 * clock.Microsecond
)

// source is a keyed sequence of draws.
type source struct {
	key, n uint64
	losses int // frames that counted faults may still take: below the retries of a QP
}

// few draws a count of frames to lose within what is left of the budget, at
// least one.
func (s *source) few() int {
	n := max(min(1+s.next(3), s.losses), 1)
	s.losses = max(s.losses-n, 0)
	return n
}

func (s *source) next(n int) int {
	s.n++
	return int(clock.Mix(s.key, s.n, 0x6368616f73) % uint64(n))
}

func (s *source) pick(words ...string) string { return words[s.next(len(words))] }

// span draws a length between lo and hi in whole nanoseconds.
func (s *source) span(lo, hi clock.Duration) clock.Duration {
	if hi <= lo {
		return lo
	}
	return lo + clock.Duration(s.next(int((hi-lo)/clock.Nanosecond)))*clock.Nanosecond
}

// Draw returns 1 to MaxFaults faults that start within horizon (the time the
// run takes without faults) and heal, as text and bound to the plan.
func Draw(plan *topology.Plan, seed uint64, horizon clock.Duration) ([]topology.Fault, error) {
	s := &source{key: clock.Mix(seed, plan.Seed, 0x64726177), losses: MaxFaults}
	horizon = max(horizon, MinHorizon)
	var out []topology.Fault
	for i := range 1 + s.next(MaxFaults) {
		text := fmt.Sprintf("%s name=chaos%d", s.fault(plan, horizon), i+1)
		f, err := topology.ParseFault(text)
		if err == nil {
			err = plan.BindFault(f)
		}
		if err != nil {
			return nil, fmt.Errorf("chaos seed %d: %s: %w", seed, text, err)
		}
		f.NoAt, f.Pos = false, "chaos"
		out = append(out, *f)
	}
	return out, nil
}

// fault draws one fault in text form.
func (s *source) fault(plan *topology.Plan, horizon clock.Duration) string {
	at := s.span(0, horizon)
	length := s.span(MinSpan, min(MaxSpan, max(horizon/2, 2*MinSpan)))
	during := fmt.Sprintf(" at=%s for=%s", at, length)
	nic, port := s.rnic(plan), s.port(plan)
	switch s.next(16) {
	case 0:
		return "link-down " + port + during + fmt.Sprintf(" hold=%s", s.span(0, 100*clock.Microsecond))
	case 1:
		return "link-flap " + port + during + fmt.Sprintf(" period=%s", s.span(10*clock.Microsecond, 200*clock.Microsecond))
	case 2:
		return "one-way " + port + during + " dir=" + s.pick("in", "out")
	case 3:
		return "rate " + port + during + " to=" + s.pick("1Gbps", "5Gbps", "10Gbps")
	case 4:
		return "ber " + port + during + " to=" + s.pick("1e-9", "1e-8", "1e-7")
	case 5:
		return "loss " + port + during + " probability=" + s.pick("1e-4", "1e-3", "1e-2")
	case 6:
		if s.next(4) == 0 {
			return fmt.Sprintf("drop %s:1 at=%s count=%d dir=%s", nic, at, s.few(), s.pick("in", "out"))
		}
		return fmt.Sprintf("%s %s:1 at=%s count=%d dir=%s", s.pick("duplicate", "reorder", "mark-ce"), nic, at, 1+s.next(20), s.pick("in", "out"))
	case 7:
		return fmt.Sprintf("corrupt %s:1 at=%s count=%d dir=out field=%s", nic, at, s.few(), s.pick("icrc", "fcs", "ip.id", "ip.ttl", "bth.psn"))
	case 8:
		return fmt.Sprintf("delay %s:1 at=%s count=%d dir=%s by=%s", nic, at, 1+s.next(20), s.pick("in", "out"), s.span(clock.Microsecond, 100*clock.Microsecond))
	case 9:
		return "pause-storm " + nic + ":1" + during
	case 10:
		return "slow-receiver " + nic + during + " drain=" + s.pick("1Gbps", "5Gbps", "10Gbps")
	case 11:
		return s.pick("rq-empty", "mr-not-ready", "no-resource", "rq-pause", "pcie-stall") + " " + nic + during
	case 12:
		return "hash " + s.device(plan) + during + " to=" + s.pick("1", "2", "3")
	case 13:
		return s.pick("pfc-off ", "ecn-off ") + port + during
	case 14:
		if s.next(2) == 0 {
			return "drain " + s.device(plan) + during
		}
		return "device-down " + s.device(plan) + during + fmt.Sprintf(" boot=%s", s.span(0, clock.Millisecond))
	}
	return "dscp " + nic + during + " to=" + s.pick("0", "26", "48")
}

func (s *source) rnic(plan *topology.Plan) string {
	return plan.Devices[plan.RNICs[s.next(len(plan.RNICs))]].Name
}

// port draws a cable by one of its ends, favouring switches.
func (s *source) port(plan *topology.Plan) string {
	d := &plan.Devices[s.next(len(plan.Devices))]
	return fmt.Sprintf("%s:%d", d.Name, d.Ports[s.next(len(d.Ports))].Num)
}

// device draws a switch.
func (s *source) device(plan *topology.Plan) string {
	return plan.Devices[s.next(len(plan.Devices)-len(plan.RNICs))].Name
}

// Text lists faults one a line.
func Text(faults []topology.Fault) string {
	var b strings.Builder
	for i := range faults {
		b.WriteString("  " + faults[i].String() + "\n")
	}
	return b.String()
}

// Judge demands convergence: the run ended by itself, frames were conserved,
// and every request completed with success; in a run of a fixed length, none
// failed.
func Judge(plan *topology.Plan, res *report.Result) error {
	switch t := &res.Totals; {
	case res.Verdict != report.Complete:
		return fmt.Errorf("verdict %s: %s", res.Verdict, res.VerdictReason)
	case t.Failed > 0:
		return fmt.Errorf("%d of %d flows failed although every fault healed", t.Failed, t.Flows)
	case t.Completed != t.Flows && plan.Run.Until == topology.UntilIdle:
		return fmt.Errorf("%d of %d flows completed", t.Completed, t.Flows)
	}
	return nil
}
