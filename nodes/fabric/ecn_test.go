package fabric

import (
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// pct is a probability in percent × 2^32.
func pct(num, den uint64) uint64 { return num << 32 / den }

func marks(w *WRED, q int64, n int) (got int) {
	for range n {
		f := wire.Frame{TOS: wire.ECT0}
		if w.Mark(&f, q) {
			got++
		}
	}
	return got
}

// TestSC38aCurve: the probability at published points, within 4 sigma of 100 000 draws.
func TestSC38aCurve(t *testing.T) {
	for _, c := range []struct {
		kmin, kmax int64
		pmax       uint64
		q          int64
		num, den   int
	}{
		{400_000, 1_600_000, pct(1, 5), 400_000, 0, 1},
		{400_000, 1_600_000, pct(1, 5), 1_000_000, 1, 10},
		{400_000, 1_600_000, pct(1, 5), 1_600_000, 1, 5},
		{400_000, 1_600_000, pct(1, 5), 1_600_001, 1, 1},
		{1_048_576, 2_097_152, pct(1, 20), 1_310_720, 1, 80},
		{1_048_576, 2_097_152, pct(1, 20), 1_572_864, 1, 40},
	} {
		w := NewWRED(&topology.ECN{On: true, Mark: true, KMin: c.kmin, KMax: c.kmax, PMax: c.pmax}, 99)
		const n = 100_000
		got, want := marks(&w, c.q, n), n*c.num/c.den
		variance := want - want*c.num/c.den
		if d := got - want; d*d > 16*variance {
			t.Errorf("Kmin %d Kmax %d: %d of %d marked at %d, want %d", c.kmin, c.kmax, got, n, c.q, want)
		}
	}
}

// TestSC38bCodepoints: what happens to each codepoint, marking and dropping.
func TestSC38bCodepoints(t *testing.T) {
	on := topology.ECN{On: true, Mark: true, KMin: 10, KMax: 20, PMax: 1 << 32}
	drop := on
	drop.DropNotECT = true
	noMark := topology.ECN{DropMin: 10, DropMax: 20, DropPMax: 1 << 32}
	for _, c := range []struct {
		name    string
		e       topology.ECN
		tos     uint8
		marked  bool
		after   uint8
		dropped bool
	}{
		{"ECT0", on, 26<<2 | wire.ECT0, true, wire.CE, false},
		{"ECT1", on, wire.ECT1, true, wire.CE, false},
		{"CE", on, wire.CE, false, wire.CE, false},
		{"Not-ECT passes", on, 0, false, 0, false},
		{"Not-ECT drops", drop, 0, false, 0, true},
		{"ECT never drops", drop, wire.ECT0, true, wire.CE, false},
		{"marking off, ECT", noMark, wire.ECT0, false, wire.ECT0, true},
	} {
		w := NewWRED(&c.e, 1)
		f := wire.Frame{TOS: c.tos}
		if d := w.Drops(&f, 21); d != c.dropped {
			t.Errorf("%s: dropped %v", c.name, d)
		}
		if m := w.Mark(&f, 21); m != c.marked || f.ECN() != c.after || f.DSCP() != c.tos>>2 {
			t.Errorf("%s: marked %v, ToS %#x", c.name, m, f.TOS)
		}
	}
}

// TestSC38cDequeue: 2N frames of 1 KB on Kmin = Kmax = N KB: the first is
// marked, the last is not.
func TestSC38cDequeue(t *testing.T) {
	const n = 100
	l := pair(t)
	l.each(func(_ *topology.Device, p *topology.Port) {
		p.ECN[3] = topology.ECN{On: true, Mark: true, KMin: n * 1000, KMax: n * 1000, PMax: 1 << 32}
	})
	a, b := l.hosts["a"], l.hosts["b"]
	b.rules = []*pauseRule{{prio: 3, quanta: 65535}, {prio: 3, quanta: 0, from: clock.Time(200 * us)}}
	a.send(stream{to: 2, len: 1000, dscp: 3, ecn: wire.ECT0, start: clock.Time(10 * us), count: 2 * n})
	l.build(1, 0)
	l.run(ms)
	got := b.got3()
	if got.frames != 2*n || got.ce != n-1 {
		t.Fatalf("%d frames, %d marked; want %d and %d", got.frames, got.ce, 2*n, n-1)
	}
	for i, m := range got.marks {
		if m != (i < n-1) {
			t.Errorf("frame %d marked %v", i, m)
		}
	}
	if m := l.sws["leaf1"].Counters(2).Queue[3].Marked; m != n-1 {
		t.Errorf("counter %d", m)
	}
}

// TestSC38dAccuracy: 9 + 37.525 marks a round of 2010 frames.
func TestSC38dAccuracy(t *testing.T) {
	w := NewWRED(&topology.ECN{On: true, Mark: true, KMin: 500_000, KMax: 2_000_000, PMax: pct(1, 20)}, 5)
	total := 0
	for range 200 {
		for behind := int64(2009); behind >= 0; behind-- {
			total += marks(&w, behind*1000, 1)
		}
	}
	if total < 9305-255 || total > 9305+255 {
		t.Errorf("%d marks, want 9305 ± 3 sigma", total)
	}
}

// TestAveraged: the average follows avg + (q − avg)/2^n.
func TestAveraged(t *testing.T) {
	w := NewWRED(&topology.ECN{On: true, Mark: true, KMin: 1, KMax: 2, Weight: 4}, 5)
	for i, want := range []int64{100, 193, 281} {
		if got := w.Length(1600); got != want {
			t.Errorf("step %d: %d, want %d", i, got, want)
		}
	}
}

// TestR29WREDDrops: with ECN off WRED rejects before PFC ever fires; with ECN
// on it marks and never drops.
func TestR29WREDDrops(t *testing.T) {
	for _, on := range []bool{true, false} {
		l := pair(t)
		l.each(func(_ *topology.Device, p *topology.Port) {
			e := topology.ECN{On: on, Mark: on, KMin: 100_000, KMax: 200_000, PMax: 1 << 31, DropMin: 100_000, DropMax: 200_000, DropPMax: 1 << 31}
			p.ECN[3], p.PFC.XOFF[3] = e, 300_000
		})
		l.hosts["b"].storm(3, 0, ms)
		l.hosts["a"].send(stream{to: 2, len: 1000, dscp: 3, ecn: wire.ECT0, count: 500})
		l.build(1, 0)
		l.run(300 * us)
		s := l.sws["leaf1"]
		d, x := s.Drops()[record.WRED], s.Counters(1).PG[3].XOFF
		if on && (d != 0 || x == 0) || !on && (d == 0 || x != 0) {
			t.Errorf("marking %v: %d WRED drops, %d XOFF", on, d, x)
		}
		if d != s.Counters(2).Queue[3].Drops {
			t.Error("queue counter differs")
		}
	}
}
