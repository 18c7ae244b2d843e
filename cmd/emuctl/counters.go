package main

import (
	"context"
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

func (a *app) counters() *cobra.Command {
	f := struct {
		Dir  string `flag:"dir,f" help:"output directory of a run"`
		Zero bool   `flag:"zero,z" help:"show counters that are 0 too"`
	}{Dir: "."}
	return a.command(verb{
		use: "counters [DEVICE[:PORT]] [-f DIR] [--zero]", short: "Show the counters of a run",
		long:    "Counters are those of the end of the run in DIR.",
		example: "  emuctl run examples/incast.yaml --out out\n  emuctl counters leaf2:4 -f out",
		args:    cobra.MaximumNArgs(1), flags: &f,
		run: func(_ context.Context, args []string) error {
			r, err := report.ReadResult(f.Dir)
			if err != nil {
				return err
			}
			vals, err := a.values(counters.FromResult(r), slices.Concat(args, []string{""})[0], func(p counters.Point) bool { return f.Zero || p.Value != 0 })
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
		return nil, fmt.Errorf("no device or port %q; devices are %s", where, strings.Join(s.Devices[:min(len(s.Devices), 12)], ", "))
	}
	return out, nil
}

func (a *app) showValues(vals []value) error {
	if a.json {
		return a.printJSON(vals)
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
