package fabric

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
)

// words lists the counters of a port in a fixed order.
func (c *PortCount) words() []*uint64 {
	w := []*uint64{
		&c.Rx.Frames, &c.Rx.Bytes, &c.Tx.Frames, &c.Tx.Bytes, &c.Injected.Frames, &c.Injected.Bytes,
		&c.Lost.Frames, &c.Lost.Bytes, &c.RxDropped.Frames, &c.RxDropped.Bytes,
		&c.RxInjected.Frames, &c.RxInjected.Bytes, &c.CRC, &c.InDrops, &c.Pause,
	}
	for n := range 8 {
		p, g, q := &c.PFC[n], &c.PG[n], &c.Queue[n]
		w = append(w, &p.RxPause, &p.RxResume, &p.TxPause, &p.TxResume, &p.Ignored, &p.On2Off,
			&g.XOFF, &g.Drops, &q.Tx, &q.Drops, &q.Marked)
	}
	return w
}

func (c *PortCount) snapshot(w *snap.Writer) {
	for _, v := range c.words() {
		w.U64(*v)
	}
	for n := range 8 {
		p := &c.PFC[n]
		w.I64(int64(p.rxPaused))
		w.I64(int64(p.txPaused))
		w.Time(p.rxSince)
		w.Time(p.txSince)
		w.Time(c.PG[n].FirstXOFF)
	}
}

func (c *PortCount) restore(r *snap.Reader) {
	for _, v := range c.words() {
		*v = r.U64()
	}
	for n := range 8 {
		p := &c.PFC[n]
		p.rxPaused, p.txPaused = clock.Duration(r.I64()), clock.Duration(r.I64())
		p.rxSince, p.txSince = r.Time(), r.Time()
		c.PG[n].FirstXOFF = r.Time()
	}
}

func snapRecord(w *snap.Writer, x *record.Record) {
	w.Time(x.At)
	w.I64(x.X)
	w.I64(x.Y)
	for _, v := range []uint32{uint32(x.Dev), x.Src, x.Dst, x.QPN, x.PSN, uint32(x.Fault), x.Seq} {
		w.U32(v)
	}
	w.U16(x.Port)
	for _, v := range []uint8{uint8(x.Kind), x.Reason, x.Prio, x.Op, x.Iter} {
		w.U8(v)
	}
}

func restoreRecord(r *snap.Reader) (x record.Record) {
	x.At, x.X, x.Y = r.Time(), r.I64(), r.I64()
	x.Dev, x.Src, x.Dst, x.QPN, x.PSN = int32(r.U32()), r.U32(), r.U32(), r.U32(), r.U32()
	x.Fault, x.Seq = int32(r.U32()), r.U32()
	x.Port = r.U16()
	x.Kind, x.Reason, x.Prio, x.Op, x.Iter = record.Kind(r.U8()), r.U8(), r.U8(), r.U8(), r.U8()
	return x
}
