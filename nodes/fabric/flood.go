package fabric

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// A gateway that knows a destination's address but not its port (an incomplete
// ARP or MAC entry) floods its frames: a copy leaves at every port but the one
// it came by. The copies hold lossless memory and wait behind pauses like any
// frame, in ports where no up-down route would put them; that is how a Clos
// deadlocks (switch §9.1 b).

// everywhere is the egress of a flooded frame.
const everywhere = -1

// floodTTL is what copies carry: the next router ends them, as it would a
// frame that is not for its MAC. The destination itself takes its copy.
const floodTTL = 1

// flood stores a copy for every port that could send it.
func (s *Switch) flood(now clock.Time, pn int, in *portState, f *wire.Frame, out *actors.Outbox) {
	copies := 0
	for i := range s.ports {
		e := &s.ports[i]
		if i == pn-1 || !e.upOut || f.Len > e.mtu {
			continue
		}
		if copies++; copies > 1 {
			s.copied.add(f.Len)
		}
		c := *f
		c.TTL = floodTTL
		s.forward(now, pn, in, &c, decision{egress: int32(i + 1)}, out)
	}
	if copies == 0 {
		in.c.InDrops++
		s.drop(now, pn, f, dropNote{why: record.NoRoute})
	}
}

// Copied counts the frames that flooding made beyond the ones it was given.
func (s *Switch) Copied() Count { return s.copied }
