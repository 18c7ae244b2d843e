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
// raise a CNP. It must not be copied after its first use.
type NP struct {
	Scope    Scope
	Interval clock.Duration // least time between CNPs of one flow
	last     []lastCNP      // by key
	one      [1]lastCNP     // its place, until more are needed
}

// lastCNP is when a flow's last CNP was raised.
type lastCNP struct {
	key uint64
	at  clock.Time
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
	l := n.of(n.key(qpn, own, peer))
	if l.at >= 0 && now.Sub(l.at) < n.Interval {
		return false
	}
	l.at = now
	return true
}

// of finds what is kept of a key; a new one has no instant yet.
func (n *NP) of(k uint64) *lastCNP {
	lo, hi := 0, len(n.last)
	for lo < hi {
		if m := int(uint(lo+hi) / 2); n.last[m].key < k {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if n.last == nil {
		n.last = n.one[:0]
	}
	if lo == len(n.last) || n.last[lo].key != k {
		n.last = slices.Insert(n.last, lo, lastCNP{k, -1})
	}
	return &n.last[lo]
}
