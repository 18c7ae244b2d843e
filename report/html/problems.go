package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/report"
)

// Problem is a sentence about what went wrong; the worst come first.
type Problem struct {
	Level string // bad, warn or info
	Text  string
}

// problems tells the most important things in words.
func problems(in *Input) []Problem {
	r := in.Result
	var out []Problem
	add := func(level, format string, a ...any) { out = append(out, Problem{level, fmt.Sprintf(format, a...)}) }
	if r.Verdict != report.Complete {
		add("bad", "The run ended with verdict “%s”: %s.", r.Verdict, strings.TrimSuffix(r.VerdictReason, "."))
	}
	for _, d := range r.Deadlocks {
		add("bad", "PFC deadlock at %s: %s wait for one another.", report.Span(d.AtNS), strings.Join(d.Cycle, " → "))
	}
	for _, n := range sortedKeys(r.Flows) {
		f := r.Flows[n]
		if f.Failed > 0 {
			add("bad", "%s: %d of %d requests failed with %s.", n, f.Failed, f.Requests, f.Status)
		}
		switch why := strings.TrimSuffix(f.Why, "."); {
		case f.Why == "":
		case f.OnSchedule():
			add("info", "%s is on schedule, the run ended before its last request: %s.", n, why)
		case f.Status == report.Success.String():
			add("bad", "%s stands still at the run's end: %s.", n, why)
		default:
			add("bad", "%s did not finish: %s.", n, why)
		}
	}
	dropProblems(r, add)
	chainProblems(in, add)
	pauseProblems(r, add)
	for _, n := range sortedKeys(r.Flows) {
		if s := r.Flows[n].Slowdown; s != nil && s.P99 >= 5 {
			add("warn", "%s: the slowest hundredth of its requests took %.1f times as long as on an idle fabric.", n, s.P99)
		}
		if f := r.Flows[n]; f.Straggled() {
			add("warn", "%s: %s.", n, f.TailText())
		}
	}
	for _, f := range r.Findings {
		add("info", "%s at %s: %s.", f.Code, f.Where, strings.TrimSuffix(f.Text, "."))
	}
	if len(out) == 0 {
		add("info", "Nothing stands out: all flows completed, nothing was dropped, paused for long or sent again.")
	}
	return out[:min(len(out), maxProblems)]
}

// dropProblems tells of frames lost, by reason.
func dropProblems(r *report.Result, add func(string, string, ...any)) {
	reasons := sortedKeys(r.Totals.DropsByReason)
	slices.SortStableFunc(reasons, func(a, b string) int {
		return cmp.Compare(r.Totals.DropsByReason[b], r.Totals.DropsByReason[a])
	})
	hints := map[string]string{
		"buffer_headroom": "a lossless queue overran its headroom: it is too small for the cable, or PFC acted too late",
		"buffer_shared":   "a lossy queue met a full buffer",
		"egress_limit":    "a lossy queue reached its limit",
		"pfc_watchdog":    "the PFC watchdog discarded a storm's frames",
		"link_down":       "a link was down",
		"crc":             "frames were damaged on a cable",
		"fault":           "a planned fault took them",
		"rx_overflow":     "an RNIC could not take them in",
		"no_route":        "there was no route",
	}
	for _, reason := range reasons {
		n := r.Totals.DropsByReason[reason]
		if n == 0 {
			continue
		}
		level := "warn"
		if reason == "buffer_headroom" {
			level = "bad"
		}
		text := hints[reason]
		if text == "" {
			text = reason
		}
		add(level, "%d frames dropped (%s): %s.", n, reason, text)
	}
}

// chainProblems tells what retransmission cost.
func chainProblems(in *Input, add func(string, string, ...any)) {
	if in.Result.Totals.Retransmitted == 0 {
		return
	}
	var longest *report.ChainLine
	for i := range in.Chains {
		if c := &in.Chains[i]; longest == nil || c.EndNS-c.BeginNS > longest.EndNS-longest.BeginNS {
			longest = c
		}
	}
	text := fmt.Sprintf("%d packets were sent again in %d chains.", in.Result.Totals.Retransmitted, len(in.Chains))
	if longest != nil {
		text += fmt.Sprintf(" The longest, of %s (cause: %s), took %s until its request ended, in %d round(s).", longest.Flow, longest.Cause,
			report.Span(longest.EndNS-longest.BeginNS), longest.Retries)
	}
	add("warn", "%s", text)
}

// pauseProblems names the port that was paused longest.
func pauseProblems(r *report.Result, add func(string, string, ...any)) {
	var worst report.NS
	var who string
	for _, dev := range sortedKeys(r.Switches) {
		for _, num := range sortedPorts(r.Switches[dev]) {
			p := r.Switches[dev].Ports[num]
			for _, prio := range sortedKeys(p.PFC) {
				if c := p.PFC[prio]; c.TxPauseNS > worst {
					worst, who = c.TxPauseNS, fmt.Sprintf("%s:%s held %s paused on priority %s", dev, num, p.Peer, prio)
				}
			}
		}
	}
	held := r.HeldByRNICs()
	for _, nic := range sortedKeys(held) {
		for prio, span := range held[nic].Span {
			if span > worst {
				worst, who = span, fmt.Sprintf("%s held %s paused on priority %d", nic, strings.Join(held[nic].Ports, " and "), prio)
			}
		}
	}
	if worst > 0 && r.VirtualNS > 0 {
		share := float64(worst) / float64(r.VirtualNS)
		level := "info"
		if share > 0.1 {
			level = "warn"
		}
		add(level, "%d PFC pause frames in all. %s longest: %s, %.1f %% of the run.", r.Totals.PauseFrames, who, report.Span(worst), share*100)
	}
}
