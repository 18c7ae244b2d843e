package sonic

import (
	"fmt"
	"strings"
)

// Bounds of the PFC watchdog in milliseconds (switch §3.5).
const (
	minDetect, maxDetect   = 100, 5000
	minRestore, maxRestore = 100, 60000
	minPoll, maxPoll       = 100, 1000
)

// watchdogs reads PFC_WD.
func (c *Config) watchdogs(s *Switch) {
	const t = "PFC_WD"
	if !c.has(t) {
		return
	}
	poll := int64(0)
	for _, e := range c.rows(t) {
		if !isGlobal(e.key) {
			continue
		}
		for _, f := range e.order {
			if strings.EqualFold(f, "POLL_INTERVAL") {
				poll = c.num(e, t, f, 200, minPoll, maxPoll)
			} else {
				s.note("PFC_WD|GLOBAL|%s is ignored", f)
			}
		}
	}
	for i := range s.Ports {
		s.Ports[i].HasDog = true
	}
	for _, e := range c.rows(t) {
		if isGlobal(e.key) {
			continue
		}
		w := c.watchdog(e, t, poll, [3]string{"detection_time", "restoration_time", "action"})
		for _, name := range strings.Split(e.key, ",") {
			if p := s.port(name); p != nil {
				p.Watchdog = w
			} else {
				c.fail(e, t, "", name, "no such port in the PORT table")
			}
		}
	}
}

func (c *Config) watchdog(e *entry, t string, poll int64, f [3]string) *Watchdog {
	w := &Watchdog{Detect: c.num(e, t, f[0], 200, minDetect, maxDetect), Poll: poll, Action: e.fields[f[2]]}
	w.Restore = c.num(e, t, f[1], 2*w.Detect, minRestore, maxRestore)
	if w.Poll == 0 {
		w.Poll = min(w.Detect, w.Restore, 200)
	}
	switch w.Action {
	case "":
		w.Action = "drop"
	case "drop", "forward", "alert":
	default:
		c.fail(e, t, f[2], w.Action, "must be drop, forward or alert")
	}
	if w.Detect < w.Poll || w.Restore < w.Poll {
		c.fail(e, t, f[0], fmt.Sprint(w.Detect), fmt.Sprintf("detection and restoration must not be below the poll interval %d", w.Poll))
	}
	return w
}

// A parameter set is a top-level object with the three watchdog settings, as
// test beds keep them. It belongs to no port: it is checked and listed.

var setFields = [3]string{"pfc_wd_detection_time", "pfc_wd_restoration_time", "pfc_wd_action"}

func isWatchdogSet(rows []*entry) bool {
	return len(rows) == 1 && rows[0].key == "" && rows[0].fields[setFields[2]] != ""
}

func (c *Config) watchdogSet(s *Switch, name string, e *entry) {
	before := len(c.errs)
	w := c.watchdog(e, name, 0, setFields)
	if len(c.errs) == before {
		s.note("watchdog parameters %s: detect %d ms, restore %d ms, %s; they name no port", name, w.Detect, w.Restore, w.Action)
		return
	}
	for _, err := range c.errs[before:] {
		s.note("watchdog parameters %s are refused: %v", name, err)
	}
	c.errs = c.errs[:before]
}
