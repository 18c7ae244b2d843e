package port

import (
	"testing"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

func plan() *topology.Port {
	return &topology.Port{
		Num: 1, Rate: 100 * clock.Gbps, Prop: 500 * clock.Nanosecond, EgressHalf: 500 * clock.Nanosecond,
		PeerIngressHalf: 400 * clock.Nanosecond, PeerEgressHalf: 300 * clock.Nanosecond,
		PeerResponse: clock.Microsecond, Response: clock.Microsecond,
	}
}

func at(t *testing.T, what string, got, want clock.Time) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestTransmit: arrival = dequeue + egress half + (L+20)·8/R + cable + the
// peer's ingress half; the next dequeue is due a slot later.
func TestTransmit(t *testing.T) {
	p := New(plan(), true)
	f := wire.Frame{Len: 1086}
	p.Transmit(1000, &f)
	at(t, "arrival", f.At, 1000+500_000+88_480+500_000+400_000)
	at(t, "free", p.FreeAt(), 1000+88_480)
}

// TestCarry: at a rate that does not divide, frames back to back take exactly
// their bytes in sum; an idle port starts without a remainder.
func TestCarry(t *testing.T) {
	pl := plan()
	pl.Rate = 7 * clock.Gbps
	p := New(pl, false)
	now := clock.Time(0)
	for range 7000 {
		p.Transmit(now, &wire.Frame{Len: 64})
		now = p.FreeAt()
	}
	at(t, "7000 slots of 84 B at 7G", now, 7000*84*8*1000/7)
	p.Transmit(now+1, &wire.Frame{Len: 64})
	at(t, "after an idle instant", p.FreeAt(), now+1+96_000)
}

// TestPFCBoundary: a PFC frame waits for the frame at the MAC, not for those in
// the egress pipeline, and its slot is charged to the next dequeue.
func TestPFCBoundary(t *testing.T) {
	p := New(plan(), true)
	p.Transmit(0, &wire.Frame{Len: 9216}) // at the MAC from 500 ns to 1238.88 ns
	for range 40 {                        // 40 more in the pipeline
		p.Transmit(p.FreeAt(), &wire.Frame{Len: 64})
	}
	free := p.FreeAt()
	f := wire.Frame{Kind: wire.KindPFC, Len: 64}
	p.SendPFC(600_000, &f)
	acts := clock.Time(1_238_880 + 6_720 + 500_000 + 700_000) // boundary, slot, cable, response less the peer's egress half
	at(t, "acts", f.At, acts)
	at(t, "charged", p.FreeAt(), free+6_720)
	g := wire.Frame{Kind: wire.KindPFC, Len: 64}
	p.SendPFC(600_000, &g)
	at(t, "the second waits for the first", g.At, acts+6_720)

	idle := New(plan(), true)
	idle.SendPFC(1000, &f)
	at(t, "idle port", f.At, 1000+6_720+500_000+700_000)
}

// TestPause: a pause of q quanta ends q·512 bit times after reception, a later
// frame replaces it, time 0 ends it.
func TestPause(t *testing.T) {
	p := New(plan(), false)
	now := clock.Time(10 * clock.Microsecond) // acts 500 ns after reception
	if was, is := p.Pause(now, 3, 65535); was || !is {
		t.Fatalf("paused %v before, %v after", was, is)
	}
	at(t, "end", p.PausedUntil(3), now-500_000+65535*5_120)
	at(t, "next end", p.NextExpiry(now), now-500_000+65535*5_120)
	if p.PausedMask(now) != 1<<3 || !p.Paused(now, 3) || p.Paused(now, 4) {
		t.Errorf("mask %08b", p.PausedMask(now))
	}
	p.Pause(now+1000, 3, 200)
	at(t, "replaced", p.PausedUntil(3), now+1000-500_000+200*5_120)
	if was, is := p.Pause(now+2000, 3, 0); !was || is || p.Paused(now+2000, 3) {
		t.Errorf("resume: was %v, is %v", was, is)
	}
}

// TestSnapshot: a restored port goes on with the same instants and bytes.
func TestSnapshot(t *testing.T) {
	p := New(plan(), true)
	for i := range 30 {
		p.Transmit(p.FreeAt()+clock.Time(i%3), &wire.Frame{Len: uint16(64 + 30*i)})
	}
	p.Pause(1000, 5, 77)
	var w, again snap.Writer
	p.Snapshot(&w)
	q := New(plan(), true)
	r := snap.Reader{B: w.B}
	if q.Restore(&r); r.Err != nil || len(r.B) != 0 {
		t.Fatalf("%v, %d bytes left", r.Err, len(r.B))
	}
	if q.Snapshot(&again); string(again.B) != string(w.B) {
		t.Error("state differs after restore")
	}
	f, g := wire.Frame{Kind: wire.KindPFC, Len: 64}, wire.Frame{Kind: wire.KindPFC, Len: 64}
	p.SendPFC(p.FreeAt(), &f)
	q.SendPFC(q.FreeAt(), &g)
	at(t, "PFC after restore", g.At, f.At)
	for n := range w.B {
		bad := snap.Reader{B: w.B[:n]}
		x := New(plan(), true)
		if x.Restore(&bad); bad.Err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(w.B))
		}
	}
}

func BenchmarkTransmit(b *testing.B) {
	p := New(plan(), true)
	f := wire.Frame{Len: 1086}
	for b.Loop() {
		p.Transmit(p.FreeAt(), &f)
	}
}

// TestAside: an extra frame has the times of one sent next and leaves no trace,
// with a ring of its first size and a grown one.
func TestAside(t *testing.T) {
	for _, frames := range []int{1, 40} {
		p := New(plan(), true)
		for range frames {
			p.Transmit(p.FreeAt(), &wire.Frame{Len: 64})
		}
		now := p.FreeAt().Add(10 * clock.Microsecond) // all have left
		was, is := snap.Writer{}, snap.Writer{}
		p.Snapshot(&was)
		f, next := wire.Frame{Len: 500}, wire.Frame{Len: 500}
		p.Aside(now, &f)
		if p.Snapshot(&is); string(was.B) != string(is.B) {
			t.Errorf("after %d frames: the port is not what it was", frames)
		}
		p.Transmit(now, &next)
		at(t, "arrival", f.At, next.At)
	}
}
