package qp

import "github.com/rocemu/rocemu/clock"

// Verb is the operation of a work request, in the order of the plan's verbs.
type Verb uint8

// Verbs.
const (
	Send Verb = iota
	SendImm
	SendInv
	Write
	WriteImm
	Read
	CmpSwap
	FetchAdd
	verbs
)

// Status is a work completion status (transport §2.9).
type Status uint8

// Completion statuses, numbered as ib_verbs.h numbers them.
const (
	Success        Status = 0
	LocLenErr      Status = 1
	LocQPOpErr     Status = 2
	LocProtErr     Status = 4
	WRFlushErr     Status = 5
	BadRespErr     Status = 7
	LocAccessErr   Status = 8
	RemInvReqErr   Status = 9
	RemAccessErr   Status = 10
	RemOpErr       Status = 11
	RetryExcErr    Status = 12
	RNRRetryExcErr Status = 13
)

var statusNames = [...]string{
	"success", "loc_len_err", "loc_qp_op_err", "3", "loc_prot_err", "wr_flush_err", "mw_bind_err",
	"bad_resp_err", "loc_access_err", "rem_inv_req_err", "rem_access_err", "rem_op_err", "retry_exc_err", "rnr_retry_exc_err",
}

// String returns the result object's word for s.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}

// State is the QP state (transport §2.9). RC never uses SQE.
type State uint8

// QP states.
const (
	StateReset State = iota
	StateInit
	StateRTR // answers requests, sends none
	StateRTS
	StateSQD // finishes begun messages, starts none
	StateErr
)

var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "ERR"}

// String returns the verbs' name of s.
func (s State) String() string { return stateNames[min(int(s), len(stateNames)-1)] }

// Recovery is what a requester sends again after a loss.
type Recovery uint8

// Recovery schemes.
const (
	GoBackN Recovery = iota
	GoBack0
	SelectiveRepeat
)

// RNREarly is the responder's answer to a resend that comes before the RNR
// interval is over (transport §3.3, §4 row 18).
type RNREarly uint8

// Early-resend policies.
const (
	RNREarlyExecute RNREarly = iota // accepted if a receive is posted
	RNREarlyDrop                    // ignored without a word
	RNREarlyRenak                   // RNR again
)

// Limits of the transport.
const (
	MaxMessage = 1 << 31 // bytes (transport §1.1)
	unset      = int64(-1)
)

// WR is a work request as posted.
type WR struct {
	ID          uint64 // the poster's number, returned in the completion
	VA          uint64 // remote address (WRITE, READ, atomics)
	Swap        uint64 // swap value, or what FETCH_ADD adds
	Compare     uint64
	Len         int64 // bytes; 8 is implied for atomics
	RKey        uint32
	Imm         uint32 // immediate, or the R_Key SEND_INV invalidates
	Verb        Verb
	Fence       bool
	Unsignalled bool
	Solicited   bool
}

// Completion is one finished work request. Every posted request yields exactly
// one, in posting order.
type Completion struct {
	ID        uint64
	Orig      uint64     // value before an atomic
	FirstTx   clock.Time // dequeue of its first packet, Never if it was not sent
	RemoteAt  clock.Time // last bit of the answered packet at the responder, 0 if the response did not name it
	Bytes     uint32
	SSN       uint32 // message number on this QP, from 0
	Verb      Verb
	Status    Status
	Signalled bool // a CQE is raised: signalled, or in error
	Retrans   bool // some packet of it was sent more than once
}

// Recv is a message that the responder finished receiving, or a receive that
// ended in error.
type Recv struct {
	Bytes  uint32
	Imm    uint32
	SSN    uint32 // message number on this QP, from 0
	Verb   Verb
	Status Status
	CQE    bool // it consumed a receive
	HasImm bool
}

// NoteKind names an exceptional event inside a QP.
type NoteKind uint8

// Note kinds; the RNIC actor turns them into records of the same names.
const (
	NoteNone        NoteKind = iota
	NoteOutOfSeq             // PSN = ePSN, X = PSN that came
	NoteNakSent              // Reason = syndrome
	NoteNakRecv              // Reason = syndrome, X = retries left
	NoteRnrSent              // X = timer code
	NoteRnrRecv              // X = wait in ps, Y = RNR retries left
	NoteImpliedNak           // PSN = first missing, X = PSN that proved it, Y = retries left
	NoteTimeout              // PSN = una, X = retries left, Y = the timeout in ps
	NoteRewind               // PSN = new next, X = old next, Y = cause (NoteKind)
	NoteDuplicate            // PSN of the duplicate request
	NoteQPError              // Reason = completion status
	NoteMigrate              // X = 1 to the alternate path
	NoteArmed                // path migration state became ARMED
	NoteIgnored              // response outside [una, max)
	NoteIntegrity            // content tag or placement is wrong; X = message, Y = offset
	NoteDrained              // SQD finished
	NoteSlowRestart          // loss lowers the rate
	NoteAdaptive             // X = adaptive exponent in force
)

// Note is one exceptional event. The actor adds device, addresses and time.
type Note struct {
	X, Y   int64
	PSN    uint32
	Kind   NoteKind
	Reason uint8
	Op     uint8
	Iter   uint8
}

// Effects collects what one call caused. It is reused: Reset keeps capacity.
type Effects struct {
	Acked  int64          // PSNs newly acknowledged
	RTT    clock.Duration // round trip of a timed first transmission, with HasRTT
	OneWay clock.Duration // its dequeue to its last bit at the responder, 0 unknown
	HasRTT bool
	CNP    bool // a sequence NAK of this personality is accompanied by a CNP
	Loss   bool // the requester learnt of a loss (slow restart, loss-based control)
	Any    bool // Done, Recvs or Notes were added to
	Done   []Completion
	Recvs  []Recv
	Notes  []Note
}

// Reset empties e for the next call.
func (e *Effects) Reset() {
	if e.Any {
		e.Done, e.Recvs, e.Notes = e.Done[:0], e.Recvs[:0], e.Notes[:0]
	}
	e.Acked, e.RTT, e.OneWay, e.HasRTT, e.CNP, e.Loss, e.Any = 0, 0, 0, false, false, false, false
}

func (e *Effects) note(n Note) { e.Notes, e.Any = append(e.Notes, n), true }
func (e *Effects) recv(v Recv) { e.Recvs, e.Any = append(e.Recvs, v), true }
