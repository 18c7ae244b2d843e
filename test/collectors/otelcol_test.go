package collectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// otelcol is an OpenTelemetry collector that writes what it receives to files.
type otelcol struct {
	dir, grpc, http string
	stop            func()
}

const otelcolConfig = `receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
exporters: {file/traces: {path: %q}, file/metrics: {path: %q}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [file/traces]}
    metrics: {receivers: [otlp], exporters: [file/metrics]}
`

func startOtelcol(t *testing.T) *otelcol {
	t.Helper()
	bin := program(t, "otelcol")
	p := ports(t, 2)
	c := &otelcol{dir: t.TempDir(), grpc: local(p), http: local(p + 1)}
	file := filepath.Join(c.dir, "config.yaml")
	text := fmt.Sprintf(otelcolConfig, c.grpc, c.http, c.path("traces"), c.path("metrics"))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c.stop = start(t, exec.Command(bin, "--config", file), c.grpc, c.http)
	return c
}

// path names the file of a signal.
func (c *otelcol) path(signal string) string { return filepath.Join(c.dir, signal+".jsonl") }

// The parts of OTLP JSON that are looked at.
type (
	otlpValue struct {
		StringValue *string
		IntValue    *string
	}
	otlpAttributes []struct {
		Key   string
		Value otlpValue
	}
	otlpSpan struct {
		TraceID, SpanID, ParentSpanID, Name string
		StartTimeUnixNano, EndTimeUnixNano  string
		Attributes                          otlpAttributes
		Links                               []otlpLink
		Status                              struct{ Code int }
	}
	otlpLink struct {
		TraceID, SpanID string
		Attributes      otlpAttributes
	}
	otlpPoint struct {
		Attributes                      otlpAttributes
		StartTimeUnixNano, TimeUnixNano string
		AsInt                           string
	}
	otlpMetric struct {
		Name, Unit string
		Sum        *struct {
			DataPoints             []otlpPoint
			AggregationTemporality int
			IsMonotonic            bool
		}
		Gauge *struct{ DataPoints []otlpPoint }
	}
	otlpResource struct{ Attributes otlpAttributes }
	otlpLine     struct {
		ResourceSpans []struct {
			Resource   otlpResource
			ScopeSpans []struct{ Spans []otlpSpan }
		}
		ResourceMetrics []struct {
			Resource     otlpResource
			ScopeMetrics []struct{ Metrics []otlpMetric }
		}
	}
)

// texts has attributes by name.
func (a otlpAttributes) texts() map[string]string {
	out := map[string]string{}
	for _, kv := range a {
		switch v := kv.Value; {
		case v.StringValue != nil:
			out[kv.Key] = *v.StringValue
		case v.IntValue != nil:
			out[kv.Key] = *v.IntValue
		}
	}
	return out
}

// readLines reads a file of OTLP JSON lines.
func readLines(t *testing.T, path string) []otlpLine {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []otlpLine
	for line := range bytes.Lines(b) {
		var l otlpLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, l)
	}
	return out
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// spansOf lists the spans of a file.
func spansOf(t *testing.T, path string) []*span {
	t.Helper()
	var out []*span
	for _, line := range readLines(t, path) {
		for _, rs := range line.ResourceSpans {
			service := rs.Resource.Attributes.texts()["service.name"]
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					start := number(t, s.StartTimeUnixNano)
					x := &span{
						trace: s.TraceID, id: s.SpanID, parent: s.ParentSpanID, name: s.Name, service: service, start: start,
						length: number(t, s.EndTimeUnixNano) - start, links: map[string]string{}, failed: s.Status.Code == 2, attr: s.Attributes.texts(),
					}
					for _, l := range s.Links {
						x.links[l.SpanID] = l.Attributes.texts()["emu.link"]
					}
					out = append(out, x)
				}
			}
		}
	}
	return out
}

// lines writes spans as text in order, times as seen from the run's start.
func lines(list []*span, epoch int64) []string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprint(s.trace, s.id, s.parent, s.name, s.service, s.start-epoch, s.length, s.links, s.failed, s.attr))
	}
	slices.Sort(out)
	return out
}

// TestCollector sends both signals to an OpenTelemetry collector, by gRPC and
// by HTTP. What it wrote must be the run's chains, the spans that a run writes
// to a file by itself, and the values of series.csv.
func TestCollector(t *testing.T) {
	program(t, "otelcol")
	for _, file := range []string{"disasters/dirty-fibre.yaml", "disasters/headroom-too-small.yaml", "incast.yaml"} {
		for _, how := range []string{"grpc", "http"} {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+how, func(t *testing.T) {
				c := startOtelcol(t)
				to := map[string]string{"grpc": "grpc://" + c.grpc, "http": "http://" + c.http}[how]
				out := run(t, file, "--set", "telemetry.otlp="+to)
				c.stop() // it writes the rest
				checkSeries(t, out, readLines(t, c.path("metrics")))
				got := spansOf(t, c.path("traces"))
				k := newChecker(t, 1, got)
				k.all(out)

				own := filepath.Join(t.TempDir(), "own.jsonl")
				alone := run(t, file, "--set", "telemetry.otlp=file:"+own)
				if alone.res.Digest != out.res.Digest {
					t.Errorf("digests %s and %s", alone.res.Digest, out.res.Digest)
				}
				want := spansOf(t, own)
				ko := newChecker(t, 1, want)
				ko.all(alone)
				if !slices.Equal(lines(got, k.epoch), lines(want, ko.epoch)) {
					t.Errorf("the collector's %d spans are not the %d of the run's own file", len(got), len(want))
				}
			})
		}
	}
}
