package fabric

import (
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/topology"
)

// article builds the setup of case C14: a line-rate stream of 64-B frames into
// a blocked egress, static threshold of 100 cells, and a reverse frame of
// 9132 B that starts at the MAC just before XOFF is raised. Pipeline latency 0.
func article(t *testing.T, rate clock.Rate, meters, headroom int64) (*lab, *Switch) {
	l := newLab(t)
	l.sw("leaf1")
	l.rx("a", "b")
	prop := clock.Duration(meters) * 5 * ns
	l.link("a", "leaf1", rate, prop)
	l.link("b", "leaf1", rate, 500*ns)
	const cells = 100
	l.each(func(_ *topology.Device, p *topology.Port) {
		p.PFC.XOFF[3] = cells * 208
		p.Headroom[3] = headroom
	})
	a, b := l.hosts["a"], l.hosts["b"]
	b.storm(3, 0, 10*ms)
	start := clock.Time(10 * us)
	a.send(stream{to: 2, len: 64, dscp: 3, start: start})
	slot := rate.Span(84)
	raise := start.Add(slot*cells + prop) // admission of the last shared cell
	flight := rate.Span(9132+20) + 500*ns
	b.send(stream{to: 1, len: 9132, dscp: 0, start: raise.Add(-flight - 1), count: 1})
	l.build(1, 0)
	return l, l.sws["leaf1"]
}

// TestSC14Article: exactly 408 frames arrive after the one that raises XOFF.
func TestSC14Article(t *testing.T) {
	for _, c := range []struct{ headroom, drops int }{{1000, 0}, {408, 0}, {407, 1}, {400, 8}, {0, 408}} {
		l, s := article(t, 100*clock.Gbps, 100, int64(c.headroom))
		l.run(150 * us)
		n := s.Counters(1)
		_, room := s.Memory().PGMarks(3)
		if want := int64(min(c.headroom, 408)) * 208; room != want {
			t.Errorf("headroom %d: watermark %d B, want %d", c.headroom, room, want)
		}
		if d := int(s.Drops()[record.BufferHeadroom]); d != c.drops || int(n.PG[3].Drops) != c.drops || int(n.InDrops) != c.drops {
			t.Errorf("headroom %d: %d drops (PG %d, port %d), want %d", c.headroom, d, n.PG[3].Drops, n.InDrops, c.drops)
		}
		if n.PFC[3].TxPause != 1 || n.PFC[3].TxResume != 0 || n.PG[3].XOFF != 1 {
			t.Errorf("headroom %d: %d pause frames, want 1", c.headroom, n.PFC[3].TxPause)
		}
		if n.Rx.Frames != 100+408 {
			t.Errorf("%d frames arrived, want 508", n.Rx.Frames)
		}
	}
}

// TestSC15Length: needed headroom by cable length; a 300 m cable on headroom for 100 m.
func TestSC15Length(t *testing.T) {
	for _, c := range [][2]int64{{5, 267}, {40, 319}, {100, 408}, {300, 706}, {500, 1003}, {1000, 1747}, {2000, 3235}} {
		l, s := article(t, 100*clock.Gbps, c[0], 5000)
		l.run(150 * us)
		if _, room := s.Memory().PGMarks(3); room != c[1]*208 {
			t.Errorf("%d m: %d cells, want %d", c[0], room/208, c[1])
		}
	}
	l, s := article(t, 100*clock.Gbps, 300, 408)
	l.run(150 * us)
	if d := s.Drops()[record.BufferHeadroom]; d != 298 {
		t.Errorf("300 m on 408 cells: %d drops, want 298", d)
	}
}

// TestSC16Speed: needed headroom by rate.
func TestSC16Speed(t *testing.T) {
	for _, c := range [][2]int64{{10, 140}, {25, 185}, {50, 259}, {100, 408}, {200, 706}, {400, 1301}} {
		l, s := article(t, clock.Rate(c[0])*clock.Gbps, 100, 5000)
		l.run(150 * us)
		if _, room := s.Memory().PGMarks(3); room != c[1]*208 {
			t.Errorf("%d Gb/s: %d cells, want %d", c[0], room/208, c[1])
		}
	}
}

// incast builds case C20: n senders of 64-B frames to one receiver.
func incast(t testing.TB, n int, headroom int64, response clock.Duration) *lab {
	l := newLab(t)
	d := l.sw("leaf1")
	d.Switch.BufferBytes = 13_071 * 208
	l.rx("r")
	l.link("r", "leaf1", 100*clock.Gbps, 500*ns)
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		l.rx(name)
		l.link(name, "leaf1", 100*clock.Gbps, 500*ns)
		l.hosts[name].send(stream{to: 1, len: 64, dscp: 3, sport: uint16(i)})
	}
	for i := range l.plan.Devices {
		for k := range l.plan.Devices[i].Ports {
			p := &l.plan.Devices[i].Ports[k]
			p.PFC.Alpha[3], p.PFC.Guaranteed[3], p.PFC.XONOffset[3] = topology.Alpha{Num: 1, Den: 1}, 1248, 2288
			p.Headroom[3] = headroom
			p.Response, p.PeerResponse = response, response
		}
	}
	l.build(1, 0)
	return l
}

// TestSC20Incast: four to one without loss, each a quarter.
func TestSC20Incast(t *testing.T) {
	l := incast(t, 4, 408, us)
	l.run(3 * ms)
	s := l.sws["leaf1"]
	for r, n := range s.Drops() {
		if n != 0 {
			t.Errorf("%d drops: %v", n, record.Reason(r))
		}
	}
	got := l.hosts["r"].got3()
	busy := float64(got.frames) * 6.72 / float64(got.last.Sub(got.first)/ns)
	if busy < 0.999 {
		t.Errorf("receiver's link busy %.4f", busy)
	}
	for i := range 4 {
		c := s.Counters(i + 2)
		if share := float64(got.bySrc[uint32(i+2)]) / float64(got.frames); share < 0.23 || share > 0.27 {
			t.Errorf("sender %d has a share of %.3f", i, share)
		}
		sh, hd := s.Memory().PGMarks((i+1)*8 + 3)
		if cells := sh/208 + 6; cells < 2615 || cells > 2625 {
			t.Errorf("PG of port %d reached %d cells, want 2620±5", i+2, cells)
		}
		if hd > 408*208 {
			t.Errorf("headroom watermark %d cells", hd/208)
		}
		if first := c.PG[3].FirstXOFF; first < clock.Time(23*us) || first > clock.Time(25*us) {
			t.Errorf("first XOFF at %v", first)
		}
		if c.PFC[3].TxPause == 0 || l.hosts[fmt.Sprintf("s%d", i)].rxPFC[3] == 0 {
			t.Error("no PFC")
		}
		rx, tx := s.PauseTimes(i+2, 3, l.eng.Now())
		if rx != 0 || tx < 2*ms {
			t.Errorf("pause times %v, %v", rx, tx)
		}
	}
}

// TestSC21Small: headroom too small, or a peer that stops too late, loses on every PG.
func TestSC21Small(t *testing.T) {
	for _, c := range []struct {
		headroom int64
		response clock.Duration
	}{{100, us}, {408, 10 * us}} {
		l := incast(t, 4, c.headroom, c.response)
		l.run(2 * ms)
		s := l.sws["leaf1"]
		var total uint64
		for p := 2; p <= 5; p++ {
			n := s.Counters(p)
			if n.PG[3].Drops == 0 || n.InDrops != n.PG[3].Drops {
				t.Errorf("port %d: PG %d drops, port %d", p, n.PG[3].Drops, n.InDrops)
			}
			total += n.PG[3].Drops
		}
		if s.Counters(1).Queue[3].Drops != 0 || total != s.Drops()[record.BufferHeadroom] {
			t.Error("drops are not where they belong")
		}
		var sent uint64
		for _, h := range l.hosts {
			sent += h.tx
		}
		flying := uint64(0)
		for d := range l.plan.Devices {
			for p := range l.plan.Devices[d].Ports {
				n, _ := l.eng.InFlight(int32(d), p+1)
				flying += n
			}
		}
		if r := l.hosts["r"].rx; sent != r+total+s.Stored().Frames+flying {
			t.Errorf("sent %d, received %d, dropped %d, stored %d, on cables %d", sent, r, total, s.Stored().Frames, flying)
		}
	}
}
