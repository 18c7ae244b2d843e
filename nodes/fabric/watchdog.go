package fabric

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

// Action is what the watchdog does to a stormed queue.
type Action uint8

// Watchdog actions (switch §3.5).
const (
	ActionDrop    Action = iota // discard the queue and all that comes for it and for the PG
	ActionForward               // ignore received PFC
	ActionAlert                 // report only
)

// ParseAction reads an action's name.
func ParseAction(s string) (Action, error) {
	switch s {
	case "drop", "":
		return ActionDrop, nil
	case "forward":
		return ActionForward, nil
	case "alert":
		return ActionAlert, nil
	}
	return 0, fmt.Errorf("watchdog action %q: allowed are drop, forward, alert", s)
}

// WatchdogDefaults returns SONiC's defaults for a switch of n ports:
// m = max(1, (n−1)/32+1); detect = restore = 200 ms × m, poll at most 1 s.
func WatchdogDefaults(n int) topology.Watchdog {
	m := clock.Duration(max(1, (n-1)/32+1))
	d := 200 * m * clock.Millisecond
	return topology.Watchdog{Detect: d, Restore: d, Poll: min(clock.Second, d), Action: "drop"}
}

// CheckWatchdog applies SONiC's ranges: detection 100…5000 ms, restoration
// 100…60000 ms, poll 100…1000 ms, both at least the poll interval.
func CheckWatchdog(w *topology.Watchdog) error {
	type bound struct {
		name   string
		v      clock.Duration
		lo, hi clock.Duration
	}
	ms := clock.Millisecond
	for _, b := range []bound{
		{"detect", w.Detect, 100 * ms, 5000 * ms},
		{"restore", w.Restore, 100 * ms, 60000 * ms},
		{"poll", w.Poll, 100 * ms, 1000 * ms},
	} {
		if b.v < b.lo || b.v > b.hi {
			return fmt.Errorf("watchdog.%s %v: allowed %v to %v", b.name, b.v, b.lo, b.hi)
		}
	}
	if w.Detect < w.Poll || w.Restore < w.Poll {
		return fmt.Errorf("watchdog: detect %v and restore %v must be at least poll %v", w.Detect, w.Restore, w.Poll)
	}
	_, err := ParseAction(w.Action)
	return err
}

// Watchdog is the storm detector of one (port, queue). Polls happen at
// multiples of the poll interval; a poll that finds the queue unpaused and no
// storm going on changes nothing that a later one could see, so such polls are
// not executed: [Watchdog.Arm] names the first that matters.
type Watchdog struct {
	Detected, Restored  uint64 // storms
	TxDropped           uint64 // frames for the queue
	RxDropped           uint64 // frames received in the PG
	left                clock.Duration
	rx, on2off          uint64 // counters at the last poll
	wasPaused, stormed  bool
	next                clock.Time // next poll, Never when none is due
	detect, restore, iv clock.Duration
	action              Action
}

// NewWatchdog returns an idle detector.
func NewWatchdog(w *topology.Watchdog) Watchdog {
	a, err := ParseAction(w.Action)
	if err != nil {
		panic("fabric: " + err.Error()) // the plan is validated
	}
	return Watchdog{left: w.Detect, next: clock.Never, detect: w.Detect, restore: w.Restore, iv: w.Poll, action: a}
}

// Stormed reports whether a storm is being handled.
func (w *Watchdog) Stormed() bool { return w.stormed }

// Dropping and Ignoring report what the action asks for now.
func (w *Watchdog) Dropping() bool { return w.stormed && w.action == ActionDrop }

// Ignoring reports whether received PFC has no effect on the queue now.
func (w *Watchdog) Ignoring() bool { return w.stormed && w.action != ActionAlert }

// Next is the next poll, Never when polling would change nothing.
func (w *Watchdog) Next() clock.Time { return w.next }

// Arm schedules polling when the queue became paused at now. The state at the
// last poll that was not executed is known: unpaused.
func (w *Watchdog) Arm(now clock.Time) {
	if w.next != clock.Never {
		return
	}
	w.wasPaused = false
	iv := clock.Time(w.iv)
	w.next = (now + iv - 1) / iv * iv
}

// Poll executes the poll at w.Next. rx counts received frames with time > 0
// for the priority, on2off paused→unpaused transitions, paused the state now.
// It returns +1 when a storm is detected, −1 when it is over.
func (w *Watchdog) Poll(paused bool, rx, on2off uint64) (change int) {
	more, back := rx != w.rx, on2off != w.on2off
	w.rx, w.on2off = rx, on2off
	if w.stormed {
		change = w.pollStorm(more)
	} else {
		change = w.pollQuiet(paused && w.wasPaused && more && !back)
	}
	w.wasPaused = paused
	w.next = w.next.Add(w.iv)
	if !w.stormed && !paused {
		w.next = clock.Never
	}
	return change
}

func (w *Watchdog) pollQuiet(bad bool) int {
	switch {
	case !bad:
		w.left = w.detect
	case w.left <= w.iv:
		w.stormed, w.left = true, w.restore
		w.Detected++
		return 1
	default:
		w.left -= w.iv
	}
	return 0
}

func (w *Watchdog) pollStorm(more bool) int {
	switch {
	case more:
		w.left = w.restore
	case w.left <= w.iv:
		w.stormed, w.left = false, w.detect
		w.Restored++
		return -1
	default:
		w.left -= w.iv
	}
	return 0
}
