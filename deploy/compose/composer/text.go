package composer

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/topology"
)

// writer writes one machine's file.
type writer struct {
	plan   *topology.Plan
	opt    Options
	host   int
	groups []group
	b      strings.Builder
}

func (w *writer) f(format string, a ...any) { fmt.Fprintf(&w.b, format, a...) }

// text is the whole file. It avoids what docker-compose 1.29 does not read:
// name:, configs:, include:.
func (w *writer) text() string {
	w.head()
	w.f("services:\n")
	if w.host == 0 {
		w.init()
		w.nats()
		w.coordinators()
		w.submit()
	}
	for i := range w.groups {
		if g := &w.groups[i]; g.host == w.host {
			w.group(g)
		}
	}
	if w.host == 0 && w.opt.Hosts == 1 {
		w.f("%s", observe)
	}
	w.foot()
	return w.b.String()
}

func (w *writer) head() {
	w.f("# Fabric %q in containers", w.plan.Name)
	if w.opt.Hosts > 1 {
		w.f(", machine %d of %d", w.host+1, w.opt.Hosts)
	}
	w.f(`; made by "emuctl compose", which makes it again.
#   up:    docker compose up --build --detach
#   look:  docker compose exec coord1 emuctl status      (counters, fault list, top …)
#   break: docker compose exec coord1 emuctl fault inject 'link-down leaf1:uplink1 for=20ms'
#   down:  docker compose down --volumes
# ha.env beside this file makes it three NATS servers and three coordinators.
x-image: &image
  image: ${ROCEMU_IMAGE:-rocemu/emud:dev}
  build: {context: "${ROCEMU_SOURCE:-../..}", dockerfile: deploy/compose/Dockerfile, target: "${ROCEMU_TARGET:-release}"}
x-safe: &safe
  read_only: true
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]
  user: "65532:65532"
  tmpfs: ["/tmp:size=16m"]
x-env: &env
  EMUD_NATS: %[1]s
  EMUD_CREDS: /keys/emud.nk
  EMUD_TLS_CA: /keys/ca.pem
  EMUD_TLS_CERT: /keys/emud.pem
  EMUD_TLS_KEY: /keys/emud.key
  EMUD_HEALTH: 127.0.0.1:8222
  EMUD_CONNECT_WAIT: 120s
  EMUCTL_NATS: %[1]s
  EMUCTL_CREDS: /keys/emuctl.nk
  EMUCTL_TLS_CA: /keys/ca.pem
  EMUCTL_TLS_CERT: /keys/emud.pem
  EMUCTL_TLS_KEY: /keys/emud.key
  GOMEMLIMIT: 400MiB
x-emud: &emud
  <<: [*image, *safe]
  restart: unless-stopped
  mem_limit: 512m
  stop_grace_period: 15s
  healthcheck: {test: ["CMD", "/usr/local/bin/emud", "healthcheck"], interval: 2s, timeout: 2s, retries: 60, start_period: 60s}
`, w.natsURL())
}

// natsURL is how processes of this machine reach NATS.
func (w *writer) natsURL() string {
	if w.opt.Hosts > 1 {
		return fmt.Sprintf(`"tls://${ROCEMU_HOST1:?address of machine 1}:4222"`)
	}
	var urls []string
	for i := range max(w.opt.NATS, 1) {
		urls = append(urls, "tls://"+natsHost(i)+":4222")
	}
	return fmt.Sprintf(`"${ROCEMU_NATS_URLS:-%s}"`, strings.Join(urls, ","))
}

func natsHost(i int) string {
	if i == 0 {
		return "nats"
	}
	return fmt.Sprintf("nats%d", i+1)
}

// init makes keys, certificates and NATS configurations, once.
func (w *writer) init() {
	hosts := make([]string, 0, w.opt.NATS)
	for i := range w.opt.NATS {
		hosts = append(hosts, natsHost(i))
	}
	extra := ""
	if w.opt.Hosts > 1 {
		extra = `, --host, "${ROCEMU_HOST1:?address of machine 1}"`
	}
	w.f(`  init:
    <<: [*image, *safe]
    entrypoint: ["/usr/local/bin/emuctl"]
    command: [cluster, init, --keep, --dir, /keys, --store, /nats, --host, "emud,coord1,coord2,coord3"%s, --nats-host, "${ROCEMU_NATS_HOSTS:-%s}"]
    volumes: ["keys:/keys", "data:/data", "nats:/nats", "nats2:/nats2", "nats3:/nats3"]
    restart: "no"
`, extra, strings.Join(hosts, ","))
}

func (w *writer) nats() {
	for i := range 3 {
		h := natsHost(i)
		vol := h
		profile := ""
		if i >= w.opt.NATS {
			profile = "    profiles: [ha]\n"
		}
		ports := ""
		if w.opt.Hosts > 1 && i == 0 {
			ports = "    ports: [\"4222:4222\"]\n"
		}
		w.f(`  %[1]s:
    <<: [*image, *safe]
    image: ${ROCEMU_NATS_IMAGE:-rocemu/emud:dev}
    entrypoint: ["${ROCEMU_NATS_SERVER:-/usr/local/bin/nats-server}"]
    command: ["-c", "/keys/nats-%[1]s.conf"]
    volumes: ["keys:/keys:ro", "%[2]s:/nats"]
    depends_on: {init: {condition: service_completed_successfully}}
    restart: unless-stopped
    mem_limit: 1g
%[3]s%[4]s`, h, vol, profile, ports)
	}
}

func (w *writer) coordinators() {
	for i := range 3 {
		profile := ""
		if i > 0 {
			profile = "    profiles: [ha]\n"
		}
		ports := ""
		if w.opt.Hosts > 1 && i == 0 {
			ports = "    ports: [\"7000:7000\"]\n"
		}
		w.f(`  coord%[1]d:
    <<: *emud
    command: ["--name", "coord%[1]d", "--data", "/data/coord%[1]d", "--coordinator-only", "--raft-listen", "0.0.0.0:7000", "--raft-advertise", "coord%[1]d:7000"]
    environment: {<<: *env, EMUD_BOOTSTRAP_EXPECT: "${ROCEMU_COORDINATORS:-1}", EMUD_TLS_CERT: /keys/coord%[1]d.pem, EMUD_TLS_KEY: /keys/coord%[1]d.key}
    volumes: ["keys:/keys:ro", "data:/data"]
    depends_on: {init: {condition: service_completed_successfully}, nats: {condition: service_started}}
%[2]s%[3]s`, i+1, profile, ports)
	}
}

// submit gives the fabric to the cluster and ends.
func (w *writer) submit() {
	w.f(`  submit:
    <<: [*image, *safe]
    entrypoint: ["/usr/local/bin/emuctl"]
    command: [submit, /fabric.yaml, --members, "%d", --if-idle, --timeout, 180s]
    environment: {<<: *env}
    volumes: ["keys:/keys:ro", "./%s:/fabric.yaml:ro"]
    depends_on: {coord1: {condition: service_healthy}}
    restart: "no"
`, len(w.groups), w.opt.Fabric)
}

func (w *writer) group(g *group) {
	n := serviceName(g.name)
	after := "{init: {condition: service_completed_successfully}, nats: {condition: service_started}}"
	if w.host > 0 {
		after = "[]"
	}
	w.f(`  %[1]s:
    <<: *emud
    command: ["--name", "%[1]s", "--data", "/data/%[1]s", "--devices", "%[2]s", "--cores", "1"]
    environment: {<<: *env}
    volumes: ["keys:/keys:ro", "data:/data"]
    depends_on: %[3]s
`, n, strings.Join(g.devices, ","), after)
}

func (w *writer) foot() {
	w.f("volumes: {keys: {}, data: {}")
	if w.host == 0 {
		w.f(", nats: {}, nats2: {}, nats3: {}")
	}
	w.f("}\n")
}

// HAEnv is the environment file of profile ha.
const HAEnv = `# docker compose --env-file ha.env up: three NATS servers, three coordinators.
COMPOSE_PROFILES=ha
ROCEMU_NATS_HOSTS=nats,nats2,nats3
ROCEMU_NATS_URLS=tls://nats:4222,tls://nats2:4222,tls://nats3:4222
ROCEMU_COORDINATORS=3
`

// observe is the profile of collectors and dashboards, from files beside the
// compose file; their images come from a registry.
const observe = ``
