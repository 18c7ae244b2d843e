package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// rivals are keys of which a later layer's one displaces an earlier layer's
// other.
var rivals = [][2]string{{"alpha", "xoff"}, {"alpha", "limit"}, {"length", "delay"}, {"packet", "frame"}}

// overlay returns base with over laid on it, key by key; neither is changed.
// Lists of named items (workload, faults, nodes) merge by name, other lists
// are replaced. An absent value says nothing.
func overlay(base, over *node) *node {
	switch {
	case over == nil || over.kind == nNull:
		return base
	case base == nil || base.kind == nNull:
		return over
	case base.kind == nMap && over.kind == nMap:
		return overlayMap(base, over)
	case base.kind == nSeq && over.kind == nSeq && named(base) && named(over):
		return overlayNamed(base, over)
	}
	return over
}

func overlayMap(base, over *node) *node {
	out := &node{kind: nMap, file: over.file, line: over.line, col: over.col}
	out.keys = append(make([]entry, 0, len(base.keys)+len(over.keys)), base.keys...)
	for _, r := range rivals {
		a, b := over.get(r[0]), over.get(r[1])
		if a != nil && b == nil {
			out.del(r[1])
		}
		if b != nil && a == nil {
			out.del(r[0])
		}
	}
	for _, e := range over.keys {
		if old := out.get(e.key); old != nil {
			if m := overlay(old, e.val); m != old {
				out.set(e.key, m)
			}
			continue
		}
		out.keys = append(out.keys, e)
	}
	return out
}

// named reports whether every item of a list is a mapping with a name.
func named(n *node) bool {
	for _, x := range n.items {
		if x.get("name") == nil {
			return false
		}
	}
	return len(n.items) > 0
}

func overlayNamed(base, over *node) *node {
	out := &node{kind: nSeq, file: over.file, line: over.line, col: over.col}
	out.items = append(out.items, base.items...)
next:
	for _, x := range over.items {
		for i, b := range out.items {
			if b.get("name").text == x.get("name").text {
				out.items[i] = overlay(b, x)
				continue next
			}
		}
		out.items = append(out.items, x)
	}
	return out
}

// applySet lays one PATH=VALUE on the tree. Steps are keys; in a list a step is
// the name of an item or its index from 0.
func applySet(root *node, arg string, n int) (*node, Errors) {
	path, val, ok := strings.Cut(arg, "=")
	at := fmt.Sprintf("--set %s", clip(path))
	if !ok || path == "" {
		return root, Errors{{File: "--set", Line: n, Col: 1, Value: arg, Msg: "must be PATH=VALUE, such as switches.all.pfc.headroom=0B"}}
	}
	v, errs := setValue(at, val, n, len(path)+2)
	if len(errs) > 0 {
		return root, errs
	}
	steps := strings.Split(path, ".")
	out, msg, hint := place(root, steps, v, 0)
	if msg != "" {
		return root, Errors{{File: at, Line: n, Col: 1, Field: path, Value: val, Msg: msg, Hint: hint}}
	}
	return out, nil
}

// setValue reads the value of a --set: any YAML value.
func setValue(file, val string, line, col int) (*node, Errors) {
	tree, errs := parseTree(file, []byte("v: "+val))
	for _, e := range errs {
		e.Line, e.Col, e.Field = line, col, ""
	}
	v := tree.get("v")
	if v == nil || v.kind == nNull {
		v = &node{kind: nScalar, text: val}
	}
	restamp(v, file, line, col)
	return v, errs
}

func restamp(n *node, file string, line, col int) {
	n.file, n.line, n.col = file, line, col
	for i := range n.keys {
		n.keys[i].line, n.keys[i].col = line, col
		restamp(n.keys[i].val, file, line, col)
	}
	for _, x := range n.items {
		restamp(x, file, line, col)
	}
}

// place returns a copy of base with v at the path.
func place(base *node, steps []string, v *node, depth int) (out *node, msg, hint string) {
	if len(steps) == 0 {
		return v, "", ""
	}
	if depth > maxDepth {
		return nil, "path too long", ""
	}
	if base != nil && base.kind == nSeq {
		return placeInList(base, steps, v, depth)
	}
	var child *node
	if base != nil && base.kind == nMap {
		child = base.get(steps[0])
	}
	if len(steps) == 1 && v.kind == nMap {
		v = overlay(child, v)
	}
	sub, msg, hint := place(child, steps[1:], v, depth+1)
	if msg != "" {
		return nil, msg, hint
	}
	one := &node{kind: nMap, file: v.file, line: v.line, col: v.col}
	one.keys = []entry{{steps[0], v.line, v.col, sub}}
	if base == nil || base.kind != nMap {
		return one, "", ""
	}
	return overlayReplace(base, one), "", ""
}

// overlayReplace sets one key without merging below it.
func overlayReplace(base, one *node) *node {
	out := &node{kind: nMap, file: base.file, line: base.line, col: base.col}
	out.keys = append(make([]entry, 0, len(base.keys)+1), base.keys...)
	for _, r := range rivals {
		if one.keys[0].key == r[0] {
			out.del(r[1])
		}
		if one.keys[0].key == r[1] {
			out.del(r[0])
		}
	}
	out.set(one.keys[0].key, one.keys[0].val)
	return out
}

func placeInList(base *node, steps []string, v *node, depth int) (*node, string, string) {
	at := -1
	var names []string
	for i, x := range base.items {
		if id := x.get("name"); id != nil {
			names = append(names, id.text)
			if id.text == steps[0] {
				at = i
			}
		}
	}
	if i, err := strconv.Atoi(steps[0]); at < 0 && err == nil && i >= 0 && i < len(base.items) {
		at = i
	}
	if at < 0 {
		msg := fmt.Sprintf("no item %q in this list of %d; give a name or an index from 0", clip(steps[0]), len(base.items))
		return nil, msg, nearest(steps[0], names)
	}
	sub, msg, hint := place(base.items[at], steps[1:], v, depth+1)
	if msg != "" {
		return nil, msg, hint
	}
	out := &node{kind: nSeq, file: base.file, line: base.line, col: base.col}
	out.items = append(out.items, base.items...)
	out.items[at] = sub
	return out, "", ""
}
