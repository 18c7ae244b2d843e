package split

import "testing"

// TestNotesSpread: as many frames as a table has places, half of them packets and
// half their acknowledgements, take each place once: a lookup meets one frame.
func TestNotesSpread(t *testing.T) {
	var n notes
	const pairs = 4 * leastTable
	for i := range uint32(pairs) {
		n.note(&key{psn: 1000 + i, op: 7, iter: 1, toward: true}, hop{}, 1000)
		n.note(&key{psn: 1000 + i, index: 500 + i, op: 17, iter: 1}, hop{}, 70)
	}
	if len(n.table) != 2*pairs {
		t.Fatalf("%d places for %d frames", len(n.table), 2*pairs)
	}
	for i := range n.frames.n {
		if f := n.frames.at(i); f.next >= 0 {
			t.Fatalf("%+v shares its place with %+v", f.key, n.frames.at(f.next).key)
		}
	}
}
