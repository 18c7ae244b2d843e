package split

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// Sighting is a frame of a watched queue pair that crossed a cable.
type Sighting struct {
	Pair       int32 // which of the watched ones
	Dev        int32 // that it left
	Port       int32 // by this index
	PSN, Index uint32
	Len        uint32
	Op, Iter   uint8
	Toward     bool       // from requester to responder
	At         clock.Time // it reached the state of the other end
}

// tap is one direction of a cable.
type tap struct {
	*actors.Tap
	dev, port int32
}

// Taps reads the frames of watched queue pairs where they arrive: on the cables
// whose far ends a fabric hosts.
type Taps struct {
	w    *Watcher
	taps []tap
}

// Tap begins to read the cables of a built fabric.
func (w *Watcher) Tap(f *sim.Fabric) *Taps {
	t := &Taps{w: w}
	for i := range w.plan.Devices {
		for p := range w.plan.Devices[i].Ports {
			port := &w.plan.Devices[i].Ports[p]
			if f.Nodes[port.Peer] == nil {
				continue
			}
			if x := f.Engine.TapTo(port.Peer, port.PeerPort); x != nil {
				t.taps = append(t.taps, tap{x, int32(i), int32(p)})
			}
		}
	}
	return t
}

// Read visits what crossed since the last call; it is called between windows,
// and once at the end.
func (t *Taps) Read(see func(s *Sighting)) {
	for i := range t.taps {
		x := &t.taps[i]
		x.Read(func(f *wire.Frame) {
			if s, ok := t.w.sight(f); ok {
				s.Dev, s.Port = x.dev, x.port
				see(&s)
			}
		})
	}
}

// Skip passes over what travels now: it was seen before the fabric was restored.
func (t *Taps) Skip() {
	for i := range t.taps {
		t.taps[i].Read(func(*wire.Frame) {})
	}
}

// sight says which packet of which watched queue pair a frame is.
func (w *Watcher) sight(f *wire.Frame) (s Sighting, ok bool) {
	if f.Kind != wire.KindData && f.Kind != wire.KindAck {
		return s, false
	}
	p := w.pairs[end{f.Dst, f.DstQPN()}]
	if p == nil {
		return s, false
	}
	s = Sighting{
		Pair: p.index, PSN: uint32(f.PSN()), Op: uint8(f.Op()), Iter: f.Iter, Len: uint32(f.Len), At: f.At,
		Toward: f.Dst == p.q.B && f.DstQPN() == p.q.BQPN,
	}
	if f.Kind == wire.KindAck {
		s.Index = f.Index
	}
	return s, true
}

// See takes a sighting, in any order. One of what the plan has not is an error
// of who made it and is refused.
func (w *Watcher) See(s *Sighting) bool {
	if s.Pair < 0 || int(s.Pair) >= len(w.list) || s.Dev < 0 || int(s.Dev) >= len(w.plan.Devices) ||
		s.Port < 0 || int(s.Port) >= len(w.plan.Devices[s.Dev].Ports) {
		return false
	}
	p := w.list[s.Pair]
	k := key{psn: s.PSN, index: s.Index, op: s.Op, iter: s.Iter, toward: s.Toward}
	fr := p.frames[k]
	if fr == nil {
		fr = &frame{key: k, len: s.Len}
		p.frames[k] = fr
	}
	fr.hops = append(fr.hops, hop{w.port(s), s.Dev, s.At})
	return true
}

func (w *Watcher) port(s *Sighting) *topology.Port { return &w.plan.Devices[s.Dev].Ports[s.Port] }
