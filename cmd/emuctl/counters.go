package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
)

// value is one counter as --json writes it.
type value struct {
	Device string `json:"device"`
	Port   int    `json:"port,omitempty"`
	Metric string `json:"metric"`
	Index  string `json:"index,omitempty"`
	Value  int64  `json:"value"`
	Unit   string `json:"unit"`
}

type counterFlags struct {
	viewFlags
	Zero  bool   `flag:"zero,z" help:"show counters that are 0 too"`
	Watch bool   `flag:"watch" help:"of a running fabric: show what changes, with rates, until the run ends"`
	Every string `flag:"every" help:"with --watch: wall time between two looks"`
}

func (a *app) counters() *cobra.Command {
	f := counterFlags{Every: "1s"}
	return a.command(verb{
		use: "counters [DEVICE[:PORT]] [--watch] [-f DIR] [--nats URL --creds FILE]", short: "Show the counters of a run",
		long: `Counters are those of a cluster's current run, read in all its processes right
before the same window, or with -f those of the end of the run in DIR.`,
		example: "  emuctl run examples/incast.yaml --out out\n  emuctl counters leaf2:4 -f out\n  emuctl counters leaf1 --watch",
		args:    cobra.MaximumNArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error {
			where := slices.Concat(args, []string{""})[0]
			if !f.inDir() {
				return a.liveCounters(ctx, &f, where)
			}
			if f.Watch {
				return errors.New("--watch is of a running fabric: leave -f out")
			}
			r, err := report.ReadResult(f.Dir)
			if err != nil {
				return err
			}
			vals, err := a.values(counters.FromResult(r), where, func(p counters.Point) bool { return f.Zero || p.Value != 0 })
			if err != nil {
				return err
			}
			return a.showValues(vals)
		},
	})
}

// values picks the points of a device or port; an unknown one is an error.
func (a *app) values(s *counters.Snapshot, where string, want func(counters.Point) bool) ([]value, error) {
	out, known := []value{}, where == ""
	for _, p := range s.Points {
		dev := s.Devices[p.Dev]
		if where != "" && where != dev && where != s.Name(p) {
			continue
		}
		known = true
		if want(p) {
			m := p.Metric()
			out = append(out, value{dev, int(p.Port), m.Name, p.IndexName(), p.Value, m.Unit})
		}
	}
	if !known {
		return nil, nowhere(s, where)
	}
	return out, nil
}

// nowhere refuses the name of a device or port; those that there are help.
func nowhere(s *counters.Snapshot, where string) error {
	const most = 12
	if dev, _, port := strings.Cut(where, ":"); port && slices.Contains(s.Devices, dev) {
		last := int16(0)
		for _, p := range s.Points {
			if s.Devices[p.Dev] == dev {
				last = max(last, p.Port)
			}
		}
		return fmt.Errorf("no port %q; the last one is %s:%d", where, dev, last)
	}
	more := ""
	if len(s.Devices) > most {
		more = fmt.Sprintf(" and %d more", len(s.Devices)-most)
	}
	return fmt.Errorf("no device or port %q; devices are %s%s", where, strings.Join(s.Devices[:min(len(s.Devices), most)], ", "), more)
}

// allZero stands for a table without rows.
const allZero = "all are 0 (-z shows them)\n"

func (a *app) showValues(vals []value) error {
	if a.json {
		return a.printJSON(vals)
	}
	if len(vals) == 0 {
		return a.printf("%s", allZero)
	}
	t := report.NewTable("where", "counter", "index", "value", "unit")
	for _, v := range vals {
		where := v.Device
		if v.Port > 0 {
			where += fmt.Sprintf(":%d", v.Port)
		}
		t.AppendRow([]any{where, v.Metric, v.Index, v.Value, strings.Trim(v.Unit, "{}")})
	}
	return a.printf("%s\n", t.Render())
}
