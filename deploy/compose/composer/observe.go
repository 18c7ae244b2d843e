package composer

// Images of profile observe; they come from a registry.
const (
	collectorImage  = "otel/opentelemetry-collector-contrib:0.161.0"
	jaegerImage     = "jaegertracing/all-in-one:1.76.0"
	prometheusImage = "prom/prometheus:v3.5.0"
	grafanaImage    = "grafana/grafana:12.1.1"
)

// observe is the profile of collectors and dashboards: the observer follows the
// cluster and shows it to Prometheus (counters) and, through the collector, to
// Jaeger (chains). Its configuration lies beside the compose file.
func (w *writer) observe() {
	dir := w.opt.Observe
	if dir == "" {
		return
	}
	w.f(`  observe:
    <<: *image
    entrypoint: ["/usr/local/bin/emuctl"]
    command: [observe, --otlp, "otel:4317", --metrics, "0.0.0.0:9464"]
    environment: {<<: *env}
    volumes: ["%[1]s:/keys:ro"]
    depends_on: {coord1: {condition: service_healthy}}
    restart: unless-stopped
    mem_limit: 1g
    profiles: [observe]
  otel:
    image: %[2]s
    command: ["--config=/etc/otel.yaml"]
    volumes: ["%[6]s/otel-collector.yaml:/etc/otel.yaml:ro"]
    restart: unless-stopped
    mem_limit: 512m
    profiles: [observe]
  jaeger:
    image: %[3]s
    environment: {MEMORY_MAX_TRACES: "20000"}
    ports: ["127.0.0.1:16686:16686"]
    restart: unless-stopped
    mem_limit: 1g
    profiles: [observe]
  prometheus:
    image: %[4]s
    volumes: ["%[6]s/prometheus.yaml:/etc/prometheus/prometheus.yml:ro", "prometheus:/prometheus"]
    ports: ["127.0.0.1:9090:9090"]
    restart: unless-stopped
    mem_limit: 1g
    profiles: [observe]
  grafana:
    image: %[5]s
    environment: {GF_AUTH_ANONYMOUS_ENABLED: "true", GF_AUTH_ANONYMOUS_ORG_ROLE: Viewer, GF_ANALYTICS_REPORTING_ENABLED: "false", GF_ANALYTICS_CHECK_FOR_UPDATES: "false", GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH: /etc/dashboards/fabric.json}
    volumes: ["%[6]s/grafana:/etc/grafana/provisioning:ro", "%[6]s/dashboards:/etc/dashboards:ro", "grafana:/var/lib/grafana"]
    ports: ["127.0.0.1:3000:3000"]
    restart: unless-stopped
    mem_limit: 512m
    profiles: [observe]
`, w.keys(), collectorImage, jaegerImage, prometheusImage, grafanaImage, dir)
}
