package split

import (
	"math"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/sim"
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

// tap reads one direction of a cable.
type tap struct {
	*actors.Tap
	cable int32
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
	for i := range w.cables {
		port := w.cables[i].port
		if f.Nodes[port.Peer] == nil {
			continue
		}
		if x := f.Engine.TapTo(port.Peer, port.PeerPort); x != nil {
			t.taps = append(t.taps, tap{x, int32(i)})
		}
	}
	return t
}

// Note takes what crossed since the last call; it is called between windows,
// and once at the end.
func (t *Taps) Note() {
	for i := range t.taps {
		x := &t.taps[i]
		x.Read(func(f *wire.Frame) {
			if p, k := t.w.match(f); p != nil {
				p.note(&k, hop{at: f.At, tap: x.cable}, f.Len)
			}
		})
	}
}

// Read visits the same, for another process to take with [Watcher.See].
func (t *Taps) Read(see func(s *Sighting)) {
	for i := range t.taps {
		x := &t.taps[i]
		c := &t.w.cables[x.cable]
		x.Read(func(f *wire.Frame) {
			if p, k := t.w.match(f); p != nil {
				see(&Sighting{
					Pair: p.index, Dev: c.dev, Port: int32(c.port.Num - 1), PSN: k.psn, Index: k.index,
					Len: uint32(f.Len), Op: k.op, Iter: k.iter, Toward: k.toward, At: f.At,
				})
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

// match says which packet of which watched queue pair a frame is.
func (w *Watcher) match(f *wire.Frame) (*pair, key) {
	if f.Kind != wire.KindData && f.Kind != wire.KindAck {
		return nil, key{}
	}
	e := w.ends.slot(end{f.Dst, f.DstQPN()})
	if e.pair == nil {
		return nil, key{}
	}
	k := key{psn: uint32(f.PSN()), op: uint8(f.Op()), iter: f.Iter, toward: e.toward}
	if f.Kind == wire.KindAck {
		k.index = f.Index
	}
	return e.pair, k
}

// See takes a sighting, in any order. One of what the plan has not is an error
// of who made it and is refused.
func (w *Watcher) See(s *Sighting) bool {
	if s.Pair < 0 || int(s.Pair) >= len(w.list) || s.Dev < 0 || int(s.Dev) >= len(w.plan.Devices) ||
		s.Port < 0 || int(s.Port) >= len(w.plan.Devices[s.Dev].Ports) || s.Len > math.MaxUint16 {
		return false
	}
	k := key{psn: s.PSN, index: s.Index, op: s.Op, iter: s.Iter, toward: s.Toward}
	w.list[s.Pair].note(&k, hop{at: s.At, tap: w.first[s.Dev] + s.Port}, uint16(s.Len))
	return true
}
