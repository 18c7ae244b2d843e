package sim

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

// Without telemetry.interval, samples come every FirstInterval, and half as
// often after every step of them: fine at the start and never many. A step has
// fewer samples in a large fabric.
const (
	FirstInterval = 10 * clock.Microsecond
	leastStep     = 40
	mostStep      = 500
	rowsPerStep   = 15_000 // samples × ports
)

// Sampler decides when counters are sampled. Its instants follow from the plan
// alone, and windows are cut at them: every process of a run samples alike, with
// exactly what happened before.
type Sampler struct {
	Base  clock.Duration // instants are multiples of it
	Count int            // samples so far

	every clock.Duration
	fixed bool
	step  int
	tick  clock.Time // next multiple of Base
	next  clock.Time // none before it
}

// NewSampler follows telemetry.interval, or the steps above.
func NewSampler(plan *topology.Plan) *Sampler {
	s := &Sampler{Base: FirstInterval, every: FirstInterval}
	if plan.Telem.Interval > 0 {
		s.Base, s.every, s.fixed = plan.Telem.Interval, plan.Telem.Interval, true
	}
	ports := 1
	for i := range plan.Devices {
		ports += len(plan.Devices[i].Ports)
	}
	s.step = min(max(rowsPerStep/ports, leastStep), mostStep)
	return s
}

// Every samples at the multiples of d.
func Every(d clock.Duration) *Sampler {
	return &Sampler{Base: d, every: d, fixed: true, step: mostStep}
}

// Due says whether the window that starts at start is preceded by a sample, and
// of which instant. A call that comes early changes nothing.
func (s *Sampler) Due(start clock.Time) (clock.Time, bool) {
	t := s.Next()
	if start < t {
		return 0, false
	}
	s.tick = t.Add((start.Sub(t)/s.Base + 1) * s.Base)
	if s.Count++; !s.fixed && s.Count%s.step == 0 {
		s.every *= 2
	}
	s.next = t.Add(s.every)
	return t, true
}

// Next is the instant at which windows are cut next.
func (s *Sampler) Next() clock.Time { return max(s.tick, s.next) }

// State and SetState carry a sampler over a checkpoint.
func (s *Sampler) State() [4]int64 {
	return [4]int64{int64(s.Count), int64(s.every), int64(s.tick), int64(s.next)}
}

// SetState is the inverse of State.
func (s *Sampler) SetState(v [4]int64) {
	s.Count, s.every, s.tick, s.next = int(v[0]), clock.Duration(v[1]), clock.Time(v[2]), clock.Time(v[3])
}
