package fabric

import (
	"math/rand"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/topology"
)

func wd(detect, restore, poll clock.Duration, action string) *topology.Watchdog {
	return &topology.Watchdog{Detect: detect, Restore: restore, Poll: poll, Action: action}
}

// TestSC34Defaults: SONiC's defaults by port count and its ranges.
func TestSC34Defaults(t *testing.T) {
	for n, want := range map[int][3]clock.Duration{
		32: {200, 200, 200}, 33: {400, 400, 400}, 56: {400, 400, 400}, 64: {400, 400, 400},
		65: {600, 600, 600}, 128: {800, 800, 800}, 256: {1600, 1600, 1000},
	} {
		if w := WatchdogDefaults(n); w.Detect != want[0]*ms || w.Restore != want[1]*ms || w.Poll != want[2]*ms || CheckWatchdog(&w) != nil {
			t.Errorf("%d ports: %+v", n, w)
		}
	}
	for _, w := range []*topology.Watchdog{
		wd(50*ms, 200*ms, 50*ms, "drop"), wd(6000*ms, 200*ms, 200*ms, "drop"), wd(200*ms, 70000*ms, 200*ms, "drop"),
		wd(200*ms, 200*ms, 50*ms, "drop"), wd(2000*ms, 2000*ms, 2000*ms, "drop"), wd(200*ms, 400*ms, 400*ms, "drop"), wd(200*ms, 200*ms, 200*ms, "stop"),
	} {
		if CheckWatchdog(w) == nil {
			t.Errorf("%+v accepted", *w)
		}
	}
}

// stormed runs a storm on priority 3 of b's port, with a light flow from a to
// b on priorities 3 and 1, and returns the lab.
func stormed(t *testing.T, w *topology.Watchdog, from, to, end clock.Duration) (*lab, *Switch) {
	l := pair(t)
	l.each(func(_ *topology.Device, p *topology.Port) { p.PFC.Watchdog = w })
	a, b := l.hosts["a"], l.hosts["b"]
	a.send(stream{to: 2, len: 1000, dscp: 3, gap: 500 * us, start: clock.Time(ms)})
	a.send(stream{to: 2, len: 1000, dscp: 1, gap: 500 * us, start: clock.Time(ms)})
	b.storm(3, from, to)
	l.build(1, 0)
	l.run(end)
	return l, l.sws["leaf1"]
}

// dogTimes returns the first detection and restoration.
func dogTimes(s *Switch) (found, back clock.Time) {
	found, back = clock.Never, clock.Never
	recs, _ := s.Records()
	for _, r := range recs {
		if r.Kind == record.Watchdog && r.X == 1 {
			found = min(found, r.At)
		} else if r.Kind == record.Watchdog {
			back = min(back, r.At)
		}
	}
	return found, back
}

// TestSC32Watchdog: detection in (D, D+P], restoration in (R, R+P] after the
// last pause; what is queued, arrives or comes in on the PG meanwhile is dropped.
//
// Readings: the detection time runs from the first pause of a storm without a
// gap, whether or not frames wait for the queue. The last pause is the last frame
// that the storm sends, up to its 1 ms before it ends. The PG that drops is that
// of the stormed port, where its own host sends in; other ports' stay open, and
// what they bring for the stormed queue drops there. A PG whose frames drop on
// arrival does not fill: that is why no PFC goes to the sources.
func TestSC32Watchdog(t *testing.T) {
	for _, c := range []struct{ detect, poll clock.Duration }{{200 * ms, 200 * ms}, {400 * ms, 200 * ms}} {
		from, to := 30*ms, 1030*ms
		l, s := stormed(t, wd(c.detect, c.detect, c.poll, "drop"), from, to, 2000*ms)
		found, back := dogTimes(s)
		if d := found.Sub(clock.Time(from)); d <= c.detect || d > c.detect+c.poll {
			t.Errorf("detected after %v", d)
		}
		if d := back.Sub(clock.Time(to)); d <= c.detect-ms || d > c.detect+c.poll {
			t.Errorf("restored %v after the last pause", d)
		}
		dog := s.WatchdogOf(2, 3)
		if dog.Detected != 1 || dog.Restored != 1 || dog.Stormed() {
			t.Errorf("%+v", *dog)
		}
		a, b := l.hosts["a"], l.hosts["b"]
		if lost := uint64(a.streams[0].sent - b.got3().frames); lost != dog.TxDropped || lost != s.Drops()[record.PFCWatchdog] || lost == 0 {
			t.Errorf("%d lost, %d counted, %d by reason", lost, dog.TxDropped, s.Drops()[record.PFCWatchdog])
		}
		// every frame from the start of the storm to restoration, one each 500 µs
		first := (from - ms + 499*us) / (500 * us)
		last := (clock.Duration(back) - ms) / (500 * us)
		if n := uint64(last - first); dog.TxDropped < n-2 || dog.TxDropped > n+2 {
			t.Errorf("%d dropped, want %d", dog.TxDropped, n)
		}
		if n := a.streams[1].sent - b.of(1).frames; n > 1 {
			t.Errorf("%d frames of another priority are missing", n)
		}
	}
}

// TestR19Storm: a storm shorter than the detection time does nothing; forward
// ignores the pause; alert only reports.
func TestR19Storm(t *testing.T) {
	_, s := stormed(t, wd(200*ms, 200*ms, 100*ms, "drop"), 0, 150*ms, 600*ms)
	if f, _ := dogTimes(s); f != clock.Never || s.Dropped().Frames != 0 {
		t.Errorf("a storm of 150 ms was detected at %v", f)
	}
	_, s = stormed(t, wd(200*ms, 200*ms, 100*ms, "drop"), 0, 1000*ms, 1500*ms)
	f, b := dogTimes(s)
	if f < clock.Time(200*ms) || f > clock.Time(300*ms) || b < clock.Time(1199*ms) || b > clock.Time(1300*ms) {
		t.Errorf("detected at %v, restored at %v", f, b)
	}
	l, s := stormed(t, wd(200*ms, 200*ms, 100*ms, "forward"), 0, 1000*ms, 1500*ms)
	if n := l.hosts["a"].streams[0].sent - l.hosts["b"].got3().frames; n > 1 || s.Dropped().Frames != 0 {
		t.Errorf("forward: %d missing, %d dropped", n, s.Dropped().Frames)
	}
	if got := l.hosts["b"].got3().first; got > clock.Time(301*ms) {
		t.Errorf("forward: first frame at %v", got)
	}
	l, _ = stormed(t, wd(200*ms, 200*ms, 100*ms, "alert"), 0, 1000*ms, 1500*ms)
	if got := l.hosts["b"].got3().first; got < clock.Time(1000*ms) {
		t.Errorf("alert: a frame passed at %v", got)
	}
}

// TestSC36fRing: the watchdog breaks the ring's deadlock.
func TestSC36fRing(t *testing.T) {
	l := ring(t, true)
	l.each(func(_ *topology.Device, p *topology.Port) { p.PFC.Watchdog = wd(5*ms, 5*ms, 2*ms, "drop") })
	l.ringRun([]ringFlow{{1, 3, 0}, {2, 4, 0}, {3, 1, 0}, {4, 2, 0}}, 3*ms)
	l.phase(3500 * us)
	if l.stored() == 0 || len(l.cycles()) != 1 {
		t.Fatalf("no deadlock: %d stored", l.stored())
	}
	l.run(40 * ms)
	if l.stored() != 0 || len(l.cycles()) != 0 {
		t.Errorf("%d frames stay stored, cycles %v", l.stored(), l.cycles())
	}
}

// tickingDog polls at every multiple of the interval, as the real one does.
type tickingDog struct {
	left            clock.Duration
	rx, back        uint64
	wasPaused, hurt bool
}

func (d *tickingDog) poll(w *topology.Watchdog, paused bool, rx, back uint64) int {
	more := rx > d.rx
	bad := more && back == d.back && paused && d.wasPaused
	if d.hurt {
		bad = !more
	}
	d.rx, d.back, d.wasPaused = rx, back, paused
	full := w.Detect
	if d.hurt {
		full = w.Restore
	}
	switch {
	case !bad:
		d.left = full
	case d.left > w.Poll:
		d.left -= w.Poll
	case d.hurt:
		d.hurt, d.left = false, w.Detect
		return -1
	default:
		d.hurt, d.left = true, w.Restore
		return 1
	}
	return 0
}

// TestWatchdogLazy: polling only when it can matter gives exactly what polling
// at every interval gives.
func TestWatchdogLazy(t *testing.T) {
	for seed := range int64(300) {
		rnd := rand.New(rand.NewSource(seed))
		w := wd(clock.Duration(1+rnd.Intn(4))*100, clock.Duration(1+rnd.Intn(4))*100, 100, "drop")
		lazy, full := NewWatchdog(w), &tickingDog{left: w.Detect}
		var rx, back uint64
		paused := false
		for now := clock.Time(0); now < 20_000; now++ {
			if rnd.Intn(1+rnd.Intn(300)) == 0 {
				was := paused
				if paused = rnd.Intn(6) > 0; paused {
					rx++
				}
				if paused && !was {
					lazy.Arm(now)
				}
				if was && !paused {
					back++
				}
			}
			if now%100 != 0 {
				continue
			}
			want, got := full.poll(w, paused, rx, back), 0
			if lazy.Next() == now {
				got = lazy.Poll(paused, rx, back)
			}
			if got != want || lazy.Stormed() != full.hurt {
				t.Fatalf("seed %d at %d: %d, want %d", seed, now, got, want)
			}
		}
	}
}
