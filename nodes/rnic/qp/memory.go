package qp

import "sort"

// Rights of a memory region.
type Rights uint8

// Remote access rights.
const (
	RemoteRead Rights = 1 << iota
	RemoteWrite
	RemoteAtomic
)

// Region is a registered memory range. The key's upper 24 bits index the
// region table, its low 8 bits are the variant, as on mlx5.
type Region struct {
	Base, Len uint64
	Key       uint32
	Rights    Rights
	Valid     bool
	Rearm     bool // SEND_INV re-registers it at once under the same key
}

// Memory is an RNIC's registered memory: a region table and the words that
// atomics act on. Words that were never set read zero.
type Memory struct {
	regions []Region
	addrs   []uint64 // sorted
	words   []uint64
}

// Register adds a region and returns its R_Key; variant is the key's low byte.
func (m *Memory) Register(base, length uint64, rights Rights, variant uint8, rearm bool) uint32 {
	key := uint32(len(m.regions)+1)<<8 | uint32(variant)
	m.regions = append(m.regions, Region{Base: base, Len: length, Key: key, Rights: rights, Valid: true, Rearm: rearm})
	return key
}

func (m *Memory) region(key uint32) *Region {
	i := key>>8 - 1
	if uint64(i) >= uint64(len(m.regions)) || m.regions[i].Key != key || !m.regions[i].Valid {
		return nil
	}
	return &m.regions[i]
}

// Check reports whether key allows the rights on [va, va+n).
func (m *Memory) Check(key uint32, va, n uint64, need Rights) bool {
	if m == nil {
		return false
	}
	g := m.region(key)
	return g != nil && g.Rights&need == need && va >= g.Base && va-g.Base <= g.Len && n <= g.Len-(va-g.Base)
}

// Invalidate ends a key (SEND_INV); false if there is no such key.
func (m *Memory) Invalidate(key uint32) bool {
	if m == nil {
		return false
	}
	g := m.region(key)
	if g == nil {
		return false
	}
	g.Valid = g.Rearm
	return true
}

// Word returns the 64-bit word at va.
func (m *Memory) Word(va uint64) uint64 {
	i := sort.Search(len(m.addrs), func(i int) bool { return m.addrs[i] >= va })
	if i < len(m.addrs) && m.addrs[i] == va {
		return m.words[i]
	}
	return 0
}

// SetWord stores v at va.
func (m *Memory) SetWord(va, v uint64) {
	i := sort.Search(len(m.addrs), func(i int) bool { return m.addrs[i] >= va })
	if i == len(m.addrs) || m.addrs[i] != va {
		m.addrs = append(m.addrs, 0)
		m.words = append(m.words, 0)
		copy(m.addrs[i+1:], m.addrs[i:])
		copy(m.words[i+1:], m.words[i:])
		m.addrs[i] = va
	}
	m.words[i] = v
}
