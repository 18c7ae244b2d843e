package sim

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/topology"
)

// TestRestoreDeadlocksRefuses: what Save did not write is an error, not a panic
// and not another list.
func TestRestoreDeadlocksRefuses(t *testing.T) {
	p, _, err := topology.ParseBytes("ring", []byte(ringFile()))
	if err != nil {
		t.Fatal(err)
	}
	was := NewDeadlocks(p)
	was.found = []fabric.Deadlock{{At: 7, Cycle: []fabric.Node{{Dev: 0, Port: 2, Prio: 3}, {Dev: 2, Port: 2, Prio: 3}}}}
	was.told = 1
	var w snap.Writer
	was.save(&w)
	is := NewDeadlocks(p)
	if err := is.restore(&snap.Reader{B: w.B}); err != nil || len(is.found) != 1 || len(is.Records(nil)) != 0 || is.found[0].Names(p)[1] != was.found[0].Names(p)[1] {
		t.Fatalf("restored %+v, %d told: %v", is.found, is.told, err)
	}
	for n := range w.B {
		if NewDeadlocks(p).restore(&snap.Reader{B: w.B[:n]}) == nil {
			t.Errorf("cut to %d of %d bytes and still read", n, len(w.B))
		}
	}
	for _, bad := range []func(){
		func() { was.told = 2 },
		func() { was.found[0].Cycle[1].Dev = int32(len(p.Devices)) },
		func() { was.found[0].Cycle = nil },
	} {
		bad()
		w.B = nil
		was.save(&w)
		if NewDeadlocks(p).restore(&snap.Reader{B: w.B}) == nil {
			t.Errorf("taken: %+v, %d told", was.found, was.told)
		}
	}
}

// TestSavedOtherFormat: a file of an earlier program is refused by its number.
func TestSavedOtherFormat(t *testing.T) {
	var w snap.Writer
	w.U32(saveVersion - 1)
	if _, err := decodeSaved(w.B); err == nil || !strings.Contains(err.Error(), "has format 4; this program reads 5") {
		t.Error(err)
	}
}

// TestToldBound: what does not fit is left out whole batches at a time, and stays
// left out.
func TestToldBound(t *testing.T) {
	h := told{keep: true, records: make([]byte, maxTold-10)}
	h.add(make([]record.Record, 1))
	if n := len(h.records); n != maxTold-10 || !h.full {
		t.Errorf("%d bytes kept of %d, full %v", n, maxTold, h.full)
	}
	h.records = nil
	if h.add(make([]record.Record, 1)); h.records != nil {
		t.Error("a batch after those that were left out is kept")
	}
}
