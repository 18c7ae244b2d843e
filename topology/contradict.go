package topology

import (
	"fmt"
	"strings"
)

// ordered reports two settings of a section of which high must not be below
// low. It blames the one that was given later: a --set rather than a file, a
// file rather than a default.
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
	if l != nil && h != nil && l.file != h.file {
		msg += r.origin(l)
	}
	r.fail(orNode(h, section), at, section.str(key), msg, "")
}

// rank orders the origins of values by who speaks last.
func (r *resolver) rank(n *node) int {
	switch {
	case n == nil || r.pathOf(n) == "":
		return 0
	case strings.HasPrefix(n.file, "--set "):
		return 2
	}
	return 1
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
	for _, section := range []string{"switches", "rnics"} {
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
