package tcp

// span is [from, upto) of the stream.
type span struct{ from, upto int64 }

// maxRanges bounds a scoreboard: what does not fit is forgotten and sent again.
const maxRanges = 256

// ranges is a bounded set of disjoint spans in order.
type ranges struct {
	s     []span
	bytes int64
}

// add unites the set with [from, upto) and returns the span it lies in now; ok
// is false when there is no room for another one.
func (r *ranges) add(from, upto int64) (in span, ok bool) {
	i := 0
	for i < len(r.s) && r.s[i].upto < from {
		i++
	}
	k := i
	in = span{from, upto}
	for k < len(r.s) && r.s[k].from <= upto {
		in.from, in.upto = min(in.from, r.s[k].from), max(in.upto, r.s[k].upto)
		r.bytes -= r.s[k].upto - r.s[k].from
		k++
	}
	if k == i {
		if len(r.s) == maxRanges {
			return in, false
		}
		r.s = append(r.s, span{})
		copy(r.s[i+1:], r.s[i:])
	} else {
		r.s = append(r.s[:i+1], r.s[k:]...)
	}
	r.s[i] = in
	r.bytes += in.upto - in.from
	return in, true
}

// trim forgets what lies below at.
func (r *ranges) trim(at int64) {
	k := 0
	for k < len(r.s) && r.s[k].upto <= at {
		r.bytes -= r.s[k].upto - r.s[k].from
		k++
	}
	if k > 0 {
		r.s = append(r.s[:0], r.s[k:]...)
	}
	if len(r.s) > 0 && r.s[0].from < at {
		r.bytes -= at - r.s[0].from
		r.s[0].from = at
	}
}

// gaps counts the bytes of [from, upto) outside the set.
func (r *ranges) gaps(from, upto int64) int64 {
	if upto <= from {
		return 0
	}
	n := upto - from
	for _, x := range r.s {
		if a, b := max(x.from, from), min(x.upto, upto); b > a {
			n -= b - a
		}
	}
	return n
}

// hole returns the first stretch of [from, upto) outside the set.
func (r *ranges) hole(from, upto int64) (int64, int64) {
	for _, x := range r.s {
		if x.upto <= from {
			continue
		}
		if x.from > from {
			return from, min(upto, x.from)
		}
		from = x.upto
	}
	return from, upto
}

// lostBelow is RFC 6675's IsLost as an edge: bytes below it have more than
// n SACKed bytes above them. 0 when there are not that many.
func (r *ranges) lostBelow(n int64) int64 {
	for i := len(r.s) - 1; i >= 0; i-- {
		if n -= r.s[i].upto - r.s[i].from; n < 0 {
			return r.s[i].from
		}
	}
	return 0
}
