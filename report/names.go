package report

// Reason says why a frame was dropped. The order is fixed: parts of a run
// that come from several processes index by it.
type Reason uint8

// The reasons, named as in drops_by_reason.
const (
	BufferHeadroom Reason = iota
	HeadroomPool
	BufferShared
	EgressLimit
	WRED
	MTU
	TTL
	CRC
	ICRC
	BadHeader
	RxOverflow
	NoRoute
	PFCWatchdog
	LinkDown
	DeviceDown
	FaultDrop
	ACL
	NumReasons
)

var reasonNames = [NumReasons]string{
	"buffer_headroom", "headroom_pool", "buffer_shared", "egress_limit", "wred", "mtu", "ttl", "crc",
	"icrc", "bad_header", "rx_overflow", "no_route", "pfc_watchdog", "link_down", "device_down", "fault", "acl",
}

// String returns the reason's key in drops_by_reason.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "unknown"
}

// ReasonNamed returns the reason with the given key.
func ReasonNamed(name string) (Reason, bool) {
	for i, n := range reasonNames {
		if n == name {
			return Reason(i), true
		}
	}
	return 0, false
}

// Status is how a work request ended.
type Status uint8

// Completion statuses, by the names of rdma-core's ibv_wc_status.
const (
	Success Status = iota
	RetryExcErr
	RNRRetryExcErr
	RemAccessErr
	RemInvReqErr
	RemOpErr
	LocLenErr
	WRFlushErr
	Unfinished // no completion when the run ended
	NumStatuses
)

var statusNames = [NumStatuses]string{
	"success", "retry_exc_err", "rnr_retry_exc_err", "rem_access_err", "rem_inv_req_err",
	"rem_op_err", "loc_len_err", "wr_flush_err", "unfinished",
}

// String returns the status as results name it.
func (s Status) String() string {
	if s < NumStatuses {
		return statusNames[s]
	}
	return "unknown"
}

// Verdicts, and with them the exit codes of every command that runs a fabric.
const (
	Complete          = "complete"
	Limit             = "limit"
	Stalled           = "stalled"
	ExpectationFailed = "expectation failed"
	Failed            = "failed"
)

// Exit codes.
const (
	ExitOK      = 0
	ExitFailed  = 1 // verdict failed or expectation failed
	ExitUsage   = 2 // bad input or usage
	ExitCluster = 3 // the cluster cannot be reached
	ExitLimit   = 4
	ExitStalled = 5
)

// verdictRank orders verdicts: the higher one wins.
var verdictRank = map[string]int{Complete: 0, Limit: 1, Stalled: 2, ExpectationFailed: 3, Failed: 4}

// ExitCode returns the exit code that belongs to a verdict.
func ExitCode(verdict string) int {
	switch verdict {
	case Complete:
		return ExitOK
	case Limit:
		return ExitLimit
	case Stalled:
		return ExitStalled
	}
	return ExitFailed
}
