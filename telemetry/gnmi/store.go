// Package gnmi serves the counters of a switch as network operators read them:
// a gNMI server (Capabilities, Get, Subscribe ONCE, POLL and STREAM) with
// SONiC's COUNTERS_DB paths and OpenConfig's interface and qos paths, and
// dial-out to collectors that listen. Intervals are virtual time. A slow client
// gets the latest values and a count of what it missed; it never makes the run
// wait. Start at [NewStore] and [Server]; paths are in docs/telemetry.md.
package gnmi

import (
	"context"
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
	dev     int32 // index of Device in samples
	lay     *layout
	view    *View
	top     []int64 // largest value so far, by mark
	user    []int64 // since ClearUser
	streams map[*mailbox]struct{}
	taken   uint64 // samples so far

	ended chan struct{}
	once  sync.Once
}

// View is one sample of one switch, immutable. What answers are made of is
// built when a question asks for it.
type View struct {
	At    clock.Time
	Stamp int64 // exported time, Unix nanoseconds

	lay            *layout
	points         []counters.Point
	periodic, user []int64 // by mark

	mu      sync.Mutex
	answers map[*template][]byte // COUNTERS_DB paths that were asked for
}

// NewStore returns the store of a switch; it is empty until the first Publish.
func NewStore(device string, tm otlp.TimeMap) *Store {
	return &Store{Device: device, time: tm, streams: map[*mailbox]struct{}{}, ended: make(chan struct{})}
}

// End says that no sample follows: streams end when they have sent the last one.
func (s *Store) End() { s.once.Do(func() { close(s.ended) }) }

// over tells whether no sample follows.
func (s *Store) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Publish takes the device's values out of a sample and wakes the streams. A
// periodic watermark is that of the time since the sample before.
func (s *Store) Publish(n *counters.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lay == nil || !s.lay.fits(n, s.dev) {
		s.dev = int32(slices.Index(n.Devices, s.Device))
		if s.lay = newLayout(n, s.dev); s.lay == nil {
			return
		}
		s.top, s.user = make([]int64, len(s.lay.marks)), make([]int64, len(s.lay.marks))
	}
	v := &View{At: n.At, Stamp: s.time.At(n.At).UnixNano(), lay: s.lay}
	v.points = slices.Clone(n.Points[s.lay.from : s.lay.from+s.lay.n])
	s.track(v)
	s.view = v
	s.taken++
	for m := range s.streams {
		m.put(v)
	}
}

// track keeps the watermarks of a sample. The model keeps the largest value
// since the start, which is exact; the largest since a clear is exact when it is
// also that, and else the largest that a sample saw.
func (s *Store) track(v *View) {
	v.periodic = make([]int64, 2*len(s.lay.marks))
	v.periodic, v.user = v.periodic[:len(s.lay.marks)], v.periodic[len(s.lay.marks):]
	for i, m := range s.lay.marks {
		now, seen := v.points[m.at].Value, int64(0)
		if m.gauge != noGauge {
			seen = v.points[m.gauge].Value
		}
		if now > s.top[i] {
			seen, s.top[i] = now, now // a new record was set within this interval
		}
		v.periodic[i] = seen
		s.user[i] = max(s.user[i], seen)
	}
	copy(v.user, s.user)
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

// next waits for a sample that the stream has not sent; nil once none follows.
func (m *mailbox) next(ctx context.Context, s *Store) (v *View, gaps uint64, err error) {
	for {
		last := s.over()
		if v, gaps = m.take(); v != nil || last {
			return v, gaps, nil
		}
		select {
		case <-m.wake:
		case <-s.ended:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
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
