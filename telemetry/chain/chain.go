// Package chain joins the records of all devices into retransmit chains: from
// the loss of a packet, wherever it happened, over the gap, the NAK, the
// timeout or the RNR wait and every packet sent again, to the completion of the
// request or the error of its queue pair. It is pure: no goroutine, no real
// clock, no protocol beyond the meaning of records. A chain is whole or it is
// not there; what was made and what was left out is counted. Start at
// [Assembler.Add].
package chain

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
)

// Limits of an [Assembler]; what goes beyond is counted, never cut.
const (
	MaxOpen    = 1 << 16 // chains waiting for their completion, over all queue pairs
	MaxPending = 256     // losses of one queue pair that no chain has claimed yet
	MaxResends = 256     // steps for single packets sent again, in one chain; more are folded
	MaxSteps   = 2048    // steps of one chain; further gaps, NAKs and losses are folded
	MaxPosted  = 4096    // posting times of one queue pair that await a completion
)

// Step is one event of a chain.
type Step struct {
	record.Record
	// Since and Until bound the step's span: a wait begins at what it waited
	// for or ends when it is over. For instants both equal At.
	Since, Until clock.Time
	// Cause is the index of the step that led to this one, -1 when the request
	// itself did.
	Cause int
}

// Chain is one retransmit episode of one request.
type Chain struct {
	Conn     int32 // queue pair's id in the plan
	Flow     int32 // flow of the request, -1 when it is not known
	Request  int64 // request number in its flow, -1 when it is not known
	PSN      uint32
	Ordinal  uint32 // n-th chain of its queue pair, from 0
	Posted   clock.Time
	Begin    clock.Time // first step
	End      clock.Time // completion, error, or the end of the run
	Status   uint8      // completion status by ib_verbs number
	Ended    bool       // a completion or an error was seen
	Recover  bool       // the request completed, or the loss was made good
	Rounds   int        // NAKs, timeouts, RNRs and implied NAKs that were acted on
	Resends  int        // packets sent again
	Folded   int        // of all events, those without a step of their own
	Steps    []Step
	Trace    [16]byte // trace id
	repaired bool     // ePSN passed it; only the completion is awaited
	resent   bool
	edge     uint32 // highest PSN sent when the send pointer moved back, exclusive
}

// Accounts count chains. Made = Emitted + Dropped at every instant after
// [Assembler.Finish].
type Accounts struct {
	Made    uint64 `json:"made"`    // episodes that began
	Emitted uint64 `json:"emitted"` // handed over whole
	Dropped uint64 `json:"dropped"` // beyond MaxOpen
	// Unclaimed losses led to no retransmission (an acknowledgement that a
	// later one made good, datagrams, CNPs).
	Unclaimed uint64 `json:"unclaimed_losses"`
	Replayed  uint64 `json:"replayed_records"` // seen before, ignored
	Missing   uint64 `json:"missing_records"`  // numbers skipped by a device
}

// after reports whether 24-bit sequence number a is later than b.
func after(a, b uint32) bool {
	d := (a - b) & 0xffffff
	return d != 0 && d < 1<<23
}
