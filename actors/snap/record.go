package snap

import "github.com/rocemu/rocemu/nodes/record"

// Record writes a note that nobody has taken yet.
func (w *Writer) Record(n *record.Record) {
	w.Time(n.At)
	w.I64(n.X)
	w.I64(n.Y)
	for _, v := range []uint32{uint32(n.Dev), n.Src, n.Dst, n.QPN, n.PSN, uint32(n.Fault), n.Seq} {
		w.U32(v)
	}
	w.U16(n.Port)
	for _, v := range []uint8{uint8(n.Kind), n.Reason, n.Prio, n.Op, n.Iter} {
		w.U8(v)
	}
}

// Record reads one.
func (r *Reader) Record(n *record.Record) {
	n.At = r.Time()
	n.X, n.Y = r.I64(), r.I64()
	n.Dev = int32(r.U32())
	for _, v := range []*uint32{&n.Src, &n.Dst, &n.QPN, &n.PSN} {
		*v = r.U32()
	}
	n.Fault = int32(r.U32())
	n.Seq = r.U32()
	n.Port = r.U16()
	n.Kind = record.Kind(r.U8())
	for _, v := range []*uint8{&n.Reason, &n.Prio, &n.Op, &n.Iter} {
		*v = r.U8()
	}
}
