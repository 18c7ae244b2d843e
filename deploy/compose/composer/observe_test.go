package composer

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/metrics"
)

// exposed are the names that the Prometheus endpoint serves.
func exposed(t *testing.T) map[string]bool {
	t.Helper()
	s := &counters.Snapshot{Devices: []string{"d"}}
	for id := range counters.Metrics {
		p := counters.Point{Value: 1, ID: counters.ID(id)}
		if counters.Metrics[id].Scope.OnPort() {
			p.Port = 1
		}
		s.Points = append(s.Points, p)
	}
	e := metrics.NewEndpoint()
	e.Offer(s, metrics.Health{})
	r := httptest.NewRecorder()
	e.Handler().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	b, _ := io.ReadAll(r.Body)
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(rocemu_\w+)`).FindAllString(string(b), -1) {
		names[m] = true
	}
	if len(names) < len(counters.Metrics) {
		t.Fatalf("%d names for %d metrics", len(names), len(counters.Metrics))
	}
	return names
}

type dashboard struct {
	UID    string `json:"uid"`
	Title  string `json:"title"`
	Panels []struct {
		ID      int    `json:"id"`
		Title   string `json:"title"`
		Type    string `json:"type"`
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			Expr       string `json:"expr"`
			Datasource struct{ UID string }
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct{ Query struct{ Query string } }
	} `json:"templating"`
}

// TestDashboards: every dashboard is whole, and every metric and label in it is
// one that the endpoint serves.
func TestDashboards(t *testing.T) {
	names := exposed(t)
	files, err := filepath.Glob("../observe/dashboards/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("dashboards %v, %v", files, err)
	}
	metric, label := regexp.MustCompile(`rocemu_\w+`), regexp.MustCompile(`\bby \(([^)]*)\)`)
	labels := map[string]bool{"device": true, "port": true, "priority": true, "pg": true, "queue": true, "pool": true, "reason": true}
	uids := map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID == "" || d.Title == "" || uids[d.UID] || len(d.Panels) < 6 {
			t.Errorf("%s: uid %q, title %q, %d panels", file, d.UID, d.Title, len(d.Panels))
		}
		uids[d.UID] = true
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q does not stand by itself", file, p.ID, p.Title)
			}
			ids[p.ID] = true
			for _, q := range p.Targets {
				if q.Datasource.UID != "prometheus" || strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") {
					t.Errorf("%s: %q: source %q, query %s", file, p.Title, q.Datasource.UID, q.Expr)
				}
				for _, m := range metric.FindAllString(q.Expr, -1) {
					if !names[m] {
						t.Errorf("%s: %q asks for %s, which is not served", file, p.Title, m)
					}
				}
				for _, l := range label.FindAllStringSubmatch(q.Expr, -1) {
					for _, x := range strings.Split(l[1], ", ") {
						if !labels[x] {
							t.Errorf("%s: %q groups by %s", file, p.Title, x)
						}
					}
				}
			}
		}
		for _, v := range d.Templating.List {
			if m := metric.FindString(v.Query.Query); !names[m] {
				t.Errorf("%s: variable from %s", file, v.Query.Query)
			}
		}
	}
}

// TestObserve: the configurations name one another's services and ports.
func TestObserve(t *testing.T) {
	p := loadFile(t, "../fabric.yaml")
	f := parse(t, generate(t, p, Options{Observe: "./observe"})["compose.yaml"])
	for _, s := range []string{"observe", "otel", "jaeger", "prometheus", "grafana"} {
		x, ok := f.Services[s]
		if !ok || len(x.Profiles) != 1 || x.Profiles[0] != "observe" || x.Memory == "" {
			t.Errorf("service %s: %+v", s, x)
		}
		for _, v := range x.Volumes { // what is mounted exists
			if from, _, _ := strings.Cut(v, ":"); strings.HasPrefix(from, "./") {
				if _, err := os.Stat(filepath.Join("..", from)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	hosts := regexp.MustCompile(`\b(observe|jaeger|prometheus|otel):(\d+)`)
	want := map[string]string{"observe": "9464", "jaeger": "4317 16686", "prometheus": "9090", "otel": "4317"}
	for _, file := range []string{"otel-collector.yaml", "prometheus.yaml", "grafana/datasources/rocemu.yaml", "grafana/dashboards/rocemu.yaml"} {
		b, err := os.ReadFile(filepath.Join("../observe", file))
		if err != nil {
			t.Fatal(err)
		}
		var any map[string]any
		if err := yaml.Unmarshal(b, &any); err != nil || len(any) == 0 {
			t.Errorf("%s: %v", file, err)
		}
		for _, m := range hosts.FindAllStringSubmatch(string(b), -1) {
			if !strings.Contains(want[m[1]], m[2]) {
				t.Errorf("%s: %s", file, m[0])
			}
		}
	}
	pipelines(t)
}

// pipelines checks that the collector's pipelines use what it defines.
func pipelines(t *testing.T) {
	b, err := os.ReadFile("../observe/otel-collector.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Receivers, Processors, Exporters map[string]any
		Service                          struct {
			Pipelines map[string]struct{ Receivers, Processors, Exporters []string }
		}
	}
	if err := yaml.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Service.Pipelines) != 2 {
		t.Errorf("%d pipelines, want traces and metrics", len(c.Service.Pipelines))
	}
	for name, p := range c.Service.Pipelines {
		for _, x := range []struct {
			uses []string
			has  map[string]any
		}{{p.Receivers, c.Receivers}, {p.Processors, c.Processors}, {p.Exporters, c.Exporters}} {
			if len(x.uses) == 0 {
				t.Errorf("pipeline %s lacks a part", name)
			}
			for _, u := range x.uses {
				if _, ok := x.has[u]; !ok {
					t.Errorf("pipeline %s uses %s, which is not defined", name, u)
				}
			}
		}
	}
}
