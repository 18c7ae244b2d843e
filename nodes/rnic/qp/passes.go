package qp

// A packet's iteration is how often it was sent. Packets are never listed:
// each retransmission covers a stretch of sequence numbers, and a packet's
// iteration is one for its first transmission and one for each stretch that
// holds it.

// maxPasses bounds the list; beyond it the oldest stretch is forgotten.
const maxPasses = 64

func addPass(ps []pass, from, to, base int64) []pass {
	if to <= from || to <= base {
		return ps
	}
	keep := ps[:0]
	merged := false
	for _, p := range ps {
		if p.to <= base {
			continue
		}
		if p.from == from && p.to == to && !merged {
			p.n, merged = p.n+1, true
		}
		keep = append(keep, p)
	}
	if merged {
		return keep
	}
	if len(keep) == maxPasses {
		copy(keep, keep[1:])
		keep = keep[:maxPasses-1]
	}
	return append(keep, pass{from, to, 1})
}

// iteration counts this transmission of seq, which was sent before.
func iteration(ps []pass, seq int64) uint8 {
	n := uint64(2)
	for i := range ps {
		if ps[i].from <= seq && seq < ps[i].to {
			n += uint64(ps[i].n)
		}
	}
	return uint8(min(n, 255))
}

// addPass notes that [from, to) has been sent once more.
func (r *Requester) addPass(from, to int64) {
	base := r.una
	if r.n > 0 {
		base = min(base, r.at(0).first)
	}
	r.passes = addPass(r.passes, from, to, base)
}

func (r *Requester) iteration(seq int64) uint8 { return iteration(r.passes, seq) }

// endPass closes the pass under way at nxt.
func (r *Requester) endPass() {
	if r.nxt < r.passEnd {
		r.addPass(r.passFrom, r.nxt)
	}
}
