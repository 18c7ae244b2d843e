package topology

import (
	"math/big"

	"github.com/rocemu/rocemu/clock"
)

// Getters for checked trees: what is absent or was pruned reads as zero. The
// defaults below the file's keys make sure that nothing needed is absent.

func (n *node) str(key string) string {
	if v := n.get(key); v != nil && v.kind == nScalar {
		return v.text
	}
	return ""
}

// has reports a key with a value.
func (n *node) has(key string) bool {
	v := n.get(key)
	return v != nil && v.kind != nNull
}

// q reads a quantity in base units; words such as auto read as 0.
func (n *node) q(key string, units []unit) int64 {
	v, bad := quantity(n.str(key), units, "")
	if bad != nil {
		return 0
	}
	return v
}

func (n *node) dur(key string) clock.Duration { return clock.Duration(n.q(key, durationUnits)) }
func (n *node) rate(key string) clock.Rate    { return clock.Rate(n.q(key, rateUnits)) }
func (n *node) size(key string) int64         { return n.q(key, sizeUnits) }

func (n *node) num(key string) int64 {
	v, bad := parseInt(n.str(key))
	if bad != nil {
		return 0
	}
	return v
}

func (n *node) flag(key string) bool { return n.str(key) == "true" }

func (n *node) alpha(key string) Alpha {
	a, err := ParseAlpha(n.str(key))
	if err != nil {
		return Alpha{1, 8}
	}
	return a
}

func (n *node) prob(key string) *big.Rat {
	if p, bad := probability(n.str(key)); bad == nil {
		return p
	}
	return new(big.Rat)
}

// list returns the texts of a list, or of a single scalar.
func (n *node) list(key string) []*node {
	v := n.get(key)
	if v == nil {
		return nil
	}
	if v.kind == nScalar {
		return []*node{v}
	}
	out := make([]*node, 0, len(v.items))
	for _, x := range v.items {
		if x.kind == nScalar {
			out = append(out, x)
		}
	}
	return out
}
