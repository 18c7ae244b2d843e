package topology

import (
	"fmt"
	"strings"
)

// said is a setting that takes part in a contradiction: how a message calls it,
// its value, and the value's node, nil when nothing gave it. The path of a
// setting of a list is known to who reads it; others are found.
type said struct {
	key, text string
	n         *node
	path      string
}

// saidBy is the setting of a section.
func saidBy(section *node, key string) said {
	return said{key: key, text: section.str(key), n: section.get(key)}
}

// contradict reports settings that do not go together. It blames the one that
// was given last, a --set rather than a file, a file rather than a default, the
// first among equals, and says where the others come from. The hint is for the
// first; at and field are for settings that nobody gave.
func (r *resolver) contradict(at *node, field, msg, hint string, all ...said) {
	last, best := 0, -1
	for i := range all {
		if k := r.rankOf(&all[i]); k > best {
			last, best = i, k
		}
	}
	x := &all[last]
	if last > 0 {
		hint = ""
	}
	if x.n != nil {
		at = x.n
	}
	others := append(append([]said(nil), all[:last]...), all[last+1:]...)
	r.fail(at, r.place(x, join(field, x.key)), x.text, msg+r.origins(others...), hint)
}

// origins says where settings come from, nothing where there are none.
func (r *resolver) origins(all ...said) string {
	if len(all) == 0 {
		return ""
	}
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = r.originOf(&all[i])
	}
	return " (" + strings.Join(texts, "; ") + ")"
}

func (r *resolver) originOf(x *said) string {
	what := strings.TrimSpace(x.key + " " + clip(x.text))
	switch {
	case r.rankOf(x) > 0:
		return fmt.Sprintf("%s %s at %s", r.place(x, x.key), clip(x.text), x.n.pos())
	case x.text == "":
		return what + " is not given"
	case profiled(x.n):
		return what + " is the profile's"
	}
	return what + " is the default"
}

// profiled reports whether a value is that of an ASIC, a NIC model or a preset.
func profiled(n *node) bool {
	for _, t := range []*node{asicTable(), nicTable(), dcqcnTable()} {
		if pathBelow(t, n, "profile", 0) != "" {
			return true
		}
	}
	return false
}

// place is the path of a setting, as files spell it.
func (r *resolver) place(x *said, otherwise string) string {
	if x.path != "" {
		return x.path
	}
	if p := r.pathOf(x.n); p != "" {
		return p
	}
	return otherwise
}

func (r *resolver) rankOf(x *said) int {
	if x.path != "" && x.n != nil {
		return max(1, bySet(x.n))
	}
	return r.rank(x.n)
}

// bySet is 2 for what the first --set gave, 3 for the second and so on, else 0.
func bySet(n *node) int {
	if strings.HasPrefix(n.file, "--set ") {
		return 1 + n.line
	}
	return 0
}

// ordered reports two settings of a section of which high must not be below
// low.
func (r *resolver) ordered(section *node, field, low, high string) {
	key, other, rule := high, low, "below"
	l, h := section.get(low), section.get(high)
	if r.rank(l) > r.rank(h) {
		key, other, rule = low, high, "above"
		l, h = h, l
	}
	at := join(field, key)
	if p := r.pathOf(h); p != "" {
		at = p
	}
	msg := fmt.Sprintf("must not be %s %s %s", rule, other, section.str(other))
	if l != nil {
		msg += r.origin(l)
	}
	r.fail(orNode(h, section), at, section.str(key), msg, "")
}

// rank orders the origins of values by who speaks last.
func (r *resolver) rank(n *node) int {
	switch {
	case n == nil || r.pathOf(n) == "":
		return 0
	}
	return max(1, bySet(n))
}

// origin says where a value comes from.
func (r *resolver) origin(n *node) string {
	if r.rank(n) == 0 {
		return ", the default"
	}
	return fmt.Sprintf(" (%s at %s)", r.pathOf(n), n.pos())
}

// pathOf finds a setting of the fabric's files or of --set by identity; "" is a
// value that neither gave.
func (r *resolver) pathOf(want *node) string {
	for _, section := range []string{"switches", "rnics", "topology", "run"} {
		if p := pathBelow(r.root.get(section), want, section, 0); p != "" {
			return p
		}
	}
	return ""
}

func pathBelow(n, want *node, path string, depth int) string {
	switch {
	case n == nil || want == nil || depth > maxDepth:
		return ""
	case n == want:
		return path
	}
	for i := range n.keys {
		if p := pathBelow(n.keys[i].val, want, join(path, n.keys[i].key), depth+1); p != "" {
			return p
		}
	}
	return ""
}

// contradict is the resolver's for keys of a workload line: the first is what
// the message is about, of the others those that are given matter, and that the
// second is not.
func (w *work) contradict(l *line, msg, hint string, keys ...string) {
	var all []said
	for i, k := range keys {
		if n := l.n.get(k); n != nil || i == 1 {
			all = append(all, said{key: k, text: text(n), n: n, path: l.field + "." + k})
		}
	}
	w.r.contradict(l.n, l.field, msg, hint, all...)
}
