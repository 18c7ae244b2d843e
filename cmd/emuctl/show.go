package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
)

// column is one metric of a table.
type column struct {
	head string
	id   counters.ID
}

// views are the tables of `emuctl show`, in the habit of SONiC's and rdma's
// tools: a row for each port (and priority, group or queue), a column a metric.
var views = map[string][]column{
	"queue": {
		{"pkts", counters.QueueTx},
		{"drops", counters.QueueDrops},
		{"bytes now", counters.QueueOccupancy},
		{"watermark", counters.QueueMark},
		{"ECN marked", counters.QueueMarked},
	},
	"watermark": {{"PG shared", counters.PGSharedMark}, {"PG headroom", counters.PGHeadroomMark}, {"queue", counters.QueueMark}, {"pool", counters.PoolMark}},
	"pfcwd":     {{"storm detected", counters.WdDetected}, {"restored", counters.WdRestored}, {"tx drop", counters.WdTxDropped}, {"rx drop", counters.WdRxDropped}},
	"ecn":       {{"pkts", counters.QueueTx}, {"ECN marked", counters.QueueMarked}},
	"drops":     {{"ingress", counters.InDrops}, {"CRC", counters.CRCErrors}, {"PG", counters.PGDrops}, {"queue", counters.QueueDrops}},
}

func (a *app) show() *cobra.Command {
	var f struct {
		viewFlags
		Zero bool `flag:"zero,z" help:"show rows without any count too"`
	}
	subjects := slices.Sorted(maps.Keys(views))
	subjects = append(subjects, "pfc", "rdma")
	slices.Sort(subjects)
	return a.command(verb{
		use: "show " + strings.Join(subjects, "|") + " [DEVICE] [-f DIR] [--nats URL --creds FILE]", short: "Show PFC, queues, watermarks, ECN, drops or RDMA counters",
		long:    "The tables follow `show pfc counters`, `show queue counters`, `show priority-group\nwatermark`, `pfcwd show stats` and `rdma statistic`. DEVICE may be DEVICE:PORT.\nWithout -f they are those of a cluster's current run.",
		example: "  emuctl run examples/incast.yaml --out out\n  emuctl show pfc -f out\n  emuctl show queue leaf2 -f out",
		args:    cobra.RangeArgs(1, 2), flags: &f,
		run: func(ctx context.Context, args []string) error {
			if !slices.Contains(subjects, args[0]) {
				return fmt.Errorf("show %q: want one of %s", args[0], strings.Join(subjects, ", "))
			}
			where := slices.Concat(args[1:], []string{""})[0]
			if !f.inDir() {
				return a.liveShow(ctx, &f.clusterFlags, args[0], where, f.Zero)
			}
			r, err := report.ReadResult(f.Dir)
			if err != nil {
				return err
			}
			return a.runShow(counters.FromResult(r), r.Totals.DropsByReason, args[0], where, f.Zero)
		},
	})
}

func (a *app) runShow(s *counters.Snapshot, drops map[string]uint64, what, where string, zero bool) error {
	want := func(p counters.Point) bool {
		return slices.ContainsFunc(views[what], func(c column) bool { return c.id == p.ID }) || what == "drops" && p.ID == counters.Drops
	}
	switch what {
	case "pfc":
		want = func(p counters.Point) bool { return p.Metric().Scope == counters.Priority }
	case "rdma":
		want = func(p counters.Point) bool { return p.Metric().Scope == counters.Device && p.Value != 0 }
	}
	vals, err := a.values(s, where, want)
	if err != nil {
		return err
	}
	if a.json || what == "rdma" {
		return a.showValues(vals)
	}
	if what == "pfc" {
		return a.showPFC(vals, zero)
	}
	if what == "drops" {
		if where != "" {
			drops = nil
		}
		return a.showDrops(vals, drops, zero)
	}
	return a.showColumns(views[what], vals, zero)
}

// showDrops prints what ports, priority groups and queues dropped, then, as
// `show dropcounters counts` does, what each switch dropped by reason: a column
// for each reason there is, all of them with zero. The last row has those of the
// whole fabric, RNICs included.
func (a *app) showDrops(vals []value, fabric map[string]uint64, zero bool) error {
	isReason := func(v value) bool { return v.Metric == counters.Metrics[counters.Drops].Name }
	if err := a.showColumns(views["drops"], slices.DeleteFunc(slices.Clone(vals), isReason), zero); err != nil {
		return err
	}
	var devices []string
	by, seen := map[string]map[string]uint64{"all": fabric}, map[string]bool{}
	for _, v := range vals {
		if by[v.Device] == nil {
			by[v.Device] = map[string]uint64{}
			devices = append(devices, v.Device)
		}
		if isReason(v) && v.Value > 0 {
			by[v.Device][v.Index] = uint64(v.Value)
			seen[v.Index] = true
		}
	}
	head, reasons := []any{"device"}, []string{}
	for i := range report.NumReasons {
		if r := i.String(); seen[r] || fabric[r] > 0 || zero {
			reasons, head = append(reasons, r), append(head, r)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	t := report.NewTable(head...)
	if fabric != nil {
		devices = append(devices, "all")
	}
	for _, d := range devices {
		if len(by[d]) > 0 || zero {
			t.AppendRow(dropRow(d, by[d], reasons))
		}
	}
	return a.printf("%s\n", t.Render())
}

func dropRow(device string, by map[string]uint64, reasons []string) []any {
	row := []any{device}
	for _, r := range reasons {
		row = append(row, by[r])
	}
	return row
}

// row is one line of a table by place.
type row struct {
	where, index string
	cells        map[string]int64
}

// rows groups values by place and index, in their order.
func rows(vals []value, column func(value) string) []*row {
	var out []*row
	at := map[string]*row{}
	for _, v := range vals {
		where := v.Device
		if v.Port > 0 {
			where = fmt.Sprintf("%s:%d", v.Device, v.Port)
		}
		key := where + "/" + v.Index
		if at[key] == nil {
			at[key] = &row{where, v.Index, map[string]int64{}}
			out = append(out, at[key])
		}
		at[key].cells[column(v)] += v.Value
	}
	return out
}

func (r *row) zero() bool {
	for _, v := range r.cells {
		if v != 0 {
			return false
		}
	}
	return true
}

func (a *app) showColumns(cols []column, vals []value, zero bool) error {
	head := []any{"where", "index"}
	for _, c := range cols {
		head = append(head, c.head)
	}
	t := report.NewTable(head...)
	for _, r := range rows(vals, func(v value) string { return v.Metric }) {
		if r.zero() && !zero {
			continue
		}
		cells := []any{r.where, r.index}
		for _, c := range cols {
			if v, ok := r.cells[counters.Metrics[c.id].Name]; ok {
				cells = append(cells, v)
			} else {
				cells = append(cells, "-")
			}
		}
		t.AppendRow(cells)
	}
	if t.Length() == 0 {
		return a.printf("%s", allZero)
	}
	return a.printf("%s\n", t.Render())
}

// showPFC prints pause frames received and sent by priority, and how long: Rx
// the time a port was paused, Tx the time it held its peer paused.
func (a *app) showPFC(vals []value, zero bool) error {
	for _, dir := range []struct{ head, frames, span string }{
		{"Port Rx", "pfc_rx_pause", "pfc_rx_paused"}, {"Port Tx", "pfc_tx_pause", "pfc_tx_paused"},
	} {
		t := report.NewTable(dir.head, "PFC0", "PFC1", "PFC2", "PFC3", "PFC4", "PFC5", "PFC6", "PFC7", "paused")
		ports := map[string]*row{}
		var order []string
		for _, v := range vals {
			where := fmt.Sprintf("%s:%d", v.Device, v.Port)
			if ports[where] == nil {
				ports[where] = &row{where: where, cells: map[string]int64{}}
				order = append(order, where)
			}
			switch v.Metric {
			case dir.frames:
				ports[where].cells[v.Index] = v.Value
			case dir.span:
				ports[where].cells["paused"] += v.Value
			}
		}
		for _, w := range order {
			r := ports[w]
			if r.zero() && !zero {
				continue
			}
			cells := []any{w}
			for p := range 8 {
				cells = append(cells, r.cells[fmt.Sprint(p)])
			}
			span := "-" // a running NIC does not know how long it holds its switch
			if ns, ok := r.cells["paused"]; ok {
				span = report.Span(report.NS(ns))
			}
			t.AppendRow(append(cells, span))
		}
		text := t.Render() + "\n"
		if t.Length() == 0 {
			text = dir.head + ": " + allZero
		}
		if err := a.printf("%s", text); err != nil {
			return err
		}
	}
	return nil
}
