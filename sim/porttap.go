package sim

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/capture"
	"github.com/rocemu/rocemu/nodes/wire"
)

// PortTap reads what passes a port while a run goes on. A frame is read where
// it arrives: of a port whose ends are in two processes, each reads a direction.
type PortTap struct {
	f    *Fabric
	dirs []*capPort
}

// Passing is a frame at the instant its last bit passes the port.
type Passing struct {
	At   clock.Time
	Dir  capture.Dir
	Wire []byte // destination MAC through FCS
	Note string // what a PFC frame pauses, which transmission it is
}

// TapPort taps the directions of a port that arrive in this process.
func (f *Fabric) TapPort(dev int32, port int) (*PortTap, error) {
	d := &f.Plan.Devices[dev]
	if port < 1 || port > len(d.Ports) {
		return nil, fmt.Errorf("tap %s:%d: the ports are 1 to %d", d.Name, port, len(d.Ports))
	}
	t := &PortTap{f: f}
	p := &d.Ports[port-1]
	if f.Nodes[p.Peer] != nil {
		t.dirs = append(t.dirs, &capPort{nil, 0, dev, capture.DirOut, f.Engine.TapTo(p.Peer, p.PeerPort), p, dev})
	}
	if f.Nodes[dev] != nil {
		far := &f.Plan.Devices[p.Peer].Ports[p.PeerPort-1]
		t.dirs = append(t.dirs, &capPort{nil, 0, dev, capture.DirIn, f.Engine.TapTo(dev, port), far, p.Peer})
	}
	return t, nil
}

// Close ends it.
func (t *PortTap) Close() {
	for _, d := range t.dirs {
		d.tap.Close()
	}
}

// Missed is the number of frames that were gone, or too many to keep, when Read
// came.
func (t *PortTap) Missed() (n uint64) {
	for _, d := range t.dirs {
		n += d.tap.Missed()
	}
	return n
}

// Read visits what passed since the last call, direction by direction; it is
// called between windows.
func (t *PortTap) Read(visit func(p *Passing)) {
	for _, d := range t.dirs {
		d.tap.Read(func(f *wire.Frame) {
			p := Passing{At: d.passes(f), Dir: d.dir}
			p.Wire = wire.AppendFrame(nil, f, wire.FrameContext{
				SrcMAC: portMAC(t.f.Plan, d.dev0, d.from.Num), DstMAC: portMAC(t.f.Plan, d.from.Peer, d.from.PeerPort),
			})
			switch {
			case f.Kind == wire.KindPFC:
				p.Note = strings.TrimSpace(pauses(f))
			case f.Iter > 1 && f.Kind == wire.KindData:
				p.Note = fmt.Sprintf("transmission %d", f.Iter)
			}
			visit(&p)
		})
	}
}
