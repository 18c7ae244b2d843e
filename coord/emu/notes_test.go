package emu

import (
	"slices"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report/counters"
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
