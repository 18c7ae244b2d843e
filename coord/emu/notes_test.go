package emu

import (
	"reflect"
	"slices"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/split"
	"github.com/rocemu/rocemu/topology"
)

func snapshot(us, a, b int64) *counters.Snapshot {
	return &counters.Snapshot{At: clock.Time(us * int64(clock.Microsecond)), Points: []counters.Point{
		{ID: counters.TxFrames, Dev: 300, Port: 2, Index: -1, Value: a}, {ID: counters.QueueOccupancy, Dev: 301, Port: 1, Index: 7, Value: b},
	}}
}

func TestLogRoundTrip(t *testing.T) {
	var l noteLog
	recs := []record.Record{{At: 5, Dev: 3, Seq: 1, Kind: record.Drop, X: -9}, {At: 7, Dev: 2, Seq: 1, Kind: record.Timeout}}
	l.records(64, recs)
	first, second := snapshot(1, 10, 20), snapshot(2, 10, 5)
	l.sample(70, first, nil)
	l.sample(80, second, first.Points)
	head := l.take()
	third := snapshot(3, 11, -5)
	l.sample(90, third, second.Points)
	var got []entry
	if err := unpack(append(head, l.take()...), func(e *entry) error { got = append(got, *e); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || !slices.Equal(got[0].recs, recs) || !slices.Equal(got[1].points, first.Points) || got[3].at != third.At || got[3].n != 90 {
		t.Fatalf("read %+v", got)
	}
	s := shareNotes{}
	for i, want := range []*counters.Snapshot{first, second, third} {
		if err := s.apply(&got[i+1]); err != nil || !slices.Equal(s.points, want.Points) {
			t.Errorf("sample %d: %v, %+v", i, err, s.points)
		}
	}
}

// someWaits are of two switches, one of which waits no more.
func someWaits() []fabric.WaitState {
	return []fabric.WaitState{{Dev: 4}, {
		Dev: 5, Queues: []fabric.PausedQueue{{Port: 2, Prio: 3, Since: 99}, {Port: 7, Prio: 4, Since: -1}},
		Groups: []fabric.StoppedGroup{{
			Port: 300, Prios: 0x18, Slice: 1, Since: 70, Shared: 1 << 33, ResumeAt: -1,
			Held: []fabric.HeldIn{{Port: 2, Prio: 3, Since: 0}, {Port: 7, Prio: fabric.NoPrio, Since: 71}},
		}, {Port: 1}},
	}}
}

func TestWaitsRoundTrip(t *testing.T) {
	var l noteLog
	l.waits(7, 100, someWaits())
	var got []entry
	if err := unpack(l.take(), func(e *entry) error { got = append(got, *e); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].n != 7 || !reflect.DeepEqual(got[0].waits, someWaits()) {
		t.Fatalf("read %+v", got)
	}
	p := &topology.Plan{Devices: make([]topology.Device, 6)}
	p.Devices[4].Switch, p.Devices[5].Switch = &topology.Switch{}, &topology.Switch{}
	if fits(p, someWaits()) {
		t.Error("waits of ports that are not there")
	}
	p.Devices[5].Ports = make([]topology.Port, 300)
	if !fits(p, someWaits()) {
		t.Error("waits of ports that are there are refused")
	}
}

func someSightings() []split.Sighting {
	return []split.Sighting{
		{Pair: 63, Dev: 700, Port: 2, PSN: 0xffffff, Index: 9, Len: 4200, Op: 0x11, Iter: 3, Toward: true, At: 1 << 50},
		{PSN: 5, Len: 64, At: 1<<50 - 7},
	}
}

func TestSightingsRoundTrip(t *testing.T) {
	var l noteLog
	l.sightings(7, 100, someSightings())
	var got []entry
	if err := unpack(l.take(), func(e *entry) error { got = append(got, *e); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].n != 7 || got[0].first != 100 || !slices.Equal(got[0].seen, someSightings()) {
		t.Fatalf("read %+v", got)
	}
}

// What was seen is counted once, and a gap is noticed, at the end too.
func TestSightingsMissing(t *testing.T) {
	p, _, err := topology.LoadBytes("one.yaml", []byte("schema: 1\ntopology: {spines: 1, leaves: 1, servers: 2}\nworkload: [{name: a, from: rnic1, to: rnic2, verb: write, size: 4KB}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	seen := slices.Repeat([]split.Sighting{{Dev: 1}}, 10)
	for _, c := range []struct {
		entries [][2]uint64 // first, number
		missing uint64
	}{
		{[][2]uint64{{0, 4}, {4, 6}, {10, 0}}, 0},
		{[][2]uint64{{0, 4}, {2, 6}, {8, 0}}, 0},
		{[][2]uint64{{0, 6}, {2, 3}, {6, 0}}, 0},
		{[][2]uint64{{0, 4}, {6, 4}, {10, 0}}, 2},
		{[][2]uint64{{3, 1}, {5, 0}}, 4},
	} {
		m, l := NewNotes(p, 1), noteLog{}
		m.Split = split.New(p)
		for i, e := range c.entries {
			l.sightings(uint64(i+1), e[0], seen[:e[1]])
		}
		if err := m.Add(0, l.take(), ^uint64(0)); err != nil || m.unseen != c.missing {
			t.Errorf("%v: %v, %d missing, want %d", c.entries, err, m.unseen, c.missing)
		}
		if _, err := m.Splits(nil); (err != nil) != (c.missing > 0) {
			t.Errorf("%v: %v", c.entries, err)
		}
	}
	m, l := NewNotes(p, 1), noteLog{}
	m.Split = split.New(p)
	l.sightings(1, 0, someSightings())
	if m.Add(0, l.take(), 1) == nil {
		t.Error("frames on cables that are not there")
	}
}

// What does not fit is left out, and who notes is told: the next entry must not
// build on it.
func TestLostNotes(t *testing.T) {
	l := noteLog{wait: maxUntaken + 1}
	if l.waits(1, 5, someWaits()) || l.sample(1, snapshot(1, 1, 1), nil) || l.lost != 2 {
		t.Errorf("%d entries lost, want 2", l.lost)
	}
}

// Damaged notes are refused, never half understood.
func TestDamagedNotes(t *testing.T) {
	var l noteLog
	s := snapshot(1, 10, 20)
	l.sample(70, s, nil)
	l.records(71, []record.Record{{At: 5, Seq: 1}})
	l.waits(72, 100, someWaits())
	l.sightings(73, 0, someSightings())
	b := l.take()
	keep := func(*entry) error { return nil }
	for n := 1; n < len(b); n++ {
		if unpack(b[:n], keep) == nil {
			t.Errorf("cut to %d of %d bytes and still read", n, len(b))
		}
	}
	for _, raw := range []string{"X\x01", "R\x01\xff\xff\x03", "F\x01\x02\xff\x7f", "F\x01\x02\x01\x00\xff\x00\x00\x00", "D", "W", "W\x01\x02\x7f", "S\x01\x00\x7f", "S\x01\x00\x01\x00\x00\x00\x00", "W\x01\x02\x01\x05\x00\x01\x01\x08\x00"} {
		if entries([]byte(raw), keep) == nil {
			t.Errorf("%q was read", raw)
		}
	}
}

// Who looks may have the notes of the end before the run's end is in the ledger:
// the last sample is the one that says so, not the one that comes when all is
// known.
func TestEndSeenLive(t *testing.T) {
	logs := [2]noteLog{}
	for i := range logs {
		first, end := snapshot(1, 10, 20), snapshot(2, 12, 5)
		logs[i].sample(70, first, nil)
		logs[i].end(81)
		logs[i].sample(81, end, first.Points)
	}
	b := [2][]byte{logs[0].take(), logs[1].take()}
	for _, upTo := range [][2]uint64{{81, 81}, {0, 81}, {^uint64(0), ^uint64(0)}} {
		m := NewNotes(&topology.Plan{Devices: make([]topology.Device, 2)}, 2)
		var got []bool
		m.Sample = func(_ *counters.Snapshot, last bool) { got = append(got, last) }
		for i := range b { // as it runs
			if err := m.Add(i, b[i], upTo[i]); err != nil {
				t.Fatal(err)
			}
		}
		for i := range b { // once it has ended
			if err := m.Add(i, b[i], ^uint64(0)); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, []bool{false, true}) {
			t.Errorf("known up to %v at first: samples that are the last: %v", upTo, got)
		}
	}
}

// A reader that asks in steps gets every entry once, and what was let go is not
// promised.
func TestSince(t *testing.T) {
	var l noteLog
	for n := uint64(1); n <= 40; n++ {
		l.records(n, []record.Record{{At: 1, Seq: uint32(n)}})
		l.pack()
	}
	var got []uint64
	for at := uint64(0); at < 40; {
		b, upTo := l.since(at, 40, 60)
		if err := unpack(b, func(e *entry) error {
			if e.n > at && e.n <= upTo {
				got = append(got, e.n)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if upTo <= at {
			t.Fatalf("no progress beyond %d", at)
		}
		at = upTo
	}
	for i, n := range got {
		if n != uint64(i+1) {
			t.Fatalf("entries %v", got)
		}
	}
	if len(got) != 40 {
		t.Errorf("%d entries of 40", len(got))
	}
}
