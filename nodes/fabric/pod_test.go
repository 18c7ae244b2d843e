package fabric

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/topology"
)

// pod is two spines, two leaves, eight hosts at 100G.
func pod(t testing.TB, latency clock.Duration, buffer int64) *lab {
	l := newLab(t)
	for i, n := range []string{"S1", "S2", "L1", "L2"} {
		d := l.sw(n)
		d.Switch.BufferBytes, d.Switch.Latency = buffer, latency
		d.Switch.ECMP.Seed = uint32(i * 7919)
	}
	for i := range 8 {
		h := fmt.Sprintf("h%d", i+1)
		l.rx(h)
		l.link(h, fmt.Sprintf("L%d", i/4+1), 100*clock.Gbps, 15*ns)
	}
	for _, leaf := range []string{"L1", "L2"} {
		for _, sp := range []string{"S1", "S2"} {
			l.link(leaf, sp, 100*clock.Gbps, 500*ns)
		}
	}
	return l
}

// TestSC35Storm: a NIC that never stops pausing stops its class in the whole
// POD, loses nothing, and leaves other classes alone; the watchdog on server
// ports brings everybody else back.
func TestSC35Storm(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		l := pod(t, us, 200_000)
		if guarded {
			l.each(func(_ *topology.Device, p *topology.Port) {
				if l.plan.Devices[p.Peer].Switch == nil {
					p.PFC.Watchdog = wd(2*ms, 2*ms, ms, "drop")
				}
			})
		}
		for i := range uint32(8) {
			for k := range uint32(8) {
				if i != k {
					h := l.hosts[fmt.Sprintf("h%d", i+1)]
					h.send(stream{to: k + 1, len: 1086, dscp: 3, sport: uint16(i*8 + k)})
					h.send(stream{to: k + 1, len: 1000, dscp: 0, gap: 20 * us, sport: uint16(i*8 + k)})
				}
			}
		}
		l.hosts["h1"].storm(3, 0, 100*ms)
		l.build(1, 0)
		l.phase(5 * ms)
		three, zero := l.count(3), l.count(0) // what h1 itself sends goes on
		l.run(6 * ms)
		three, zero = l.count(3)-three, l.count(0)-zero
		if zero < 2700 || zero > 2900 { // 56 flows, a frame each 20 µs
			t.Errorf("guarded %v: class 0 got %d frames in 1 ms, want 2800", guarded, zero)
		}
		var pauses, lost uint64
		for _, s := range l.sws {
			for p := 1; p <= s.Ports(); p++ {
				pauses += s.Counters(p).PFC[3].TxPause
			}
			lost += s.Dropped().Frames
		}
		if guarded == (three < 1000) || pauses == 0 || guarded == (lost == 0) {
			t.Errorf("guarded %v: class 3 got %d frames in 1 ms, %d pauses, %d lost", guarded, three, pauses, lost)
		}
	}
}

func (l *lab) count(dscp uint8) (n int) {
	for _, h := range l.hosts {
		n += h.of(dscp).frames
		if dscp == 3 {
			n -= h.of(3).bySrc[1]
		}
	}
	return n
}

// autoHeadroom is model-rules' `headroom: auto` in cells.
func autoHeadroom(d *topology.Device, p *topology.Port) int64 {
	up := func(a, b int64) int64 { return (a + b - 1) / b }
	r := p.Rate
	span := r.Span(int64(p.MTU)+20) + r.Span(84) + 2*p.Prop + p.PeerResponse + d.Switch.Latency/2
	n := up(int64(span), int64(r.Span(84))) + up(int64(p.MTU), d.Switch.Cell)
	return up(n*105, 100)
}

// TestAutoHeadroomLossless draws mixes of frame sizes, directions, fan-in,
// cable lengths, thresholds and pause storms, and looks for one that loses a
// lossless frame in spite of the computed headroom.
func TestAutoHeadroomLossless(t *testing.T) {
	for seed := range int64(40) {
		rnd := rand.New(rand.NewSource(seed))
		latency := []clock.Duration{0, 300 * ns, us}[rnd.Intn(3)]
		l := pod(t, latency, int64(50_000+rnd.Intn(600_000)))
		alpha := topology.Alpha{Num: 1 << rnd.Intn(3), Den: 1 << rnd.Intn(6)}
		response := latency/2 + clock.Duration(rnd.Intn(2000))*ns
		props := map[int32]clock.Duration{}
		for i := range l.plan.Devices {
			d := &l.plan.Devices[i]
			for k := range d.Ports {
				p := &d.Ports[k]
				key := min(d.ID, p.Peer)*64 + max(d.ID, p.Peer)
				if _, ok := props[key]; !ok {
					props[key] = clock.Duration(100+rnd.Intn(1500)) * ns
				}
				p.Prop, p.Response, p.PeerResponse = props[key], response, response
				p.PFC.Alpha[3], p.PFC.XONOffset[3] = alpha, int64(rnd.Intn(20_000))
			}
		}
		l.each(func(d *topology.Device, p *topology.Port) { p.Headroom[3] = autoHeadroom(d, p) })
		sizes := []uint16{64, 65, 209, 417, 1086, 1500, 4158, 9216}
		for i := range 8 {
			h := l.hosts[fmt.Sprintf("h%d", i+1)]
			for range 1 + rnd.Intn(4) {
				h.send(stream{
					to: uint32(rnd.Intn(1+rnd.Intn(8)) + 1), len: sizes[rnd.Intn(len(sizes))], dscp: uint8(3 * rnd.Intn(4) / 2 % 4), sport: uint16(rnd.Intn(1 << 16)),
					gap: clock.Duration(rnd.Intn(2)*rnd.Intn(3000)) * ns, start: clock.Time(rnd.Intn(20)) * clock.Time(us),
				})
			}
			if rnd.Intn(4) == 0 {
				h.storm(3, clock.Duration(rnd.Intn(50))*us, clock.Duration(60+rnd.Intn(100))*us)
			}
		}
		l.build(1, 0)
		l.run(250 * us)
		for n, s := range l.sws {
			if d := s.Drops(); d[record.BufferHeadroom]+d[record.HeadroomPool] != 0 {
				t.Errorf("seed %d: %s dropped %v", seed, n, *d)
			}
		}
	}
}
