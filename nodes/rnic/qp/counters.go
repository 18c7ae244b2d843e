package qp

// Counters are an RNIC's transport counters by their mlx5 names (transport
// §6; recoverable occurrences and fatal ones apart, model-rules). One struct
// may serve all QPs of an RNIC.
type Counters struct {
	// Requester.
	LocalAckTimeoutErr   uint64
	PacketSeqErr         uint64
	RnrNakRetryErr       uint64
	ImpliedNakSeqErr     uint64
	TransportRetriesExc  uint64 // req_transport_retries_exceeded
	RnrRetriesExc        uint64 // req_rnr_retries_exceeded
	ReqCQEError          uint64
	ReqCQEFlushError     uint64
	ReqRemoteInvalid     uint64 // req_remote_invalid_request
	ReqRemoteAccess      uint64 // req_remote_access_errors
	RoceAdpRetrans       uint64
	RoceAdpRetransTo     uint64
	RoceSlowRestart      uint64
	RetransmittedPackets uint64 // ours: frames with iteration above 1
	IgnoredResponses     uint64 // ours: ghosts
	// Responder.
	OutOfSequence     uint64
	DuplicateRequest  uint64
	OutOfBuffer       uint64
	RxWriteRequests   uint64
	RxReadRequests    uint64
	RxAtomicRequests  uint64
	RespLocalLength   uint64 // resp_local_length_error
	RespRemoteAccess  uint64 // resp_remote_access_errors
	RespRemoteInvalid uint64 // ours: requests answered with NAK 0x61
	RespCQEError      uint64
	RespCQEFlushError uint64
	IntegrityErrors   uint64 // ours: wrong content or placement; 0 unless a frame was forged
}

// CounterField is one named counter of a Counters.
type CounterField struct {
	Name string
	Get  func(*Counters) *uint64
}

// CounterFields lists the counters in a fixed order, for results, snapshots
// and telemetry.
var CounterFields = []CounterField{
	{"local_ack_timeout_err", func(c *Counters) *uint64 { return &c.LocalAckTimeoutErr }},
	{"packet_seq_err", func(c *Counters) *uint64 { return &c.PacketSeqErr }},
	{"rnr_nak_retry_err", func(c *Counters) *uint64 { return &c.RnrNakRetryErr }},
	{"implied_nak_seq_err", func(c *Counters) *uint64 { return &c.ImpliedNakSeqErr }},
	{"req_transport_retries_exceeded", func(c *Counters) *uint64 { return &c.TransportRetriesExc }},
	{"req_rnr_retries_exceeded", func(c *Counters) *uint64 { return &c.RnrRetriesExc }},
	{"req_cqe_error", func(c *Counters) *uint64 { return &c.ReqCQEError }},
	{"req_cqe_flush_error", func(c *Counters) *uint64 { return &c.ReqCQEFlushError }},
	{"req_remote_invalid_request", func(c *Counters) *uint64 { return &c.ReqRemoteInvalid }},
	{"req_remote_access_errors", func(c *Counters) *uint64 { return &c.ReqRemoteAccess }},
	{"roce_adp_retrans", func(c *Counters) *uint64 { return &c.RoceAdpRetrans }},
	{"roce_adp_retrans_to", func(c *Counters) *uint64 { return &c.RoceAdpRetransTo }},
	{"roce_slow_restart", func(c *Counters) *uint64 { return &c.RoceSlowRestart }},
	{"retransmitted_packets", func(c *Counters) *uint64 { return &c.RetransmittedPackets }},
	{"ignored_responses", func(c *Counters) *uint64 { return &c.IgnoredResponses }},
	{"out_of_sequence", func(c *Counters) *uint64 { return &c.OutOfSequence }},
	{"duplicate_request", func(c *Counters) *uint64 { return &c.DuplicateRequest }},
	{"out_of_buffer", func(c *Counters) *uint64 { return &c.OutOfBuffer }},
	{"rx_write_requests", func(c *Counters) *uint64 { return &c.RxWriteRequests }},
	{"rx_read_requests", func(c *Counters) *uint64 { return &c.RxReadRequests }},
	{"rx_atomic_requests", func(c *Counters) *uint64 { return &c.RxAtomicRequests }},
	{"resp_local_length_error", func(c *Counters) *uint64 { return &c.RespLocalLength }},
	{"resp_remote_access_errors", func(c *Counters) *uint64 { return &c.RespRemoteAccess }},
	{"resp_remote_invalid_request", func(c *Counters) *uint64 { return &c.RespRemoteInvalid }},
	{"resp_cqe_error", func(c *Counters) *uint64 { return &c.RespCQEError }},
	{"resp_cqe_flush_error", func(c *Counters) *uint64 { return &c.RespCQEFlushError }},
	{"integrity_errors", func(c *Counters) *uint64 { return &c.IntegrityErrors }},
}
