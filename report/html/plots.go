package html

import (
	"cmp"
	"slices"

	"github.com/rocemu/rocemu/report"
)

// plots are the drawings over time, and of the distribution of completion
// times.
func plots(in *Input) []Plot {
	var out []Plot
	add := func(title, note string, c chart) {
		if s := c.svg(); s != "" {
			out = append(out, Plot{title, note, s})
		}
	}
	add("Flow completion times", "Share of flows that had completed after a time, by workload line.", fctCDF(in))
	grid := in.grid()
	end := float64(in.Result.VirtualNS) / 1000
	over := func(ls []line, unit func(float64) string) chart { return chart{lines: ls, xUnit: nanos, yUnit: unit} }
	rx := in.total("goodput", "rnic_rx_bytes", grid, true)
	for i := range rx.y {
		rx.y[i] *= 8e9
	}
	add("Received by all RNICs", "RoCE bytes per second, headers included.", over(keep(rx), bps))
	add("Deepest queues", "Bytes in the egress queues that grew deepest: device:port/queue.", over(in.top("queue_occupancy", end), size))
	add("Fullest priority groups", "Bytes charged to the ingress priority groups that grew fullest, headroom included.", over(in.top("pg_occupancy", end), size))
	paused := in.total("paused priorities", "pfc_rx_paused", grid, true)
	for i := range paused.y {
		paused.y[i] /= 1000 // ps of pause in an ns
	}
	add("Paused by PFC", "How many priorities of ports were paused at a time, on average over a sample.", over(keep(paused), plain))
	add("ECN marks", "Frames marked a microsecond.", over(keep(perMicro(in.total("marks", "queue_ecn_marked", grid, true))), plain))
	add("Drops and repeats", "Frames dropped, and packets of NAKs and timeouts, counted since the start.",
		over(keep(in.total("frames dropped", "drops", grid, false), in.total("sequence NAKs", "packet_seq_err", grid, false),
			in.total("timeouts", "local_ack_timeout_err", grid, false)), plain))
	return out
}

func perMicro(l line) line {
	for i := range l.y {
		l.y[i] *= 1000
	}
	return l
}

// keep drops curves that are zero throughout.
func keep(ls ...line) []line {
	return slices.DeleteFunc(ls, func(l line) bool {
		return !slices.ContainsFunc(l.y, func(v float64) bool { return v != 0 })
	})
}

// grid is every time at which anything was sampled.
func (in *Input) grid() []float64 {
	seen := map[float64]bool{0: true, float64(in.Result.VirtualNS) / 1000: true}
	for _, s := range in.Series {
		for _, p := range s {
			seen[p.At] = true
		}
	}
	return sortedKeys(seen)
}

// total sums a metric over all places; as a rate per nanosecond, if asked.
func (in *Input) total(name, metric string, grid []float64, rate bool) line {
	delta := make(map[float64]float64, len(grid))
	for k, s := range in.Series {
		if k.Metric != metric {
			continue
		}
		before := 0.0
		for _, p := range s {
			delta[p.At] += p.Value - before
			before = p.Value
		}
	}
	l := line{name: name, step: !rate}
	sum := 0.0
	for i, at := range grid {
		sum += delta[at]
		switch {
		case !rate:
			l.x, l.y = append(l.x, at), append(l.y, sum)
		case i > 0:
			l.x, l.y = append(l.x, at), append(l.y, delta[at]/(at-grid[i-1]))
		}
	}
	return l
}

// top returns the places where a gauge grew largest.
func (in *Input) top(metric string, end float64) []line {
	type peak struct {
		k   Key
		max float64
	}
	var all []peak
	for k, s := range in.Series {
		if k.Metric == metric {
			all = append(all, peak{k, slices.MaxFunc(s, func(a, b Sample) int { return cmp.Compare(a.Value, b.Value) }).Value})
		}
	}
	slices.SortFunc(all, func(a, b peak) int {
		return cmp.Or(cmp.Compare(b.max, a.max), cmp.Compare(a.k.String(), b.k.String()))
	})
	var out []line
	for _, p := range all[:min(len(all), maxLines)] {
		l := line{name: p.k.String(), step: true, x: []float64{0}, y: []float64{0}}
		for _, s := range in.Series[p.k] {
			l.x, l.y = append(l.x, s.At), append(l.y, s.Value)
		}
		l.x, l.y = append(l.x, end), append(l.y, l.y[len(l.y)-1])
		out = append(out, l)
	}
	return out
}

// fctCDF is the distribution of completion times by workload line.
func fctCDF(in *Input) chart {
	by := map[string][]report.NS{}
	for _, f := range in.Flows {
		if f.FCT > 0 && f.Status == "success" {
			by[lineOf(f.Name)] = append(by[lineOf(f.Name)], f.FCT)
		}
	}
	names := sortedKeys(by)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(by[b]), len(by[a])) })
	c := chart{xUnit: nanos, yUnit: percent, yMax: 1, logX: true}
	for _, n := range names[:min(len(names), maxLines)] {
		v := by[n]
		slices.Sort(v)
		l := line{name: n, step: true, x: []float64{float64(v[0]) / 1000}, y: []float64{0}}
		for i, x := range v {
			l.x, l.y = append(l.x, float64(x)/1000), append(l.y, float64(i+1)/float64(len(v)))
		}
		c.lines = append(c.lines, l)
	}
	return c
}

// lineOf is the workload line of a single flow's name.
func lineOf(flow string) string {
	for i := range flow {
		if flow[i] == '[' {
			return flow[:i]
		}
	}
	return flow
}
