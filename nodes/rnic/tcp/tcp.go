// Package tcp is a TCP byte stream as two pure machines, for traffic beside
// RDMA (`transport: tcp`): a [Sender] with RFC 6298 timers, SACK-based loss
// recovery in the manner of RFC 6675, and CUBIC (RFC 9438) or DCTCP (RFC 8257)
// congestion control, all in integers, and a [Receiver] that acknowledges each
// segment and names the block it belongs to. The machines know no clock, host
// or wire format; the RNIC moves segments between them and charges the host
// path. Left out on purpose: the handshake (streams are set up before the run,
// as queue pairs are), delayed ACKs, HyStart, and options' bytes on the wire.
// Start at [Sender.Next] and [Sender.OnAck].
package tcp

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
)

// Congestion selects the congestion control.
type Congestion uint8

// Congestion controls.
const (
	CUBIC Congestion = iota
	DCTCP
)

// Config is what a stream's sender is set to; it never changes.
type Config struct {
	MSS     int64 // payload bytes of a full segment
	Control Congestion
	Initial int64 // initial window, bytes (RFC 6928: ten segments)
	Window  int64 // receive window of the peer, bytes
	RTOMin  clock.Duration
	RTOMax  clock.Duration
	Retries int // timeouts in a row after which the stream fails
}

// Validate reports a setting that no stream can run with.
func (c *Config) Validate() error {
	switch {
	case c.MSS < 1 || c.MSS > 65495:
		return fmt.Errorf("tcp: MSS %d: must be 1..65495 bytes", c.MSS)
	case c.Initial < c.MSS:
		return fmt.Errorf("tcp: initial window %d: must hold one segment of %d", c.Initial, c.MSS)
	case c.Window < c.MSS || c.Window > 1<<30:
		return fmt.Errorf("tcp: window %d: must be %d..%d bytes", c.Window, c.MSS, 1<<30)
	case c.RTOMin <= 0 || c.RTOMax < c.RTOMin:
		return fmt.Errorf("tcp: RTO %v..%v: must be above 0 and in order", c.RTOMin, c.RTOMax)
	case c.Retries < 1:
		return fmt.Errorf("tcp: retries %d: must be at least 1", c.Retries)
	}
	return nil
}

// Segment is what a sender puts on the wire: Len payload bytes from stream
// offset Seq. Sent comes back in the acknowledgement, as RFC 7323 timestamps do.
type Segment struct {
	Seq, Len int64
	Sent     clock.Time
	Again    bool // a retransmission
}

// Ack is what a receiver answers to one segment: everything before Ack arrived,
// and, when Upto is above From, the block that holds the latest segment.
type Ack struct {
	Ack        int64
	From, Upto int64
	Echo       clock.Time // Sent of the segment that is answered
	ECE        bool       // that segment carried CE
}

// initialRTO is RFC 6298 (2.1); firstWindow bounds nothing: slow start runs
// until a loss, a mark or the peer's window ends it.
const (
	initialRTO  = clock.Second
	firstWindow = 1 << 40
	granularity = clock.Microsecond // G of RFC 6298 (2.2)
	dupThresh   = 3
)

// Sender is the sending end of a stream. Offsets count bytes from 0.
type Sender struct {
	c *Config

	una, next, end int64 // acknowledged; first byte never sent; written by the application
	cwnd, ssthresh int64
	rem            int64 // remainder of the window's growth

	sacked ranges
	dup    int
	fast   bool  // fast recovery: the window does not grow
	lossy  bool  // recovery after a timeout: it grows from one segment
	force  bool  // the first retransmission leaves whatever the window says
	point  int64 // recovery ends when una reaches it
	rtx    int64 // bytes from here to edge that are not SACKed wait to be sent again
	edge   int64

	srtt, rttvar, rto clock.Duration
	timer             clock.Time
	timeouts          int

	cubic cubic
	dctcp dctcp

	retrans uint64
	cuts    uint64
}

// Init makes s a fresh stream. c must be valid.
func (s *Sender) Init(c *Config) {
	*s = Sender{c: c, cwnd: c.Initial, ssthresh: firstWindow, rto: max(initialRTO, c.RTOMin), timer: clock.Never}
	s.cubic.epoch = clock.Never
	s.dctcp.alpha = alphaOne
}

// Write adds n bytes to the stream.
func (s *Sender) Write(n int64) { s.end += n }

// Una is the first byte not acknowledged, Sent the first never sent, Window
// the congestion window, RTO the timeout in force.
func (s *Sender) Una() int64          { return s.una }
func (s *Sender) Sent() int64         { return s.next }
func (s *Sender) Window() int64       { return s.cwnd }
func (s *Sender) RTO() clock.Duration { return s.rto }

// Retransmitted counts segments sent again, Cuts reductions of the window.
func (s *Sender) Retransmitted() uint64 { return s.retrans }
func (s *Sender) Cuts() uint64          { return s.cuts }

// Timeouts counts expiries in a row.
func (s *Sender) Timeouts() int { return s.timeouts }

// Deadline is when OnTimeout must be called; Never when nothing is in flight.
func (s *Sender) Deadline() clock.Time { return s.timer }

// recovering reports whether losses are being repaired.
func (s *Sender) recovering() bool { return s.fast || s.lossy }

// pipe estimates the bytes in flight: sent, neither acknowledged nor SACKed,
// and not taken as lost unless sent again (RFC 6675, SetPipe).
func (s *Sender) pipe() int64 {
	p := s.next - s.una - s.sacked.bytes
	if s.recovering() {
		p -= s.sacked.gaps(max(s.rtx, s.una), s.edge)
	}
	return p
}

// Ready returns the length of the segment that Next would send, 0 when the
// windows or the application leave nothing.
func (s *Sender) Ready() int64 {
	_, n, _ := s.choose()
	return n
}

// choose picks the next segment: a hole of the recovery first, then new data.
func (s *Sender) choose() (seq, n int64, again bool) {
	if s.una == s.end {
		return 0, 0, false
	}
	p := int64(0)
	if s.recovering() || s.next > s.una {
		p = s.pipe()
	}
	if s.recovering() {
		if from, upto := s.sacked.hole(max(s.rtx, s.una), s.edge); upto > from {
			if n = min(upto-from, s.c.MSS); s.force || p == 0 || p+n <= s.cwnd {
				return from, n, true
			}
			return 0, 0, false
		}
	}
	n = min(s.c.MSS, s.end-s.next, s.una+s.c.Window-s.next)
	if n <= 0 || p > 0 && p+n > s.cwnd {
		return 0, 0, false
	}
	return s.next, n, false
}

// Next takes the next segment; false when there is none to send now.
func (s *Sender) Next(now clock.Time, g *Segment) bool {
	seq, n, again := s.choose()
	if n == 0 {
		return false
	}
	*g = Segment{Seq: seq, Len: n, Sent: now, Again: again}
	if again {
		s.rtx, s.force = seq+n, false
		s.retrans++
	} else {
		s.next += n
	}
	if s.timer == clock.Never {
		s.timer = now.Add(s.rto)
	}
	return true
}
