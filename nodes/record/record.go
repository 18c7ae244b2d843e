// Package record holds the fixed-size notes that actors make of exceptional
// events: losses and their reason, gaps, NAKs, timeouts, retransmissions,
// pauses, marks, faults. A record names the packet it concerns (source RNIC,
// destination QPN, PSN, iteration), so a chain from loss to recovery is
// assembled afterwards, off the hot path, by joining on those names.
package record

import (
	"cmp"

	"github.com/rocemu/rocemu/clock"
)

// Kind says what happened.
type Kind uint8

// The kinds of records. Args are listed where a kind uses them.
const (
	None       Kind = iota
	Drop            // a frame was dropped; Reason; X = queue or PG bytes, Fault if a fault did it
	OutOfSeq        // responder saw a gap; PSN = ePSN, X = PSN that came
	NakSent         // responder sent a sequence or error NAK; Reason = syndrome
	NakRecv         // requester received a sequence NAK that it acted on; Reason = syndrome
	RnrSent         // responder sent RNR; X = timer code
	RnrRecv         // requester received RNR; X = wait in ps
	ImpliedNak      // requester found an unanswered READ or atomic; PSN = first missing
	Timeout         // local ACK timer expired; X = retries left after it
	Retransmit      // requester (or responder, for a replayed READ) sent a packet again; Iter; X = cause Kind
	Rewind          // send pointer moved back; PSN = new next, X = old next, Y = cause Kind
	Duplicate       // responder saw a duplicate request
	ReqDone         // a request that had retransmitted completed; X = request number in flow, Y = status
	ReqPosted       // first transmission of a request that later retransmitted; X = request number in flow
	QPError         // QP entered ERR; Reason = completion status
	Xoff            // PFC XOFF sent; Port, Prio; X = PG bytes
	Xon             // PFC XON sent
	PauseStart      // priority paused by a received frame; Port, Prio
	PauseEnd        // resumed or expired
	Watchdog        // X = 1 detected, 0 restored
	FaultHit        // a fault acted on a frame; Fault
	FaultStart      // fault took effect
	FaultEnd        // fault undone
	CnpSent         // NP sent CNP
	CnpRecv         // RP handled CNP
	RateCut         // DCQCN cut; X = old, Y = new rate in bit/s
	Clamp           // a timer was clamped to a floor; X = asked, Y = effective
	Migrate         // path migration; X = 1 to alternate
	LinkState       // X = 0 down, 1 up; Port
	Ignored         // a response outside [UNA, NXT) was ignored
	Deadlock        // wait-for cycle closed
)

// Record is one note. Fields that a kind does not use are zero.
type Record struct {
	At     clock.Time
	X, Y   int64
	Dev    int32 // device id in the plan
	Src    uint32
	Dst    uint32
	QPN    uint32 // destination QPN of the packet
	PSN    uint32
	Fault  int32 // index into the run's fault list + 1, 0 = none
	Port   uint16
	Kind   Kind
	Reason uint8 // drop reason (see package topology's reasons), syndrome or status
	Prio   uint8 // priority, queue or PG
	Op     uint8 // BTH opcode
	Iter   uint8
	_      uint8
	Seq    uint32 // n-th record of its device
}

// Compare orders records by time, device and number. An observer's notes have no
// number: among those of one device the place decides.
func Compare(a, b Record) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Dev, b.Dev), cmp.Compare(a.Seq, b.Seq),
		cmp.Compare(a.Port, b.Port), cmp.Compare(a.Prio, b.Prio), cmp.Compare(a.X, b.X))
}
