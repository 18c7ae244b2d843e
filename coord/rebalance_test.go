package coord

import "testing"

func TestRelieve(t *testing.T) {
	m := func(names ...string) (l []*Member) {
		for _, n := range names {
			l = append(l, &Member{Name: n, Cores: 1})
		}
		return l
	}
	slots := []Slot{{Owner: "a", Weight: 10}, {Owner: "a", Weight: 4}, {Owner: "b", Weight: 10}}
	for _, x := range []struct {
		name    string
		members []*Member
		load    map[string]int64
		slot    int
		to      string
		ok      bool
	}{
		{"the lighter slot goes to the idle one", m("a", "b", "c"), map[string]int64{"a": 140, "b": 100, "c": 0}, 1, "c", true},
		{"balanced", m("a", "b"), map[string]int64{"a": 120, "b": 100}, 0, "", false},
		{"a single slot stays", m("b", "c"), map[string]int64{"b": 100}, 0, "", false},
		{"a move that helps", m("a", "b"), map[string]int64{"a": 100, "b": 50, "c": 0}, 1, "b", true},
		{"nobody else", m("a"), map[string]int64{"a": 100}, 0, "", false},
	} {
		slot, to, ok := relieve(x.members, slots, x.load)
		if slot != x.slot || to != x.to || ok != x.ok {
			t.Errorf("%s: slot %d to %q, %v", x.name, slot, to, ok)
		}
	}
	heavy := []Slot{{Owner: "a", Weight: 10}, {Owner: "a", Weight: 9}, {Owner: "b", Weight: 10}}
	if _, _, ok := relieve(m("a", "b"), heavy, map[string]int64{"a": 100, "b": 60}); ok {
		t.Error("a move that makes the other one the busiest")
	}
}
