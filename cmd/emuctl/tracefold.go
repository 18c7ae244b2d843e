package main

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
)

// stepRun is a run of steps that differ in nothing but their time, opcode and
// PSN, which goes up by one from each to the next.
type stepRun struct {
	first, last *report.ChainStep
	n           int
	cause       int // number of the run that led to the first step, 0 = none
}

// maxPSN is the largest PSN: 24 bits.
const maxPSN = 1<<24 - 1

// foldSteps groups the steps of a chain. A retransmission and the loss of the
// same packet alternate, so several runs are open at a time; any other step
// closes them, so that what is told stays in order of cause. With all each step
// is a run of its own.
func foldSteps(steps []report.ChainStep, all bool) []stepRun {
	var out []stepRun
	open, in := map[string]int{}, make([]int, len(steps)) // by key; of each step
	for i := range steps {
		s := &steps[i]
		packet := s.Op != "" && !all // a loss or a retransmission
		if !packet {
			clear(open)
		}
		key := stepKey(s)
		k, ok := open[key]
		if packet && ok && s.PSN == (out[k].last.PSN+1)&maxPSN {
			out[k].last, in[i] = s, k
			out[k].n++
			continue
		}
		r := stepRun{first: s, last: s, n: 1}
		if s.Cause >= 0 && s.Cause < i {
			r.cause = in[s.Cause] + 1
		}
		open[key], in[i] = len(out), len(out)
		out = append(out, r)
	}
	return out
}

// stepKey is what the steps of a run share.
func stepKey(s *report.ChainStep) string {
	return s.Device + " " + strings.Replace(strings.TrimPrefix(s.Text, s.Op), fmt.Sprintf(" PSN %d ", s.PSN), " PSN ", 1)
}

// text says what happened, of a run with its PSNs, number and end.
func (r *stepRun) text() string {
	if r.n == 1 {
		return r.first.Text
	}
	op := r.first.Op
	if r.last.Op != op {
		op += ".." + r.last.Op
	}
	rest := strings.Replace(strings.TrimPrefix(r.first.Text, r.first.Op), fmt.Sprintf(" PSN %d ", r.first.PSN),
		fmt.Sprintf(" PSN %d..%d (%d packets) ", r.first.PSN, r.last.PSN, r.n), 1)
	return fmt.Sprintf("%s%s, until %v", op, rest, clock.Time(r.last.AtNS))
}
