package fault

import (
	"slices"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// heldFrames are frames that faults keep back on arrival, by (due, order).
type heldFrames struct{ q []heldFrame }

type heldFrame struct {
	due  clock.Time
	port int
	f    wire.Frame
}

func (h *heldFrames) next() clock.Time {
	if len(h.q) == 0 {
		return clock.Never
	}
	return h.q[0].due
}

func (h *heldFrames) push(due clock.Time, port int, f *wire.Frame) {
	i := len(h.q)
	for i > 0 && h.q[i-1].due > due {
		i--
	}
	h.q = slices.Insert(h.q, i, heldFrame{due, port, *f})
}

func (h *heldFrames) pop() (int, wire.Frame, bool) {
	x := h.q[0]
	h.q = slices.Delete(h.q, 0, 1)
	return x.port, x.f, true
}

// Snapshot writes the changing state; the specs come from plan and ledger.
func (d *Device) Snapshot(w *snap.Writer) {
	w.Time(d.next)
	w.Len(len(d.all))
	for _, st := range d.all {
		st.snapshot(w)
	}
	w.Len(len(d.ends))
	for i := range d.ends {
		d.ends[i].snapshot(w)
	}
	w.Len(len(d.held.q))
	for i := range d.held.q {
		h := &d.held.q[i]
		w.Time(h.due)
		w.U16(uint16(h.port))
		w.Frame(&h.f)
	}
}

func (st *state) snapshot(w *snap.Writer) {
	w.U32(uint32(st.Index))
	w.Time(st.Until)
	w.U8(uint8(st.life))
	for _, b := range []bool{st.spent, st.down, st.blind, st.away, st.told} {
		w.Bool(b)
	}
	w.U64(st.hits)
	w.U64(st.seen)
	w.I64(st.fired)
	w.Time(st.next)
	w.Time(st.member)
	w.Time(st.stop)
}

func (e *End) snapshot(w *snap.Writer) {
	w.Bool(e.hasOut)
	if e.hasOut {
		w.Frame(&e.swapOut)
	}
	w.Bool(e.hasIn)
	if e.hasIn {
		w.Frame(&e.swapIn)
	}
	w.U16(uint16(e.down))
	w.U16(uint16(e.deaf))
	w.I64(int64(e.rate))
	w.U64(e.cable.seen)
	w.U64(e.cable.hits)
	w.Len(len(e.outage))
	for _, o := range e.outage {
		w.Time(o.from)
		w.Time(o.to)
	}
}

// Restore reads what Snapshot wrote into a device that holds the same faults.
func (d *Device) Restore(r *snap.Reader) {
	d.next = r.Time()
	r.Expect("faults", r.Len(), len(d.all))
	for _, st := range d.all {
		if r.Err != nil {
			return
		}
		st.restore(r)
	}
	r.Expect("ports with faults", r.Len(), len(d.ends))
	for i := range d.ends {
		if r.Err != nil {
			return
		}
		d.ends[i].restore(r)
	}
	d.held.q = d.held.q[:0]
	for range r.Len() {
		var h heldFrame
		h.due, h.port = r.Time(), int(r.U16())
		r.Frame(&h.f)
		if r.Err != nil {
			return
		}
		d.held.q = append(d.held.q, h)
	}
	d.rebuild(0)
}

func (st *state) restore(r *snap.Reader) {
	r.Expect("fault", int(int32(r.U32())), int(st.Index))
	if u := r.Time(); u != st.Until {
		c := *st.Spec
		c.Until = u
		st.Spec = &c
	}
	st.life = life(min(r.U8(), uint8(ended)))
	for _, b := range []*bool{&st.spent, &st.down, &st.blind, &st.away, &st.told} {
		*b = r.Bool()
	}
	st.hits, st.seen, st.fired = r.U64(), r.U64(), r.I64()
	st.next, st.member, st.stop = r.Time(), r.Time(), r.Time()
}

func (e *End) restore(r *snap.Reader) {
	if e.hasOut = r.Bool(); e.hasOut {
		r.Frame(&e.swapOut)
	}
	if e.hasIn = r.Bool(); e.hasIn {
		r.Frame(&e.swapIn)
	}
	e.down, e.deaf = int(r.U16()), int(r.U16())
	if rate := clock.Rate(r.I64()); rate > 0 {
		e.rate = rate
	}
	e.cable.seen, e.cable.hits = r.U64(), r.U64()
	e.outage = e.outage[:0]
	for range r.Len() {
		o := span{r.Time(), r.Time()}
		if r.Err != nil {
			return
		}
		e.outage = append(e.outage, o)
	}
}
