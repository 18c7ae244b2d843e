package fabric

import (
	"context"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/port"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

const (
	ns = clock.Nanosecond
	us = clock.Microsecond
	ms = clock.Millisecond
)

// lab is a small fabric of switches and traffic hosts, wired by hand.
type lab struct {
	t     testing.TB
	plan  topology.Plan
	hosts map[string]*host
	sws   map[string]*Switch
	eng   *actors.Engine
	opts  Options
}

func newLab(t testing.TB) *lab {
	l := &lab{t: t, hosts: map[string]*host{}, sws: map[string]*Switch{}}
	l.plan.Seed = 7
	return l
}

func (l *lab) dev(name string) *topology.Device {
	for i := range l.plan.Devices {
		if l.plan.Devices[i].Name == name {
			return &l.plan.Devices[i]
		}
	}
	l.t.Fatalf("no device %s", name)
	return nil
}

// sw adds a switch: 12 MiB of 208-B cells, no pipeline latency.
func (l *lab) sw(name string) *topology.Device {
	l.plan.Devices = append(l.plan.Devices, topology.Device{
		ID: int32(len(l.plan.Devices)), Kind: topology.Leaf, Name: name,
		Switch: &topology.Switch{BufferBytes: 12 << 20, Cell: 208, Slices: 1, MTU: 9216},
	})
	return l.dev(name)
}

// rx adds hosts in number order; all switches must be added first.
func (l *lab) rx(names ...string) {
	for _, n := range names {
		id := int32(len(l.plan.Devices))
		l.plan.RNICs = append(l.plan.RNICs, id)
		k := uint32(len(l.plan.RNICs))
		l.plan.Devices = append(l.plan.Devices, topology.Device{ID: id, Kind: topology.RNIC, Name: n, Num: int(k)})
		l.hosts[n] = &host{k: k, at: map[uint8]*sink{}, until: clock.Never}
	}
}

// qosDefault: DSCP 3, 26 → 3; DSCP n<8 → n; 48 → 6.
func qosDefault() *topology.QoS {
	q := &topology.QoS{}
	for i := range 8 {
		q.DSCPToTC[i] = uint8(i)
		q.TCToPG[i], q.TCToQueue[i], q.PFCToQueue[i] = uint8(i), uint8(i), uint8(i)
		q.Sched[i].Weight = 1
	}
	q.DSCPToTC[26], q.DSCPToTC[48] = 3, 6
	return q
}

func pfcDefault() *topology.PFC {
	p := &topology.PFC{Quanta: 65535, Response: us}
	for i := range 8 {
		p.Alpha[i] = topology.Alpha{Num: 1, Den: 8}
		p.XONOffset[i] = 18_000
	}
	p.Lossless[3] = true
	return p
}

func (l *lab) link(a, b string, r clock.Rate, prop clock.Duration) (pa, pb int) {
	ends := [2]*topology.Device{l.dev(a), l.dev(b)}
	for i, d := range ends {
		o := ends[1-i]
		d.Ports = append(d.Ports, topology.Port{
			Num: len(d.Ports) + 1, Peer: o.ID, PeerPort: len(o.Ports) + 1 - i*b2i(d != o),
			Rate: r, Prop: prop, MTU: 9216, Response: us, PeerResponse: us,
			QoS: qosDefault(), PFC: pfcDefault(), Lossy: &topology.Lossy{Alpha: topology.Alpha{Num: 8, Den: 1}}, ECN: &[8]topology.ECN{},
			Headroom: [8]int64{3: 1000},
		})
		if d.Switch != nil {
			p := &d.Ports[len(d.Ports)-1]
			p.EgressHalf, p.IngressHalf = d.Switch.Latency/2, d.Switch.Latency/2
		}
	}
	for i, d := range ends {
		o := ends[1-i]
		p, q := &d.Ports[len(d.Ports)-1], &o.Ports[len(o.Ports)-1]
		p.PeerPort = q.Num
		p.PeerIngressHalf, p.PeerEgressHalf = q.IngressHalf, q.EgressHalf
		p.PeerCutThrough = o.Switch != nil && o.Switch.CutThrough
	}
	return len(ends[0].Ports), len(ends[1].Ports)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// each applies f to every switch port.
func (l *lab) each(f func(d *topology.Device, p *topology.Port)) {
	for i := range l.plan.Devices {
		d := &l.plan.Devices[i]
		for k := range d.Ports {
			if d.Switch != nil {
				f(d, &d.Ports[k])
			}
		}
	}
}

// build routes by shortest paths, unless a device has routes already, and
// makes the engine.
func (l *lab) build(workers int, window clock.Duration) {
	l.route()
	n := len(l.plan.Devices)
	cfg := actors.Config{Seed: l.plan.Seed, Limit: clock.Never, Until: clock.Never, Settle: 4 * us, Live: true}
	hosted := make([]actors.Actor, n)
	w := clock.Duration(clock.Never)
	for i := range n {
		d := &l.plan.Devices[i]
		cfg.Names = append(cfg.Names, d.Name)
		var ports []actors.Ports
		for k := range d.Ports {
			p := &d.Ports[k]
			ports = append(ports, actors.Ports{Peer: p.Peer, PeerPort: int32(p.PeerPort)})
			w = min(w, p.EgressHalf+p.Prop+p.PeerIngressHalf, p.Prop+p.PeerResponse-p.PeerEgressHalf+p.Rate.Span(84))
		}
		cfg.Cables = append(cfg.Cables, ports)
		if d.Switch != nil {
			s := New(&l.plan, int32(i), l.opts)
			l.sws[d.Name], hosted[i] = s, s
		} else {
			h := l.hosts[d.Name]
			h.init(l, d)
			hosted[i] = h
		}
	}
	if window > 0 {
		w = window
	}
	cfg.Window = w
	var err error
	if l.eng, err = actors.New(cfg, hosted, workers); err != nil {
		l.t.Fatal(err)
	}
}

// route fills Route and Groups by breadth-first search from every host.
func (l *lab) route() {
	for i := range l.plan.Devices {
		d := &l.plan.Devices[i]
		if d.Switch == nil || d.Route != nil {
			continue
		}
		d.Route = make([]int16, len(l.plan.RNICs))
		for k, h := range l.plan.RNICs {
			dist := l.distances(h)
			var g []uint16
			for p := range d.Ports {
				if dist[d.Ports[p].Peer] == dist[int32(i)]-1 {
					g = append(g, uint16(p+1))
				}
			}
			d.Route[k] = int16(len(d.Groups))
			d.Groups = append(d.Groups, g)
		}
	}
}

func (l *lab) distances(from int32) map[int32]int {
	dist := map[int32]int{}
	for i := range l.plan.Devices {
		dist[int32(i)] = 1 << 20
	}
	dist[from] = 0
	for todo := []int32{from}; len(todo) > 0; todo = todo[1:] {
		for _, p := range l.plan.Devices[todo[0]].Ports {
			if dist[p.Peer] > dist[todo[0]]+1 {
				dist[p.Peer] = dist[todo[0]] + 1
				if l.plan.Devices[p.Peer].Switch != nil {
					todo = append(todo, p.Peer)
				}
			}
		}
	}
	return dist
}

// run executes every event before t and checks every switch; it is the last
// phase of a test.
func (l *lab) run(t clock.Duration) {
	l.t.Helper()
	l.eng.Stop(clock.Time(t))
	l.phase(t)
}

// phase runs whole windows until at least t.
func (l *lab) phase(t clock.Duration) {
	l.t.Helper()
	for l.eng.Now() < clock.Time(t) {
		r, err := l.eng.Step(context.Background())
		if err != nil {
			l.t.Fatal(err)
		}
		if r.End != actors.Running {
			break
		}
	}
	for _, s := range l.sws {
		if err := s.Check(); err != nil {
			l.t.Error(err)
		}
	}
}

// stream is paced or line-rate traffic of a host.
type stream struct {
	to         uint32
	len        uint16
	dscp, ecn  uint8
	sport      uint16
	gap        clock.Duration // between first bits; 0 = as fast as the port
	start, end clock.Time
	count      int // 0 = no bound
	sent       int
	ready      clock.Time
}

type sink struct {
	frames, bytes, ce int
	first, last       clock.Time
	marks             []bool
	bySrc             map[uint32]int
}

// pauseRule makes a host send PFC: from..to, every iv, quanta for a priority.
type pauseRule struct {
	prio     int
	quanta   uint16
	from, to clock.Time
	every    clock.Duration
	next     clock.Time
	zero     bool // class-enable vector 0
	kind     wire.Kind
}

// host is a traffic source and sink that honours PFC for priority 3.
type host struct {
	k       uint32
	port    port.Port
	streams []*stream
	rules   []*pauseRule
	at      map[uint8]*sink // by DSCP
	turn    int
	until   clock.Time
	chain   actors.Chain
	rxPFC   [8]int
	seq     uint32
	rx, tx  uint64
	prioOf  func(dscp uint8) int
}

func (h *host) init(l *lab, d *topology.Device) {
	h.port = port.New(&d.Ports[0], true)
	h.chain = actors.NewChain(l.plan.Seed, d.Name)
	h.prioOf = func(dscp uint8) int {
		if dscp == 26 {
			return 3
		}
		return int(dscp & 7)
	}
	for _, r := range h.rules {
		r.next = r.from
	}
	for _, s := range h.streams {
		s.ready = s.start
	}
}

// nextTx is the earliest dequeue.
func (h *host) nextTx(now clock.Time) (clock.Time, *stream) {
	best, at := (*stream)(nil), clock.Never
	for i := range h.streams {
		s := h.streams[(h.turn+i)%len(h.streams)]
		if s.count > 0 && s.sent >= s.count {
			continue
		}
		t := clock.Max(clock.Max(s.ready, h.port.FreeAt()), now)
		if p := h.prioOf(s.dscp); p == 3 && h.port.Paused(t, p) {
			t = h.port.PausedUntil(p)
		}
		if s.end != 0 && t >= s.end {
			continue
		}
		if t < at {
			best, at = s, t
		}
	}
	return at, best
}

func (h *host) nextRule() (clock.Time, *pauseRule) {
	at, best := clock.Never, (*pauseRule)(nil)
	for _, r := range h.rules {
		if r.next < at {
			at, best = r.next, r
		}
	}
	return at, best
}

func (h *host) Advance(end clock.Time, in *actors.Inbox, out *actors.Outbox, st *actors.Status) {
	now := clock.Time(0)
	for {
		at := in.Next()
		tr, r := h.nextRule()
		tx, s := h.nextTx(now)
		switch {
		case at < end && at <= tr && at <= tx:
			now = at
			f, _ := in.Take()
			h.receive(at, f)
		case tr < end && tr <= tx:
			now = tr
			h.pause(tr, r, out)
		case tx < end:
			now = tx
			h.transmit(tx, s, out)
		default:
			st.Next = min(tr, tx)
			st.NextWork, st.NextFault = tx, clock.Never
			return
		}
		st.Events++
	}
}

func (h *host) receive(now clock.Time, f *wire.Frame) {
	if f.Kind == wire.KindPFC {
		for p := range 8 {
			if f.D&(1<<p) != 0 {
				h.rxPFC[p]++
				h.port.Pause(now, p, f.PFCTime(p))
			}
		}
		h.chain.Mix(now, 1, f.A)
		return
	}
	h.rx++
	k := h.at[f.DSCP()]
	if k == nil {
		k = &sink{first: now, bySrc: map[uint32]int{}}
		h.at[f.DSCP()] = k
	}
	k.frames++
	k.bytes += int(f.Len)
	k.last = now
	k.bySrc[f.Src]++
	k.marks = append(k.marks, f.ECN() == wire.CE)
	if f.ECN() == wire.CE {
		k.ce++
	}
	h.chain.Mix(now, uint64(f.Src), uint64(f.PSN()))
}

func (h *host) transmit(now clock.Time, s *stream, out *actors.Outbox) {
	h.turn++
	f := wire.Frame{Kind: wire.KindUDP, Len: s.len, Src: h.k, Dst: s.to, TTL: 64, TOS: s.dscp<<2 | s.ecn, SPort: s.sport}
	h.seq++
	f.SetPSN(wire.PSN(h.seq))
	h.port.Transmit(now, &f)
	s.sent++
	h.tx++
	s.ready = now
	if s.gap > 0 {
		s.ready = now.Add(s.gap)
	}
	out.Send(1, &f)
}

func (h *host) pause(now clock.Time, r *pauseRule, out *actors.Outbox) {
	f := wire.Frame{Kind: wire.KindPFC, Len: 64}
	if r.kind != 0 {
		f.Kind = r.kind
	}
	f.SetPFCTime(r.prio, r.quanta)
	if r.zero {
		f.D = 0
	}
	h.port.SendPFC(now, &f)
	out.SendLate(1, &f)
	r.next = now.Add(r.every)
	if r.every == 0 || r.next >= r.to {
		r.next = clock.Never
	}
}

func (h *host) Snapshot(w *snap.Writer)      {}
func (h *host) Restore(r *snap.Reader) error { return nil }
func (h *host) Chain() actors.Chain          { return h.chain }
func (h *host) send(s stream)                { h.streams = append(h.streams, &s) }
func (h *host) storm(prio int, from, to clock.Duration) {
	h.rules = append(h.rules, &pauseRule{prio: prio, quanta: 65535, from: clock.Time(from), to: clock.Time(to), every: 100 * us})
}

func (h *host) got3() *sink { return h.of(3) }

func (h *host) of(dscp uint8) *sink {
	if k := h.at[dscp]; k != nil {
		return k
	}
	return &sink{}
}
