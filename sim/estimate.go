package sim

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// Memory coefficients, measured on heaps of permutation runs with 64 to 3,072
// RNICs, rounded up; Go's collector lets the heap grow to twice what lives.
const (
	memBase    = 40 << 20
	memRNIC    = 6_500  // idle
	memActive  = 10_000 // more, once it sends or receives
	memPort    = 5_400  // of a switch
	memQP      = 7_500  // used
	memFlow    = 250
	memRequest = 26
	memFrame   = 96 // queued or in flight
	memSlack   = 2
)

// Estimate is what a run will take, before it runs.
type Estimate struct {
	Memory   int64          // bytes of the process
	Hops     float64        // link traversals of data and acknowledgement frames
	Events   float64        // of all actors
	Span     clock.Duration // virtual time with traffic, at least
	Windows  float64        // synchronisation windows with traffic
	Requests float64
	Flows    int
	QPs      int
	// Bottleneck is the egress port that the workload fills longest.
	BottleneckDev  int32
	BottleneckPort int
}

// eventsPerHop is what the engine counts for one link traversal: its arrival,
// and the dequeue of the frames that waited.
const eventsPerHop = 1.75

// Foresee estimates a run from its plan alone: every flow is sent along the
// way its hash names, nothing is lost, and the fullest port works at line rate.
func Foresee(plan *topology.Plan) Estimate {
	e := Estimate{Flows: len(plan.Flows), QPs: len(plan.QPs), BottleneckDev: -1}
	busy := make([][]clock.Duration, len(plan.Devices))
	for i := range busy {
		busy[i] = make([]clock.Duration, len(plan.Devices[i].Ports))
	}
	active := map[uint32]bool{}
	var last clock.Time
	for i := range plan.Flows {
		f := &plan.Flows[i]
		active[f.From], active[f.To] = true, true
		last = clock.Max(last, f.Start)
		e.flow(plan, f, busy)
	}
	e.Span = clock.Duration(last)
	for d := range busy {
		for p, t := range busy[d] {
			if t > e.Span {
				e.Span = t
				e.BottleneckDev, e.BottleneckPort = int32(d), p+1
			}
		}
	}
	if plan.Run.Until == topology.UntilTime {
		e.Span = min(e.Span, clock.Duration(plan.Run.At))
	}
	e.Span = min(e.Span, plan.Run.Limit)
	e.Events = e.Hops * eventsPerHop
	e.Windows = min(float64(e.Span/max(plan.Window, 1))+1, e.Events+1)
	e.memory(plan, len(active))
	return e
}

// flow adds one flow's packets to hops and to the time that ports are busy.
func (e *Estimate) flow(plan *topology.Plan, f *topology.Flow, busy [][]clock.Duration) {
	p := probeOf(plan, f)
	stops, err := Walk(plan, p)
	if err != nil {
		return
	}
	mtu, acks := int64(max(f.Packet, 1)), int64(0)
	count := max(f.Count, 1)
	if f.QP >= 0 {
		mtu = int64(plan.QPs[f.QP].MTU)
	}
	packets := max((f.Size+mtu-1)/mtu, 1)
	if f.Count < 0 { // for ever: as long as the run is
		line := plan.RNIC(f.From).Ports[0].Rate
		if f.Rate > 0 {
			line = min(line, f.Rate)
		}
		span := plan.Run.Limit
		if plan.Run.Until == topology.UntilTime {
			span = clock.Duration(plan.Run.At)
		}
		if one := line.Span(f.Size); one > 0 {
			count = max(int64(span/one), 1)
		}
	}
	if f.QP >= 0 {
		if acks = 1 + packets>>8; plan.RNIC(f.To).NIC.AckEvery || plan.RNIC(f.From).NIC.AckEvery {
			acks = packets
		}
	}
	e.Requests += float64(count)
	e.Hops += float64(count) * float64(packets+acks) * float64(len(stops))
	frame := min(mtu, max(f.Size, 1)) + 62
	for _, s := range stops {
		port := &plan.Devices[s.Dev].Ports[s.Out-1]
		one := port.Rate.Span(max(frame, wire.MinFrame) + wire.Overhead)
		busy[s.Dev][s.Out-1] += clock.Duration(min(float64(one)*float64(packets)*float64(count), 1<<62))
	}
}

// memory adds up the coefficients.
func (e *Estimate) memory(plan *topology.Plan, active int) {
	var buffers int64
	for i := range plan.Devices {
		if s := plan.Devices[i].Switch; s != nil {
			buffers += s.BufferBytes
		}
	}
	live := standing(plan, nil) + int64(active)*memActive + int64(len(plan.QPs))*memQP + int64(len(plan.Flows))*memFlow
	live += int64(min(e.Requests, 1<<40)) * memRequest
	frames := min(float64(buffers)/1000, e.Hops/4)
	e.Memory = memBase + memSlack*(live+int64(frames)*memFrame)
}

// standing is the bytes that hosted devices take, nil = all, before anything is
// sent.
func standing(plan *topology.Plan, hosted func(dev int32) bool) int64 {
	var n int64
	for i := range plan.Devices {
		d := &plan.Devices[i]
		switch {
		case hosted != nil && !hosted(int32(i)):
		case d.Switch != nil:
			n += int64(len(d.Ports))*memPort + 2*int64(len(plan.RNICs))
		default:
			n += memRNIC
		}
	}
	return n
}
