package sim

import (
	"cmp"
	"slices"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// EventKind says what a line of a story is.
type EventKind uint8

// Kinds of events.
const (
	EventSent   EventKind = iota // packets left the device: First..Last
	EventAnswer                  // positive answers came: First..Last
	EventLost                    // packets were dropped: First..Last; Record tells where and why
	EventNote                    // an exceptional record; Record
)

// Event is one line of a queue pair's story. Runs of packets in sequence, sent
// for the same reason, are one event.
type Event struct {
	Kind        EventKind
	At, Until   clock.Time
	First, Last uint32 // PSNs
	Count       int
	Iter        uint8       // transmission of the packets, 1 = first
	Cause       record.Kind // of a retransmission
	Op          uint8       // of the first packet
	Record      record.Record
}

// Interval is a time during which something stood in the way.
type Interval struct {
	From, To clock.Time // To = Never: to the end
	Fault    int32      // index of the fault + 1, 0 = none
	Dev      int32      // of a pause
	Port     uint16
	Prio     uint8
	RNR      bool
}

// Story collects what happens to one queue pair of a run, as one end sees it.
type Story struct {
	Events    []Event
	Intervals []Interval

	plan     *topology.Plan
	dev      int32
	k, peer  uint32
	own, far uint32 // QPNs
	prio     uint8
	on       map[int32]bool // devices on the way, both directions
	taps     [2]*actors.Tap
	ports    [2]*topology.Port // senders of the tapped directions
	raw      []Event
	open     map[[3]int32]int // pauses and faults that last: index into Intervals
}

// NewStory prepares the story of queue pair q as RNIC number k sees it.
func NewStory(plan *topology.Plan, q *topology.QP, k uint32) *Story {
	s := &Story{plan: plan, dev: plan.RNICs[k-1], k: k, peer: q.B, own: q.AQPN, far: q.BQPN, on: map[int32]bool{}, open: map[[3]int32]int{}}
	if q.A != k {
		s.peer, s.own, s.far = q.A, q.BQPN, q.AQPN
	}
	s.prio = plan.Devices[s.dev].NIC.PrioOf[q.DSCP&63]
	s.on[s.dev], s.on[plan.RNICs[s.peer-1]] = true, true
	for _, p := range []Probe{{From: k, To: s.peer}, {From: s.peer, To: k}} {
		p.SPort, p.DSCP, p.Kind, p.Len = q.SPort, q.DSCP, wire.KindData, wire.MinFrame
		stops, _ := Walk(plan, p)
		for i := range stops {
			s.on[stops[i].Dev] = true
		}
	}
	return s
}

// Watch hooks the story into a run's options, before those that are set.
func (s *Story) Watch(o *Options) {
	build, between, records := o.OnBuild, o.Between, o.Records
	o.OnBuild = func(f *Fabric) error {
		port := &s.plan.Devices[s.dev].Ports[0]
		far := &s.plan.Devices[port.Peer].Ports[port.PeerPort-1]
		s.taps = [2]*actors.Tap{f.Engine.TapTo(port.Peer, port.PeerPort), f.Engine.TapTo(s.dev, port.Num)}
		s.ports = [2]*topology.Port{port, far}
		if build != nil {
			return build(f)
		}
		return nil
	}
	o.Between = func(start clock.Time, n uint64) {
		s.read()
		if between != nil {
			between(start, n)
		}
	}
	o.Records = func(b []record.Record) {
		s.records(b)
		if records != nil {
			records(b)
		}
	}
}

// read takes the pair's frames off the taps.
func (s *Story) read() {
	s.taps[0].Read(func(f *wire.Frame) {
		if f.Kind == wire.KindData && f.Src == s.k && f.Dst == s.peer && f.DstQPN() == s.far {
			s.raw = append(s.raw, packet(EventSent, s.dequeue(f), f))
		}
	})
	s.taps[1].Read(func(f *wire.Frame) {
		if f.Src != s.peer || f.DstQPN() != s.own {
			return
		}
		_, syn := f.Op(), f.Syndrome()
		if f.Kind == wire.KindAck && (f.Op() != wire.Acknowledge || syn>>5 == 0) || f.Kind == wire.KindData {
			s.raw = append(s.raw, packet(EventAnswer, f.At, f))
		}
	})
}

func packet(k EventKind, at clock.Time, f *wire.Frame) Event {
	p := uint32(f.PSN())
	return Event{Kind: k, At: at, Until: at, First: p, Last: p, Count: 1, Iter: max(f.Iter, 1), Op: uint8(f.Op())}
}

// dequeue is when a frame left the device's queue, from its arrival.
func (s *Story) dequeue(f *wire.Frame) clock.Time {
	p := s.ports[0]
	n := int64(f.Len) + wire.Overhead
	if p.PeerCutThrough {
		n = wire.MinFrame
	}
	span, _ := p.Rate.Serialise(n, 0)
	return f.At.Add(-(p.PeerIngressHalf + p.Prop + span + p.EgressHalf))
}

// mine says whether a record is about a packet of the pair, in either
// direction.
func (s *Story) mine(r *record.Record) bool {
	return r.Src == s.k && r.Dst == s.peer && r.QPN == s.far || r.Src == s.peer && r.Dst == s.k && r.QPN == s.own
}

// records takes notes of the pair, and the spans of what stood in its way.
func (s *Story) records(batch []record.Record) {
	for i := range batch {
		r := &batch[i]
		switch r.Kind {
		case record.FaultStart, record.FaultEnd:
			if f := &s.plan.Faults[max(r.Fault, 1)-1]; r.Fault > 0 && (s.on[f.Dev] || s.on[f.Peer] || f.Dev < 0) {
				s.span([3]int32{-1, r.Fault, 0}, r, r.Kind == record.FaultStart)
			}
			continue
		case record.PauseStart, record.PauseEnd:
			if r.Prio == s.prio && s.on[r.Dev] {
				s.span([3]int32{r.Dev, int32(r.Port), int32(r.Prio)}, r, r.Kind == record.PauseStart)
			}
			continue
		case record.FaultHit, record.CnpSent, record.CnpRecv, record.Rewind:
			continue
		}
		if !s.mine(r) {
			continue
		}
		if r.Kind == record.RnrRecv {
			s.Intervals = append(s.Intervals, Interval{From: r.At, To: r.At.Add(clock.Duration(r.X)), RNR: true})
		}
		if r.Kind == record.Drop && r.Dev == s.dev && r.Src == s.k && r.Iter <= 1 { // lost before the tap
			s.raw = append(s.raw, Event{Kind: EventSent, At: r.At, Until: r.At, First: r.PSN, Last: r.PSN, Count: 1, Iter: 1, Op: r.Op})
		}
		s.raw = append(s.raw, Event{Kind: EventNote, At: r.At, Until: r.At, First: r.PSN, Last: r.PSN, Record: *r})
	}
}

// span opens or closes an interval.
func (s *Story) span(key [3]int32, r *record.Record, start bool) {
	i, open := s.open[key]
	switch {
	case start && !open:
		s.open[key] = len(s.Intervals)
		v := Interval{From: r.At, To: clock.Never, Fault: r.Fault}
		if v.Fault == 0 {
			v.Dev, v.Port, v.Prio = r.Dev, r.Port, r.Prio
		}
		s.Intervals = append(s.Intervals, v)
	case !start && open:
		s.Intervals[i].To = r.At
		delete(s.open, key)
	}
}

// Finish orders the events and folds runs of packets. Call it after the run.
func (s *Story) Finish() {
	slices.SortStableFunc(s.raw, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(rank(&a), rank(&b)))
	})
	var tracks [EventNote]*Event // runs that may go on, by kind
	for i := range s.raw {
		e := &s.raw[i]
		if !s.classify(e) {
			continue
		}
		if e.Kind < EventNote && fold(&tracks[e.Kind], e) {
			continue
		}
		for k, t := range tracks {
			if t != nil {
				s.Events = append(s.Events, *t)
			}
			tracks[k] = nil
		}
		if e.Kind < EventNote {
			tracks[e.Kind] = e
			continue
		}
		s.Events = append(s.Events, *e)
	}
	for _, t := range tracks {
		if t != nil {
			s.Events = append(s.Events, *t)
		}
	}
	s.raw = nil
}

// classify turns records of losses and of packets sent again into events of
// their kind; false leaves an event out.
func (s *Story) classify(e *Event) bool {
	switch {
	case e.Kind == EventSent:
		return e.Iter == 1 // a later one has a record that says why
	case e.Kind != EventNote:
		return true
	case e.Record.Kind == record.ReqPosted:
		return false
	case e.Record.Kind == record.Drop:
		e.Kind, e.Count, e.Op = EventLost, 1, e.Record.Op
	case e.Record.Kind == record.Retransmit:
		r := e.Record
		*e = Event{Kind: EventSent, At: e.At, Until: e.At, First: e.First, Last: e.Last, Count: 1, Iter: r.Iter, Op: r.Op, Cause: record.Kind(r.X)}
		return r.Src == s.k // the peer's READ responses show as answers
	}
	return true
}

// rank orders events of one instant: what came, what was decided, what was
// sent.
func rank(e *Event) int {
	switch {
	case e.Kind == EventAnswer:
		return 0
	case e.Kind == EventNote && e.Record.Kind == record.Drop:
		return 4
	case e.Kind == EventNote && e.Record.Kind == record.Retransmit, e.Kind == EventSent:
		return 3
	case e.Kind == EventNote && e.Record.Kind == record.ReqDone:
		return 2
	}
	return 1
}

// fold adds e to a run that it continues: the next PSN, sent for the same
// reason; answers may skip PSNs, an acknowledgement covers many.
func fold(run **Event, e *Event) bool {
	r := *run
	if r == nil {
		*run = e
		return true
	}
	step := (e.First - r.Last) & 0xffffff
	switch {
	case e.Iter != r.Iter || e.Cause != r.Cause,
		e.Kind != EventAnswer && step != 1, e.Kind == EventAnswer && (step == 0 || step >= 1<<23):
		return false
	case e.Kind == EventLost:
		a, b := &r.Record, &e.Record
		if a.Dev != b.Dev || a.Port != b.Port || a.Reason != b.Reason || a.Fault != b.Fault || a.Src != b.Src {
			return false
		}
	}
	r.Last, r.Until = e.Last, e.At
	r.Count++
	return true
}

// Overlaps returns the intervals that cut into [from, to], oldest first.
func (s *Story) Overlaps(from, to clock.Time) []Interval {
	var out []Interval
	for _, v := range s.Intervals {
		if v.From < to && v.To > from {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b Interval) int { return cmp.Compare(a.From, b.From) })
	return out
}
