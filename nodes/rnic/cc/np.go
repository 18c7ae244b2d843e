package cc

import (
	"fmt"
	"slices"

	"github.com/rocemu/rocemu/clock"
)

// Scope is what CNP pacing counts as one flow (transport §5.1).
type Scope uint8

// Pacing scopes.
const (
	PerQP Scope = iota
	PerPort
	PerDstIP  // per address the CNPs go to
	PerIPPair // per (own, peer) address
)

// ParseScope reads qp, port, dst-ip or ip-pair.
func ParseScope(s string) (Scope, error) {
	for i, n := range [...]string{"qp", "port", "dst-ip", "ip-pair"} {
		if s == n {
			return Scope(i), nil
		}
	}
	return 0, fmt.Errorf("cc: CNP scope %q: allowed qp, port, dst-ip, ip-pair", s)
}

// NP is the notification point of an RNIC: it decides which CE-marked packets
// raise a CNP.
type NP struct {
	Scope    Scope
	Interval clock.Duration // least time between CNPs of one flow
	last     map[uint64]clock.Time
}

func (n *NP) key(qpn, own, peer uint32) uint64 {
	switch n.Scope {
	case PerPort:
		return 0
	case PerDstIP:
		return uint64(peer)
	case PerIPPair:
		return uint64(own)<<32 | uint64(peer)
	}
	return uint64(qpn) // own QPN: unique on the RNIC
}

// Mark reports whether a CE-marked packet for QP qpn, from RNIC peer to own,
// raises a CNP now.
func (n *NP) Mark(now clock.Time, qpn, own, peer uint32) bool {
	if n.last == nil {
		n.last = make(map[uint64]clock.Time)
	}
	k := n.key(qpn, own, peer)
	if t, ok := n.last[k]; ok && now.Sub(t) < n.Interval {
		return false
	}
	n.last[k] = now
	return true
}

// keys returns the pacing keys in order: maps are never walked as they come.
func (n *NP) keys() []uint64 {
	ks := make([]uint64, 0, len(n.last))
	for k := range n.last {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}
