package cc

import (
	"testing"

	"github.com/rocemu/rocemu/clock"
	"pgregory.net/rapid"
)

// ticker is DCQCN driven tick by tick: the reference for the lazy one.
type ticker struct {
	d   DCQCN
	now clock.Time
}

// until runs every period boundary singly, in time order.
func (k *ticker) until(t clock.Time) {
	for k.d.active {
		next := min(k.d.timer.Add(k.d.p.TimeReset), k.d.period.Add(k.d.p.AlphaPeriod))
		if next > t {
			break
		}
		if next == k.d.timer.Add(k.d.p.TimeReset) {
			k.d.timer = next
			k.d.ts++
			k.d.increase()
		} else {
			k.d.period = next
			k.d.alpha = k.d.weigh(k.d.alpha)
			if k.d.marked {
				k.d.alpha += k.d.gain()
				k.d.marked = false
			}
		}
	}
	k.now = t
}

func TestLazyEqualsTicking(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Paper()
		if rapid.Bool().Draw(rt, "mlx5") {
			p = Mlx5()
			p.ByteReset = 400_000
		}
		p.SlowRestart = rapid.Bool().Draw(rt, "slow")
		if err := p.Validate(); err != nil {
			rt.Fatal(err)
		}
		var lazy DCQCN
		lazy.Init(&p, 100*clock.Gbps)
		ref := ticker{}
		ref.d.Init(&p, 100*clock.Gbps)
		now := clock.Time(0)
		for range rapid.IntRange(1, 40).Draw(rt, "n") {
			now = now.Add(clock.Duration(rapid.Int64Range(1, int64(2*clock.Millisecond)).Draw(rt, "dt")))
			ref.until(now)
			switch rapid.IntRange(0, 3).Draw(rt, "op") {
			case 0, 1:
				lazy.OnFeedback(now, Feedback{Kind: CNP})
				ref.d.OnFeedback(now, Feedback{Kind: CNP})
			case 2:
				n := rapid.Int64Range(64, 9000).Draw(rt, "l")
				lazy.OnSent(now, n)
				ref.d.OnSent(now, n)
			case 3:
				lazy.OnFeedback(now, Feedback{Kind: Loss})
				ref.d.OnFeedback(now, Feedback{Kind: Loss})
			}
			if a, b := lazy.Rate(now), ref.d.Rate(now); a != b {
				rt.Fatalf("rate at %v: lazy %v, ticking %v", now, a, b)
			}
			if a, b := lazy.Alpha(now), ref.d.Alpha(now); a != b {
				rt.Fatalf("alpha at %v: lazy %d, ticking %d", now, a, b)
			}
			var back DCQCN
			back.Init(&p, 100*clock.Gbps)
			if rest, err := back.ReadState(lazy.AppendState(nil)); err != nil || len(rest) != 0 || back != lazy {
				rt.Fatalf("snapshot: %v, %d left", err, len(rest))
			}
		}
	})
}

func TestPaperCutAndRecovery(t *testing.T) {
	p := Paper()
	var d DCQCN
	d.Init(&p, 40*clock.Gbps)
	now := clock.Time(clock.Millisecond)
	d.OnFeedback(now, Feedback{Kind: CNP})
	if r := d.Rate(now); r != 20*clock.Gbps {
		t.Fatalf("first CNP with alpha 1 halves the rate: %v", r)
	}
	if d.Target() != 40*clock.Gbps {
		t.Fatalf("target %v", d.Target())
	}
	// Fast recovery: after one timer expiry the rate is half way to the target.
	now = now.Add(p.TimeReset)
	if r := d.Rate(now); r != 30*clock.Gbps {
		t.Fatalf("after one expiry %v, want 30Gbps", r)
	}
	// F-th expiry is additive: the target rises by R_AI, capped by the line.
	now = now.Add(4 * p.TimeReset)
	d.Rate(now)
	if d.ts != 5 || d.Target() != 40*clock.Gbps {
		t.Fatalf("stage %d target %v", d.ts, d.Target())
	}
	// A second CNP an alpha period later cuts by a smaller alpha.
	a := d.Alpha(now)
	want := uint64(alphaOne)
	for range 5 {
		want = d.weigh(want)
	}
	if a != want {
		t.Fatalf("alpha %d want %d", a, want)
	}
}

func TestMlx5OneCutAPeriod(t *testing.T) {
	p := Mlx5()
	var d DCQCN
	d.Init(&p, 100*clock.Gbps)
	now := clock.Time(clock.Millisecond)
	d.OnFeedback(now, Feedback{Kind: CNP})
	r := d.Rate(now)
	if r < 50*clock.Gbps || r > 51*clock.Gbps {
		t.Fatalf("first cut to %v, want 50Gbps (min_dec_fac) and a bit", r)
	}
	d.OnFeedback(now.Add(clock.Microsecond), Feedback{Kind: CNP})
	if got := d.Rate(now.Add(clock.Microsecond)); got != r {
		t.Fatalf("a second cut inside 4us: %v", got)
	}
	d.OnFeedback(now.Add(5*clock.Microsecond), Feedback{Kind: CNP})
	if got := d.Rate(now.Add(5 * clock.Microsecond)); got >= r {
		t.Fatalf("no cut after 5us: %v", got)
	}
}

func TestMinRateHolds(t *testing.T) {
	p := Paper()
	var d DCQCN
	d.Init(&p, 10*clock.Gbps)
	now := clock.Time(1)
	for range 200 {
		now = now.Add(clock.Microsecond)
		d.OnFeedback(now, Feedback{Kind: CNP})
	}
	if r := d.Rate(now); r != p.MinRate {
		t.Fatalf("rate %v, want the minimum %v", r, p.MinRate)
	}
}

func TestPacerIsExact(t *testing.T) {
	// 1000 frames of 1102 bytes at 7 Gb/s, each as soon as allowed.
	var p Pacer
	now := clock.Time(clock.Microsecond)
	start := now
	for range 1000 {
		p.Sent(now, 1102, 7*clock.Gbps)
		now = p.Next
	}
	want := clock.Duration(1000 * 1122 * 8 * 1000 / 7)
	if got := now.Sub(start); got != want {
		t.Fatalf("1000 frames take %v, want %v", got, want)
	}
	// Late by less than a packet: the schedule stays.
	next := p.Next
	p.Sent(next.Add(100), 1102, 7*clock.Gbps)
	d, _ := (7 * clock.Gbps).Serialise(1122, 0)
	if p.Next.Sub(next)-d > 1 {
		t.Fatalf("a small delay moved the schedule by %v", p.Next.Sub(next)-d)
	}
	// After a pause it starts anew.
	late := p.Next.Add(clock.Millisecond)
	p.Sent(late, 1102, 7*clock.Gbps)
	if p.Next != late.Add(d) {
		t.Fatalf("after idle: %v want %v", p.Next, late.Add(d))
	}
}

func TestNPScopes(t *testing.T) {
	us := clock.Time(clock.Microsecond)
	for _, c := range []struct {
		scope string
		want  [4]bool // same QP 1us on, other QP same peer, other peer, same QP 50us on
	}{
		{"qp", [4]bool{false, true, true, true}},
		{"port", [4]bool{false, false, false, true}},
		{"dst-ip", [4]bool{false, false, true, true}},
		{"ip-pair", [4]bool{false, false, true, true}},
	} {
		s, err := ParseScope(c.scope)
		if err != nil {
			t.Fatal(err)
		}
		n := NP{Scope: s, Interval: 50 * clock.Microsecond}
		if !n.Mark(us, 0x11, 2, 1) {
			t.Fatalf("%s: first mark raises no CNP", c.scope)
		}
		got := [4]bool{n.Mark(2*us, 0x11, 2, 1), n.Mark(3*us, 0x12, 2, 1), n.Mark(4*us, 0x13, 2, 3), n.Mark(51*us, 0x11, 2, 1)}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.scope, got, c.want)
		}
		var back NP
		if _, err := back.ReadState(n.AppendState(nil)); err != nil || len(back.last) != len(n.last) {
			t.Fatalf("snapshot: %v", err)
		}
	}
	if _, err := ParseScope("flow"); err == nil {
		t.Fatal("scope flow accepted")
	}
}

func TestSwift(t *testing.T) {
	p := DefaultSwift()
	var s Swift
	s.Init(&p)
	full := s.Window()
	now := clock.Time(0)
	// Long delay: one cut a round trip, at most by half.
	fb := Feedback{Kind: Ack, Acked: 1, RTT: 100 * clock.Microsecond, Delay: 80 * clock.Microsecond}
	s.OnFeedback(now, fb)
	cut := s.Window()
	if cut >= full || cut < full/2 {
		t.Fatalf("cut from %d to %d", full, cut)
	}
	s.OnFeedback(now.Add(clock.Microsecond), fb)
	if s.Window() != cut {
		t.Fatal("two cuts in one round trip")
	}
	for range 30 {
		now = now.Add(100 * clock.Microsecond)
		s.OnFeedback(now, fb)
	}
	if s.Window() >= cwndOne {
		t.Fatalf("window %d, want below one packet under lasting delay", s.Window())
	}
	if s.NextSend(now, 1) != clock.Never {
		t.Fatal("window below one packet lets two out")
	}
	s.OnSent(now, 1000)
	if at := s.NextSend(now, 0); at <= now.Add(100*clock.Microsecond) {
		t.Fatalf("paced to %v, want more than a round trip", at)
	}
	var back Swift
	back.Init(&p)
	if _, err := back.ReadState(s.AppendState(nil)); err != nil || back != s {
		t.Fatalf("snapshot: %v", err)
	}
	// Low delay: additive increase, one packet a round trip of acknowledgements.
	low := Feedback{Kind: Ack, Acked: 1, RTT: 5 * clock.Microsecond, Delay: 2 * clock.Microsecond}
	w := s.Window()
	s.OnFeedback(now, low)
	if s.Window() <= w {
		t.Fatal("no increase under low delay")
	}
	s.OnFeedback(now, Feedback{Kind: Timeout})
	s.OnFeedback(now, Feedback{Kind: Timeout})
	if s.Window() != cwndMin {
		t.Fatalf("window %d after repeated timeouts", s.Window())
	}
}

func TestReadStateHostile(t *testing.T) {
	p := Paper()
	rapid.Check(t, func(rt *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(rt, "b")
		var d DCQCN
		d.Init(&p, clock.Gbps)
		_, _ = d.ReadState(b)
		var n NP
		_, _ = n.ReadState(b)
	})
}

func BenchmarkDCQCNSent(b *testing.B) {
	p := Paper()
	var d DCQCN
	d.Init(&p, 100*clock.Gbps)
	d.OnFeedback(1, Feedback{Kind: CNP})
	now := clock.Time(1)
	b.ReportAllocs()
	for b.Loop() {
		now = max(now, d.NextSend(now, 0))
		d.OnSent(now, 1102)
	}
}
