// Package gnmi serves the counters of a switch as network operators read them:
// a gNMI server (Capabilities, Get, Subscribe ONCE, POLL and STREAM) with
// SONiC's COUNTERS_DB paths and OpenConfig's interface and qos paths, and
// dial-out to collectors that listen. Intervals are virtual time. A slow client
// gets the latest values and a count of what it missed; it never makes the run
// wait. Start at [NewStore] and [Server]; paths are in docs/telemetry.md.
package gnmi

import (
	"slices"
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
	gauge   []int   // by point: index of the gauge of a watermark
	top     []int64 // largest value so far, by point
	user    []int64 // since ClearUser
	streams map[*mailbox]struct{}
}

// View is one sample of one switch, immutable. What answers are made of is
// built when the first question comes.
type View struct {
	At    clock.Time
	Stamp int64 // exported time, Unix nanoseconds

	points         []counters.Point
	periodic, user []int64 // by point; watermarks only

	once   sync.Once
	values map[place]int64           // counters by place
	sonic  map[string]map[string]any // COUNTERS_DB by table, then port
	leaves []leaf                    // OpenConfig, in order
}

// build indexes the points and makes the trees.
func (v *View) build() {
	v.once.Do(func() {
		v.values = make(map[place]int64, len(v.points))
		m := marks{map[place]int64{}, map[place]int64{}, map[place]int64{}}
		for i, p := range v.points {
			at := place{int(p.Port), int(p.Index), p.ID}
			v.values[at] = p.Value
			if _, ok := markOf[p.ID]; ok {
				m.persistent[at], m.periodic[at], m.user[at] = p.Value, v.periodic[i], v.user[i]
			}
		}
		v.sonic = sonicTables(v, &m)
		v.leaves = openconfig(v)
	})
}

// marks are the three watermark tables of SONiC.
type marks struct{ persistent, periodic, user map[place]int64 }

// place names one value of a switch.
type place struct {
	port, index int
	id          counters.ID
}

// NewStore returns the store of a switch; it is empty until the first Publish.
func NewStore(device string, tm otlp.TimeMap) *Store {
	return &Store{Device: device, time: tm, streams: map[*mailbox]struct{}{}}
}

// Publish takes the device's values out of a sample and wakes the streams. A
// periodic watermark is that of the time since the sample before.
func (s *Store) Publish(n *counters.Snapshot) {
	v := &View{At: n.At, Stamp: s.time.At(n.At).UnixNano()}
	dev := int32(slices.Index(n.Devices, s.Device))
	for _, p := range n.Points {
		if p.Dev == dev {
			v.points = append(v.points, p)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.track(v)
	s.view = v
	for m := range s.streams {
		m.put(v)
	}
}

// track keeps the watermarks of a sample. The model keeps the largest value
// since the start, which is exact; the largest since a clear is exact when it is
// also that, and else the largest that a sample saw.
func (s *Store) track(v *View) {
	if len(s.gauge) != len(v.points) {
		s.layout(v)
	}
	v.periodic = make([]int64, len(v.points))
	for i, g := range s.gauge {
		if g == noMark {
			continue
		}
		now, seen := v.points[i].Value, int64(0)
		if g >= 0 {
			seen = v.points[g].Value
		}
		if now > s.top[i] {
			seen, s.top[i] = now, now // a new record was set within this interval
		}
		v.periodic[i] = seen
		s.user[i] = max(s.user[i], seen)
	}
	v.user = slices.Clone(s.user)
}

// noMark is a point that is no watermark, noGauge a watermark without a gauge.
const (
	noMark  = -2
	noGauge = -1
)

// layout finds the gauge of each watermark; samples of a run keep their order.
func (s *Store) layout(v *View) {
	at := map[place]int{}
	for i, p := range v.points {
		at[place{int(p.Port), int(p.Index), p.ID}] = i
	}
	s.gauge, s.top, s.user = make([]int, len(v.points)), make([]int64, len(v.points)), make([]int64, len(v.points))
	for i, p := range v.points {
		s.gauge[i] = noMark
		if id, ok := markOf[p.ID]; ok {
			s.gauge[i] = noGauge
			if j, ok := at[place{int(p.Port), int(p.Index), id}]; ok && id != p.ID {
				s.gauge[i] = j
			}
		}
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
	clear(s.user)
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

// markOf pairs a watermark with the gauge that it is the largest of.
var markOf = map[counters.ID]counters.ID{
	counters.QueueMark: counters.QueueOccupancy, counters.PGSharedMark: counters.PGOccupancy, counters.PoolMark: counters.PoolOccupancy,
	counters.PGHeadroomMark: counters.PGHeadroomMark,
}
