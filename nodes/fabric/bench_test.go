package fabric

import (
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/port"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// blaster is the cheapest neighbour: it sends equal frames back to back to one
// destination and forgets what it gets.
type blaster struct {
	port  port.Port
	f     wire.Frame
	next  clock.Time
	chain actors.Chain
	slow  clock.Duration // extra gap
}

func (b *blaster) Advance(end clock.Time, in *actors.Inbox, out *actors.Outbox, st *actors.Status) {
	for in.Next() < end {
		in.Take()
	}
	for ; b.next < end; b.next = b.port.FreeAt().Add(b.slow) {
		f := b.f
		b.port.Transmit(b.next, &f)
		out.Send(1, &f)
	}
	st.Next, st.NextWork, st.NextFault = b.next, b.next, clock.Never
}

func (b *blaster) Snapshot(*snap.Writer)      {}
func (b *blaster) Restore(*snap.Reader) error { return nil }
func (b *blaster) Chain() actors.Chain        { return b.chain }

// benchLeaf is a leaf with n blasters, each sending to the next one; load is
// percent of the line rate, fan how many send to one.
func benchLeaf(b *testing.B, n, fan int, slow clock.Duration) {
	l := newLab(b)
	l.sw("leaf1").Switch.Latency = us
	for i := range n {
		h := fmt.Sprintf("h%d", i)
		l.rx(h)
		l.link(h, "leaf1", 25*clock.Gbps, 500*ns)
	}
	l.each(func(_ *topology.Device, p *topology.Port) {
		p.ECN[3] = topology.ECN{On: true, Mark: true, KMin: 100_000, KMax: 400_000, PMax: 1 << 30}
	})
	l.route()
	cfg := actors.Config{Seed: 1, Limit: clock.Never, Until: clock.Never, Live: true, Window: us}
	var hosted []actors.Actor
	var sw *Switch
	for i := range l.plan.Devices {
		d := &l.plan.Devices[i]
		cfg.Names = append(cfg.Names, d.Name)
		var ports []actors.Ports
		for k := range d.Ports {
			ports = append(ports, actors.Ports{Peer: d.Ports[k].Peer, PeerPort: int32(d.Ports[k].PeerPort)})
		}
		cfg.Cables = append(cfg.Cables, ports)
		if d.Switch != nil {
			sw = New(&l.plan, int32(i), Options{})
			hosted = append(hosted, sw)
			continue
		}
		h := &blaster{port: port.New(&d.Ports[0], false), slow: slow, next: clock.Time(i) * 7000}
		to := uint32(d.Num/fan*fan%n + 1)
		h.f = wire.Frame{Kind: wire.KindData, Len: 1086, Src: uint32(d.Num), Dst: to, TTL: 64, TOS: 26<<2 | wire.ECT0, SPort: uint16(49152 + i)}
		hosted = append(hosted, h)
	}
	e, err := actors.New(cfg, hosted, 1)
	if err != nil {
		b.Fatal(err)
	}
	run := func(hops uint64) {
		for sw.Hops() < hops {
			if _, err := e.Step(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	run(50_000)
	start := sw.Hops()
	b.ReportAllocs()
	b.ResetTimer()
	run(start + uint64(b.N))
	b.StopTimer()
	if err := sw.Check(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHop is a frame through a leaf with everything on, neighbours and
// channels included: straight through (line rate, a permutation), and queued
// (jittered, two senders for each receiver at half rate).
func BenchmarkHop(b *testing.B) {
	b.Run("through", func(b *testing.B) { benchLeaf(b, 16, 1, 3*ns) })
	b.Run("queued", func(b *testing.B) { benchLeaf(b, 16, 2, 360*ns) })
	b.Run("ports64", func(b *testing.B) { benchLeaf(b, 64, 1, 3*ns) })
}
