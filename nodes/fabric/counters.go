package fabric

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
)

// Count is a number of frames and the sum of their lengths L.
type Count struct{ Frames, Bytes uint64 }

func (c *Count) add(n uint16) {
	c.Frames++
	c.Bytes += uint64(n)
}

// PFCCount is PFC of one priority of one port. Pause spans are kept exactly;
// read them with [Switch.PauseTimes], which includes a pause still running.
type PFCCount struct {
	RxPause, RxResume uint64 // frames received with time > 0 and = 0
	TxPause, TxResume uint64 // frames sent; refreshes are pauses
	Ignored           uint64 // received for a priority without PFC here
	On2Off            uint64 // paused → unpaused transitions, expiry included
	rxPaused          clock.Duration
	txPaused          clock.Duration
	rxSince           clock.Time // start of the running pause, Never = not paused
	txSince           clock.Time // when XOFF was sent, Never = not in XOFF
}

// PGCount is one ingress priority group.
type PGCount struct {
	XOFF      uint64     // transitions to XOFF that were announced
	FirstXOFF clock.Time // Never = none
	Drops     uint64
}

// QueueCount is one egress queue.
type QueueCount struct {
	Tx     uint64 // frames
	Drops  uint64
	Marked uint64 // ECT → CE by this queue
}

// PortCount is one port. Frames of PFC and 802.3x are only in PFC and Pause.
type PortCount struct {
	Rx, Tx     Count // handed to the device; put onto the cable
	Queue      [8]QueueCount
	Injected   Count // put onto the cable by faults
	Lost       Count // of Tx and Injected, dropped on the cable by this end
	RxInjected Count // made by faults on arrival
	RxDropped  Count // dropped on arrival before the device saw them (faults, outages)
	CRC        uint64
	InDrops    uint64 // dropped on ingress: PG, mtu, ttl, no route, …
	Pause      uint64 // 802.3x frames received (ignored)
	PFC        [8]PFCCount
	PG         [8]PGCount
}

// Counters returns a port's counters (number from 1). Read only.
func (s *Switch) Counters(port int) *PortCount { return s.ports[port-1].counts() }

// Ports returns the number of ports.
func (s *Switch) Ports() int { return len(s.ports) }

// Drops returns drops by reason.
func (s *Switch) Drops() *[record.NumReasons]uint64 { return &s.drops }

// Dropped returns the frames and bytes dropped inside the device.
func (s *Switch) Dropped() Count { return s.dropped }

// Memory returns the shared buffer, for watermarks and use.
func (s *Switch) Memory() *MMU { return s.mmu }

// Hops and Marked: frames put on links, PFC apart; ECT → CE changes.
func (s *Switch) Hops() uint64 { return s.hops }

// Events returns the number of events executed.
func (s *Switch) Events() uint64 { return s.events }

// WatchdogOf returns the storm detector of a port and priority, nil without one.
func (s *Switch) WatchdogOf(port, prio int) *Watchdog {
	p := &s.ports[port-1]
	if p.dog == nil || !p.lossless(prio) {
		return nil
	}
	return &p.dog[prio]
}

// PauseTimes returns how long the port was paused by its peer, and how long it
// held its peer paused, up to now.
func (s *Switch) PauseTimes(port, prio int, now clock.Time) (rx, tx clock.Duration) {
	p := &s.ports[port-1]
	c := &p.c.PFC[prio]
	rx, tx = c.rxPaused, c.txPaused
	if c.rxSince != clock.Never && now > c.rxSince {
		rx += clock.Min(now, p.port.PausedUntil(prio)).Sub(c.rxSince)
	}
	if c.txSince != clock.Never && now > c.txSince {
		tx += now.Sub(c.txSince)
	}
	return rx, tx
}

// Records returns the notes of exceptional events in the order they were made,
// and how many were not kept.
func (s *Switch) Records() ([]record.Record, uint64) { return s.rec, s.lostRec }

// TakeRecords returns the notes and forgets them.
func (s *Switch) TakeRecords() []record.Record {
	r := s.rec
	s.rec = nil
	return r
}

// note keeps r unless its kind's share of the bound is used up.
func (s *Switch) note(r record.Record) {
	limit := s.maxRec
	if r.Kind != record.Drop {
		limit /= 2 // pauses must not crowd out the losses
	}
	s.recSeq++
	if len(s.rec) >= limit {
		s.lostRec++
		return
	}
	r.Dev, r.Seq = s.id, s.recSeq
	s.rec = append(s.rec, r)
}

// Stored returns the frames and bytes in the queues, cut-through holds included.
func (s *Switch) Stored() Count {
	var c Count
	for i := range s.ports {
		for q := range s.ports[i].q {
			c.Frames += uint64(s.ports[i].q[q].n)
			c.Bytes += uint64(s.ports[i].q[q].bytes)
		}
		if s.ports[i].holding {
			c.add(s.ports[i].held.Len)
		}
	}
	return c
}

// Check verifies invariants 5 and 7: cells of the memory are those of the
// queued frames, and what came in went out, was dropped or is stored.
func (s *Switch) Check() error {
	if err := s.mmu.Check(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	var cells int64
	var in, out Count
	for i := range s.ports {
		p := &s.ports[i]
		in.Frames, in.Bytes = in.Frames+p.rx.Frames, in.Bytes+p.rx.Bytes
		out.Frames, out.Bytes = out.Frames+p.tx.Frames, out.Bytes+p.tx.Bytes
		for q := range p.q {
			p.q[q].each(func(_ *wireFrame, m stored) { cells += int64(m.cells) })
		}
	}
	if cells != s.mmu.Stored() {
		return fmt.Errorf("%s: queued frames take %d cells, the memory counts %d", s.name, cells, s.mmu.Stored())
	}
	in.Frames, in.Bytes = in.Frames+s.copied.Frames, in.Bytes+s.copied.Bytes
	st, dr := s.Stored(), s.dropped
	if in.Frames != out.Frames+st.Frames+dr.Frames || in.Bytes != out.Bytes+st.Bytes+dr.Bytes {
		return fmt.Errorf("%s: %v in, %v out, %v stored, %v dropped do not balance", s.name, in, out, st, dr)
	}
	return nil
}
