package fabric

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// WRED marks and drops early by queue length (switch §4). Marking and dropping
// have thresholds of their own: ECN-capable frames are marked when marking is
// on; the others, and all when it is off, fall to the drop thresholds.
type WRED struct {
	mark, drop curve
	marking    bool
	dropECT    bool // only while not marking
	dropNotECT bool
	Enqueue    bool  // marks at enqueue instead of dequeue
	weight     uint8 // avg ← avg(1−2^−n) + q·2^−n; 0 = instantaneous
	avg        int64 // average × 2^weight
	key        uint64
	draws      uint64 // random numbers used
}

// curve is p(q): 0 up to min, rising to pmax × 2^-32 at max, 1 beyond.
type curve struct {
	min, max int64
	pmax     uint64
}

// NewWRED builds the AQM of one queue. key names it for the keyed randomness.
func NewWRED(e *topology.ECN, key uint64) WRED {
	w := WRED{Enqueue: e.Enqueue, weight: uint8(e.Weight), key: key}
	w.mark = curve{e.KMin, e.KMax, e.PMax}
	w.drop = curve{e.DropMin, e.DropMax, e.DropPMax}
	separate := e.DropMax > 0
	if !separate {
		w.drop = w.mark
	}
	w.marking = e.On && e.Mark && e.KMax > 0
	w.dropECT = !w.marking && (separate || (e.On && !e.Mark && e.KMax > 0))
	w.dropNotECT = (e.DropNotECT && w.drop.max > 0) || w.dropECT
	return w
}

// Active reports whether the queue has any AQM.
func (w *WRED) Active() bool { return w.marking || w.dropNotECT || w.dropECT }

// Length feeds the queue length in bytes and returns what the curve is applied
// to: the length itself, or its running average.
func (w *WRED) Length(q int64) int64 {
	if w.weight == 0 {
		return q
	}
	w.avg += q - w.avg>>w.weight
	return w.avg >> w.weight
}

// selects draws whether a frame at length q falls to the curve.
func (w *WRED) selects(c *curve, q int64) bool {
	if q <= c.min {
		return false
	}
	if q > c.max {
		return true
	}
	w.draws++
	r := clock.Mix(w.key, w.draws, 0x57524544) >> 32
	return r*uint64(c.max-c.min) < c.pmax*uint64(q-c.min)
}

// Mark sets CE on an ECN-capable frame that the curve selects at length q and
// reports whether it changed it; a frame that is CE already is no new mark.
func (w *WRED) Mark(f *wire.Frame, q int64) bool {
	if !w.marking || f.ECN() == wire.NotECT || !w.selects(&w.mark, q) {
		return false
	}
	was := f.ECN()
	f.TOS |= wire.CE
	return was != wire.CE
}

// Drops reports whether the frame is dropped early at length q.
func (w *WRED) Drops(f *wire.Frame, q int64) bool {
	if f.ECN() == wire.NotECT {
		return w.dropNotECT && w.selects(&w.drop, q)
	}
	return w.dropECT && w.selects(&w.drop, q)
}
