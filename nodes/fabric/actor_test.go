package fabric

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// busy is a two-tier fabric under mixed load that exercises everything: PFC,
// ECN, DWRR, a small buffer, lossy drops, ECMP, phase-aligned hosts.
func busy(t testing.TB, workers int, split int) *lab {
	l := newLab(t)
	for _, n := range []string{"S1", "S2", "L1", "L2"} {
		d := l.sw(n)
		d.Switch.BufferBytes, d.Switch.Latency = 400_000, us
		d.Switch.ECMP = topology.ECMP{Seed: uint32(len(n)) * 77}
	}
	for i := range 8 {
		h := fmt.Sprintf("h%d", i+1)
		l.rx(h)
		l.link(h, fmt.Sprintf("L%d", i/4+1), 25*clock.Gbps, 15*ns)
	}
	for _, leaf := range []string{"L1", "L2"} {
		for _, sp := range []string{"S1", "S2"} {
			l.link(leaf, sp, 40*clock.Gbps, 150*ns)
		}
	}
	l.each(func(_ *topology.Device, p *topology.Port) {
		p.ECN[3] = topology.ECN{On: true, Mark: true, KMin: 5000, KMax: 60_000, PMax: 1 << 30}
		p.QoS.Sched[3].Weight = 4
		p.Lossy.Alpha = topology.Alpha{Num: 1, Den: 64}
		p.PFC.Watchdog = wd(100*ms, 100*ms, 100*ms, "drop")
	})
	for i := range 8 {
		h := l.hosts[fmt.Sprintf("h%d", i+1)]
		h.send(stream{to: uint32((i+4)%8 + 1), len: 1086, dscp: 3, ecn: wire.ECT0, sport: uint16(49152 + 7*i)})
		h.send(stream{to: uint32(i%3 + 1), len: 700, dscp: 3, ecn: wire.ECT0, sport: uint16(50000 + i)})
		h.send(stream{to: uint32((i+5)%8 + 1), len: 1500, dscp: 1, gap: 2 * us, sport: uint16(i)})
	}
	w := clock.Duration(0)
	if split > 0 {
		w = 515 * ns / clock.Duration(split)
	}
	l.build(workers, w)
	return l
}

func (l *lab) digest() string {
	d := l.eng.Digest()
	var b bytes.Buffer
	for _, n := range []string{"S1", "S2", "L1", "L2"} {
		if s := l.sws[n]; s != nil {
			var w snap.Writer
			s.Snapshot(&w)
			fmt.Fprintf(&b, "%x ", clock.HashString(1, string(w.B)))
		}
	}
	return fmt.Sprintf("%x%x %s", d.Hi, d.Lo, b.String())
}

// TestSameDigest: results and whole states do not depend on workers or on how
// time is cut into windows.
func TestSameDigest(t *testing.T) {
	var want string
	for _, c := range [][2]int{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {1, 7}} {
		l := busy(t, c[0], c[1])
		l.run(400 * us)
		if want == "" {
			want = l.digest()
			var drops, pauses, marked uint64
			for _, s := range l.sws {
				drops += s.Drops()[record.EgressLimit]
				for p := 1; p <= s.Ports(); p++ {
					pauses += s.Counters(p).PFC[3].TxPause
					marked += s.Counters(p).Queue[3].Marked
				}
			}
			if drops == 0 || pauses == 0 || marked == 0 {
				t.Errorf("too easy: %d drops, %d pauses, %d marks", drops, pauses, marked)
			}
		} else if got := l.digest(); got != want {
			t.Errorf("workers %d, window 1/%d: %s, want %s", c[0], c[1], got, want)
		}
	}
}

// TestSnapshot: a restored switch has the same bytes and goes on in the same way.
func TestSnapshot(t *testing.T) {
	a, b := busy(t, 1, 1), busy(t, 1, 1)
	for _, l := range []*lab{a, b} {
		l.phase(150 * us)
	}
	for n, s := range b.sws {
		var w, again snap.Writer
		s.Snapshot(&w)
		f := New(&b.plan, s.id, Options{})
		r := snap.Reader{B: w.B}
		if err := f.Restore(&r); err != nil || len(r.B) != 0 {
			t.Fatal(n, err, len(r.B))
		}
		f.Snapshot(&again)
		if !bytes.Equal(w.B, again.B) {
			t.Errorf("%s: %d bytes restore to different %d", n, len(w.B), len(again.B))
		}
		*s = *f
	}
	a.run(400 * us)
	b.run(400 * us)
	if a.digest() != b.digest() {
		t.Error("a restored run differs")
	}
}

// TestRestoreHostile: damaged states are refused or taken, never a panic.
func TestRestoreHostile(t *testing.T) {
	l := busy(t, 1, 1)
	l.phase(100 * us)
	s := l.sws["L1"]
	var w snap.Writer
	s.Snapshot(&w)
	rnd := rand.New(rand.NewSource(5))
	for range 300 {
		b := append([]byte(nil), w.B[:rnd.Intn(len(w.B))]...)
		for range rnd.Intn(5) {
			if len(b) > 0 {
				b[rnd.Intn(len(b))] ^= byte(1 + rnd.Intn(255))
			}
		}
		f := New(&l.plan, s.id, Options{})
		if err := f.Restore(&snap.Reader{B: b}); err == nil {
			t.Error("a cut state was accepted")
		}
	}
}

// TestSC40Latency: three chips of 1 µs and of 300 ns, cables 3+30+30+3 m, L = 1082 B.
func TestSC40Latency(t *testing.T) {
	for _, c := range []struct {
		chip clock.Duration
		len  uint16
		want string
	}{{us, 1082, "4211.6"}, {300 * ns, 1082, "2111.6"}, {us, 1086, "4214.8"}, {300 * ns, 1086, "2114.8"}} {
		l := newLab(t)
		for _, n := range []string{"S", "L1", "L2"} {
			l.sw(n).Switch.Latency = c.chip
		}
		l.rx("a", "b")
		l.link("a", "L1", 25*clock.Gbps, 15*ns)
		l.link("b", "L2", 25*clock.Gbps, 15*ns)
		l.link("L1", "S", 100*clock.Gbps, 150*ns)
		l.link("L2", "S", 100*clock.Gbps, 150*ns)
		l.hosts["a"].send(stream{to: 2, len: c.len, dscp: 3, count: 1})
		l.build(1, 0)
		l.run(ms)
		if got := l.hosts["b"].got3().first.NS(); got != c.want {
			t.Errorf("chip %v, L %d: %s ns, want %s", c.chip, c.len, got, c.want)
		}
	}
}

// TestCutThrough: a frame starts 64 B and the latency after its head when the
// egress is idle and no faster; otherwise it waits for its tail.
func TestCutThrough(t *testing.T) {
	for _, c := range []struct {
		out  clock.Rate
		want string // arrival of the last bit
	}{
		{100 * clock.Gbps, "1393.28"}, // 5.12 + 500 + 300 + 88.16 + 500
		{200 * clock.Gbps, "1432.24"}, // 88.16 + 500 + 300 + 44.08 + 500
		{25 * clock.Gbps, "1657.76"},  // 5.12 + 500 + 300 + 352.64 + 500
	} {
		l := newLab(t)
		d := l.sw("leaf1")
		d.Switch.CutThrough, d.Switch.Latency = true, 300*ns
		l.rx("a", "b")
		l.link("a", "leaf1", 100*clock.Gbps, 500*ns)
		l.link("b", "leaf1", c.out, 500*ns)
		l.hosts["a"].send(stream{to: 2, len: 1082, dscp: 3, count: 1})
		l.build(1, 0)
		l.run(ms)
		if got := l.hosts["b"].got3().first.NS(); got != c.want {
			t.Errorf("to %v: %s, want %s", c.out, got, c.want)
		}
	}
}

// TestCutThroughCongested: a busy egress makes it store-and-forward and nothing is lost.
func TestCutThroughCongested(t *testing.T) {
	l := newLab(t)
	d := l.sw("leaf1")
	d.Switch.CutThrough, d.Switch.Latency = true, 300*ns
	l.rx("a", "b", "c")
	for _, h := range []string{"a", "b", "c"} {
		l.link(h, "leaf1", 100*clock.Gbps, 500*ns)
	}
	for _, h := range []string{"a", "c"} {
		l.hosts[h].send(stream{to: 2, len: 1082, dscp: 3, count: 2000})
	}
	l.build(1, 0)
	l.run(ms)
	if got := l.hosts["b"].got3().frames; got != 4000 {
		t.Errorf("%d of 4000 frames", got)
	}
}

// one sends a single frame through pair with a change applied, and returns the switch.
func one(t *testing.T, s stream, change func(*Switch)) (*lab, *Switch) {
	l := pair(t)
	l.hosts["a"].send(s)
	l.build(1, 0)
	change(l.sws["leaf1"])
	l.run(ms)
	return l, l.sws["leaf1"]
}

// TestDropReasons: each check counts under its own name and on its own counter.
func TestDropReasons(t *testing.T) {
	f := stream{to: 2, len: 1000, dscp: 3, count: 1}
	nothing := func(*Switch) {}
	to9, out := f, actors.Outbox{}
	to9.to = 9
	for _, c := range []struct {
		s    stream
		do   func(*Switch)
		want record.Reason
	}{
		{to9, nothing, record.NoRoute},
		{f, func(s *Switch) { s.SetMTU(2, 999) }, record.MTU},
		{f, func(s *Switch) { s.SetMTU(1, 999) }, record.MTU},
		{f, func(s *Switch) { s.SetLink(0, 2, Both, false, &out) }, record.LinkDown},
		{f, func(s *Switch) { s.SetDown(0, true, &out) }, record.DeviceDown},
		{f, func(s *Switch) { s.SetLink(0, 1, In, false, &out) }, record.LinkDown},
	} {
		_, s := one(t, c.s, c.do)
		n := s.Drops()
		if n[c.want] != 1 {
			t.Errorf("want %v, got %v", c.want, *n)
		}
		recs, _ := s.Records()
		if d := recs[len(recs)-1]; d.Kind != record.Drop || d.Reason != uint8(c.want) || d.Src != 1 {
			t.Errorf("%v: record %+v", c.want, d)
		}
	}
}

// TestLinkOutage: a frame whose time on the cable overlaps an outage is lost, one bit before or after it is not.
func TestLinkOutage(t *testing.T) {
	// The frame is on the cable of port 1 from 0 to 81.6 + 500 ns.
	for _, c := range []struct {
		down, up clock.Duration
		lost     bool
	}{{0, 1, true}, {581_600, 600 * ns, false}, {581_599, 600 * ns, true}, {100 * ns, 101 * ns, true}} {
		l := pair(t)
		l.hosts["a"].send(stream{to: 2, len: 1000, dscp: 3, count: 1})
		l.opts.Faults = &script{steps: []step{
			{clock.Time(c.down), func(s *Switch, o *actors.Outbox) { s.SetLink(clock.Time(c.down), 1, In, false, o) }},
			{clock.Time(c.up), func(s *Switch, o *actors.Outbox) { s.SetLink(clock.Time(c.up), 1, In, true, o) }},
		}}
		l.build(1, 0)
		l.run(ms)
		if got := l.hosts["b"].got3().frames == 0; got != c.lost {
			t.Errorf("outage [%v, %v): lost %v", c.down, c.up, got)
		}
	}
}

type step struct {
	at clock.Time
	do func(*Switch, *actors.Outbox)
}

// script is a fault plan of plain steps.
type script struct{ steps []step }

func (s *script) Next() clock.Time {
	if len(s.steps) == 0 {
		return clock.Never
	}
	return s.steps[0].at
}
func (s *script) NextFault() clock.Time { return s.Next() }
func (s *script) NextWork() clock.Time  { return clock.Never }
func (s *script) Apply(now clock.Time, sw *Switch, out *actors.Outbox) {
	s.steps[0].do(sw, out)
	s.steps = s.steps[1:]
}
func (s *script) Blame(clock.Time, *wire.Frame, record.Reason) int32 { return 0 }
func (s *script) Snapshot(*snap.Writer)                              {}
func (s *script) Restore(*snap.Reader) error                         { return nil }

// TestLinkDownDropsQueue: what is queued for a port drops when its link goes
// down, with another member the rest goes there, and back after the outage.
func TestLinkDownDropsQueue(t *testing.T) {
	l := newLab(t)
	l.sw("L1")
	l.sw("L2")
	l.rx("a", "b")
	l.link("a", "L1", 100*clock.Gbps, 500*ns)
	l.link("b", "L2", 100*clock.Gbps, 500*ns)
	l.link("L1", "L2", 25*clock.Gbps, 500*ns)
	l.link("L1", "L2", 25*clock.Gbps, 500*ns)
	for i := range 8 {
		l.hosts["a"].send(stream{to: 2, len: 1000, dscp: 3, sport: uint16(i), gap: 2 * us, end: clock.Time(300 * us)})
	}
	down, up := clock.Time(100*us), clock.Time(200*us)
	l.build(1, 0)
	l1 := l.sws["L1"]
	l1.faults = &script{steps: []step{
		{down, func(s *Switch, o *actors.Outbox) { s.SetLink(down, 2, Out, false, o) }},
		{up, func(s *Switch, o *actors.Outbox) { s.SetLink(up, 2, Out, true, o); s.SetMember(2, true) }},
	}}
	l.phase(150 * us)
	two := l1.Counters(2).Tx.Frames
	l.phase(190 * us)
	if l1.Counters(2).Tx.Frames != two {
		t.Error("frames go out over a link that is down")
	}
	l.run(ms)
	if l1.Counters(2).Tx.Frames == two {
		t.Error("the member did not come back")
	}
	drops := l1.Drops()[record.LinkDown]
	if sent, got := uint64(l.hosts["a"].tx), l.hosts["b"].rx; sent != got+drops+l.sws["L2"].Dropped().Frames {
		t.Errorf("sent %d, received %d, dropped %d", sent, got, drops)
	}
}

// TestPFCOff: a port without PFC sends none, and tells its peer at once when it is back.
func TestPFCOff(t *testing.T) {
	l := pair(t)
	l.each(func(_ *topology.Device, p *topology.Port) { p.PFC.XOFF[3] = 50_000; p.Headroom[3] = 100 })
	l.hosts["a"].send(stream{to: 2, len: 1000, dscp: 3})
	l.hosts["b"].storm(3, 0, 10*ms)
	on := clock.Time(300 * us)
	l.opts.Faults = &script{steps: []step{
		{0, func(s *Switch, o *actors.Outbox) { s.SetPFCOff(0, 1, true, o) }},
		{on, func(s *Switch, o *actors.Outbox) { s.SetPFCOff(on, 1, false, o) }},
	}}
	l.build(1, 0)
	l.phase(250 * us)
	s := l.sws["leaf1"]
	if s.Counters(1).PFC[3].TxPause != 0 || s.Drops()[record.BufferHeadroom] == 0 {
		t.Errorf("PFC off: %d pauses, %d drops", s.Counters(1).PFC[3].TxPause, s.Drops()[record.BufferHeadroom])
	}
	l.phase(310 * us)
	drops := s.Drops()[record.BufferHeadroom]
	l.run(ms)
	if s.Counters(1).PFC[3].TxPause == 0 || s.Drops()[record.BufferHeadroom] != drops {
		t.Errorf("PFC on again: %d pauses, drops %d → %d", s.Counters(1).PFC[3].TxPause, drops, s.Drops()[record.BufferHeadroom])
	}
}
