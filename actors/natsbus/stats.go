package natsbus

import (
	"fmt"
	"sync/atomic"
	"time"
)

// DivergedError: determinism is broken. The run must stop; both productions
// are wrong until it is known which one is right.
type DivergedError struct {
	Src int
	N   uint64
	Why string
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("natsbus: batch %d of process %d diverged: %s", e.N, e.Src, e.Why)
}

// GapError: batches are missing for good.
type GapError struct {
	Src      int
	From, To uint64
	Waited   time.Duration
	Gone     bool // their sender had collected them
}

func (e *GapError) Error() string {
	s := fmt.Sprintf("natsbus: batches %d to %d of process %d are missing after %v", e.From, e.To, e.Src, e.Waited)
	if e.Gone {
		s += " and were collected by their sender"
	}
	return s
}

type counters struct {
	windows, sent, resent, naks, repeated, refused, dropped, unsent, bytesOut, bytesIn atomic.Uint64
	wait                                                                               atomic.Int64
}

// Stats are a carrier's counters.
type Stats struct {
	Windows, Sent, Resent, Naks, Repeated, Refused, Dropped, Unsent, BytesOut, BytesIn uint64
	Wait                                                                               time.Duration
}

// Stats may be called at any time.
func (c *Carrier) Stats() Stats {
	s := &c.stats
	return Stats{
		s.windows.Load(), s.sent.Load(), s.resent.Load(), s.naks.Load(), s.repeated.Load(), s.refused.Load(), s.dropped.Load(),
		s.unsent.Load(), s.bytesOut.Load(), s.bytesIn.Load(), time.Duration(s.wait.Load()),
	}
}
