// Package chaos draws faults for a fabric from a seed, within limits that any
// correct fabric survives, and judges whether the run converged: every fault
// heals, so every request must complete with success, frames must be conserved
// and nothing may hang. Equal plan, seed and clean run draw equal faults. Start
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
	MaxFaults = 6
	MinSpan   = 20 * clock.Microsecond
	MaxSpan   = 5 * clock.Millisecond
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

// Draw returns 1 to MaxFaults faults that heal, as text and bound to the plan.
// Each is for a flow: it starts while that runs, at a place and of a kind that
// its frames meet. What ran when is taken from a run without faults.
func Draw(plan *topology.Plan, seed uint64, clean *report.Result) ([]topology.Fault, error) {
	if len(plan.Flows) == 0 {
		return nil, fmt.Errorf("chaos seed %d: %s has no workload that a fault could meet", seed, plan.Name)
	}
	s := &source{key: clock.Mix(seed, plan.Seed, 0x64726177), losses: MaxFaults}
	var out []topology.Fault
	for i := range 1 + s.next(MaxFaults) {
		u, err := s.draw(plan, clean)
		if err != nil {
			return nil, fmt.Errorf("chaos seed %d: %w", seed, err)
		}
		text := fmt.Sprintf("%s name=chaos%d", s.fault(u), i+1)
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

// fault draws one fault in text form: of links, of frames, of receivers or of
// switches.
func (s *source) fault(u *use) string {
	switch n := s.next(16); {
	case n < 6:
		return s.linkFault(u, n)
	case n < 9:
		return s.frameFault(u, n)
	case n < 12:
		return s.hostFault(u, n)
	case n < 15:
		return s.switchFault(u, n)
	}
	other := s.pick("0", "26", "48")
	if other == fmt.Sprint(u.flow.DSCP) {
		other = "10"
	}
	return fmt.Sprintf("dscp %s at=%s for=%s to=%s", u.sender().Name, s.time(u), s.length(u), other)
}

// length draws how long a fault lasts.
func (s *source) length(u *use) clock.Duration {
	return s.span(MinSpan, min(MaxSpan, max(u.span()/2, 2*MinSpan)))
}

func (s *source) linkFault(u *use, n int) string {
	d, p := s.leg(u)
	port, at, length := fmt.Sprintf("%s:%d", d.Name, p.Num), s.time(u), s.length(u)
	during := fmt.Sprintf(" %s at=%s for=%s", port, at, length)
	frames, bytes := u.frames(min(length, clock.Duration(u.to)-at))
	few := fmt.Sprintf(" %s at=%s dir=out count=", port, at)
	switch n {
	case 0:
		return "link-down" + during + fmt.Sprintf(" hold=%s", s.span(0, 100*clock.Microsecond))
	case 1:
		return "link-flap" + during + fmt.Sprintf(" period=%s", s.span(10*clock.Microsecond, min(length, 200*clock.Microsecond)))
	case 2:
		return "one-way" + during + " dir=out" // what answers may come another way
	case 3:
		rates := []string{"1Gbps", "5Gbps", "10Gbps"}
		for len(rates) > 1 && slower(p, rates[len(rates)-1]) {
			rates = rates[:len(rates)-1]
		}
		return "rate" + during + " to=" + s.pick(rates...)
	case 4:
		if 8*bytes < expected*1e6 {
			return fmt.Sprintf("corrupt%s%d field=fcs", few, s.few())
		}
		return "ber" + during + " to=" + s.likely(8*bytes, chance{"1e-9", 1e9}, chance{"1e-8", 1e8}, chance{"1e-7", 1e7}, chance{"1e-6", 1e6})
	}
	if frames < expected*20 {
		return fmt.Sprintf("drop%s%d", few, s.few())
	}
	return "loss" + during + " dir=out probability=" + s.likely(frames, chance{"1e-4", 1e4}, chance{"1e-3", 1e3}, chance{"1e-2", 100}, chance{"5e-2", 20})
}

// slower reports whether a port is not faster than a rate.
func slower(p *topology.Port, rate string) bool {
	r, err := topology.ParseRate(rate)
	return err == nil && p.Rate <= r
}

// frameFault acts on a few frames as they leave the flow's sender or reach its
// receiver.
func (s *source) frameFault(u *use, n int) string {
	at := s.time(u)
	end := u.sender().Name + ":1"
	dir := s.pick("in", "out")
	if dir == "in" {
		end = u.receiver().Name + ":1"
	}
	rdma := u.flow.Transport == topology.RC
	switch {
	case n == 6 && s.next(4) == 0:
		return fmt.Sprintf("drop %s at=%s count=%d dir=%s", end, at, s.few(), dir)
	case n == 6:
		kinds := []string{"duplicate", "reorder", "mark-ce"}
		if !rdma {
			kinds = kinds[:2]
		}
		return fmt.Sprintf("%s %s at=%s count=%d dir=%s", s.pick(kinds...), end, at, 1+s.next(20), dir)
	case n == 7:
		fields := []string{"fcs", "ip.ttl", "icrc", "ip.id", "bth.psn", "ethertype"}
		if !rdma {
			fields = fields[:2]
		}
		return fmt.Sprintf("corrupt %s:1 at=%s count=%d dir=out field=%s", u.sender().Name, at, s.few(), s.pick(fields...))
	}
	return fmt.Sprintf("delay %s at=%s count=%d dir=%s by=%s", end, at, 1+s.next(20), dir, s.span(clock.Microsecond, 100*clock.Microsecond))
}

// hostFault disturbs the receiver of the data, or who answers the requests.
func (s *source) hostFault(u *use, n int) string {
	nic := u.receiver()
	during := fmt.Sprintf(" at=%s for=%s", s.time(u), s.length(u))
	switch rdma := u.flow.Transport == topology.RC; {
	case n == 9 && nic.NIC.Lossless != [8]bool{}:
		prio := u.legs[0].PG
		if !nic.NIC.Lossless[prio] || s.next(2) == 0 {
			return "pause-storm " + nic.Name + ":1" + during
		}
		return fmt.Sprintf("pause-storm %s:1%s priorities=%d", nic.Name, during, prio)
	case n == 11 && rdma && s.next(4) > 0:
		kinds := []string{"no-resource", "mr-not-ready"}
		if v := u.flow.Verb; v == topology.Send || v == topology.SendImm || v == topology.SendInv {
			kinds[1] = "rq-empty"
			if u.flow.Count > int64(u.target().NIC.QP.RecvQueue) {
				kinds = append(kinds, "rq-pause")
			}
		}
		length := min(max(s.length(u), 2*u.gap()), MaxSpan)
		return fmt.Sprintf("%s %s at=%s for=%s", s.pick(kinds...), u.target().Name, s.beforeRequest(u), length)
	case n == 11:
		return "pcie-stall " + nic.Name + during
	}
	return "slow-receiver " + nic.Name + during + " drain=" + s.pick("1Gbps", "5Gbps", "10Gbps")
}

func (s *source) switchFault(u *use, n int) string {
	during := fmt.Sprintf(" at=%s for=%s", s.time(u), s.length(u))
	if len(u.legs) < 2 { // cabled back to back
		return "pfc-off " + u.sender().Name + ":1" + during
	}
	d, p := s.leg(u)
	switch name := s.chooser(u); {
	case n == 12 && name != "":
		return "hash " + name + during + " to=" + s.pick("1", "2", "3")
	case n == 13:
		kind := "pfc-off"
		if p.PFC == nil || p.PFC.Lossless == [8]bool{} || s.next(2) == 0 {
			kind = "ecn-off"
		}
		return fmt.Sprintf("%s %s:%d%s", kind, d.Name, p.Num, during)
	case n == 14 && s.next(2) == 0:
		return "drain " + s.bridge(u) + during
	}
	return "device-down " + s.bridge(u) + during + fmt.Sprintf(" boot=%s", s.span(0, clock.Millisecond))
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
