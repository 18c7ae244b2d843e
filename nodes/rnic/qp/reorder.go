package qp

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Selective repeat holds packets beyond a gap in a ring indexed by sequence
// number, bounded by ReorderMax and freed when the gap is closed. A slot is
// free when its frame's Len is 0.

func (p *Responder) reorderMax() int64 {
	if n := p.c.cfg.ReorderMax; n > 0 {
		return int64(n)
	}
	return 1024
}

// hold keeps f, the packet with sequence number seq beyond ePSN.
func (p *Responder) hold(seq int64, f *wire.Frame, fx *Effects) {
	n := p.reorderMax()
	if seq-p.epsn >= n {
		return
	}
	if p.rob == nil {
		p.rob = make([]wire.Frame, n)
	}
	s := &p.rob[seq%n]
	if s.Len != 0 {
		p.c.cnt.DuplicateRequest++
		fx.note(Note{Kind: NoteDuplicate, PSN: uint32(f.PSN()), Op: uint8(f.Op()), Iter: f.Iter})
		return
	}
	*s = *f
	p.robN++
}

// drainReorder executes what has become in sequence, and reports the next gap.
func (p *Responder) drainReorder(now clock.Time, fx *Effects) {
	n := int64(len(p.rob))
	for p.robN > 0 {
		s := &p.rob[p.epsn%n]
		if s.Len == 0 || s.PSN() != p.wire(p.epsn) {
			break
		}
		f := *s
		s.Len = 0
		p.robN--
		p.expected(now, &f, fx)
		if p.nak != nakNone || p.c.state == StateErr {
			return
		}
	}
	if p.robN > 0 && p.nak == nakNone {
		p.nak = nakSeq
		p.seqNak(now, p.nextHeld(), fx)
	}
}

// nextHeld is the held packet closest to ePSN.
func (p *Responder) nextHeld() *wire.Frame {
	n := int64(len(p.rob))
	for d := int64(1); d < n; d++ {
		if s := &p.rob[(p.epsn+d)%n]; s.Len != 0 {
			return s
		}
	}
	return &p.rob[p.epsn%n]
}
