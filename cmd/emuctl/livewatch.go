package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
)

// rate is a counter's change between two looks, as --watch shows it.
type rate struct {
	value
	Change int64   `json:"change"`
	Rate   float64 `json:"per_virtual_s"` // 0 for a gauge
	AtPS   int64   `json:"at_ps"`
}

// watchCounters shows what changes until the run ends or it is interrupted.
func (a *app) watchCounters(ctx context.Context, r *liveRun, before *counters.Snapshot, f *counterFlags, where string) error {
	every, err := time.ParseDuration(f.Every)
	if err != nil || every < 50*time.Millisecond {
		return fmt.Errorf("--every %s: want a time of 50ms or more", f.Every)
	}
	for !r.ended() {
		select {
		case <-ctx.Done():
			if a.outTTY {
				return a.printf("\n") // behind the ^C
			}
			return nil
		case <-time.After(every):
		}
		now, apart, err := r.counters(ctx)
		if ctx.Err() != nil || r.ended() {
			break
		}
		if errors.Is(err, client.ErrOver) {
			if a.json {
				return nil
			}
			return a.printf("the run has ended\n")
		}
		if err != nil {
			return err
		}
		if err := a.showRates(r, before, now, apart, where); err != nil {
			return err
		}
		before = now
	}
	if a.json {
		return nil
	}
	return a.printf("the run has ended; emuctl result shows it\n")
}

// showRates shows what has changed between two looks; on a terminal in place of
// what was there, as much as fits.
func (a *app) showRates(r *liveRun, before, now *counters.Snapshot, apart bool, where string) error {
	out, err := a.rates(before, now, where)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	most := len(out)
	if a.outTTY {
		if most, err = fitting(a.out, len(out)), a.printf("\x1b[H\x1b[2J"); err != nil {
			return err
		}
	}
	if err := a.head(r, now.At, apart); err != nil {
		return err
	}
	if len(out) == 0 {
		return a.printf("nothing has changed\n")
	}
	t := report.NewTable("where", "counter", "index", "value", "change", "a virtual second")
	for _, v := range out[:most] {
		at := v.Device
		if v.Port > 0 {
			at = fmt.Sprintf("%s:%d", v.Device, v.Port)
		}
		t.AppendRow([]any{at, v.Metric, v.Index, v.Value, fmt.Sprintf("%+d", v.Change), perSecond(v.Rate, v.Unit)})
	}
	if err := a.printf("%s\n", t.Render()); err != nil || most == len(out) {
		return err
	}
	return a.printf("and %d more: name a DEVICE or DEVICE:PORT\n", len(out)-most)
}

// fitting is how many of n rows a terminal has room for beside the two lines
// above them, the one below, and the cursor's.
func fitting(w io.Writer, n int) int {
	f, ok := w.(*os.File)
	if !ok {
		return n
	}
	_, h, err := term.GetSize(int(f.Fd()))
	if err != nil || n <= h-3 {
		return n
	}
	return max(h-4, 1)
}

// perSecond writes what a counter gains in a virtual second; of times, which
// share of it they are.
func perSecond(rate float64, unit string) string {
	switch {
	case rate == 0:
		return "-"
	case unit == "By":
		return report.Bytes(int64(rate))
	case unit == "ps":
		return fmt.Sprintf("%.3g %% of it", rate/1e10)
	}
	return report.Number(rate) + " " + strings.Trim(unit, "{}")
}

// rates are the counters of a device, a port or all that have changed.
func (a *app) rates(before, now *counters.Snapshot, where string) ([]rate, error) {
	i := -1
	same := len(before.Points) == len(now.Points)
	var ids []int
	vals, err := a.values(now, where, func(p counters.Point) bool {
		for i++; now.Points[i] != p; i++ { // values asks in order
		}
		if same && p.Value != before.Points[i].Value {
			ids = append(ids, i)
			return true
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	span := float64(now.At-before.At) / 1e12
	out := make([]rate, len(vals))
	for k, v := range vals {
		out[k] = rate{value: v, Change: v.Value - before.Points[ids[k]].Value, AtPS: int64(now.At)}
		if !now.Points[ids[k]].Metric().Gauge && span > 0 {
			out[k].Rate = float64(out[k].Change) / span
		}
	}
	return out, nil
}
