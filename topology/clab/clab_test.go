package clab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/topology"
)

const pod = `name: pod1
topology:
  kinds:
    linux: {image: example/linux:1}
  nodes:
    a: {kind: linux, labels: {role: leaf}}
    sp1: {kind: sonic-vs, labels: {role: spine}}
    sp2: {kind: sonic-vs, labels: {role: spine}}
    b: {kind: sonic-vs}
    s1: {kind: linux}
    s2: {kind: linux}
    spare: {kind: linux}
  links:
    - endpoints: ["a:eth10", "sp1:eth1"]
    - type: veth
      endpoints: [{node: a, interface: eth11}, {node: sp2, interface: eth1}]
      mtu: 9100
      labels: {speed: "100000", length: "100m"}
    - endpoints: ["b:Ethernet1/2", "sp1:eth2"]
      vars: {speed: 400G, length: 30m}
    - endpoints: ["a:eth2", "s1:eth1"]
    - endpoints: ["b:Ethernet1/1", "s2:eth1"]
    - endpoints: ["s2:eth2", "mgmt-net:x"]
`

func plan(t *testing.T, r *Result) *topology.Plan {
	t.Helper()
	p, _, err := topology.ParseBytes("fabric.yaml", r.YAML)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.YAML)
	}
	return p
}

// TestImport reads roles, ports, speeds and lengths.
func TestImport(t *testing.T) {
	r, err := Import("pod.clab.yml", []byte(pod))
	if err != nil {
		t.Fatal(err)
	}
	p := plan(t, r)
	if p.Name != "pod1" || len(p.Devices) != 6 || len(p.Cables) != 5 || len(p.Flows) != 2 {
		t.Errorf("%d devices, %d cables\n%s", len(p.Devices), len(p.Cables), r.YAML)
	}
	for n, k := range map[string]topology.Kind{"a": topology.Leaf, "b": topology.Leaf, "sp1": topology.Spine, "s1": topology.RNIC} {
		if d := p.Device(n); d == nil || d.Kind != k {
			t.Errorf("%s: %+v, want kind %d", n, d, k)
		}
	}
	a := p.Device("a")
	if a.Ports[0].Peer != p.Device("s1").ID || a.Ports[1].Peer != p.Device("sp1").ID || a.Ports[2].Peer != p.Device("sp2").ID {
		t.Error("ports of a are not in the order eth2, eth10, eth11")
	}
	if x := a.Ports[2]; x.Rate != 100e9 || x.Prop != 500_000 {
		t.Errorf("labels: %v %v", x.Rate, x.Prop)
	}
	if x := p.Device("b").Ports[1]; x.Rate != 400e9 || x.Prop != 150_000 {
		t.Errorf("vars: %v %v", x.Rate, x.Prop)
	}
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{"spare has no link", "mgmt-net is left out", "links[1].mtu is ignored", "b is taken for a leaf"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q: %s", want, notes)
		}
	}
}

// TestErrors: what cannot be is named with its place.
func TestErrors(t *testing.T) {
	for _, c := range [][3]string{
		{`"sp1:eth2"`, `"sp9:eth2"`, `links[2]: endpoint "sp9:eth2": no such node`},
		{`"sp1:eth2"`, `"sp1:eth1"`, `endpoint "sp1:eth1" is used twice`},
		{`{role: spine}`, `{role: spin}`, `sp1.labels.role: value "spin": must be leaf`},
		{`speed: "100000"`, `speed: fast`, `links[1]: label speed "fast": must be`},
		{`length: "100m"`, `length: "100"`, `label length "100": must be metres`},
		{`"a:eth2", "s1:eth1"`, `"a:eth2"`, `has 1 endpoints`},
		{`    s1: {kind: linux}`, `    s:1: {kind: linux}`, `must not contain`},
	} {
		bad := strings.Replace(pod, c[0], c[1], 1)
		if _, err := Import("pod.clab.yml", []byte(bad)); bad == pod || err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: got %v, want %s", c[1], err, c[2])
		}
	}
}

// TestRealFiles loads two public topologies.
func TestRealFiles(t *testing.T) {
	dir := os.Getenv("ROCEMU_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	for _, c := range []struct {
		name                       string
		cores, spines, leaves, nic int
		pods                       int
	}{{"clos02.clab.yml", 2, 4, 4, 4, 2}, {"sonic01.clab.yml", 0, 0, 2, 0, 1}} {
		text, err := os.ReadFile(filepath.Join(dir, "files", c.name))
		if err != nil {
			t.Skip("no real files here")
		}
		r, err := Import(c.name, text)
		if err != nil {
			t.Error(err)
			continue
		}
		var n [4]int
		pods := 0
		p := plan(t, r)
		for i := range p.Devices {
			n[p.Devices[i].Kind]++
			pods = max(pods, p.Devices[i].Pod)
		}
		if n != [4]int{topology.RNIC: c.nic, topology.Leaf: c.leaves, topology.Spine: c.spines, topology.Core: c.cores} || pods != c.pods {
			t.Errorf("%s: %v devices, %d PODs\n%s", c.name, n, pods, r.YAML)
		}
	}
}
