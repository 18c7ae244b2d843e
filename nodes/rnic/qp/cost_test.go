package qp_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
)

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestIdleQPBytes(t *testing.T) {
	c := qp.Generic()
	const n = 10_000
	before := heap()
	qs := make([]qp.QP, n)
	for i := range qs {
		qs[i].Init(qp.Params{Cfg: &c, Counters: &qp.Counters{}, QPN: uint32(i), PeerQPN: 1, Src: 1, Dst: 2})
	}
	each := (heap() - before) / n
	runtime.KeepAlive(qs)
	t.Logf("an idle QP: %d bytes, of which the struct %d", each, unsafe.Sizeof(qp.QP{}))
	if each > 2000 {
		t.Fatalf("an idle QP takes %d bytes: 100,000 must fit in 200 MB", each)
	}
}

// A message is a range: with everything in flight and a gap being repaired, a
// gigabyte costs what a megabyte costs.
func TestMemoryIndependentOfSize(t *testing.T) {
	cost := func(size int64) uint64 {
		c := qp.Generic()
		var a, b qp.QP
		var mem qp.Memory
		key := mem.Register(0, 1<<32, qp.RemoteWrite, 0, false)
		var cnt qp.Counters
		var fx qp.Effects
		before := heap()
		a.Init(qp.Params{Cfg: &c, Counters: &cnt, QPN: 1, PeerQPN: 2, Src: 1, Dst: 2})
		b.Init(qp.Params{Cfg: &c, Counters: &cnt, Memory: &mem, QPN: 2, PeerQPN: 1, Src: 2, Dst: 1})
		a.Req.Post(0, &qp.WR{Verb: qp.Write, Len: size, RKey: key}, &fx)
		var f wire.Frame
		for i := 0; a.Req.NextPacket(0, &f); i++ {
			if i%2 == 0 {
				b.HandleFrame(0, &f, false, &fx)
			}
			fx.Reset()
		}
		for b.Resp.NextResponse(0, &f) {
			a.HandleFrame(0, &f, false, &fx)
		}
		after := heap()
		runtime.KeepAlive(&a)
		runtime.KeepAlive(&b)
		if after < before {
			return 0
		}
		return after - before
	}
	small, big := cost(1<<20), cost(1<<30)
	t.Logf("1 MB: %d bytes, 1 GB: %d bytes", small, big)
	if big > small+8192 {
		t.Fatalf("1 GB outstanding costs %d bytes, 1 MB %d", big, small)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	p := newBenchPair()
	p.round(1000)
	if n := testing.AllocsPerRun(100, func() { p.round(100) }); n != 0 {
		t.Fatalf("%v allocations in 100 packets and their ACKs", n)
	}
}

type benchPair struct {
	a, b qp.QP
	mem  qp.Memory
	cnt  qp.Counters
	fx   qp.Effects
	key  uint32
	now  clock.Time
	c    qp.Config
}

func newBenchPair() *benchPair {
	p := &benchPair{c: qp.Generic()}
	p.key = p.mem.Register(0, 1<<32, qp.RemoteWrite, 0, false)
	p.c.AckEvery = true
	p.a.Init(qp.Params{Cfg: &p.c, Counters: &p.cnt, QPN: 1, PeerQPN: 2, Src: 1, Dst: 2})
	p.b.Init(qp.Params{Cfg: &p.c, Counters: &p.cnt, Memory: &p.mem, QPN: 2, PeerQPN: 1, Src: 2, Dst: 1})
	return p
}

// round moves n packets and their ACKs, one by one.
func (p *benchPair) round(n int) {
	var f wire.Frame
	for range n {
		p.now += 1000
		if p.a.Req.Outstanding() == 0 {
			p.a.Req.Post(p.now, &qp.WR{Verb: qp.Write, Len: 64 << 10, RKey: p.key}, &p.fx)
		}
		p.a.Req.NextPacket(p.now, &f)
		p.b.Resp.HandleRequest(p.now, &f, &p.fx)
		p.b.Resp.NextResponse(p.now, &f)
		p.a.Req.HandleResponse(p.now, &f, &p.fx)
		p.fx.Reset()
	}
}

// BenchmarkPacketAndAck is the four calls of a packet's life: dequeue, receive,
// answer, acknowledge.
func BenchmarkPacketAndAck(b *testing.B) {
	p := newBenchPair()
	b.ReportAllocs()
	b.ResetTimer()
	p.round(b.N)
}

func BenchmarkNextPacket(b *testing.B) {
	c := qp.Generic()
	var q qp.QP
	var fx qp.Effects
	q.Init(qp.Params{Cfg: &c, QPN: 1, PeerQPN: 2, Src: 1, Dst: 2})
	var f wire.Frame
	b.ReportAllocs()
	for b.Loop() {
		if !q.Req.NextPacket(0, &f) {
			q.SetState(0, qp.StateReset, &fx)
			q.SetState(0, qp.StateRTS, &fx)
			q.Req.Post(0, &qp.WR{Verb: qp.Write, Len: 1 << 30}, &fx)
			fx.Reset()
		}
	}
}
