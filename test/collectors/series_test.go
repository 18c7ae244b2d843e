package collectors

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/report/counters"
)

// place is one series: device, port, metric and index as series.csv has them.
type place struct{ device, port, metric, index string }

// change is a value from a virtual picosecond on.
type change struct{ at, value int64 }

// series reads series.csv: rows of each place by time.
func series(t *testing.T, dir string) map[place][]change {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "series.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	out := map[place][]change{}
	for _, r := range rows[1:] {
		if metricNamed(r[3]) == nil {
			t.Fatalf("unknown metric %s", r[3])
		}
		p := place{r[1], r[2], r[3], r[4]}
		out[p] = append(out[p], change{picoseconds(t, r[0]), number(t, r[5])})
	}
	return out
}

// picoseconds reads nanoseconds with a fraction.
func picoseconds(t *testing.T, ns string) int64 {
	t.Helper()
	whole, part, _ := strings.Cut(ns, ".")
	return number(t, whole)*1000 + number(t, (part + "000")[:3])
}

// valueAt is what a series says at an instant: a row holds until the next.
func valueAt(rows []change, at int64) int64 {
	v := int64(0)
	for _, r := range rows {
		if r.at > at {
			break
		}
		v = r.value
	}
	return v
}

// checkSeries compares every point that a collector got with series.csv, and
// demands the last value of every series and the account of samples.
func checkSeries(t *testing.T, out output, got []otlpLine) {
	t.Helper()
	want := series(t, out.dir)
	last := map[place]change{}
	times := map[int64]bool{}
	for _, line := range got {
		for _, rm := range line.ResourceMetrics {
			if s := rm.Resource.Attributes.texts()["emu.scale"]; s != strconv.Itoa(scale) {
				t.Errorf("emu.scale of the metrics is %q", s)
			}
			for _, sm := range rm.ScopeMetrics {
				for i := range sm.Metrics {
					checkMetric(t, &sm.Metrics[i], want, last, times)
				}
			}
		}
	}
	for p, rows := range want {
		if v := rows[len(rows)-1].value; last[p].value != v {
			t.Errorf("%v ends with %d, series.csv with %d", p, last[p].value, v)
		}
	}
	checkEnd(t, out, last)
	n := out.res.Telemetry.Samples
	// The sample of instant 0 has nothing above 0, so that it has no points.
	if n == nil || n.Made != n.Exported+n.Dropped || int(n.Exported)-1 != len(times) {
		t.Errorf("account %+v; points at %d instants", n, len(times))
	}
}

// checkEnd compares what the collector had last with the counters of the
// result, watermarks included.
func checkEnd(t *testing.T, out output, last map[place]change) {
	t.Helper()
	end := counters.FromResult(out.res)
	for _, p := range end.Points {
		at := place{end.Devices[p.Dev], "", p.Metric().Name, p.IndexName()}
		if p.Port > 0 {
			at.port = text(p.Port)
		}
		if last[at].value != p.Value {
			t.Errorf("%v ends with %d, the result with %d", at, last[at].value, p.Value)
		}
	}
}

// checkMetric compares the points of one metric.
func checkMetric(t *testing.T, m *otlpMetric, want map[place][]change, last map[place]change, times map[int64]bool) {
	t.Helper()
	name, ours := strings.CutPrefix(m.Name, "rocemu.")
	def := metricNamed(name)
	if !ours || def == nil || def.Unit != m.Unit || def.Gauge != (m.Gauge != nil) {
		t.Errorf("metric %s in %s: %+v", m.Name, m.Unit, def)
		return
	}
	var points []otlpPoint
	if m.Gauge != nil {
		points = m.Gauge.DataPoints
	} else {
		points = m.Sum.DataPoints
		if m.Sum.AggregationTemporality != 2 || !m.Sum.IsMonotonic {
			t.Errorf("%s is no monotonic cumulative sum", m.Name)
		}
	}
	for _, pt := range points {
		a := pt.Attributes.texts()
		p := place{a["net.device"], a["net.port"], name, ""}
		if k := def.Scope.Key(); k != "" {
			p.index = a["net."+k]
		}
		at := number(t, pt.TimeUnixNano) - number(t, pt.StartTimeUnixNano) // of a scale of 1000: virtual picoseconds
		times[at] = true
		v := number(t, pt.AsInt)
		if isMark(name) { // series.csv leaves them out, the result has the largest
			last[p] = change{at, max(v, last[p].value)}
			continue
		}
		if w := valueAt(want[p], at); v != w {
			t.Errorf("%v at %d ps: %d, series.csv has %d", p, at, v, w)
		}
		if at >= last[p].at {
			last[p] = change{at, v}
		}
	}
}

func isMark(name string) bool { return strings.HasSuffix(name, "_watermark") }

func metricNamed(name string) *counters.Metric {
	for i := range counters.Metrics {
		if counters.Metrics[i].Name == name {
			return &counters.Metrics[i]
		}
	}
	return nil
}
