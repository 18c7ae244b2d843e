// Package clab turns a containerlab topology (*.clab.yml, switch §8.3) into a
// fabric file. Roles come from the label role (leaf, spine, core, rnic), else
// from the node's name and kind and its place; speed and length of a link come
// from its labels or vars. Start at [Import].
package clab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/rocemu/rocemu/internal/natural"
)

// maxBytes bounds a topology file.
const maxBytes = 4 << 20

// Result is the fabric file and what was left out or assumed.
type Result struct {
	YAML  []byte
	Notes []string
}

// file is what is read of a topology; other keys do not matter here.
type file struct {
	Name     string `yaml:"name"`
	Topology struct {
		Defaults node            `yaml:"defaults"`
		Kinds    map[string]node `yaml:"kinds"`
		Groups   map[string]node `yaml:"groups"`
		Nodes    yaml.MapSlice   `yaml:"nodes"`
		Links    []link          `yaml:"links"`
	} `yaml:"topology"`
}

type node struct {
	Kind   string         `yaml:"kind"`
	Group  string         `yaml:"group"`
	Labels map[string]any `yaml:"labels"`
}

type link struct {
	Type      string         `yaml:"type"`
	Endpoints []any          `yaml:"endpoints"`
	Labels    map[string]any `yaml:"labels"`
	Vars      map[string]any `yaml:"vars"`
	MTU       int            `yaml:"mtu"`
}

// device is a node that is kept.
type device struct {
	name, kind, role string
	pod              int
	ifaces           []string // in port order
}

type cable struct {
	ends  [2]*device
	iface [2]string
	attrs string
}

type importer struct {
	name  string
	file  file
	devs  []*device
	by    map[string]*device
	links []cable
	notes []string
}

func (im *importer) note(format string, a ...any) {
	im.notes = append(im.notes, fmt.Sprintf(format, a...))
}

// Import reads one topology; name is for messages.
func Import(name string, text []byte) (*Result, error) {
	im := &importer{name: name, by: map[string]*device{}}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%s: has %d bytes; the limit is %d", name, len(text), maxBytes)
	}
	if err := parse(text, &im.file); err != nil {
		return nil, fmt.Errorf("%s: not a containerlab topology: %w", name, err)
	}
	if len(im.file.Topology.Nodes) == 0 {
		return nil, fmt.Errorf("%s: topology.nodes is empty or absent", name)
	}
	if err := im.nodes(); err != nil {
		return nil, err
	}
	for i := range im.file.Topology.Links {
		if err := im.link(i, &im.file.Topology.Links[i]); err != nil {
			return nil, err
		}
	}
	im.unlinked()
	if err := im.roles(); err != nil {
		return nil, err
	}
	im.pods()
	return &Result{YAML: im.render(), Notes: im.notes}, nil
}

// parse reads YAML; the library's panics on broken text are errors.
func parse(text []byte, into any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not valid YAML: %v", p)
		}
	}()
	return yaml.Unmarshal(text, into)
}

// nodes lists the nodes with kind and the role their labels give.
func (im *importer) nodes() error {
	t := &im.file.Topology
	for _, it := range t.Nodes {
		name, ok := it.Key.(string)
		if !ok {
			name = fmt.Sprint(it.Key)
		}
		if strings.ContainsAny(name, ":. \t[]>#/,=\"'") {
			return fmt.Errorf("%s: topology.nodes.%s: the name must not contain spaces or any of : . / , = > # [ ] or quotes", im.name, name)
		}
		var n node
		b, err := yaml.Marshal(it.Value)
		if err == nil {
			err = parse(b, &n)
		}
		if err != nil {
			return fmt.Errorf("%s: topology.nodes.%s: %w", im.name, name, err)
		}
		d := &device{name: name, kind: n.Kind}
		if d.kind == "" {
			d.kind = t.Groups[n.Group].Kind
		}
		if d.kind == "" {
			d.kind = t.Defaults.Kind
		}
		for _, labels := range []map[string]any{t.Defaults.Labels, t.Kinds[d.kind].Labels, t.Groups[n.Group].Labels, n.Labels} {
			if r, ok := labels["role"]; ok {
				d.role = strings.ToLower(fmt.Sprint(r))
			}
			if p, ok := labels["pod"]; ok {
				if d.pod, err = strconv.Atoi(fmt.Sprint(p)); err != nil || d.pod < 1 {
					return fmt.Errorf("%s: topology.nodes.%s.labels.pod: value %q: must be a number from 1", im.name, name, fmt.Sprint(p))
				}
			}
		}
		im.devs = append(im.devs, d)
		im.by[name] = d
	}
	return nil
}

// link reads one link in its brief or extended form.
func (im *importer) link(i int, l *link) error {
	where := fmt.Sprintf("%s: topology.links[%d]", im.name, i)
	if l.Type != "" && l.Type != "veth" {
		im.note("links[%d] of type %s is left out: it leaves the lab", i, l.Type)
		return nil
	}
	if len(l.Endpoints) != 2 {
		return fmt.Errorf("%s: has %d endpoints; must be 2", where, len(l.Endpoints))
	}
	var c cable
	for k, e := range l.Endpoints {
		n, ifc, err := endpoint(e)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		d := im.by[n]
		if d == nil {
			if slices.Contains([]string{"host", "mgmt-net", "macvlan"}, n) {
				im.note("links[%d] to %s is left out: it leaves the lab", i, n)
				return nil
			}
			return fmt.Errorf("%s: endpoint %q: no such node", where, n+":"+ifc)
		}
		if slices.Contains(d.ifaces, ifc) {
			return fmt.Errorf("%s: endpoint %q is used twice", where, n+":"+ifc)
		}
		c.ends[k], c.iface[k] = d, ifc
	}
	if c.ends[0] == c.ends[1] {
		return fmt.Errorf("%s: joins %s to itself", where, c.ends[0].name)
	}
	for k, d := range c.ends {
		d.ifaces = append(d.ifaces, c.iface[k])
	}
	attrs, err := attributes(l)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if l.MTU != 0 {
		im.note("links[%d].mtu is ignored: an MTU belongs to a port (switches…mtu)", i)
	}
	c.attrs = attrs
	im.links = append(im.links, c)
	return nil
}

// endpoint reads "node:interface" or {node, interface}.
func endpoint(e any) (node, iface string, err error) {
	switch v := e.(type) {
	case string:
		n, i, ok := strings.Cut(v, ":")
		if !ok {
			return "", "", fmt.Errorf("endpoint %q: must be node:interface", v)
		}
		return n, i, nil
	case map[string]any:
		n, i := v["node"], v["interface"]
		if n == nil || i == nil {
			return "", "", fmt.Errorf("an endpoint needs node and interface")
		}
		return fmt.Sprint(n), fmt.Sprint(i), nil
	}
	return "", "", fmt.Errorf("endpoint %v: must be node:interface", e)
}

// attributes turns the labels speed and length into cable settings. A bare
// speed is in Mb/s.
func attributes(l *link) (string, error) {
	out := ""
	get := func(k string) string {
		for _, m := range []map[string]any{l.Vars, l.Labels} {
			if v, ok := m[k]; ok {
				return strings.TrimSpace(fmt.Sprint(v))
			}
		}
		return ""
	}
	if s := get("speed"); s != "" {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 {
			s = fmt.Sprintf("%dMbps", n)
		} else if strings.ContainsAny(s, " ,{}\"'#:") || s[0] < '0' || s[0] > '9' {
			return "", fmt.Errorf("label speed %q: must be a number of Mb/s, or a rate such as 100G", s)
		}
		out += ", rate: " + s
	}
	if s := get("length"); s != "" {
		if strings.ContainsAny(s, " ,{}\"'#:") || s[0] < '0' || s[0] > '9' || !strings.HasSuffix(s, "m") {
			return "", fmt.Errorf("label length %q: must be metres, such as 100m", s)
		}
		out += ", length: " + s
	}
	return out, nil
}

// unlinked leaves out nodes without a link.
func (im *importer) unlinked() {
	im.devs = slices.DeleteFunc(im.devs, func(d *device) bool {
		if len(d.ifaces) == 0 {
			im.note("node %s has no link and is left out", d.name)
			return true
		}
		slices.SortFunc(d.ifaces, natural.Compare)
		return false
	})
}
