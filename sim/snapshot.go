package sim

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fabric"
	"github.com/rocemu/rocemu/nodes/rnic"
	"github.com/rocemu/rocemu/report/counters"
)

// Snapshot reads all counters of the hosted devices into s, which is reused.
// The points of a run always come in the same order and number.
func (f *Fabric) Snapshot(at clock.Time, s *counters.Snapshot) {
	s.At = at
	if s.Devices == nil {
		for i := range f.Plan.Devices {
			s.Devices = append(s.Devices, f.Plan.Devices[i].Name)
		}
	}
	s.Points = s.Points[:0]
	for i, n := range f.Nodes {
		switch n := n.(type) {
		case *switchNode:
			s.Points = n.points(s.Points, int32(i), at)
		case *rnic.RNIC:
			s.Points = counters.RNIC(s.Points, int32(i), n.Counters(at))
		}
	}
}

// points appends a switch's values.
func (s *switchNode) points(dst []counters.Point, dev int32, at clock.Time) []counters.Point {
	for i := range s.dev.Ports {
		dst = s.portPoints(dst, dev, s.dev.Ports[i].Num, at)
	}
	shared, headroom := s.Memory().PoolMarks()
	for i, v := range [...]int64{shared, headroom} {
		dst = append(dst, counters.Point{Dev: dev, Index: int8(i), ID: counters.PoolMark, Value: v})
	}
	for i, n := range s.Drops() {
		if i > 0 {
			dst = append(dst, counters.Point{Dev: dev, Index: int8(i - 1), ID: counters.Drops, Value: int64(n)})
		}
	}
	return dst
}

// portPoints appends one port's values: its own, then those of each priority,
// priority group and queue.
func (s *switchNode) portPoints(dst []counters.Point, dev int32, num int, at clock.Time) []counters.Point {
	c := s.Counters(num)
	add := func(id counters.ID, index int, v int64) {
		dst = append(dst, counters.Point{Dev: dev, Port: int16(num), Index: int8(index), ID: id, Value: v})
	}
	for i, v := range [...]uint64{c.Rx.Frames, c.Tx.Frames, c.Rx.Bytes, c.Tx.Bytes, c.CRC, c.InDrops} {
		add(counters.RxFrames+counters.ID(i), -1, int64(v))
	}
	for n := range 8 {
		p := &c.PFC[n]
		rx, tx := s.PauseTimes(num, n, at)
		for i, v := range [...]int64{int64(p.RxPause), int64(p.RxResume), int64(p.TxPause), int64(p.TxResume), int64(rx), int64(tx), int64(p.Ignored), int64(p.On2Off)} {
			add(counters.PFCRxPause+counters.ID(i), n, v)
		}
		if w := s.WatchdogOf(num, n); w != nil {
			for i, v := range [...]uint64{w.Detected, w.Restored, w.TxDropped, w.RxDropped} {
				add(counters.WdDetected+counters.ID(i), n, int64(v))
			}
		}
		dst = s.memoryPoints(dst, dev, num, n, c)
	}
	return dst
}

// memoryPoints appends the values of priority group n and queue n of a port.
func (s *switchNode) memoryPoints(dst []counters.Point, dev int32, num, n int, c *fabric.PortCount) []counters.Point {
	slot, m := (num-1)*8+n, s.Memory()
	shared, headroom := m.PGMarks(slot)
	for i, v := range [...]int64{m.PGBytes(slot), shared, headroom, int64(c.PG[n].XOFF), int64(c.PG[n].Drops)} {
		dst = append(dst, counters.Point{Dev: dev, Port: int16(num), Index: int8(n), ID: counters.PGOccupancy + counters.ID(i), Value: v})
	}
	q := &c.Queue[n]
	depth := int64(m.QueueCells(slot)) * s.dev.Switch.Cell
	for i, v := range [...]int64{int64(q.Tx), int64(q.Drops), depth, m.QueueMark(slot), int64(q.Marked)} {
		dst = append(dst, counters.Point{Dev: dev, Port: int16(num), Index: int8(n), ID: counters.QueueTx + counters.ID(i), Value: v})
	}
	return dst
}
