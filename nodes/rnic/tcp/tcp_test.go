package tcp

import (
	"math"
	"testing"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

func config(control Congestion) *Config {
	return &Config{MSS: 1460, Control: control, Initial: 14600, Window: 1 << 20, RTOMin: clock.Millisecond, RTOMax: clock.Second, Retries: 8}
}

// path is a link of a fixed delay each way that sends a segment every gap.
type path struct {
	t     *testing.T
	s     Sender
	r     Receiver
	delay clock.Duration
	gap   clock.Duration
	lose  func(g *Segment, nth int) bool
	mark  func(nth int) bool
	sent  int
	acks  []struct {
		at clock.Time
		a  Ack
	}
	timeouts int
	again    []int64
}

// run moves size bytes and returns when the last one was acknowledged.
func (p *path) run(size int64) clock.Time {
	p.s.Write(size)
	now := clock.Time(0)
	for steps := 0; p.s.Una() < size; steps++ {
		if steps > 1_000_000 {
			p.t.Fatalf("no end: una %d of %d, window %d, pipe %d", p.s.Una(), size, p.s.cwnd, p.s.pipe())
		}
		if len(p.acks) > 0 && p.acks[0].at <= now {
			a := p.acks[0].a
			p.acks = p.acks[1:]
			p.s.OnAck(now, &a)
			continue
		}
		if p.s.Deadline() <= now {
			p.timeouts++
			if p.s.OnTimeout(now) {
				p.t.Fatal("gave up")
			}
		}
		if !p.transmit(now) {
			next := p.s.Deadline()
			if len(p.acks) > 0 {
				next = min(next, p.acks[0].at)
			}
			if next == clock.Never {
				p.t.Fatal("nothing in flight and nothing to send")
			}
			now = next
			continue
		}
		now = now.Add(p.gap)
	}
	if p.r.Next() != size {
		p.t.Fatalf("%d bytes delivered, want %d", p.r.Next(), size)
	}
	return now
}

func (p *path) transmit(now clock.Time) bool {
	var g Segment
	if !p.s.Next(now, &g) {
		return false
	}
	p.sent++
	if g.Again {
		p.again = append(p.again, g.Seq)
	}
	if p.lose != nil && p.lose(&g, p.sent) {
		return true
	}
	var a Ack
	p.r.OnSegment(g.Seq, g.Len, g.Sent, p.mark != nil && p.mark(p.sent), &a)
	p.acks = append(p.acks, struct {
		at clock.Time
		a  Ack
	}{now.Add(2 * p.delay), a})
	return true
}

func newPath(t *testing.T, c Congestion) *path {
	p := &path{t: t, delay: 20 * clock.Microsecond, gap: 500 * clock.Nanosecond}
	p.s.Init(config(c))
	return p
}

// TestOneLoss is fast retransmit: one segment lost in the middle is sent again
// once, alone, before any timeout, and the window is 0.7 of what it was.
func TestOneLoss(t *testing.T) {
	p := newPath(t, CUBIC)
	var before int64
	p.lose = func(g *Segment, nth int) bool {
		if nth == 40 {
			before = g.Seq
		}
		return nth == 40
	}
	p.run(200_000)
	if len(p.again) != 1 || p.again[0] != before || p.timeouts != 0 {
		t.Errorf("sent again %v, want only %d; %d timeouts", p.again, before, p.timeouts)
	}
	if p.s.Cuts() != 1 {
		t.Errorf("%d cuts, want 1", p.s.Cuts())
	}
}

// TestTailLoss needs the timer: no later segment reveals the loss.
func TestTailLoss(t *testing.T) {
	p := newPath(t, CUBIC)
	p.lose = func(_ *Segment, nth int) bool { return nth == 7 }
	end := p.run(7 * 1460)
	if p.timeouts != 1 || len(p.again) != 1 {
		t.Errorf("%d timeouts, %d sent again, want 1 and 1", p.timeouts, len(p.again))
	}
	if end < clock.Time(clock.Millisecond) {
		t.Errorf("ended at %v, before the smallest RTO", end)
	}
}

// TestAnyLoss delivers every byte whatever is lost, with both controls; the
// state survives a snapshot at any segment.
func TestAnyLoss(t *testing.T) {
	for seed := range uint64(60) {
		p := newPath(t, Congestion(seed&1))
		rate := seed % 30 // up to 29 % lost
		p.lose = func(_ *Segment, nth int) bool { return clock.Mix(seed, uint64(nth), 1)%100 < rate }
		p.mark = func(nth int) bool { return clock.Mix(seed, uint64(nth), 2)%100 < 20 }
		p.run(int64(1 + clock.Mix(seed, 3, 3)%900_000))
		var w, again snap.Writer
		p.s.Snapshot(&w)
		p.r.Snapshot(&w)
		var s Sender
		var r Receiver
		s.Init(config(Congestion(seed & 1)))
		rd := &snap.Reader{B: w.B}
		s.Restore(rd)
		r.Restore(rd)
		s.Snapshot(&again)
		r.Snapshot(&again)
		if rd.Err != nil || string(again.B) != string(w.B) {
			t.Fatalf("seed %d: restore: %v", seed, rd.Err)
		}
	}
}

// TestRestoreRefuses cuts a snapshot short anywhere and flips its words.
func TestRestoreRefuses(t *testing.T) {
	var s Sender
	s.Init(config(CUBIC))
	var w snap.Writer
	s.Snapshot(&w)
	for n := range len(w.B) {
		var x Sender
		x.Init(config(CUBIC))
		if r := (&snap.Reader{B: w.B[:n]}); true {
			if x.Restore(r); r.Err == nil {
				t.Fatalf("took %d of %d bytes", n, len(w.B))
			}
		}
	}
}

// TestRTO is RFC 6298 (2.2) and (2.3) on a first and a second sample.
func TestRTO(t *testing.T) {
	var s Sender
	s.Init(config(CUBIC))
	if s.RTO() != clock.Second {
		t.Errorf("initial RTO %v, want 1s", s.RTO())
	}
	s.sample(10 * clock.Millisecond)
	if s.RTO() != 30*clock.Millisecond { // R + 4·R/2
		t.Errorf("RTO after one sample %v, want 30ms", s.RTO())
	}
	s.sample(18 * clock.Millisecond)
	// RTTVAR = 3/4·5 + 1/4·8 = 5.75 ms, SRTT = 7/8·10 + 1/8·18 = 11 ms
	if want := 34 * clock.Millisecond; s.RTO() != want {
		t.Errorf("RTO after two %v, want %v", s.RTO(), want)
	}
	s.Write(1)
	var g Segment
	s.Next(0, &g)
	for _, want := range []clock.Duration{68, 136, 272} {
		s.OnTimeout(s.Deadline())
		if s.RTO() != want*clock.Millisecond {
			t.Errorf("RTO %v after a timeout, want %vms", s.RTO(), int64(want))
		}
	}
}

// TestGivesUp fails after the set number of timeouts in a row.
func TestGivesUp(t *testing.T) {
	var s Sender
	s.Init(config(DCTCP))
	s.Write(1)
	var g Segment
	s.Next(0, &g)
	for n := 1; ; n++ {
		if s.OnTimeout(s.Deadline()) {
			if n != 9 {
				t.Errorf("gave up at timeout %d, want 9", n)
			}
			return
		}
	}
}

// TestCubic compares window and K with the formulas of RFC 9438 in floating
// point.
func TestCubic(t *testing.T) {
	for _, mss := range []int64{536, 1460, 8960} {
		for _, segs := range []int64{2, 10, 100, 5000, 300_000} {
			dw := segs * mss * 3 / 10
			want := math.Cbrt(float64(dw)/float64(mss)/0.4) * 1e6
			if k := cubicK(dw, mss); math.Abs(float64(k)-want) > 1.01 && want < maxT {
				t.Errorf("K(%d, %d) = %d µs, want %.1f", dw, mss, k, want)
			}
			c := cubic{origin: segs * mss, k: cubicK(dw, mss)}
			for _, at := range []int64{0, 50, 1000, 77_777, 1_000_000, 9_000_000} {
				d := float64(at-c.k) / 1e6
				want := float64(c.origin) + 0.4*d*d*d*float64(mss)
				if got := c.at(at, mss); math.Abs(float64(got)-want) > 1+1e-6*math.Abs(want-float64(c.origin)) {
					t.Errorf("W(%d µs) = %d, want %.1f", at, got, want)
				}
			}
		}
	}
	for _, n := range []uint64{0, 1, 7, 8, 26, 27, 1<<63 - 1, 1 << 63} {
		if x := cbrt(0, n); x*x*x > n || (x+1)*(x+1)*(x+1) <= n {
			t.Errorf("cbrt(%d) = %d", n, x)
		}
	}
}

// TestCubicRecovers reaches the window before the cut again at K.
func TestCubicRecovers(t *testing.T) {
	var s Sender
	c := config(CUBIC)
	c.Window = 1 << 29
	s.Init(c)
	s.cwnd, s.ssthresh, s.srtt = 2_000_000, 1, 100*clock.Millisecond
	s.next = s.cwnd
	s.cut(false)
	s.next = 0
	if s.cwnd != 1_400_000 {
		t.Fatalf("window after the cut %d, want 1400000", s.cwnd)
	}
	now := clock.Time(0)
	s.grow(now, 1460)
	k := s.cubic.k
	for now.Sub(0) < clock.Duration(k)*clock.Microsecond {
		now = now.Add(100 * clock.Millisecond)
		for range s.cwnd / 1460 {
			s.grow(now, 1460)
		}
	}
	if s.cwnd < 1_990_000 || s.cwnd > 2_010_000 {
		t.Errorf("window at K = %d µs is %d, want about 2000000", k, s.cwnd)
	}
}

// TestDCTCP holds α at the share of marks and cuts by half of it.
func TestDCTCP(t *testing.T) {
	p := newPath(t, DCTCP)
	p.mark = func(nth int) bool { return nth%4 == 0 }
	p.run(8_000_000)
	if a := float64(p.s.Alpha()) / alphaOne; a < 0.2 || a > 0.3 {
		t.Errorf("alpha %.3f with every fourth segment marked, want about 0.25", a)
	}
	p = newPath(t, DCTCP)
	p.mark = func(int) bool { return true }
	p.run(2_000_000)
	if p.s.Alpha() < alphaOne*99/100 || p.s.cwnd > 4*1460 {
		t.Errorf("all marked: alpha %d of %d, window %d", p.s.Alpha(), alphaOne, p.s.cwnd)
	}
	p = newPath(t, DCTCP)
	p.run(4_000_000)
	if p.s.Alpha() > alphaOne/8 || p.s.Cuts() != 0 {
		t.Errorf("none marked: alpha %d, %d cuts", p.s.Alpha(), p.s.Cuts())
	}
}

// TestNoAllocations keeps the steady state free of them.
func TestNoAllocations(t *testing.T) {
	var s Sender
	var r Receiver
	s.Init(config(CUBIC))
	s.Write(1 << 40)
	now := clock.Time(0)
	n := testing.AllocsPerRun(1000, func() {
		var g Segment
		var a Ack
		now = now.Add(clock.Microsecond)
		if s.Next(now, &g) {
			r.OnSegment(g.Seq, g.Len, g.Sent, false, &a)
			s.OnAck(now.Add(clock.Microsecond), &a)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a segment", n)
	}
}
