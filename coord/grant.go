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
	firstWindows = 64 // of the first grant
)

// granter turns measured progress into grants. It belongs to one leader's term.
type granter struct {
	run     string
	m       clock.Time // frontier at the last measurement
	at      time.Time
	speed   float64 // virtual ps a wall second, smoothed; control only, never the model
	ext     clock.Duration
	granted time.Time
	// Anchor of a pace.
	pace Pace
	v0   clock.Time
	w0   time.Time
}

// next returns the grant to ask for, or the same as r.Grant when none is due.
func (g *granter) next(now time.Time, r *Run, w clock.Duration, m, want clock.Time) clock.Time {
	if g.run != r.Spec.ID {
		*g = granter{run: r.Spec.ID, m: m, at: now, ext: firstWindows * w}
	}
	h := horizonLive
	if r.Spec.Batch {
		h = horizonBatch
	}
	g.measure(now, m)
	if r.Paused {
		g.pace = Pace{}
		return max(r.Grant, r.StepTo)
	}
	span := clock.Duration(g.speed * h.Seconds())
	starving := want > r.Grant
	if r.Pace.Num > 0 {
		return g.paced(now, r, h)
	}
	g.pace = Pace{}
	if starving && now.Sub(g.granted) < h/2 && g.ext < 1<<58 {
		g.ext *= 2
	} else if span > 0 && g.ext > span {
		g.ext = max(span, firstWindows*w)
	}
	if !starving && r.Grant.Sub(m) > span/2 && r.Grant > 0 {
		return r.Grant
	}
	g.granted = now
	return max(r.Grant, max(m, want).Add(max(span, g.ext)))
}

func (g *granter) measure(now time.Time, m clock.Time) {
	dt := now.Sub(g.at)
	if dt < 20*time.Millisecond {
		return
	}
	v := float64(m-g.m) / dt.Seconds()
	if g.speed == 0 {
		g.speed = v
	} else {
		g.speed += (v - g.speed) / 4
	}
	g.m, g.at = m, now
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
	w := clock.Microsecond
	if l.placed != nil && l.placeID == run.Spec.ID {
		w = l.placed.Window
	}
	m, want, _ := l.front(&run)
	if end := l.grants.next(time.Now(), &run, w, m, want); end > run.Grant {
		l.commit(&Entry{Kind: KindGrant, Run: run.Spec.ID, At: end})
	}
}
