package coord

import (
	"time"

	"github.com/rocemu/rocemu/clock"
)

// Horizons: how much wall time a grant is meant to last. Short ones make live
// faults land soon, long ones survive a change of leader unnoticed.
const (
	horizonLive  = 250 * time.Millisecond
	horizonBatch = 3 * time.Second
	firstWindows = 16 // of the first grant: those of a large fabric may take a second
)

func (s *RunSpec) horizon() time.Duration {
	switch {
	case s.Horizon > 0:
		return min(time.Duration(s.Horizon)*time.Millisecond, time.Minute)
	case s.Batch:
		return horizonBatch
	}
	return horizonLive
}

// granter turns measured progress into grants. It belongs to one leader's term.
//
// What is granted cannot be taken back: it must be run before a fault or a stop
// takes effect. So a grant is counted in windows, as many as engines execute in
// the horizon, each of the window's length: virtual time that leaps over an idle
// span says nothing of how long the next span will take. Where engines want to
// leap beyond the grant, they are granted the leap when they ask.
type granter struct {
	run     string
	n       uint64 // windows at the last measurement
	at      time.Time
	speed   float64 // windows a wall second, smoothed; control only, never the model
	ext     uint64  // windows to grant while the speed is unknown or too low
	granted time.Time
	from    uint64 // windows at the last grant
	// Anchor of a pace.
	pace Pace
	v0   clock.Time
	w0   time.Time
}

// front is how far a run is.
type front struct {
	m, want clock.Time // furthest window start, furthest wanted end
	n       uint64     // windows
}

// next returns the grant to ask for, or the same as r.Grant when none is due.
func (g *granter) next(now time.Time, r *Run, w clock.Duration, f front) clock.Time {
	if r.Start != nil { // windows of a restored run are counted on
		f.n = max(f.n, r.Start.N)
	}
	if g.run != r.Spec.ID {
		*g = granter{run: r.Spec.ID, n: f.n, from: f.n, at: now, ext: firstWindows}
	}
	h := r.Spec.horizon()
	starving := f.want > r.Grant
	g.measure(now, f.n, r.Paused)
	if r.Paused {
		g.pace = Pace{}
		return max(r.Grant, r.StepTo)
	}
	if r.Pace.Num > 0 {
		return g.paced(now, r, h)
	}
	g.pace = Pace{}
	windows := uint64(g.speed * h.Seconds())
	if starving && now.Sub(g.granted) < h/2 && f.n-g.from >= g.ext/2 && g.ext < 1<<24 {
		g.ext *= 2 // used up, not leapt over
	} else if windows > 0 && g.ext > windows {
		g.ext = max(windows, firstWindows)
	}
	span := clock.Duration(max(windows, g.ext)) * w
	if !starving && r.Grant.Sub(f.m) > span/2 && r.Grant > 0 {
		return r.Grant
	}
	g.granted, g.from = now, f.n
	return max(r.Grant, max(f.m, f.want).Add(span))
}

// measure takes the speed from one heartbeat to another; engines that stand
// show none. What slows down counts at once, since what is granted too far is
// granted; a gain counts by and by.
func (g *granter) measure(now time.Time, n uint64, paused bool) {
	dt := now.Sub(g.at)
	switch {
	case paused || n <= g.n && dt >= time.Second:
		g.n, g.at = n, now
		return
	case dt < 100*time.Millisecond || n <= g.n:
		return
	}
	v := float64(n-g.n) / dt.Seconds()
	switch {
	case g.speed == 0:
		g.speed = v
	case v < g.speed:
		g.speed += (v - g.speed) / 2
	default:
		g.speed += (v - g.speed) / 4
	}
	g.n, g.at = n, now
}

// paced grants virtual time as wall time passes. A new leader or a new pace
// starts again from the granted instant, so a clock that jumps changes the
// pace, never the result.
func (g *granter) paced(now time.Time, r *Run, h time.Duration) clock.Time {
	if g.pace != r.Pace {
		g.pace, g.v0, g.w0 = r.Pace, r.Grant, now
	}
	ps := now.Sub(g.w0).Nanoseconds() * 1000
	hi := ps / r.Pace.Den * r.Pace.Num
	lo := ps % r.Pace.Den * r.Pace.Num / r.Pace.Den
	return max(r.Grant, g.v0.Add(clock.Duration(hi+lo)))
}

// lag is how far a paced run is behind, in virtual time.
func (g *granter) lag(r *Run, m clock.Time) clock.Duration {
	if r.Pace.Num == 0 || g.pace != r.Pace {
		return 0
	}
	return max(0, r.Grant.Sub(m))
}

// window is the length of a run's windows. Whoever leads has it from the ledger,
// also who did not place the run.
func (r *Run) window() clock.Duration {
	if r.Window > 0 {
		return r.Window
	}
	return clock.Microsecond // placed by a build that did not say
}

// grant keeps virtual time going.
func (l *leader) grant() {
	var run Run
	ok := false
	l.n.rep.View(func(s *State) {
		if s.Run != nil && s.Run.Phase == Running {
			run, ok = *s.Run, true
			run.Slots = append([]Slot(nil), s.Run.Slots...)
		}
	})
	if !ok {
		return
	}
	if end := l.grants.next(time.Now(), &run, run.window(), l.front(&run)); end > run.Grant {
		l.commit(&Entry{Kind: KindGrant, Run: run.Spec.ID, At: end})
	}
}
