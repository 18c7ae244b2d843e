package port

import (
	"math/rand"
	"testing"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// TestMACRingEqualsList: what the ring says of a boundary is what a list of all
// frames says, at rates whose frames take nanoseconds to a hundred milliseconds,
// after gaps beyond what a place holds, and with the ring saved and restored in
// between.
func TestMACRingEqualsList(t *testing.T) {
	rates := []clock.Rate{400 * clock.Gbps, 100 * clock.Gbps, 25 * clock.Gbps, clock.Gbps, 10 * clock.Mbps, clock.Mbps / 10}
	spilled, rebased := 0, 0
	for seed := range int64(200) {
		rnd := rand.New(rand.NewSource(seed))
		pl := plan()
		pl.Rate = rates[seed%int64(len(rates))]
		pl.EgressHalf = []clock.Duration{0, 500 * clock.Nanosecond, 3 * clock.Microsecond}[rnd.Intn(3)]
		pl.Response = pl.EgressHalf + clock.Microsecond
		p := New(pl, true)
		var all []macSpan
		now := clock.Time(0)
		for range 400 {
			switch rnd.Intn(12) {
			case 0:
				now = now.Add(clock.Duration(rnd.Int63n(int64(20 * clock.Millisecond))))
			case 1, 2:
				now = now.Add(clock.Duration(rnd.Int63n(int64(clock.Microsecond))))
			}
			if rnd.Intn(40) == 0 {
				p = again(t, p, pl)
			}
			now = max(now, p.FreeAt())
			f := wire.Frame{Len: uint16(64 + rnd.Intn(2)*rnd.Intn(4000))}
			base := p.base
			p.Transmit(now, &f)
			if p.base != base {
				rebased++
			}
			start := now.Add(pl.EgressHalf)
			all = append(all, macSpan{start, start.Add(p.FreeAt().Sub(now))})
			probes := []clock.Time{now}
			for _, s := range all[max(0, len(all)-80):] {
				probes = append(probes, s.start, s.start+1, s.end-1, s.end)
			}
			for _, at := range probes {
				if at < now {
					continue
				}
				if got, want := p.boundary(at), listed(all, at); got != want {
					t.Fatalf("seed %d: boundary at %v is %v, want %v", seed, at, got, want)
				}
			}
		}
		if p.more != nil {
			if spilled++; len(p.more.s) > 200 {
				t.Errorf("seed %d: %d frames beside the ring", seed, len(p.more.s))
			}
		}
	}
	if spilled == 0 || rebased == 0 {
		t.Errorf("%d ports spilled, %d times counted anew: the test misses a case", spilled, rebased)
	}
}

// listed is the first instant from now on at which no frame of a list is in the
// midst of its transmission.
func listed(all []macSpan, now clock.Time) clock.Time {
	for _, s := range all[max(0, len(all)-100):] {
		if s.start < now && now < s.end {
			return s.end
		}
	}
	return now
}

// again is a port saved and restored; both save alike.
func again(t *testing.T, p Port, pl *topology.Port) Port {
	t.Helper()
	var w, v snap.Writer
	p.Snapshot(&w)
	q := New(pl, true)
	r := snap.Reader{B: w.B}
	if q.Restore(&r); r.Err != nil || len(r.B) != 0 {
		t.Fatalf("%v, %d bytes left", r.Err, len(r.B))
	}
	if q.Snapshot(&v); string(v.B) != string(w.B) {
		t.Fatal("a restored port saves something else")
	}
	return q
}
