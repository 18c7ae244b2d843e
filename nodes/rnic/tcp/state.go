package tcp

import (
	"errors"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// errState is a snapshot that holds what no machine can be in.
var errState = errors.New("tcp: impossible state")

func (s *Sender) words() []*int64 {
	c, d := &s.cubic, &s.dctcp
	return []*int64{
		&s.una, &s.next, &s.end, &s.cwnd, &s.ssthresh, &s.rem, &s.point, &s.rtx, &s.edge,
		(*int64)(&s.srtt), (*int64)(&s.rttvar), (*int64)(&s.rto), (*int64)(&s.timer),
		(*int64)(&c.epoch), &c.wMax, &c.origin, &c.k, &c.wEst, &c.estRem, &c.atEpoch,
		&d.alpha, &d.acked, &d.marked, &d.window, &d.cutUntil,
	}
}

// Snapshot writes the changing state canonically.
func (s *Sender) Snapshot(w *snap.Writer) {
	for _, v := range s.words() {
		w.I64(*v)
	}
	for _, b := range []bool{s.fast, s.lossy, s.force} {
		w.Bool(b)
	}
	w.I64(int64(s.dup))
	w.I64(int64(s.timeouts))
	w.U64(s.retrans)
	w.U64(s.cuts)
	s.sacked.snapshot(w)
}

// Restore reads what Snapshot wrote into a sender that Init made.
func (s *Sender) Restore(r *snap.Reader) {
	for _, v := range s.words() {
		*v = r.I64()
	}
	for _, b := range []*bool{&s.fast, &s.lossy, &s.force} {
		*b = r.Bool()
	}
	s.dup, s.timeouts = int(r.I64()), int(r.I64())
	s.retrans, s.cuts = r.U64(), r.U64()
	s.sacked.restore(r)
	bad := s.una < 0 || s.next < s.una || s.end < s.next || s.cwnd < 1 || s.ssthresh < 1 || s.rto <= 0 || s.timer < 0 ||
		s.rem < 0 || s.dctcp.alpha < 0 || s.dctcp.alpha > alphaOne || s.cubic.k < 0 || s.cubic.k > maxT || s.edge > s.next
	if bad && r.Err == nil {
		r.Err = errState
	}
}

// Snapshot writes the changing state canonically.
func (r *Receiver) Snapshot(w *snap.Writer) {
	w.I64(r.next)
	r.late.snapshot(w)
}

// Restore reads what Snapshot wrote.
func (r *Receiver) Restore(d *snap.Reader) {
	r.next = d.I64()
	r.late.restore(d)
}

func (r *ranges) snapshot(w *snap.Writer) {
	w.Len(len(r.s))
	for _, x := range r.s {
		w.Time(clock.Time(x.from))
		w.Time(clock.Time(x.upto))
	}
}

func (r *ranges) restore(d *snap.Reader) {
	*r = ranges{}
	last := int64(-1)
	for range d.Len() {
		x := span{d.I64(), d.I64()}
		if d.Err != nil {
			return
		}
		if x.from <= last || x.upto <= x.from || len(r.s) == maxRanges {
			d.Err = errState
			return
		}
		last = x.upto
		r.s = append(r.s, x)
		r.bytes += x.upto - x.from
	}
}
