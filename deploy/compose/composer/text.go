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

// many reports several machines: keys are a directory that is copied to each,
// and the first machines hold NATS and coordinators under their addresses.
func (w *writer) many() bool { return w.opt.Hosts > 1 }

// text is the whole file. It avoids what docker-compose 1.29 does not read:
// name:, configs:, include:, start_interval:.
func (w *writer) text() string {
	w.head()
	w.f("services:\n")
	if !w.many() {
		w.init()
	}
	w.nats()
	w.coordinators()
	if w.host == 0 {
		w.submit()
	}
	for i := range w.groups {
		if g := &w.groups[i]; g.host == w.host {
			w.group(g)
		}
	}
	if w.host == 0 {
		w.observe()
	}
	w.foot()
	return w.b.String()
}

func (w *writer) head() {
	w.f("# Fabric %q in containers", w.plan.Name)
	if w.many() {
		w.f(", machine %d of %d; hosts.env says what comes first", w.host+1, w.opt.Hosts)
	}
	w.f("; made by \"emuctl compose\", which makes it again.\n")
	if w.many() {
		w.f("#   up:    docker compose --env-file hosts.env -f %s up --detach\n", hostFile(w.host))
	} else {
		w.f(`#   up:    docker compose up --detach                       (the first time it builds the image)
#   look:  docker compose exec coord1 emuctl status         (nodes, fault list, counters …)
#   break: docker compose exec coord1 emuctl fault inject 'link-down rnic3:1' --for 20ms
#   end:   docker compose exec coord1 emuctl stop && docker compose exec coord1 emuctl result
#   down:  docker compose down --volumes                    (profiles too: --profile observe, --env-file ha.env)
# With --env-file ha.env: three NATS servers and three coordinators.
# With --profile observe: Grafana on port 3000, Jaeger on 16686, Prometheus on 9090.
`)
	}
	w.anchors()
}

// anchors are the parts that services share.
func (w *writer) anchors() {
	w.f(`x-safe: &safe
  read_only: true
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]
  user: "65532:65532"
  pids_limit: 256
  tmpfs: ["/tmp:size=16m"]
  logging: {driver: json-file, options: {max-size: 10m, max-file: "2"}}
x-image: &image
  <<: *safe
  image: ${ROCEMU_IMAGE:-rocemu/emud:dev}
`)
	if w.opt.Source != "" {
		w.f("  build: {context: \"${ROCEMU_SOURCE:-%s}\", dockerfile: deploy/compose/Dockerfile, target: \"${ROCEMU_TARGET:-release}\"}\n", w.opt.Source)
	}
	w.f(`x-env: &env
  EMUD_NATS: %[1]s
  EMUD_CREDS: /keys/emud.nk
  EMUD_TLS_CA: /keys/ca.pem
  EMUD_TLS_CERT: /keys/emud.pem
  EMUD_TLS_KEY: /keys/emud.key
  EMUD_HEALTH: 127.0.0.1:8222
  EMUD_CONNECT_WAIT: 120s
  EMUD_RETAIN_BYTES: "67108864"
  EMUD_OBJECT_REPLICAS: "${ROCEMU_OBJECT_REPLICAS:-%[2]d}"
  EMUCTL_NATS: %[1]s
  EMUCTL_CREDS: /keys/emuctl.nk
  EMUCTL_TLS_CA: /keys/ca.pem
  EMUCTL_TLS_CERT: /keys/emud.pem
  EMUCTL_TLS_KEY: /keys/emud.key
  GOMEMLIMIT: %[3]s
x-emud: &emud
  <<: *image
  restart: unless-stopped
  mem_limit: %[4]s
  stop_grace_period: 15s
  healthcheck: {test: ["CMD", "/usr/local/bin/emud", "healthcheck"], interval: 15s, timeout: 5s, retries: 4, start_period: 60s}
`, w.natsURL(), w.opt.servers(), limits[w.per()][0], limits[w.per()][1])
}

// limits are Go's soft and Docker's hard bound on the memory of one emud.
var limits = map[Unit][2]string{PerDevice: {"400MiB", "512m"}, PerRack: {"1600MiB", "2g"}}

func (w *writer) per() Unit {
	for i := range w.groups {
		if len(w.groups[i].devices) > 1 {
			return PerRack
		}
	}
	return PerDevice
}

// servers is how many NATS servers and coordinators always run.
func (o *Options) servers() int {
	if o.Hosts > 1 && o.NATS > o.Hosts {
		return 1
	}
	return max(o.NATS, 1)
}

// natsURL is how processes reach NATS.
func (w *writer) natsURL() string {
	var urls []string
	for i := range w.opt.servers() {
		urls = append(urls, "tls://"+w.natsHost(i)+":4222")
	}
	if w.many() {
		return `"` + strings.Join(urls, ",") + `"`
	}
	return fmt.Sprintf(`"${ROCEMU_NATS_URLS:-%s}"`, strings.Join(urls, ","))
}

// natsHost is the name or address of a NATS server, as its certificate has it.
func (w *writer) natsHost(i int) string {
	if w.many() {
		return hostVar(i)
	}
	return numbered("nats", i)
}

func numbered(s string, i int) string {
	if i == 0 {
		return s
	}
	return fmt.Sprintf("%s%d", s, i+1)
}

func hostVar(i int) string { return fmt.Sprintf("${ROCEMU_HOST%d:?see hosts.env}", i+1) }

func hostFile(i int) string { return fmt.Sprintf("compose-host%d.yaml", i+1) }

// init makes keys, certificates and NATS configurations, once.
func (w *writer) init() {
	n := max(w.opt.NATS, 3)
	var hosts, coords, vols []string
	for i := range n {
		if i < w.opt.NATS {
			hosts = append(hosts, w.natsHost(i))
		}
		coords = append(coords, fmt.Sprintf("coord%d", i+1))
		vols = append(vols, fmt.Sprintf("\"%[1]s:/%[1]s\"", numbered("nats", i)))
	}
	w.f(`  init:
    <<: *image
    entrypoint: ["/usr/local/bin/emuctl"]
    command: [cluster, init, --keep, --no-ca-key, --dir, /keys, --store, /nats, --monitor, "127.0.0.1:8222", --host, "emud,%s", --nats-host, "${ROCEMU_NATS_HOSTS:-%s}"]
    volumes: ["keys:/keys", "data:/data", %s]
    restart: "no"
`, strings.Join(coords, ","), strings.Join(hosts, ","), strings.Join(vols, ", "))
}

// nats writes the NATS servers of this machine: those beyond Options.NATS in
// profile ha. Variables ROCEMU_NATS_… take the public image, see docs/compose.md.
func (w *writer) nats() {
	for i := range max(w.opt.NATS, 3) {
		h, vol, profile := numbered("nats", i), numbered("nats", i), ""
		switch {
		case w.many() && (i != w.host || i >= w.opt.servers()):
			continue
		case w.many():
			profile = "    ports: [\"4222:4222\", \"6222:6222\"]\n"
		case i >= w.opt.NATS:
			profile = "    profiles: [ha]\n"
		}
		conf := h
		if w.many() {
			conf = hostVar(i)
		}
		w.f(`  %[1]s:
    <<: *safe
    image: ${ROCEMU_NATS_IMAGE:-rocemu/emud:dev}
    entrypoint: ${ROCEMU_NATS_SERVER:-/usr/local/bin/emud nats-server}
    command: ["-c", "nats-%[2]s.conf"]
    working_dir: /keys
    volumes: ["%[3]s:/keys:ro", "%[4]s:/nats"]
%[5]s    restart: unless-stopped
    mem_limit: 1g
    environment: {EMUD_PATH: "/healthz?js-server-only=true"}
    healthcheck: {test: ["CMD", "${ROCEMU_NATS_CHECK:-/usr/local/bin/emud}", "${ROCEMU_NATS_CHECK_ARG:-healthcheck}"], interval: 15s, timeout: 5s, retries: 4, start_period: 30s}
%[6]s`, h, conf, w.keys(), vol, w.after(false), profile)
	}
}

// keys is where a machine has the keys.
func (w *writer) keys() string {
	if w.many() {
		return "./keys"
	}
	return "keys"
}

// after is the start order: keys, then NATS, then the rest.
func (w *writer) after(nats bool) string {
	var deps []string
	if !w.many() {
		deps = append(deps, "init: {condition: service_completed_successfully}")
	}
	if nats && (!w.many() || w.host < w.opt.servers()) {
		deps = append(deps, numbered("nats", map[bool]int{true: w.host, false: 0}[w.many()])+": {condition: service_started}")
	}
	if len(deps) == 0 {
		return ""
	}
	return "    depends_on: {" + strings.Join(deps, ", ") + "}\n"
}

func (w *writer) coordinators() {
	for i := range max(w.opt.NATS, 3) {
		self, extra := fmt.Sprintf("coord%d", i+1), ""
		switch {
		case w.many() && (i != w.host || i >= w.opt.servers()):
			continue
		case w.many():
			self, extra = hostVar(i), "    ports: [\"7000:7000\"]\n"
		case i >= w.opt.NATS:
			extra = "    profiles: [ha]\n"
		}
		w.f(`  coord%[1]d:
    <<: *emud
    command: ["--name", "coord%[1]d", "--data", "/data/coord%[1]d", "--coordinator-only", "--raft-listen", "0.0.0.0:7000", "--raft-advertise", "%[2]s:7000"]
    environment: {<<: *env, EMUD_BOOTSTRAP_EXPECT: "${ROCEMU_COORDINATORS:-%[3]d}", EMUD_TLS_CERT: "/keys/%[2]s.pem", EMUD_TLS_KEY: "/keys/%[2]s.key"}
    volumes: ["%[4]s:/keys:ro", "data:/data"]
    healthcheck: {test: ["CMD", "/usr/local/bin/emud", "healthcheck"], interval: 3s, timeout: 3s, retries: 20, start_period: 60s}
%[5]s%[6]s`, i+1, self, w.opt.servers(), w.keys(), w.after(true), extra)
	}
}

// submit gives the fabric to the cluster and ends.
func (w *writer) submit() {
	w.f(`  submit:
    <<: *image
    entrypoint: ["/usr/local/bin/emuctl"]
    command: [submit, /fabric.yaml, --members, "%d", --if-idle, --timeout, 180s]
    environment: {<<: *env}
    volumes: ["%s:/keys:ro", "./%s:/fabric.yaml:ro"]
    depends_on: {coord1: {condition: service_healthy}}
    restart: "no"
`, len(w.groups), w.keys(), w.opt.Fabric)
}

func (w *writer) group(g *group) {
	w.f(`  %[1]s:
    <<: *emud
    command: ["--name", "%[1]s", "--data", "/data/%[1]s", "--devices", "%[2]s", "--cores", "1"]
    environment: {<<: *env}
    volumes: ["%[3]s:/keys:ro", "data:/data"]
%[4]s`, serviceName(g.name), strings.Join(g.devices, ","), w.keys(), w.after(true))
}

func (w *writer) foot() {
	w.f("volumes:\n  data: {}\n")
	if w.host == 0 && w.opt.Observe != "" {
		w.f("  prometheus: {}\n  grafana: {}\n")
	}
	if !w.many() {
		w.f("  keys: {}\n")
	}
	for i := range max(w.opt.NATS, 3) {
		if !w.many() || i == w.host && i < w.opt.servers() {
			w.f("  %s: {}\n", numbered("nats", i))
		}
	}
}

// HAEnv is the environment file of profile ha.
const HAEnv = `# docker compose --env-file ha.env up --detach: three NATS servers, three coordinators.
COMPOSE_PROFILES=ha
ROCEMU_NATS_HOSTS=nats,nats2,nats3
ROCEMU_NATS_URLS=tls://nats:4222,tls://nats2:4222,tls://nats3:4222
ROCEMU_COORDINATORS=3
ROCEMU_OBJECT_REPLICAS=3
`

// hostsEnv is the environment file of several machines.
func hostsEnv(o Options) string {
	var b, hosts strings.Builder
	fmt.Fprintf(&b, `# Addresses of the machines, as the others reach them: names or IPv4 addresses.
# Fill them in, then make the keys once, and copy this directory to every machine:
#   set -a; . ./hosts.env
#   emuctl cluster init --dir keys --no-ca-key --store /nats --monitor 127.0.0.1:8222 --host emud --nats-host "%%s"
#   chown -R 65532:65532 keys      # the containers' user; the copies need it too (rsync -a, tar -p, as root)
# The image must be the same everywhere: docker save rocemu/emud:dev | ssh MACHINE docker load
# Then, on machine N:
#   docker compose --env-file hosts.env -f compose-hostN.yaml up --detach
# Ports between machines: 4222 and 6222 (NATS), 7000 (Raft), all with mutual TLS.
`)
	for i := range o.servers() {
		if i > 0 {
			hosts.WriteByte(',')
		}
		fmt.Fprintf(&hosts, "$ROCEMU_HOST%d", i+1)
	}
	text := strings.Replace(b.String(), "%s", hosts.String(), 1)
	for i := range o.servers() {
		text += fmt.Sprintf("ROCEMU_HOST%d=\n", i+1)
	}
	return text
}
