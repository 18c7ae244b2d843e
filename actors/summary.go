package actors

import (
	"context"

	"github.com/rocemu/rocemu/clock"
)

// Summary is what a process says of its actors between two windows. Merging
// summaries of all processes gives every process the same next window.
type Summary struct {
	Next, NextWork, NextFault clock.Time
	LastWork, LastProgress    clock.Time
	LastEvent                 clock.Time
	Outstanding               int64
	Stop                      clock.Time // a requested stop, Never = none
}

// Merge folds another process's summary in.
func (s *Summary) Merge(o Summary) {
	s.Next = min(s.Next, o.Next)
	s.NextWork = min(s.NextWork, o.NextWork)
	s.NextFault = min(s.NextFault, o.NextFault)
	s.LastWork = max(s.LastWork, o.LastWork)
	s.LastProgress = max(s.LastProgress, o.LastProgress)
	s.LastEvent = max(s.LastEvent, o.LastEvent)
	s.Outstanding += o.Outstanding
	s.Stop = min(s.Stop, o.Stop)
}

// summary merges the state of all hosted actors.
func (e *Engine) summary() Summary {
	s := Summary{Next: clock.Never, NextWork: clock.Never, NextFault: clock.Never, Stop: e.stop}
	for _, d := range e.local {
		s.Next = min(s.Next, e.next[d])
		s.NextWork = min(s.NextWork, e.work[d])
		st := &e.st[d]
		s.NextFault = min(s.NextFault, st.NextFault)
		s.LastWork = max(s.LastWork, st.LastWork)
		s.LastProgress = max(s.LastProgress, st.LastProgress)
		s.LastEvent = max(s.LastEvent, st.LastEvent)
		s.Outstanding += st.Outstanding
	}
	for _, c := range e.remote {
		s.Next = min(s.Next, c.newAt)
		s.NextWork = min(s.NextWork, c.workAt)
	}
	return s
}

// cut finds the end of the run as far as it is known: the instant up to which
// events are executed, and why. It depends on the merged summary alone.
func (e *Engine) cut(s *Summary) (clock.Time, End) {
	at, why := e.cfg.Limit, AtLimit
	if e.cfg.Until < at {
		at, why = e.cfg.Until, AtUntil
	}
	if s.Stop < at {
		at, why = s.Stop, Cancelled
	}
	if e.cfg.Live {
		return at, why
	}
	quiet := s.NextWork == clock.Never
	if t := s.LastWork.Add(e.cfg.Settle); s.Outstanding == 0 && quiet && t < at && e.cfg.Until == clock.Never {
		return t, Idle
	}
	// Waits for the end of a pause are no work and not periodic either: with
	// anything pending, a stall shows by the lack of progress.
	// Faults and spent timers may have come after the last work.
	if t := max(s.LastWork, s.LastEvent).Add(e.cfg.Settle); s.Outstanding > 0 && quiet && s.Next == clock.Never && s.NextFault == clock.Never && t < at {
		at, why = t, Stalled
	}
	if t := s.LastProgress.Add(e.cfg.Stall); s.Outstanding > 0 && e.cfg.Stall > 0 && t < at {
		at, why = t, Stalled
	}
	return at, why
}

// exchange returns the summary over all processes for the next window.
func (e *Engine) exchange(ctx context.Context) (Summary, error) {
	if e.resume {
		e.resume = false
		return e.merged, nil
	}
	s := e.summary()
	if e.Carrier == nil {
		return s, nil
	}
	if e.Gate != nil { // every process learns of a stop from its own gate
		s.Stop = clock.Never
	}
	m, err := e.Carrier.Exchange(ctx, e, e.windows, s)
	e.remote = e.remote[:0]
	m.Stop = min(m.Stop, e.stop)
	return m, err
}

// Merged is the summary over all processes that the running step was chosen
// by, and how many windows that step spans; valid inside Observe. A checkpoint
// keeps both for [Engine.Resume].
func (e *Engine) Merged() (s Summary, wide int) { return e.merged, e.wide }

// Resume places an engine whose devices were restored right before step n,
// after the exchange that led to it: s and wide are what Merged gave then.
func (e *Engine) Resume(now clock.Time, n uint64, s Summary, wide int) {
	e.now, e.windows, e.merged, e.wide, e.resume = now, n, s, max(1, wide), true
	if e.wide > 1 && e.rounds == nil {
		if e.rounds = newRounds(e); e.rounds == nil {
			panic("actors: resumed in a round of a fabric that has none")
		}
	}
}
