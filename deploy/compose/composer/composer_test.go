package composer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/rocemu/rocemu/topology"
)

// load resolves a fabric written as text.
func load(t *testing.T, text string) *topology.Plan {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte("schema: 1\nname: t\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
	return loadFile(t, file)
}

func loadFile(t *testing.T, file string) *topology.Plan {
	t.Helper()
	plan, _, err := topology.Load(topology.LoadOptions{Files: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// pod is a fabric of one POD.
func pod(t *testing.T, spines, leaves, servers int) *topology.Plan {
	return load(t, fmt.Sprintf("topology: {spines: %d, leaves: %d, servers: %d}\nworkload: [{name: a, from: rnic1, to: rnic2, verb: write, size: 1KB}]\n", spines, leaves, servers))
}

// service is what the tests read of a service.
type service struct {
	Image      string            `yaml:"image"`
	Entrypoint any               `yaml:"entrypoint"`
	Command    []string          `yaml:"command"`
	Env        map[string]string `yaml:"environment"`
	DependsOn  map[string]any    `yaml:"depends_on"`
	Volumes    []string          `yaml:"volumes"`
	Profiles   []string          `yaml:"profiles"`
	Ports      []string          `yaml:"ports"`
	Restart    string            `yaml:"restart"`
	ReadOnly   bool              `yaml:"read_only"`
	User       string            `yaml:"user"`
	Memory     string            `yaml:"mem_limit"`
	Health     map[string]any    `yaml:"healthcheck"`
}

// devices lists what a service hosts.
func (s *service) devices() []string {
	if i := slices.Index(s.Command, "--devices"); i >= 0 {
		return strings.Split(s.Command[i+1], ",")
	}
	return nil
}

type composeFile struct {
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
	Other    map[string]any     `yaml:",inline"`
}

// merged lets a key override what a merge (<<) brings, as YAML has it.
var merged = yaml.AllowDuplicateMapKey()

func parse(t *testing.T, text string) composeFile {
	t.Helper()
	var f composeFile
	if err := yaml.UnmarshalWithOptions([]byte(text), &f, merged); err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	if err := yaml.UnmarshalWithOptions([]byte(text), &top, merged); err != nil {
		t.Fatal(err)
	}
	for k := range top { // what docker-compose 1.29 refuses or ignores
		if k != "services" && k != "volumes" && !strings.HasPrefix(k, "x-") {
			t.Errorf("top-level key %q is not for every Compose", k)
		}
	}
	return f
}

// check verifies what holds in every file and returns the devices it hosts.
func check(t *testing.T, f composeFile) []string {
	t.Helper()
	var devices []string
	for name, s := range f.Services {
		for on := range s.DependsOn {
			if _, ok := f.Services[on]; !ok {
				t.Errorf("%s depends on %s, which is not there", name, on)
			}
			if o := f.Services[on]; len(o.Profiles) > 0 && len(s.Profiles) == 0 {
				t.Errorf("%s depends on %s of profile %v", name, on, o.Profiles)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, ok := f.Volumes[from]; !ok && !strings.HasPrefix(from, ".") {
				t.Errorf("%s mounts %s, which is not declared", name, from)
			}
		}
		if slices.Contains(s.Profiles, "observe") && name != "observe" {
			continue // images of others
		}
		if !s.ReadOnly || s.User != "65532:65532" || s.Restart == "" {
			t.Errorf("%s: read_only %v, user %q, restart %q", name, s.ReadOnly, s.User, s.Restart)
		}
		if s.Restart != "no" && s.Memory == "" {
			t.Errorf("%s has no limit of memory", name)
		}
		devices = append(devices, s.devices()...)
	}
	return devices
}

func names(p *topology.Plan) []string {
	var out []string
	for i := range p.Devices {
		out = append(out, p.Devices[i].Name)
	}
	slices.Sort(out)
	return out
}

func generate(t *testing.T, p *topology.Plan, o Options) map[string]string {
	t.Helper()
	if o.Fabric == "" {
		o.Fabric = "fabric.yaml"
	}
	files, err := Generate(p, o)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, f := range files {
		m[f.Name] = f.Text
	}
	return m
}

// TestCommitted: the files beside the fabric file are what the command writes.
func TestCommitted(t *testing.T) {
	p := loadFile(t, "../fabric.yaml")
	got := generate(t, p, Options{Source: "../..", Observe: "./observe"})
	for name, text := range got {
		b, err := os.ReadFile(filepath.Join("..", name))
		if err != nil || string(b) != text {
			t.Errorf("deploy/compose/%s is stale (%v): emuctl compose deploy/compose/fabric.yaml --out deploy/compose", name, err)
		}
	}
	f := parse(t, got["compose.yaml"])
	d := check(t, f)
	slices.Sort(d)
	if !slices.Equal(d, names(p)) {
		t.Errorf("devices %v", d)
	}
	n := 0
	for _, s := range f.Services {
		if s.devices() != nil {
			n++
		}
	}
	if n != len(p.Devices) {
		t.Errorf("%d containers for %d devices", n, len(p.Devices))
	}
	if m := f.Services["submit"].Command; !slices.Contains(m, fmt.Sprint(n)) {
		t.Errorf("submit waits for other than %d processes: %v", n, m)
	}
	for _, s := range []string{"nats2", "nats3", "coord2", "coord3"} {
		if !slices.Equal(f.Services[s].Profiles, []string{"ha"}) {
			t.Errorf("%s: profiles %v", s, f.Services[s].Profiles)
		}
	}
}

// TestUnits: a container a device up to a size, then a rack; --per wins.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		per                     Unit
		spines, leaves, servers int
		want                    int
	}{
		{Auto, 2, 2, 4, 12}, {Auto, 4, 8, 8, 12}, {PerDevice, 4, 8, 8, 76}, {PerRack, 2, 2, 4, 4}, {Auto, 2, 2, 18, 40}, {Auto, 2, 2, 19, 4},
	} {
		p := pod(t, c.spines, c.leaves, c.servers)
		f := parse(t, generate(t, p, Options{Per: c.per})["compose.yaml"])
		d := check(t, f)
		slices.Sort(d)
		if !slices.Equal(d, names(p)) {
			t.Errorf("%+v: devices %v", c, d)
		}
		n := 0
		for name, s := range f.Services {
			if s.devices() == nil {
				continue
			}
			n++
			if c.want == c.spines+c.leaves && strings.HasPrefix(name, "leaf") && len(s.devices()) != 1+c.servers {
				t.Errorf("%+v: %s hosts %v", c, name, s.devices())
			}
		}
		if n != c.want {
			t.Errorf("%+v: %d containers", c, n)
		}
		if _, ok := f.Services["grafana"]; ok || strings.Contains(generate(t, p, Options{})["compose.yaml"], "build:") {
			t.Error("without the source there is nothing to build or to provision from")
		}
	}
}

// TestHosts: every device on one machine, racks whole, load even, NATS and
// coordinators on three machines where there are three.
func TestHosts(t *testing.T) {
	p := pod(t, 4, 8, 8)
	for _, hosts := range []int{2, 3, 5} {
		files := generate(t, p, Options{Hosts: hosts})
		var all []string
		nats, coords, submits := 0, 0, 0
		for h := range hosts {
			f := parse(t, files[hostFile(h)])
			d := check(t, f)
			if want := len(p.Devices) / hosts; len(d) < want-10 || len(d) > want+10 {
				t.Errorf("%d hosts: machine %d has %d devices", hosts, h+1, len(d))
			}
			all = append(all, d...)
			for name := range f.Services {
				switch {
				case strings.HasPrefix(name, "nats"):
					nats++
				case strings.HasPrefix(name, "coord"):
					coords++
				case name == "submit":
					submits++
				}
			}
			if len(f.Services[numbered("nats", h)].Profiles) > 0 {
				t.Error("a server of several machines hides in a profile")
			}
		}
		slices.Sort(all)
		if !slices.Equal(all, names(p)) {
			t.Errorf("%d hosts: devices %v", hosts, all)
		}
		want := 1
		if hosts >= 3 {
			want = 3
		}
		if nats != want || coords != want || submits != 1 {
			t.Errorf("%d hosts: %d NATS, %d coordinators, %d submits", hosts, nats, coords, submits)
		}
		if env := files["hosts.env"]; strings.Count(env, "\nROCEMU_HOST") != want || strings.Contains(env, "%!") {
			t.Errorf("hosts.env:\n%s", env)
		}
	}
}

// TestRefusals: what Docker cannot hold is refused with what to do.
func TestRefusals(t *testing.T) {
	big, racks := pod(t, 2, 40, 30), load(t, "topology: {spines: 2, leaves: 1000, servers: 1}\nswitches: {all: {pfc: {priorities: []}}}\n")
	for _, c := range []struct {
		plan *topology.Plan
		o    Options
		want string
	}{
		{big, Options{Per: PerDevice}, "1242 containers on one machine: a Docker bridge holds 1024 ports, 980 of them for devices; --per rack packs a rack into one container"},
		{racks, Options{Per: PerRack}, "1002 containers on one machine: a Docker bridge holds 1024 ports, 980 of them for devices; --hosts 2 spreads it over machines"},
		{big, Options{NATS: 2}, "--nats 2: must be 1, 3 or 5"},
		{big, Options{NATS: 3, Hosts: 2}, "a machine holds one NATS server"},
		{big, Options{Hosts: 65}, "--hosts 65: must be 1 to 64"},
		{big, Options{Per: "pod"}, `--per "pod": must be device or rack`},
		{load(t, `topology:
  nodes: [{name: nats2, kind: rnic}, {name: b, kind: rnic}, {name: tor, kind: leaf}]
  cables: [{ends: ["nats2:1", "tor:1"], rate: 25Gbps, length: 2m}, {ends: ["b:1", "tor:2"], rate: 25Gbps, length: 2m}]
`), Options{}, `device "nats2": the compose file has a service nats2 already`},
		{load(t, `topology:
  nodes: [{name: H1, kind: rnic}, {name: h1, kind: rnic}, {name: tor, kind: leaf}]
  cables: [{ends: ["H1:1", "tor:1"], rate: 25Gbps, length: 2m}, {ends: ["h1:1", "tor:2"], rate: 25Gbps, length: 2m}]
`), Options{}, `both would be container h1`},
	} {
		_, err := Generate(c.plan, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	if _, err := Generate(racks, Options{Per: PerRack, Hosts: 2}); err != nil {
		t.Errorf("what the refusal advises: %v", err)
	}
}
