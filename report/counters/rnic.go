package counters

import (
	"github.com/rocemu/rocemu/report"
)

// rnicField is one counter of an RNIC.
type rnicField struct {
	name string
	get  func(*report.RNICCounters) uint64
}

// rnicFields are the mlx5 counters in the order of their IDs.
var rnicFields = []rnicField{
	{"local_ack_timeout_err", func(c *report.RNICCounters) uint64 { return c.LocalAckTimeoutErr }},
	{"packet_seq_err", func(c *report.RNICCounters) uint64 { return c.PacketSeqErr }},
	{"rnr_nak_retry_err", func(c *report.RNICCounters) uint64 { return c.RNRNakRetryErr }},
	{"implied_nak_seq_err", func(c *report.RNICCounters) uint64 { return c.ImpliedNakSeqErr }},
	{"req_transport_retries_exceeded", func(c *report.RNICCounters) uint64 { return c.TransportExceeded }},
	{"req_rnr_retries_exceeded", func(c *report.RNICCounters) uint64 { return c.RNRExceeded }},
	{"out_of_sequence", func(c *report.RNICCounters) uint64 { return c.OutOfSequence }},
	{"duplicate_request", func(c *report.RNICCounters) uint64 { return c.DuplicateRequest }},
	{"out_of_buffer", func(c *report.RNICCounters) uint64 { return c.OutOfBuffer }},
	{"rx_write_requests", func(c *report.RNICCounters) uint64 { return c.RxWriteRequests }},
	{"rx_read_requests", func(c *report.RNICCounters) uint64 { return c.RxReadRequests }},
	{"rx_atomic_requests", func(c *report.RNICCounters) uint64 { return c.RxAtomicRequests }},
	{"roce_adp_retrans", func(c *report.RNICCounters) uint64 { return c.RoceADPRetrans }},
	{"roce_slow_restart", func(c *report.RNICCounters) uint64 { return c.RoceSlowRestart }},
	{"np_cnp_sent", func(c *report.RNICCounters) uint64 { return c.NPCNPSent }},
	{"np_ecn_marked_roce_packets", func(c *report.RNICCounters) uint64 { return c.NPECNMarked }},
	{"rp_cnp_handled", func(c *report.RNICCounters) uint64 { return c.RPCNPHandled }},
	{"rp_cnp_ignored", func(c *report.RNICCounters) uint64 { return c.RPCNPIgnored }},
	{"rx_icrc_encapsulated", func(c *report.RNICCounters) uint64 { return c.RxICRC }},
	{"req_cqe_error", func(c *report.RNICCounters) uint64 { return c.ReqCQEError }},
	{"resp_cqe_error", func(c *report.RNICCounters) uint64 { return c.RespCQEError }},
	{"req_remote_access_errors", func(c *report.RNICCounters) uint64 { return c.ReqRemoteAccessErrs }},
	{"resp_remote_access_errors", func(c *report.RNICCounters) uint64 { return c.RespRemoteAccessErrs }},
	{"tx_packets", func(c *report.RNICCounters) uint64 { return c.TxPackets }},
	{"rx_packets", func(c *report.RNICCounters) uint64 { return c.RxPackets }},
	{"rnic_tx_bytes", func(c *report.RNICCounters) uint64 { return c.TxBytes }},
	{"rnic_rx_bytes", func(c *report.RNICCounters) uint64 { return c.RxBytes }},
	{"rx_discards_phy", func(c *report.RNICCounters) uint64 { return c.RxDiscardsPhy }},
}

// IDs of RNIC counters that others refer to.
var (
	RNICTxPackets = rnicID("tx_packets")
	RNICTxBytes   = rnicID("rnic_tx_bytes")
	RNICRxBytes   = rnicID("rnic_rx_bytes")
)

func rnicID(name string) ID {
	for i, f := range rnicFields {
		if f.name == name {
			return firstRNIC + ID(i)
		}
	}
	panic("counters: no RNIC counter " + name)
}

func rnicMetrics() []Metric {
	var out []Metric
	for _, f := range rnicFields {
		m := Metric{Name: f.name, Unit: "{packet}", Scope: Device, Help: "mlx5 counter " + f.name}
		switch f.name {
		case "rnic_tx_bytes", "rnic_rx_bytes":
			m.Unit, m.Help = "By", "bytes of RoCE packets"
		}
		out = append(out, m)
	}
	return out
}

// RNIC appends an RNIC's counters. Its port has number 1.
func RNIC(dst []Point, dev int32, c *report.RNICCounters) []Point {
	for i, f := range rnicFields {
		dst = append(dst, Point{Dev: dev, Index: -1, ID: firstRNIC + ID(i), Value: int64(f.get(c))})
	}
	for p := range int8(8) {
		dst = append(dst,
			Point{Dev: dev, Port: 1, Index: p, ID: PFCRxPause, Value: int64(c.RxPause[p])},
			Point{Dev: dev, Port: 1, Index: p, ID: PFCTxPause, Value: int64(c.TxPause[p])},
			Point{Dev: dev, Port: 1, Index: p, ID: PFCRxPaused, Value: int64(c.RxPauseNS[p])})
	}
	return dst
}
