// Package gnmi serves the counters of a switch as network operators read them:
// a gNMI server (Capabilities, Get, Subscribe ONCE, POLL and STREAM) with
// SONiC's COUNTERS_DB paths and OpenConfig's interface and qos paths, and
// dial-out to collectors that listen. Intervals are virtual time. A slow client
// gets the latest values and a count of what it missed; it never makes the run
// wait. Start at [NewStore] and [Server]; paths are in docs/telemetry.md.
package gnmi

import (
	"sync"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/otlp"
)

// Store holds the latest sample of one switch.
type Store struct {
	Device string
	time   otlp.TimeMap

	mu      sync.Mutex
	view    *View
	marks   marks
	streams map[*mailbox]struct{}
}

// View is one sample of one switch, immutable.
type View struct {
	At     clock.Time
	Stamp  int64                     // exported time, Unix nanoseconds
	values map[place]int64           // counters by place
	sonic  map[string]map[string]any // COUNTERS_DB by table, then port
	leaves []leaf                    // OpenConfig, in order
}

// place names one value of a switch.
type place struct {
	port, index int
	id          counters.ID
}

// NewStore returns the store of a switch; it is empty until the first Publish.
func NewStore(device string, tm otlp.TimeMap) *Store {
	return &Store{Device: device, time: tm, marks: newMarks(), streams: map[*mailbox]struct{}{}}
}

// Publish takes the device's values out of a sample and wakes the streams.
// interval is the time since the sample before: periodic watermarks restart.
func (s *Store) Publish(n *counters.Snapshot) {
	v := &View{At: n.At, Stamp: s.time.At(n.At).UnixNano(), values: map[place]int64{}}
	for _, p := range n.Points {
		if n.Devices[p.Dev] == s.Device {
			v.values[place{int(p.Port), int(p.Index), p.ID}] = p.Value
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks.update(v)
	v.sonic = sonicTables(v, &s.marks)
	v.leaves = openconfig(v)
	s.view = v
	for m := range s.streams {
		m.put(v)
	}
}

// View returns the latest sample, nil before the first.
func (s *Store) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

// ClearUser restarts the USER_WATERMARKS, as `sonic-clear` does.
func (s *Store) ClearUser() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks.clearUser()
}

// attach gives a stream its mailbox, holding the latest sample.
func (s *Store) attach() *mailbox {
	m := &mailbox{wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[m] = struct{}{}
	if s.view != nil {
		m.put(s.view)
	}
	return m
}

func (s *Store) detach(m *mailbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, m)
}

// mailbox holds the latest sample that a stream has not sent.
type mailbox struct {
	mu   sync.Mutex
	view *View
	gaps uint64 // samples that were replaced before they were taken
	wake chan struct{}
}

func (m *mailbox) put(v *View) {
	m.mu.Lock()
	if m.view != nil {
		m.gaps++
	}
	m.view = v
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns the waiting sample, nil when there is none, and the gaps so far.
func (m *mailbox) take() (*View, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.view
	m.view = nil
	return v, m.gaps
}

// marks keeps the three watermark tables of each PG, queue and pool. The model
// keeps the largest value since the start, which is exact; the largest since a
// clear is exact when it is also that, and else the largest that a sample saw.
type marks struct {
	persistent, periodic, user map[place]int64
}

func newMarks() marks {
	return marks{persistent: map[place]int64{}, periodic: map[place]int64{}, user: map[place]int64{}}
}

// markOf pairs a watermark with the gauge that it is the largest of.
var markOf = map[counters.ID]counters.ID{
	counters.QueueMark: counters.QueueOccupancy, counters.PGSharedMark: counters.PGOccupancy, counters.PoolMark: counters.PoolOccupancy,
	counters.PGHeadroomMark: counters.PGHeadroomMark,
}

func (m *marks) update(v *View) {
	for p, now := range v.values {
		gauge, ok := markOf[p.id]
		if !ok {
			continue
		}
		seen := v.values[place{p.port, p.index, gauge}]
		if gauge == p.id {
			seen = 0
		}
		if now > m.persistent[p] {
			seen = now // a new record was set within this interval
		}
		m.persistent[p] = now
		m.periodic[p] = seen
		m.user[p] = max(m.user[p], seen)
	}
}

func (m *marks) clearUser() { clear(m.user) }
