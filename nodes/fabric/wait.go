package fabric

import (
	"math/bits"

	"github.com/rocemu/rocemu/clock"
)

func firstBit(m uint8) int { return bits.TrailingZeros8(m) }

// waits counts, for each lossless egress queue, the frames it holds by ingress
// port: the part of the wait-for graph that a device knows.
type waits struct {
	idx  []int16 // port·8+queue → row, -1 = not tracked
	held []uint32
	n    int    // ports
	gen  uint64 // grows when an edge may have appeared or gone
}

func (s *Switch) initWaits() {
	w := &s.wait
	w.n = len(s.ports)
	w.idx = make([]int16, 8*w.n)
	rows := 0
	for i := range s.ports {
		p := &s.ports[i]
		for q := range 8 {
			w.idx[i<<3+q] = -1
		}
		for n := range 8 {
			q := int(p.maps.pfcToQueue[n])
			if p.pfcOn&(1<<n) != 0 && w.idx[i<<3+q] < 0 {
				w.idx[i<<3+q] = int16(rows)
				rows++
			}
		}
	}
	w.held = make([]uint32, rows*w.n)
}

func (w *waits) enter(egress int, q uint8, ingress int) {
	if r := w.idx[egress<<3+int(q)]; r >= 0 {
		h := &w.held[int(r)*w.n+ingress]
		if *h == 0 {
			w.gen++
		}
		*h++
	}
}

func (w *waits) leave(egress int, q uint8, ingress int) {
	if r := w.idx[egress<<3+int(q)]; r >= 0 {
		w.held[int(r)*w.n+ingress]--
	}
}

// WaitEdge says: ingress priority InPrio of port InPort is in XOFF, and holds
// frames that wait in the egress queue of priority Prio at Port, which its
// peer has paused. So whoever is paused by (InPort, InPrio) waits for whoever
// paused (Port, Prio); a cycle of such edges over devices is a deadlock.
type WaitEdge struct {
	Port, Prio     uint8
	InPort, InPrio uint8
	Bytes          int64 // in the paused queue
}

// WaitGen changes whenever the edges may have changed; an observer that saw
// the same value before need not ask again, except for pauses that ran out.
func (s *Switch) WaitGen() uint64 { return s.wait.gen }

// WaitEdges appends the device's edges of the wait-for graph at now, by port
// and priority, to dst.
func (s *Switch) WaitEdges(now clock.Time, dst []WaitEdge) []WaitEdge {
	for i := range s.ports {
		p := &s.ports[i]
		m := p.port.PausedMask(now) & p.pfcOn
		for ; m != 0; m &= m - 1 {
			n := firstBit(m)
			q := p.maps.pfcToQueue[n]
			if p.q[q].n == 0 || p.pausedQueues(now)&(1<<q) == 0 {
				continue
			}
			dst = s.edgesOf(dst, i, n, int(q))
		}
	}
	return dst
}

func (s *Switch) edgesOf(dst []WaitEdge, i, n, q int) []WaitEdge {
	r := int(s.wait.idx[i<<3+q])
	for k := range s.ports {
		if s.wait.held[r*s.wait.n+k] == 0 {
			continue
		}
		in := &s.ports[k]
		for x := in.xoffSent; x != 0; x &= x - 1 {
			g := firstBit(x)
			if in.maps.tcToQueueHits(g, q, &s.ports[i].maps) {
				dst = append(dst, WaitEdge{uint8(i + 1), uint8(n), uint8(k + 1), uint8(firstBit(in.pgPrios[g])), s.ports[i].q[q].bytes})
			}
		}
	}
	return dst
}

// tcToQueueHits reports whether some traffic class takes PG g here and queue q
// at egress.
func (m *maps) tcToQueueHits(g, q int, egress *maps) bool {
	for tc := range 8 {
		if int(m.tcToPG[tc]) == g && int(egress.tcToQueue[tc]) == q {
			return true
		}
	}
	return false
}
