package tcp

import "github.com/rocemu/rocemu/clock"

// Receiver is the receiving end of a stream: it keeps what came out of order
// and answers each segment.
type Receiver struct {
	next int64
	late ranges
}

// Next is the first byte missing: everything before it was delivered.
func (r *Receiver) Next() int64 { return r.next }

// OnSegment takes bytes [seq, seq+n) and fills the answer. It returns the bytes
// that are now in order.
func (r *Receiver) OnSegment(seq, n int64, sent clock.Time, ce bool, a *Ack) int64 {
	*a = Ack{Echo: sent, ECE: ce}
	was := r.next
	upto := seq + n
	switch {
	case upto <= r.next: // a duplicate
	case seq <= r.next:
		r.next = upto
		r.late.trim(r.next)
		if len(r.late.s) > 0 && r.late.s[0].from == r.next {
			r.next = r.late.s[0].upto
			r.late.trim(r.next)
		}
	default:
		if in, ok := r.late.add(seq, upto); ok {
			a.From, a.Upto = in.from, in.upto
		}
	}
	a.Ack = r.next
	return r.next - was
}
