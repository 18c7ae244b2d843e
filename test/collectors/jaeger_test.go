package collectors

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// jaeger is a Jaeger with its storage in memory.
type jaeger struct{ grpc, http, query string }

func startJaeger(t *testing.T) jaeger {
	t.Helper()
	bin := program(t, "all-in-one")
	p := ports(t, 7)
	at := func(i int) string { return local(p + i) }
	j := jaeger{at(0), at(1), "http://" + at(2)}
	start(t, exec.Command(
		bin, "--memory.max-traces=100000", "--collector.otlp.grpc.host-port="+j.grpc, "--collector.otlp.http.host-port="+j.http,
		"--query.http-server.host-port="+at(2), "--query.grpc-server.host-port="+at(3), "--admin.http.host-port="+at(4),
		"--collector.grpc-server.host-port="+at(5), "--collector.http-server.host-port="+at(6),
	), j.grpc, j.http, at(2))
	return j
}

// jaegerTrace is a trace as Jaeger's HTTP API has it; times are microseconds.
type jaegerTrace struct {
	TraceID   string `json:"traceID"`
	Processes map[string]struct {
		ServiceName string
		Tags        []jaegerTag
	} `json:"processes"`
	Spans []struct {
		TraceID, SpanID, OperationName, ProcessID string
		StartTime, Duration                       int64
		Tags                                      []jaegerTag
		References                                []struct{ RefType, TraceID, SpanID string }
	} `json:"spans"`
}

type jaegerTag struct {
	Key   string
	Value any
}

// spans asks for a trace. Of a span's references the first that is its parent
// has the type CHILD_OF, links are FOLLOWS_FROM; Jaeger keeps no attributes of
// links.
func (j jaeger) spans(id string) ([]*span, error) {
	var answer struct{ Data []jaegerTrace }
	if err := getJSON(j.query+"/api/traces/"+id+"?raw=true", &answer); err != nil {
		return nil, err
	}
	if len(answer.Data) != 1 {
		return nil, fmt.Errorf("%d traces %s", len(answer.Data), id)
	}
	var out []*span
	tr := &answer.Data[0]
	for _, s := range tr.Spans {
		proc := tr.Processes[s.ProcessID]
		x := &span{trace: s.TraceID, id: s.SpanID, name: s.OperationName, service: proc.ServiceName, start: s.StartTime, length: s.Duration, links: map[string]string{}, attr: map[string]string{}}
		for _, r := range s.References {
			if r.RefType == "CHILD_OF" {
				x.parent = r.SpanID
			} else {
				x.links[r.SpanID] = "cause"
			}
		}
		for _, tag := range slices.Concat(proc.Tags, s.Tags) {
			x.attr[tag.Key] = tagText(tag.Value)
		}
		x.failed = x.attr["error"] == "true"
		out = append(out, x)
	}
	return out, nil
}

// tagText writes a tag's value; whole numbers come as floating point.
func tagText(v any) string {
	if f, ok := v.(float64); ok {
		return text(int64(f))
	}
	return text(v)
}

// TestJaeger sends the chains of every known disaster to Jaeger, by gRPC and by
// HTTP, and asks for them. Both runs must have made the same traces.
func TestJaeger(t *testing.T) {
	program(t, "all-in-one")
	files, err := filepath.Glob("../../examples/disasters/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	var ids [2][]string
	for i, how := range []string{"grpc", "http"} {
		t.Run(how, func(t *testing.T) {
			j := startJaeger(t)
			to := map[string]string{"grpc": j.grpc, "http": "http://" + j.http}[how]
			services := map[string]bool{}
			for _, f := range files {
				t.Run(strings.TrimSuffix(filepath.Base(f), ".yaml"), func(t *testing.T) {
					ids[i] = append(ids[i], j.disaster(t, filepath.Base(f), to, services)...)
				})
			}
			var answer struct{ Data []string }
			if err := getJSON(j.query+"/api/services", &answer); err != nil {
				t.Fatal(err)
			}
			slices.Sort(answer.Data)
			if want := slices.Sorted(maps.Keys(services)); !slices.Equal(answer.Data, want) {
				t.Errorf("services %v, want the devices of all steps %v", answer.Data, want)
			}
		})
	}
	if len(ids[0]) == 0 || !slices.Equal(ids[0], ids[1]) {
		t.Errorf("two runs gave %d and %d spans, or other ids", len(ids[0]), len(ids[1]))
	}
	t.Logf("%d spans each time", len(ids[0]))
}

// disaster runs a file, checks its traces, and returns the ids of all spans.
func (j jaeger) disaster(t *testing.T, file, to string, services map[string]bool) (ids []string) {
	out := run(t, filepath.Join("disasters", file), "--set", "telemetry.otlp="+to)
	var list []*span
	for _, l := range out.chains {
		within(t, 10*time.Second, func() error { // it stores them after it acknowledged them
			got, err := j.spans(l.Trace)
			if err == nil && len(got) < len(l.Steps)+1 {
				err = fmt.Errorf("trace %s has %d spans, want %d", l.Trace, len(got), len(l.Steps)+1)
			}
			if err == nil {
				list = append(list, got...)
			}
			return err
		})
	}
	for _, s := range list {
		services[s.service] = true
		ids = append(ids, s.trace+" "+s.id)
		if s.attr["emu.scale"] != text(scale) {
			t.Errorf("%s: emu.scale %q", s.id, s.attr["emu.scale"])
		}
	}
	newChecker(t, 1000, list).all(out)
	slices.Sort(ids)
	return ids
}
