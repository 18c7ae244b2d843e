package clab

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

var roleWords = map[string]string{
	"leaf": "leaf", "tor": "leaf", "spine": "spine", "core": "core", "superspine": "core", "super-spine": "core",
	"rnic": "rnic", "server": "rnic", "host": "rnic", "client": "rnic", "nic": "rnic",
}

// prefixes of node names that tell a role; the longer ones first.
var prefixes = []struct{ word, role string }{
	{"superspine", "core"},
	{"super-spine", "core"},
	{"core", "core"},
	{"spine", "spine"},
	{"leaf", "leaf"},
	{"tor", "leaf"},
	{"client", "rnic"},
	{"host", "rnic"},
	{"server", "rnic"},
	{"srv", "rnic"},
	{"rnic", "rnic"},
}

// roles gives every node its role: label, else name, else kind linux with at
// most two links is an RNIC; a switch that is left is a leaf when it has RNICs
// or no other switch above it.
func (im *importer) roles() error {
	var open []*device
	for _, d := range im.devs {
		if d.role != "" {
			r, ok := roleWords[d.role]
			if !ok {
				return fmt.Errorf("%s: topology.nodes.%s.labels.role: value %q: must be leaf, spine, core or rnic", im.name, d.name, d.role)
			}
			d.role = r
			continue
		}
		for _, p := range prefixes {
			if strings.HasPrefix(strings.ToLower(d.name), p.word) {
				d.role = p.role
				break
			}
		}
		if d.role == "" && d.kind == "linux" && len(d.ifaces) <= 2 {
			d.role = "rnic"
		}
		if d.role == "" {
			open = append(open, d)
		} else {
			im.note("%s is taken for a %s (by name or kind; a label role says otherwise)", d.name, d.role)
		}
	}
	place := make([]string, len(open))
	for i, d := range open {
		if place[i] = "spine"; im.has(d, "rnic") || !im.has(d, "leaf") {
			place[i] = "leaf"
		}
	}
	for i, d := range open {
		d.role = place[i]
		im.note("%s is taken for a %s (by its place; a label role says otherwise)", d.name, d.role)
	}
	for _, d := range im.devs {
		if d.role == "rnic" && len(d.ifaces) > 2 {
			return fmt.Errorf("%s: %s is an RNIC with %d links; it has one or two ports", im.name, d.name, len(d.ifaces))
		}
	}
	return nil
}

// has reports a neighbour of a role.
func (im *importer) has(d *device, role string) bool {
	return slices.ContainsFunc(im.links, func(c cable) bool {
		return c.ends[0] == d && c.ends[1].role == role || c.ends[1] == d && c.ends[0].role == role
	})
}

// pods numbers the parts that only cores join, where no label did.
func (im *importer) pods() {
	next := 0
	for _, d := range im.devs {
		if d.role == "core" || d.pod != 0 {
			continue
		}
		next++
		for todo := []*device{d}; len(todo) > 0; todo = todo[1:] {
			x := todo[0]
			if x.pod != 0 || x.role == "core" {
				continue
			}
			x.pod = next
			for _, c := range im.links {
				for k := range c.ends {
					if c.ends[k] == x {
						todo = append(todo, c.ends[1-k])
					}
				}
			}
		}
	}
}

func (d *device) port(iface string) string {
	return fmt.Sprintf("%s:%d", d.name, slices.Index(d.ifaces, iface)+1)
}

func (im *importer) render() []byte {
	var b bytes.Buffer
	rnics, pods := 0, 0
	for _, d := range im.devs {
		pods = max(pods, d.pod)
		if d.role == "rnic" {
			rnics++
		}
	}
	fmt.Fprintf(&b, "# From the containerlab topology %s. Ports are numbered in the order of the\n# interface names; each cable says which they were.\nschema: 1\n", im.name[strings.LastIndexByte(im.name, '/')+1:])
	if im.file.Name != "" {
		fmt.Fprintf(&b, "name: %s\n", im.file.Name)
	}
	b.WriteString("topology:\n")
	if pods > 1 {
		b.WriteString("  cross_pod_rdma: lossy  # the cores are not lossless\n")
	}
	b.WriteString("  nodes:\n")
	for _, d := range im.devs {
		pod := ""
		if pods > 1 && d.pod > 0 {
			pod = fmt.Sprintf(", pod: %d", d.pod)
		}
		fmt.Fprintf(&b, "    - {name: %s, kind: %s%s}\n", d.name, d.role, pod)
	}
	b.WriteString("  cables:\n")
	for _, c := range im.links {
		fmt.Fprintf(&b, "    - {ends: [\"%s\", \"%s\"]%s}  # %s, %s\n", c.ends[0].port(c.iface[0]), c.ends[1].port(c.iface[1]), c.attrs, c.iface[0], c.iface[1])
	}
	if rnics > 1 {
		b.WriteString("workload:\n  - {name: perm, pattern: permutation, shift: 1, verb: write, size: 1MB}\n")
	}
	return b.Bytes()
}
