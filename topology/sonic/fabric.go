package sonic

import (
	"bytes"
	"fmt"
	"math/bits"
	"strings"
)

// Fabric renders switches as a fabric file: each port has a cable of its speed
// and length, to the neighbour's port where that switch is among them
// (DEVICE_NEIGHBOR), else to an RNIC of its own.
func Fabric(sws []*Switch) []byte {
	f := &fabric{sws: sws, cabled: map[string]bool{}}
	f.nameAll()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# From the SONiC configuration of %s.\nschema: 1\nname: %s\ntopology:\n  cross_pod_rdma: lossy\n", strings.Join(f.names, ", "), f.names[0])
	f.topology(&b)
	b.WriteString("switches:\n  devices:\n")
	for i, s := range sws {
		fmt.Fprintf(&b, "    %s:\n%s", f.names[i], indented(s.Layer(), 6))
	}
	f.rnics(&b)
	if f.hosts > 1 {
		b.WriteString("workload:\n  - {name: perm, pattern: permutation, shift: 1, verb: write, size: 1MB}\n")
	}
	return b.Bytes()
}

type fabric struct {
	sws    []*Switch
	names  []string
	cabled map[string]bool // "switch:port number"
	hosts  int
}

// nameAll gives every switch a name that a fabric file takes.
func (f *fabric) nameAll() {
	seen := map[string]bool{}
	for i, s := range f.sws {
		n := strings.Map(func(r rune) rune {
			if strings.ContainsRune(":. \t[]>#/,=\"'", r) {
				return '-'
			}
			return r
		}, s.Host)
		if n == "" || seen[n] {
			n = fmt.Sprintf("switch%d", i+1)
		}
		seen[n] = true
		f.names = append(f.names, n)
	}
}

func (f *fabric) topology(b *bytes.Buffer) {
	var nodes, cables bytes.Buffer
	for i, s := range f.sws {
		fmt.Fprintf(&nodes, "    - {name: %s, kind: leaf}\n", f.names[i])
		for k := range s.Ports {
			end := fmt.Sprintf("%s:%d", f.names[i], k+1)
			if f.cabled[end] {
				continue
			}
			f.cabled[end] = true
			other := f.neighbour(&s.Ports[k])
			if other == "" || f.cabled[other] {
				f.hosts++
				other = fmt.Sprintf("h%d:1", f.hosts)
				fmt.Fprintf(&nodes, "    - {name: h%d, kind: rnic}\n", f.hosts)
			}
			f.cabled[other] = true
			fmt.Fprintf(&cables, "    - {ends: [\"%s\", \"%s\"]%s}  # %s\n", end, other, linkOf(&s.Ports[k]), s.Ports[k].Name)
		}
	}
	fmt.Fprintf(b, "  nodes:\n%s  cables:\n%s", nodes.Bytes(), cables.Bytes())
}

// neighbour is the far end of a port when it is one of the switches.
func (f *fabric) neighbour(p *Port) string {
	host, port, _ := strings.Cut(p.Neighbor, ":")
	for i, s := range f.sws {
		if host == "" || s.Host != host {
			continue
		}
		for k := range s.Ports {
			if s.Ports[k].Name == port {
				return fmt.Sprintf("%s:%d", f.names[i], k+1)
			}
		}
	}
	return ""
}

func linkOf(p *Port) string {
	s := ""
	if p.Speed > 0 {
		s += fmt.Sprintf(", rate: %dMbps", p.Speed)
	}
	if p.Meters > 0 {
		s += fmt.Sprintf(", length: %dm", p.Meters)
	}
	return s
}

// rnics lets the servers use the first lossless class.
func (f *fabric) rnics(b *bytes.Buffer) {
	for _, s := range f.sws {
		for i := range s.Ports {
			p := &s.Ports[i]
			if p.Prios == 0 {
				continue
			}
			prio := bits.TrailingZeros8(p.Prios)
			dscp := -1
			for d, tc := range p.DSCPToTC {
				if p.HasMaps && int(tc) == prio {
					dscp = d
					break
				}
			}
			b.WriteString("rnics:\n  all:\n")
			if dscp >= 0 {
				fmt.Fprintf(b, "    dscp: %d\n", dscp)
			}
			fmt.Fprintf(b, "    pfc: {priorities: %s}\n", list(p.Prios))
			return
		}
	}
}

// indented shifts text to the right.
func indented(text []byte, n int) string {
	pad := strings.Repeat(" ", n)
	var out strings.Builder
	for _, l := range strings.SplitAfter(string(text), "\n") {
		if strings.TrimSpace(l) != "" {
			out.WriteString(pad + l)
		}
	}
	if out.Len() == 0 {
		return pad + "{}\n"
	}
	return out.String()
}
