package report

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
)

// Part is what one device contributes to a result. Parts come from the actors
// of one process or of many; [Merge] does not depend on their order.
type Part struct {
	Device    string
	RNIC      *RNICCounters   // of an RNIC
	Switch    *SwitchCounters // of a switch
	Drops     [NumReasons]uint64
	Samples   Samples    // request completions, at the requester
	Latencies Latencies  // one-packet requests, at the responder
	Flows     []FlowPart // flows with more to tell than samples
	Received  []RecvPart // by flow, at the responder
	Words     []Word     // words that atomics of a flow acted on, at the responder
	Links     []LinkCounts
	Balance   Balance
	// Retransmitted counts packets that were sent again by this device.
	Retransmitted uint64
	DigestHi      uint64
	DigestLo      uint64
	FrameHops     uint64
	Events        uint64
	Faults        []FaultPart
	Deadlocks     []Deadlock
	Findings      []Finding
}

// FaultPart is what a device knows of a fault: hits, and when it ended (Never
// while it has not).
type FaultPart struct {
	Name string
	Hits uint64
	End  clock.Time
}

// Samples are request completions in columns: 21 bytes a request.
type Samples struct {
	Flow   []int32
	Start  []clock.Time
	End    []clock.Time
	Status []Status
	Folded []Folded // those that came after [KeptSamples], by flow
}

// Add appends one completion.
func (s *Samples) Add(flow int32, start, end clock.Time, st Status) {
	s.Flow = append(s.Flow, flow)
	s.Start = append(s.Start, start)
	s.End = append(s.End, end)
	s.Status = append(s.Status, st)
}

// Latencies are network latencies of one-packet requests in columns.
type Latencies struct {
	Flow []int32
	Span []clock.Duration
	// Folded are those that came after [KeptSamples], by flow.
	Folded []FoldedLatencies
}

// Add appends one latency.
func (l *Latencies) Add(flow int32, d clock.Duration) {
	l.Flow = append(l.Flow, flow)
	l.Span = append(l.Span, d)
}

// FlowPart tells what samples do not about a single flow at its requester. It
// is needed only for flows that retransmitted, did not finish, run for ever,
// returned an atomic's value or carry datagrams.
type FlowPart struct {
	Flow          int32
	Posted        int64 // requests posted; matters when the flow has no count
	Retransmitted uint64
	BytesDone     int64          // acknowledged payload of requests that are not complete
	SentBytes     int64          // datagram payload sent
	LastProgress  clock.Time     // last advance, of an unfinished flow
	Why           string         // what an unfinished flow waits for
	Oldest        clock.Duration // age of the oldest outstanding request, 0 = none
	Atomic        *Atomic
	CPU           clock.Duration // host software at the sender
}

// RecvPart is what a responder got of a single flow.
type RecvPart struct {
	Flow     int32
	Messages int64
	Bytes    int64
	Last     clock.Time
	CPU      clock.Duration // host software at the receiver
}

// Word is a 64-bit word in a responder's memory that a flow's atomics act on.
type Word struct {
	Flow  int32
	Value uint64
}

// Count is a number of frames and their bytes.
type Count struct{ Frames, Bytes uint64 }

// Add counts one frame of n bytes.
func (c *Count) Add(n int) {
	c.Frames++
	c.Bytes += uint64(n)
}

func (c Count) plus(o Count) Count { return Count{c.Frames + o.Frames, c.Bytes + o.Bytes} }

// String prints "3 frames (270 B)".
func (c Count) String() string { return fmt.Sprintf("%d frames (%d B)", c.Frames, c.Bytes) }

// LinkCounts are one port's share in the conservation of frames, PFC apart.
// For the direction out of the port: Sent + Injected frames went onto the
// cable, Lost of them were dropped on it by this end. For the direction in:
// Delivered were handed to the device, RxDropped were dropped on arrival,
// before that, RxInjected were made by faults on arrival, and InFlight were
// still on the cable when the run ended. HeldOut and HeldIn are frames that
// faults keep back at this end at that time.
type LinkCounts struct {
	Port       int
	Sent       Count
	Injected   Count
	Lost       Count
	HeldOut    Count
	Delivered  Count
	RxDropped  Count
	RxInjected Count
	HeldIn     Count
	InFlight   Count
}

// Balance is a device's own account: In + Originated = Out + Consumed +
// Dropped + Stored.
type Balance struct {
	In, Originated, Out, Consumed, Dropped, Stored Count
}
