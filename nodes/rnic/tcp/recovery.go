package tcp

import "github.com/rocemu/rocemu/clock"

// OnAck takes an acknowledgement and returns the bytes it newly acknowledges.
// One that acknowledges what was never sent is ignored.
func (s *Sender) OnAck(now clock.Time, a *Ack) int64 {
	if a.Ack > s.next || a.Ack < s.una {
		return 0 // beyond the stream, or older than what is known
	}
	flight := s.pipe()
	if a.Upto > a.From && a.From >= a.Ack && a.Upto <= s.next {
		s.sacked.add(a.From, a.Upto)
	}
	n := a.Ack - s.una
	if n > 0 {
		s.advance(now, a, n, flight)
	} else if s.next > s.una {
		s.dup++
		if s.c.Control == DCTCP {
			s.dctcpAck(0, a.ECE)
		}
	}
	s.judge()
	return n
}

// advance moves una on by n bytes.
func (s *Sender) advance(now clock.Time, a *Ack, n, flight int64) {
	s.una = a.Ack
	s.sacked.trim(s.una)
	s.rtx = max(s.rtx, s.una)
	s.dup, s.timeouts = 0, 0
	s.sample(now.Sub(a.Echo))
	s.timer = clock.Never
	if s.next > s.una {
		s.timer = now.Add(s.rto)
	}
	if s.c.Control == DCTCP {
		s.dctcpAck(n, a.ECE)
	}
	switch {
	case s.recovering() && s.una >= s.point:
		s.fast, s.lossy, s.force = false, false, false
		s.edge, s.rtx = s.una, s.una
		return
	case s.fast: // a partial acknowledgement: the next hole is lost too (RFC 6582)
		s.edge = max(s.edge, min(s.una+s.c.MSS, s.point))
		return
	}
	if flight+s.c.MSS > s.cwnd || s.cwnd < s.ssthresh && s.cwnd < 2*flight {
		s.grow(now, n) // a window that was not used does not grow
	}
}

// judge enters fast recovery, and moves the edge of what is lost.
func (s *Sender) judge() {
	lost := s.sacked.lostBelow((dupThresh - 1) * s.c.MSS)
	if s.recovering() {
		s.edge = max(s.edge, min(lost, s.point))
		return
	}
	if s.next == s.una || s.dup < dupThresh && lost <= s.una {
		return
	}
	s.cut(false)
	s.fast, s.force = true, true
	s.point, s.rtx = s.next, s.una
	s.edge = max(lost, min(s.una+s.c.MSS, s.next))
}

// OnTimeout is the expiry of the retransmission timer: everything not SACKed
// is lost, the window is one segment, the timeout doubles (RFC 6298, 5.4 to
// 5.7). It reports whether the stream is given up.
func (s *Sender) OnTimeout(now clock.Time) (dead bool) {
	s.timeouts++
	if s.timeouts > s.c.Retries {
		s.timer = clock.Never
		return true
	}
	if s.timeouts == 1 {
		s.cut(true)
	}
	s.cwnd, s.rem = s.c.MSS, 0
	s.fast, s.lossy, s.force = false, true, true
	s.dup = 0
	s.point, s.rtx, s.edge = s.next, s.una, s.next
	s.rto = min(2*s.rto, s.c.RTOMax)
	s.timer = now.Add(s.rto)
	return false
}

// sample is RFC 6298 (2.2) and (2.3) in integers.
func (s *Sender) sample(r clock.Duration) {
	if r < 0 {
		return
	}
	if s.srtt == 0 {
		s.srtt, s.rttvar = max(r, 1), r/2
	} else {
		d := s.srtt - r
		if d < 0 {
			d = -d
		}
		s.rttvar += (d - s.rttvar) / 4
		s.srtt = max(s.srtt+(r-s.srtt)/8, 1)
	}
	s.rto = min(max(s.srtt+max(granularity, 4*s.rttvar), s.c.RTOMin), s.c.RTOMax)
}

// cut lowers the threshold after a loss, and the window unless a timeout sets
// it.
func (s *Sender) cut(timeout bool) {
	s.cuts++
	flight := s.next - s.una
	if s.c.Control == DCTCP { // RFC 8257 (3.5): losses halve
		s.ssthresh = max(flight/2, 2*s.c.MSS)
	} else {
		s.ssthresh = s.cubic.loss(s.cwnd, flight, s.c.MSS)
	}
	if !timeout {
		s.cwnd, s.rem = s.ssthresh, 0
	}
}

// grow is slow start below the threshold, the control's own growth above.
func (s *Sender) grow(now clock.Time, n int64) {
	if s.cwnd < s.ssthresh {
		n0 := min(n, s.ssthresh-s.cwnd)
		s.cwnd += n0
		if n -= n0; n == 0 {
			return
		}
	}
	limit := 2 * s.c.Window // a larger window could never be used
	if s.cwnd >= limit {
		return
	}
	if s.c.Control == DCTCP {
		s.growBy(s.c.MSS, n)
		return
	}
	s.growCubic(now, n)
	s.cwnd = min(s.cwnd, limit)
}

// growBy adds gain × n / cwnd, the remainder kept.
func (s *Sender) growBy(gain, n int64) {
	num := gain*n + s.rem
	s.rem = num % s.cwnd
	s.cwnd += num / s.cwnd
}
