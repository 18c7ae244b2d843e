package topology

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// Resolved returns fabric.resolved.yaml: the file with overlays and settings
// merged, every default and profile filled in and referenced files inlined.
// Loading it gives the same plan.
func (p *Plan) Resolved() []byte { return bytes.Clone(p.resolved) }

// render merges the defaults in and prints the tree. What acts on the run comes
// first, in the bytes before acts.
func (r *resolver) render() (text []byte, acts int) {
	root := &node{kind: nMap}
	put := func(key string, n *node) {
		if n != nil && n.kind != nNull {
			root.keys = append(root.keys, entry{key: key, val: n})
		}
	}
	put("schema", &node{kind: nScalar, text: "1"})
	put("name", r.root.get("name"))
	put("seed", &node{kind: nScalar, text: strconv.FormatUint(r.plan.Seed, 10)})
	run := overlay(defaults().get("run"), r.root.get("run"))
	if !run.has("stall") {
		run = overlay(run, one("stall", &node{kind: nScalar, text: r.plan.Run.Stall.String()}))
	}
	put("run", overlay(run, one("limit", &node{kind: nScalar, text: r.plan.Run.Limit.String()})))
	put("topology", overlay(defaults().get("topology"), r.root.get("topology")))
	sw := r.root.get("switches")
	all := one("all", overlay(defaults().path("switches", "all"), expandSwitch(sw.get("all"))))
	put("switches", r.renderLayers(all, sw, []string{"leaf", "spine", "core"}, expandSwitch))
	nics := r.root.get("rnics")
	allNIC := one("all", overlay(expandNIC(defaults().path("rnics", "all")), expandNIC(nics.get("all"))))
	put("rnics", r.renderLayers(allNIC, nics, nil, expandNIC))
	var b bytes.Buffer
	for _, part := range [][]string{{"workload", "faults", "changes"}, {"capture", "telemetry", "expect"}} {
		acts = b.Len() // before the second
		for _, k := range part {
			put(k, r.root.get(k))
		}
		emitMap(&b, root, 0)
		root.keys = nil
	}
	return b.Bytes(), acts
}

func one(key string, v *node) *node { return &node{kind: nMap, keys: []entry{{key: key, val: v}}} }

// renderLayers expands every layer of switches or rnics where it stands.
func (r *resolver) renderLayers(out, from *node, roles []string, expand func(*node) *node) *node {
	for _, k := range roles {
		if l := from.get(k); l != nil && l.kind == nMap {
			out.keys = append(out.keys, entry{key: k, val: expand(l)})
		}
	}
	if ds := from.get("devices"); ds != nil && ds.kind == nMap {
		m := &node{kind: nMap}
		for _, e := range ds.keys {
			if e.val.kind == nMap {
				m.keys = append(m.keys, entry{key: e.key, val: expand(e.val)})
			}
		}
		out.keys = append(out.keys, entry{key: "devices", val: m})
	}
	return out
}

var plainScalar = regexp.MustCompile(`^[A-Za-z0-9_/.][A-Za-z0-9_./+%-]*$`)

// quote writes a scalar so that it reads back as the same text.
func quote(s string) string {
	switch s {
	case "null", "Null", "NULL", "~", "":
	default:
		if plainScalar.MatchString(s) {
			return s
		}
	}
	return strconv.Quote(s)
}

func indent(b *bytes.Buffer, depth int) { b.WriteString(strings.Repeat("  ", depth)) }

func emitMap(b *bytes.Buffer, n *node, depth int) {
	for _, e := range n.keys {
		if e.val.kind == nNull {
			continue
		}
		indent(b, depth)
		b.WriteString(quote(e.key) + ":")
		emitValue(b, e.val, depth)
	}
}

// emitValue writes what follows a key or dash, ending the line.
func emitValue(b *bytes.Buffer, n *node, depth int) {
	switch {
	case n.kind == nScalar:
		b.WriteString(" " + quote(n.text) + "\n")
	case flat(n):
		b.WriteString(" ")
		emitFlow(b, n)
		b.WriteString("\n")
	case n.kind == nMap:
		b.WriteString("\n")
		emitMap(b, n, depth+1)
	default:
		b.WriteString("\n")
		for _, x := range n.items {
			if x.kind == nNull {
				continue
			}
			indent(b, depth+1)
			b.WriteString("-")
			emitValue(b, x, depth+1)
		}
	}
}

// flat reports a value that fits on one line: empty, or scalars only.
func flat(n *node) bool {
	if len(n.keys)+len(n.items) == 0 {
		return true
	}
	if len(n.keys) > 8 || len(n.items) > 64 {
		return false
	}
	for _, e := range n.keys {
		if e.val.kind != nScalar {
			return false
		}
	}
	for _, x := range n.items {
		if x.kind != nScalar {
			return false
		}
	}
	return true
}

func emitFlow(b *bytes.Buffer, n *node) {
	if n.kind == nMap {
		b.WriteString("{")
		for i, e := range n.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(quote(e.key) + ": " + quote(e.val.text))
		}
		b.WriteString("}")
		return
	}
	b.WriteString("[")
	for i, x := range n.items {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(x.text))
	}
	b.WriteString("]")
}
