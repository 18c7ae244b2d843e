package fabric

import (
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// pair is a - leaf1 - b at 100 Gb/s, 500 ns cables.
func pair(t testing.TB) *lab {
	l := newLab(t)
	l.sw("leaf1")
	l.rx("a", "b")
	l.link("a", "leaf1", 100*clock.Gbps, 500*ns)
	l.link("b", "leaf1", 100*clock.Gbps, 500*ns)
	return l
}

// TestSC24Quanta: 65535 quanta at each rate, 1 quantum at 100G.
func TestSC24Quanta(t *testing.T) {
	for _, c := range []struct {
		g  int
		us string
	}{{10, "3355392"}, {25, "1342156.8"}, {40, "838848"}, {100, "335539.2"}, {400, "83884.8"}} {
		l := pair(t)
		l.each(func(_ *topology.Device, p *topology.Port) { p.Rate = clock.Rate(c.g) * clock.Gbps })
		l.build(1, 0)
		p := &l.sws["leaf1"].ports[0].port
		if d := p.PauseSpan(65535); d.NS() != c.us {
			t.Errorf("%dG: %s ns, want %s", c.g, d.NS(), c.us)
		}
		if c.g == 100 && p.PauseSpan(1) != 5120 {
			t.Errorf("a quantum at 100G: %v", p.PauseSpan(1))
		}
	}
}

// TestSC26Ignored: an empty vector, a priority without PFC and 802.3x change nothing.
func TestSC26Ignored(t *testing.T) {
	l := pair(t)
	a, b := l.hosts["a"], l.hosts["b"]
	a.send(stream{to: 2, len: 1000, dscp: 3})
	b.rules = []*pauseRule{
		{prio: 3, quanta: 65535, zero: true, to: clock.Time(ms), every: 50 * us},
		{prio: 1, quanta: 65535, to: clock.Time(ms), every: 50 * us},
		{prio: 3, quanta: 65535, kind: wire.KindPause, to: clock.Time(ms), every: 50 * us},
	}
	l.build(1, 0)
	l.run(ms)
	c := l.sws["leaf1"].Counters(2)
	// 1.02 µs of cables and two serialisations at most are still under way
	if got, sent := b.got3().frames, a.streams[0].sent; sent-got > 20 || got < 12_200 {
		t.Errorf("%d of %d frames arrived", got, sent)
	}
	if c.PFC[1].Ignored != 20 || c.PFC[1].RxPause != 20 || c.PFC[3].RxPause != 0 || c.Pause != 20 {
		t.Errorf("ignored %d, rx[1] %d, rx[3] %d, 802.3x %d", c.PFC[1].Ignored, c.PFC[1].RxPause, c.PFC[3].RxPause, c.Pause)
	}
}

// TestSC27OnePriority: priority 3 stopped, the others flow, nothing is lost.
//
// Readings: the case's 5 s are 4 ms, after which nothing changes any more. "100%
// of the others" leaves out what is on the way when the run is cut (the example
// sends an amount that ends before). The storm starts with the run and the stream
// of priority 3 after its first pause has come, or frames would have passed.
func TestSC27OnePriority(t *testing.T) {
	l := pair(t)
	a, b := l.hosts["a"], l.hosts["b"]
	a.send(stream{to: 2, len: 1000, dscp: 3, gap: 163200, start: clock.Time(10 * us)})
	for _, d := range []uint8{0, 1, 2, 5, 6, 7} {
		a.send(stream{to: 2, len: 1000, dscp: d, gap: 6 * 163200})
	}
	b.storm(3, 0, 20*ms)
	l.build(1, 0)
	l.run(4 * ms)
	s := l.sws["leaf1"]
	if b.got3().frames != 0 || s.Counters(1).PFC[3].TxPause == 0 {
		t.Errorf("%d frames of priority 3 passed, XOFF %d", b.got3().frames, s.Counters(1).PFC[3].TxPause)
	}
	for _, st := range a.streams[1:] {
		if got := b.of(st.dscp).frames; st.sent-got > 4 || got < 4000 {
			t.Errorf("DSCP %d: %d of %d arrived", st.dscp, got, st.sent)
		}
	}
	if d := s.Dropped(); d.Frames != 0 {
		t.Errorf("%d frames lost", d.Frames)
	}
	rx, _ := s.PauseTimes(2, 3, clock.Time(4*ms))
	if rx < 3990*us || rx > 4*ms {
		t.Errorf("paused for %v of 4 ms", rx)
	}
}

// TestSC27Mirror: a storm of a priority without PFC stops nobody.
func TestSC27Mirror(t *testing.T) {
	l := pair(t)
	a, b := l.hosts["a"], l.hosts["b"]
	for _, d := range []uint8{0, 1, 2, 3, 5, 6, 7} {
		a.send(stream{to: 2, len: 1000, dscp: d, gap: 8 * 163200})
	}
	b.storm(1, 0, 20*ms)
	l.build(1, 0)
	l.run(4 * ms)
	s := l.sws["leaf1"]
	for _, st := range a.streams {
		if got := b.of(st.dscp).frames; st.sent-got > 4 || got < 3000 {
			t.Errorf("DSCP %d: %d of %d arrived", st.dscp, got, st.sent)
		}
	}
	if c := s.Counters(2).PFC[1]; c.RxPause == 0 || c.Ignored != c.RxPause || s.Dropped().Frames != 0 {
		t.Errorf("%d pauses, %d ignored, %d frames lost", c.RxPause, c.Ignored, s.Dropped().Frames)
	}
}

// TestPauseTimesExact: a pause of known length, resumed or expired, is counted
// to the picosecond, and expiry counts as a transition.
func TestPauseTimesExact(t *testing.T) {
	l := pair(t)
	b := l.hosts["b"]
	b.rules = []*pauseRule{
		{prio: 3, quanta: 1000, from: clock.Time(10 * us)},
		{prio: 3, quanta: 65535, from: clock.Time(30 * us)},
		{prio: 3, quanta: 0, from: clock.Time(41 * us)},
	}
	l.build(1, 0)
	l.run(ms)
	s := l.sws["leaf1"]
	rx, _ := s.PauseTimes(2, 3, clock.Time(ms))
	// both ends by reception (case C24): 1000 quanta of 5.12 ns, then 11 us to the resume
	if want := 1000*5120 + 11*us; rx != want {
		t.Errorf("paused %v, want %v", rx, want)
	}
	c := &s.Counters(2).PFC[3]
	s.settle(clock.Time(ms), 2, &s.ports[1], 3)
	if c.On2Off != 2 || c.RxPause != 2 || c.RxResume != 1 {
		t.Errorf("on2off %d, pause %d, resume %d", c.On2Off, c.RxPause, c.RxResume)
	}
}

// TestRefresh: a PG that stays in XOFF repeats its pause every half maximum.
func TestRefresh(t *testing.T) {
	l := pair(t)
	a, b := l.hosts["a"], l.hosts["b"]
	a.send(stream{to: 2, len: 1000, dscp: 3})
	b.storm(3, 0, 20*ms)
	l.build(1, 0)
	l.run(5 * ms)
	c := l.sws["leaf1"].Counters(1)
	up := clock.Time(5 * ms).Sub(c.PG[3].FirstXOFF)
	if want := 1 + uint64(up/167_769_600); c.PFC[3].TxPause != want || c.PG[3].XOFF != 1 {
		t.Errorf("%d pauses in %v, want %d; %d XOFF", c.PFC[3].TxPause, up, want, c.PG[3].XOFF)
	}
}

// TestSC29DSCP: SONiC's AZURE maps; ECN bits do not matter.
func TestSC29DSCP(t *testing.T) {
	l := pair(t)
	q := &topology.QoS{}
	for i := range q.DSCPToTC {
		q.DSCPToTC[i] = 1
	}
	for d, tc := range map[int]uint8{3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6} {
		q.DSCPToTC[d] = tc
	}
	q.TCToPG = [8]uint8{3: 3, 4: 4, 7: 7}
	for i := range 8 {
		q.TCToQueue[i], q.PFCToQueue[i] = uint8(i), uint8(i)
	}
	l.each(func(_ *topology.Device, p *topology.Port) { p.QoS, p.PFC.Lossless[4] = q, true })
	a, b := l.hosts["a"], l.hosts["b"]
	for _, d := range []uint8{3, 4, 5, 8, 46, 48, 0, 26} {
		for ecn := range uint8(4) {
			a.send(stream{to: 2, len: 1000, dscp: d, ecn: ecn, count: 1, start: clock.Time(10 * us)})
		}
	}
	b.storm(3, 0, ms)
	l.build(1, 0)
	l.run(100 * us)
	s := l.sws["leaf1"]
	n := s.Counters(2)
	want := [8]uint64{0: 4, 1: 8, 2: 4, 3: 0, 4: 4, 5: 4, 6: 4}
	for q, w := range want {
		if n.Queue[q].Tx != w {
			t.Errorf("queue %d sent %d, want %d", q, n.Queue[q].Tx, w)
		}
	}
	if _, sh, _ := s.Memory().Use(3); sh != 4*5 {
		t.Errorf("PG 3 holds %d cells, want 4 frames", sh)
	}
	for g := range 8 {
		if m, _ := s.Memory().PGMarks(g); (m > 0) != (g == 0 || g == 3 || g == 4) {
			t.Errorf("PG %d watermark %d", g, m)
		}
	}
}

// tree is servers A, B, C under L1, R and R2 under L2, one spine.
func tree(t testing.TB) *lab {
	l := newLab(t)
	for _, n := range []string{"L1", "S", "L2"} {
		l.sw(n).Switch.BufferBytes = 1 << 20
	}
	l.rx("A", "B", "C", "R", "R2")
	for _, h := range []string{"A", "B", "C"} {
		l.link(h, "L1", 100*clock.Gbps, 500*ns)
	}
	l.link("L1", "S", 100*clock.Gbps, 500*ns)
	l.link("L2", "S", 100*clock.Gbps, 500*ns)
	l.link("R", "L2", 100*clock.Gbps, 500*ns)
	l.link("R2", "L2", 100*clock.Gbps, 500*ns)
	return l
}

func firstOf(s *Switch, k record.Kind, port int) clock.Time {
	recs, _ := s.Records()
	for _, r := range recs {
		if r.Kind == k && (port == 0 || int(r.Port) == port) {
			return r.At
		}
	}
	return clock.Never
}

// TestSC30Propagation: the order of XOFFs up the tree and of resumes after it.
func TestSC30Propagation(t *testing.T) {
	l := tree(t)
	for _, h := range []string{"A", "B"} {
		l.hosts[h].send(stream{to: 4, len: 1000, dscp: 3, gap: 163200})
	}
	l.hosts["R"].rules = []*pauseRule{
		{prio: 3, quanta: 65535, from: clock.Time(20 * us), to: clock.Time(2 * ms), every: 50 * us},
		{prio: 3, quanta: 0, from: clock.Time(2*ms + us)},
	}
	l.build(1, 0)
	l.run(4 * ms)
	l2, s, l1 := l.sws["L2"], l.sws["S"], l.sws["L1"]
	at := []clock.Time{
		firstOf(l2, record.PauseStart, 2), firstOf(l2, record.Xoff, 1), firstOf(s, record.PauseStart, 2), firstOf(s, record.Xoff, 1),
		firstOf(l1, record.PauseStart, 4), firstOf(l1, record.Xoff, 1),
	}
	for i := 1; i < len(at); i++ {
		if at[i] == clock.Never || at[i] <= at[i-1] {
			t.Errorf("step %d at %v, the one before at %v", i, at[i], at[i-1])
		}
	}
	if d := at[2].Sub(at[1]); d < 1500*ns {
		t.Errorf("the spine stopped %v after L2's XOFF, less than flight and response", d)
	}
	if b := firstOf(l1, record.Xoff, 2); b == clock.Never {
		t.Error("server B was never paused")
	}
	x2, xs, x1 := firstOf(l2, record.Xon, 1), firstOf(s, record.Xon, 1), firstOf(l1, record.Xon, 1)
	if !(x2 < xs && xs < x1) || x1 == clock.Never {
		t.Errorf("resumes L2 %v, S %v, L1 %v", x2, xs, x1)
	}
	for n, sw := range l.sws {
		if d := sw.Dropped(); d.Frames != 0 {
			t.Errorf("%s dropped %d", n, d.Frames)
		}
	}
	if got := l.hosts["R"].got3(); got.bySrc[1] == 0 || got.last < clock.Time(3990*us) {
		t.Error("traffic did not resume")
	}
}

// TestSC31Victim: C to R2 stops although R2 is idle; another class does not.
func TestSC31Victim(t *testing.T) {
	l := tree(t)
	for _, h := range []string{"A", "B"} {
		l.hosts[h].send(stream{to: 4, len: 1000, dscp: 3, gap: 163200})
	}
	l.hosts["C"].send(stream{to: 5, len: 1000, dscp: 3, gap: 400 * ns})
	l.hosts["C"].send(stream{to: 5, len: 1000, dscp: 1, gap: 400 * ns})
	l.hosts["R"].storm(3, 20*us, 10*ms)
	l.build(1, 0)
	l.phase(2 * ms)
	r2 := l.hosts["R2"]
	before, other := r2.got3().frames, r2.of(1).frames
	l.run(4 * ms)
	if n := r2.got3().frames - before; n > 2 || before == 0 {
		t.Errorf("victim got %d frames while the spine was paused (%d before)", n, before)
	}
	if n := r2.of(1).frames - other; n < 4900 {
		t.Errorf("the other class got %d frames in 2 ms, want 5000", n)
	}
}

// ring is four switches with a host each; routes go clockwise.
func ring(t testing.TB, closed bool) *lab {
	l := newLab(t)
	names := []string{"S1", "S2", "S3", "S4"}
	for _, n := range names {
		l.sw(n).Switch.BufferBytes = 2 << 20
	}
	for i, n := range names {
		h := fmt.Sprintf("h%d", i+1)
		l.rx(h)
		l.link(h, n, 100*clock.Gbps, 500*ns)
	}
	for i := range names {
		if closed || i < 3 {
			l.link(names[i], names[(i+1)%4], 100*clock.Gbps, 500*ns)
		}
	}
	for i := range names {
		d := l.dev(names[i])
		d.Route = []int16{1, 1, 1, 1}
		d.Route[i] = 0
		cw := 0
		for p := range d.Ports {
			if d.Ports[p].Peer == l.dev(names[(i+1)%4]).ID {
				cw = p + 1
			}
		}
		d.Groups = [][]uint16{{1}, {uint16(cw)}}
		if cw == 0 {
			d.Groups[1] = nil
		}
	}
	return l
}

func (l *lab) cycles() [][]string {
	var ws []WaitState
	for _, d := range l.plan.Devices {
		if d.Switch != nil {
			ws = append(ws, l.sws[d.Name].Waits(&l.plan, l.eng.Now()))
		}
	}
	var out [][]string
	for _, c := range Deadlocks(&l.plan, ws) {
		out = append(out, c.Names(&l.plan))
	}
	return out
}

type ringFlow struct {
	from, to int
	gap      clock.Duration
}

func (l *lab) ringRun(flows []ringFlow, stop clock.Duration) {
	for i, f := range flows {
		l.hosts[fmt.Sprintf("h%d", f.from)].send(stream{to: uint32(f.to), len: 1000, dscp: 3, gap: f.gap, sport: uint16(i), end: clock.Time(stop)})
	}
	l.build(1, 0)
}

// TestSC36Ring, R-C23: cyclic buffer dependency with and without deadlock.
func TestSC36Ring(t *testing.T) {
	f1, f2, f3 := ringFlow{1, 4, 0}, ringFlow{3, 2, 0}, ringFlow{2, 3, 0}
	slow := ringFlow{2, 3, 50 * 81600}
	four := []ringFlow{{1, 3, 0}, {2, 4, 0}, {3, 1, 0}, {4, 2, 0}}
	for _, c := range []struct {
		name   string
		flows  []ringFlow
		closed bool
		dead   bool
	}{
		{"a two flows", []ringFlow{f1, f2}, true, false},
		{"b third flow", []ringFlow{f1, f2, f3}, true, true},
		{"c third flow slow", []ringFlow{f1, f2, slow}, true, false},
		{"d four flows", four, true, true},
		{"g line", []ringFlow{f1, f3}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := ring(t, c.closed)
			l.ringRun(c.flows, 3*ms)
			seen := false
			for at := 100 * us; at <= 3*ms; at += 20 * us {
				l.phase(at)
				seen = seen || len(l.cycles()) > 0 && c.dead
			}
			before := l.received()
			stored := l.stored()
			l.run(4 * ms)
			if c.dead {
				if !seen || len(l.cycles()) != 1 || len(l.cycles()[0]) != 4 {
					t.Errorf("cycles %v", l.cycles())
				}
				if l.received() != before || l.stored() != stored || stored == 0 {
					t.Errorf("received %d → %d, stored %d → %d", before, l.received(), stored, l.stored())
				}
				return
			}
			if l.stored() != 0 || len(l.cycles()) != 0 {
				t.Errorf("%d frames stay, cycles %v", l.stored(), l.cycles())
			}
			if c.name[0] == 'a' {
				for _, h := range []string{"h4", "h2"} {
					if n := float64(l.hosts[h].got3().frames) * 81.6 / 3e6; n < 0.45 || n > 0.55 {
						t.Errorf("%s got %.2f of the line", h, n)
					}
				}
			}
		})
	}
}

func (l *lab) received() (n uint64) {
	for _, h := range l.hosts {
		n += h.rx
	}
	return n
}

func (l *lab) stored() (n uint64) {
	for _, s := range l.sws {
		n += s.Stored().Frames
	}
	return n
}

// TestTwoPriorities: one frame pauses 3 and resumes 4, and leaves 5 alone.
func TestTwoPriorities(t *testing.T) {
	l := pair(t)
	l.each(func(_ *topology.Device, p *topology.Port) { p.PFC.Lossless[4], p.PFC.Lossless[5] = true, true })
	l.build(1, 0)
	s := l.sws["leaf1"]
	var f, g wire.Frame
	f.Kind, g.Kind = wire.KindPFC, wire.KindPFC
	f.SetPFCTime(4, 65535)
	f.SetPFCTime(5, 65535)
	g.SetPFCTime(3, 65535)
	g.SetPFCTime(4, 0)
	s.control(clock.Time(10*us), 2, &f)
	s.control(clock.Time(20*us), 2, &g)
	if m := s.ports[1].pausedQueues(clock.Time(21 * us)); m != 1<<3|1<<5 {
		t.Errorf("paused %08b, want 3 and 5", m)
	}
	if rx, _ := s.PauseTimes(2, 4, clock.Time(50*us)); rx != 10*us {
		t.Errorf("priority 4 was paused for %v, want 10 µs", rx)
	}
	if c := s.Counters(2).PFC; c[4].RxPause != 1 || c[4].RxResume != 1 || c[4].On2Off != 1 || c[5].On2Off != 0 {
		t.Errorf("%+v", c[4])
	}
}

// TestR16Headroom: two senders to one with frames of 4158 B: the computed
// headroom loses nothing, half of it and none at all do.
func TestR16Headroom(t *testing.T) {
	const h = 20_940 + 12_500 // response 1 µs at 100G
	for _, c := range []struct {
		bytes int64
		lossy bool
	}{{h, false}, {h / 2, true}, {0, true}} {
		l := newLab(t)
		l.sw("leaf1").Switch.BufferBytes = 1 << 20
		l.rx("h1", "h2", "h3")
		for _, n := range []string{"h1", "h2", "h3"} {
			l.link(n, "leaf1", 100*clock.Gbps, 500*ns)
		}
		l.each(func(_ *topology.Device, p *topology.Port) { p.Headroom[3] = (c.bytes + 207) / 208 })
		for _, n := range []string{"h1", "h3"} {
			l.hosts[n].send(stream{to: 2, len: 4158, dscp: 3})
		}
		l.build(1, 0)
		l.run(ms)
		s := l.sws["leaf1"]
		lost := s.Counters(1).PG[3].Drops + s.Counters(3).PG[3].Drops
		if (lost > 0) != c.lossy || lost != s.Drops()[record.BufferHeadroom] || s.Counters(1).PG[3].XOFF == 0 {
			t.Errorf("headroom %d B: %d lost, %d XOFF", c.bytes, lost, s.Counters(1).PG[3].XOFF)
		}
	}
}
