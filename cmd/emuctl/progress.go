package main

import (
	"fmt"
	"io"
	"time"

	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// progress keeps one line of a terminal up to date: virtual time, hops a
// second, and when the run will probably end.
type progress struct {
	w    io.Writer
	plan *topology.Plan
	most int64 // requests outstanding at the most
}

func newProgress(w io.Writer, plan *topology.Plan) *progress { return &progress{w: w, plan: plan} }

func (p *progress) show(s sim.Progress) { p.line(s, true) }

// line shows the work, hops and requests, only where it is known.
func (p *progress) line(s sim.Progress, known bool) {
	line := fmt.Sprintf("%v virtual", s.Virtual)
	if known {
		rate := float64(s.Hops) / max(s.Wall.Seconds(), 1e-3)
		line += fmt.Sprintf(", %.1f M hops, %.2f M hops/s, %d requests outstanding", float64(s.Hops)/1e6, rate/1e6, s.Outstanding)
	}
	if left := p.remaining(s); left > 0 {
		line += ", ETA " + left.Round(time.Second).String()
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
}

// remaining extrapolates from virtual time when the run has a fixed end, else
// from the requests that are done.
func (p *progress) remaining(s sim.Progress) time.Duration {
	p.most = max(p.most, s.Outstanding)
	if p.plan.Run.Until == topology.UntilTime && s.Virtual > 0 && s.Until > s.Virtual {
		return time.Duration(float64(s.Wall) * float64(s.Until-s.Virtual) / float64(s.Virtual))
	}
	if done := p.most - s.Outstanding; done > 0 {
		return time.Duration(float64(s.Wall) * float64(s.Outstanding) / float64(done))
	}
	return 0
}

// clear removes the line.
func (p *progress) clear() { fmt.Fprint(p.w, "\r\x1b[K") }
