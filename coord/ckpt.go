package coord

import (
	"fmt"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// ckptMagic heads a slot's state; its last digits are the format's version.
const ckptMagic = 0x434B5006

// cut is where a slot's state was taken: right before window n.
type cut struct {
	key    uint64 // of run, build and topology
	n      uint64
	now    clock.Time // end of window n-1
	known  int        // so many of the ledger's faults were known and are in the state,
	held   []uint64   // but for these: the numbers of those that were not handed over
	merged actors.Summary
	wide   int    // windows of the step that comes next
	kept   []byte // what the fabric's notes go on from
}

// saveSlot writes the state of all hosted devices, device by device.
func saveSlot(e *actors.Engine, c cut) []byte {
	var w snap.Writer
	w.U32(ckptMagic)
	w.U64(c.key)
	w.U64(c.n)
	w.Time(c.now)
	w.U32(uint32(c.known))
	w.Len(len(c.held))
	for _, seq := range c.held {
		w.U64(seq)
	}
	m := &c.merged
	for _, t := range []clock.Time{m.Next, m.NextWork, m.NextFault, m.LastWork, m.LastProgress, m.LastEvent, m.Stop} {
		w.Time(t)
	}
	w.I64(m.Outstanding)
	w.U32(uint32(c.wide))
	w.Bytes(c.kept)
	w.Len(len(e.Local()))
	var dev snap.Writer
	for _, d := range e.Local() {
		dev.B = dev.B[:0]
		e.SnapshotDevice(d, &dev)
		w.U32(uint32(d))
		w.Bytes(dev.B)
	}
	return w.B
}

// loadSlot restores what saveSlot wrote into a fresh engine with the same
// hosted devices. Before the devices it calls prepare, which must plan the live
// faults that the state knows.
func loadSlot(e *actors.Engine, key uint64, b []byte, prepare func(cut) error) (cut, error) {
	r := &snap.Reader{B: b}
	var c cut
	if m := r.U32(); m != ckptMagic && r.Err == nil {
		return c, fmt.Errorf("coord: not a state of this version")
	}
	if c.key = r.U64(); c.key != key && r.Err == nil {
		return c, fmt.Errorf("coord: the state is of another run, build or topology")
	}
	c.n, c.now, c.known = r.U64(), r.Time(), int(r.U32())
	for n := r.Len(); n > 0 && r.Err == nil; n-- {
		c.held = append(c.held, r.U64())
	}
	m := &c.merged
	for _, t := range []*clock.Time{&m.Next, &m.NextWork, &m.NextFault, &m.LastWork, &m.LastProgress, &m.LastEvent, &m.Stop} {
		*t = r.Time()
	}
	m.Stop = clock.Never // the gate tells of one: it need not be in the run that goes on from here
	m.Outstanding = r.I64()
	c.wide = int(r.U32())
	c.kept = append([]byte(nil), r.Bytes()...)
	n := r.Len()
	if r.Err == nil {
		if err := prepare(c); err != nil {
			return c, err
		}
	}
	if r.Err == nil && (c.wide < 1 || c.wide > 1<<16) {
		return c, fmt.Errorf("coord: the state's next step spans %d windows", c.wide)
	}
	if r.Err == nil && n != len(e.Local()) {
		return c, fmt.Errorf("coord: the state has %d devices, the slot %d", n, len(e.Local()))
	}
	for range n {
		d, dev := int32(r.U32()), r.Bytes()
		if r.Err != nil {
			break
		}
		if d < 0 || !hosts(e, d) {
			return c, fmt.Errorf("coord: the state has device %d, which the slot has not", d)
		}
		dr := &snap.Reader{B: dev}
		if err := e.RestoreDevice(d, dr); err != nil {
			return c, err
		}
		if len(dr.B) != 0 {
			return c, fmt.Errorf("coord: device %d has %d bytes too many", d, len(dr.B))
		}
	}
	if r.Err == nil && len(r.B) != 0 {
		return c, fmt.Errorf("coord: the state has %d bytes too many", len(r.B))
	}
	if r.Err != nil {
		return c, r.Err
	}
	e.Resume(c.now, c.n, c.merged, c.wide)
	return c, nil
}

func hosts(e *actors.Engine, d int32) bool {
	for _, l := range e.Local() {
		if l == d {
			return true
		}
	}
	return false
}
