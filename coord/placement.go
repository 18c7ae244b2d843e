package coord

import (
	"fmt"
	"sort"
	"strings"
)

// place assigns every device to a slot and every slot to a member: pinned
// devices to whom named them, the other groups by weight, largest first, to the
// member with the least weight for its cores (LPT). Ties go by order, so the
// outcome is a function of its arguments.
func place(l *Layout, members []*Member, fixed []int32) (owner []int32, slots []Slot, err error) {
	sort.Slice(members, func(i, j int) bool { return members[i].Name < members[j].Name })
	if len(members) == 0 {
		return nil, nil, fmt.Errorf("no process is up")
	}
	if fixed != nil {
		return placeFixed(l, members, fixed)
	}
	owner = make([]int32, len(l.Names))
	for i := range owner {
		owner[i] = -1
	}
	var free []int // slots that take groups
	for i, m := range members {
		slots = append(slots, Slot{Owner: m.Name})
		if len(m.Devices) == 0 {
			free = append(free, i)
		}
	}
	if err := pin(l, members, owner); err != nil {
		return nil, nil, err
	}
	groups := rest(l, owner)
	if len(groups) > 0 && len(free) == 0 {
		return nil, nil, fmt.Errorf("nobody hosts %s", missing(l, owner))
	}
	sort.SliceStable(groups, func(i, j int) bool { return groups[i].Weight > groups[j].Weight })
	for _, g := range groups {
		best := free[0]
		for _, k := range free[1:] {
			if slots[k].Weight*int64(cores(members[best])) < slots[best].Weight*int64(cores(members[k])) {
				best = k
			}
		}
		slots[best].Weight += g.Weight
		for _, d := range g.Devices {
			owner[d] = int32(best)
		}
	}
	return compact(owner, slots)
}

func cores(m *Member) int { return max(1, m.Cores) }

// pin gives named devices to their members.
func pin(l *Layout, members []*Member, owner []int32) error {
	ids := make(map[string]int32, len(l.Names))
	for i, n := range l.Names {
		ids[n] = int32(i)
	}
	for i, m := range members {
		for _, n := range m.Devices {
			d, ok := ids[n]
			if !ok {
				return fmt.Errorf("%s wants device %s, which the fabric does not have", m.Name, n)
			}
			if o := owner[d]; o >= 0 {
				return fmt.Errorf("%s and %s both want device %s", members[o].Name, m.Name, n)
			}
			owner[d] = int32(i)
		}
	}
	return nil
}

// rest is the groups without their pinned devices.
func rest(l *Layout, owner []int32) []Group {
	var out []Group
	for _, g := range l.Groups {
		x := Group{Weight: g.Weight}
		for _, d := range g.Devices {
			if owner[d] < 0 {
				x.Devices = append(x.Devices, d)
			}
		}
		if n := len(x.Devices); n > 0 {
			x.Weight = g.Weight * int64(n) / int64(len(g.Devices))
			out = append(out, x)
		}
	}
	return out
}

func missing(l *Layout, owner []int32) string {
	var names []string
	for d, o := range owner {
		if o < 0 {
			names = append(names, l.Names[d])
		}
	}
	if n := len(names); n > 8 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:8], ", "), n-8)
	}
	return strings.Join(names, ", ")
}

// compact drops slots without devices.
func compact(owner []int32, slots []Slot) ([]int32, []Slot, error) {
	used := make([]bool, len(slots))
	for _, o := range owner {
		used[o] = true
	}
	to := make([]int32, len(slots))
	var out []Slot
	for i := range slots {
		to[i] = int32(len(out))
		if used[i] {
			out = append(out, slots[i])
		}
	}
	for d := range owner {
		owner[d] = to[owner[d]]
	}
	return owner, out, nil
}

// placeFixed spreads the slots of a snapshot, whose devices are given.
func placeFixed(l *Layout, members []*Member, owner []int32) ([]int32, []Slot, error) {
	if len(owner) != len(l.Names) {
		return nil, nil, fmt.Errorf("the snapshot has %d devices, the fabric %d", len(owner), len(l.Names))
	}
	n := int32(0)
	for _, o := range owner {
		n = max(n, o+1)
	}
	slots := make([]Slot, n)
	for _, g := range l.Groups {
		for _, d := range g.Devices {
			slots[owner[d]].Weight += g.Weight / int64(len(g.Devices))
		}
	}
	for i := range slots {
		slots[i].Owner = lightest(members, slots[:i])
	}
	return append([]int32(nil), owner...), slots, nil
}

// lightest is the member with the least weight for its cores.
func lightest(members []*Member, slots []Slot) string {
	load := map[string]int64{}
	for i := range slots {
		load[slots[i].Owner] += slots[i].Weight + 1
	}
	best := members[0]
	for _, m := range members[1:] {
		if load[m.Name]*int64(cores(best)) < load[best.Name]*int64(cores(m)) {
			best = m
		}
	}
	return best.Name
}
