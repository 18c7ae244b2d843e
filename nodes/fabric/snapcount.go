package fabric

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
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
