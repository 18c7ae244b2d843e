package report

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
)

// RNICCounters are an RNIC's counters by their mlx5 names. The *_err counters
// of recoverable causes count occurrences that were recovered from; fatal ones
// count in the …_retries_exceeded pair.
type RNICCounters struct {
	LocalAckTimeoutErr   uint64 `json:"local_ack_timeout_err"`
	PacketSeqErr         uint64 `json:"packet_seq_err"`
	RNRNakRetryErr       uint64 `json:"rnr_nak_retry_err"`
	ImpliedNakSeqErr     uint64 `json:"implied_nak_seq_err"`
	TransportExceeded    uint64 `json:"req_transport_retries_exceeded"`
	RNRExceeded          uint64 `json:"req_rnr_retries_exceeded"`
	OutOfSequence        uint64 `json:"out_of_sequence"`
	DuplicateRequest     uint64 `json:"duplicate_request"`
	OutOfBuffer          uint64 `json:"out_of_buffer"`
	RxWriteRequests      uint64 `json:"rx_write_requests"`
	RxReadRequests       uint64 `json:"rx_read_requests"`
	RxAtomicRequests     uint64 `json:"rx_atomic_requests"`
	RoceADPRetrans       uint64 `json:"roce_adp_retrans"`
	RoceSlowRestart      uint64 `json:"roce_slow_restart"`
	NPCNPSent            uint64 `json:"np_cnp_sent"`
	NPECNMarked          uint64 `json:"np_ecn_marked_roce_packets"`
	RPCNPHandled         uint64 `json:"rp_cnp_handled"`
	RPCNPIgnored         uint64 `json:"rp_cnp_ignored"`
	RxICRC               uint64 `json:"rx_icrc_encapsulated"`
	ReqCQEError          uint64 `json:"req_cqe_error"`
	RespCQEError         uint64 `json:"resp_cqe_error"`
	ReqRemoteAccessErrs  uint64 `json:"req_remote_access_errors"`
	RespRemoteAccessErrs uint64 `json:"resp_remote_access_errors"`
	TxPackets            uint64 `json:"tx_packets"` // RoCE packets
	RxPackets            uint64 `json:"rx_packets"`
	TxBytes              uint64 `json:"tx_bytes"`
	RxBytes              uint64 `json:"rx_bytes"`
	RxDiscardsPhy        uint64 `json:"rx_discards_phy"`

	// By priority; written as rx_prio{N}_pause, tx_prio{N}_pause and
	// rx_prio{N}_pause_duration_ns.
	RxPause   [8]uint64 `json:"-"`
	TxPause   [8]uint64 `json:"-"`
	RxPauseNS [8]NS     `json:"-"`
}

// prioKeys are the names of the per-priority counters of an RNIC.
const (
	rxPauseKey = "rx_prio%d_pause"
	txPauseKey = "tx_prio%d_pause"
	rxSpanKey  = "rx_prio%d_pause_duration_ns"
)

// appendKey begins the member of an object that one of those keys names.
func appendKey(b []byte, key string, prio int) []byte {
	before, after, _ := strings.Cut(key, "%d")
	b = append(append(b, `,"`...), before...)
	return append(append(append(b, '0'+byte(prio)), after...), `":`...)
}

// plainRNIC drops the methods, so that the default encoding applies.
type plainRNIC RNICCounters

// MarshalJSON writes the plain counters, then the ones by priority.
func (c RNICCounters) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(plainRNIC(c))
	if err != nil {
		return nil, err
	}
	b = b[:len(b)-1]
	for p := range 8 {
		b = strconv.AppendUint(appendKey(b, rxPauseKey, p), c.RxPause[p], 10)
		b = strconv.AppendUint(appendKey(b, txPauseKey, p), c.TxPause[p], 10)
	}
	for p := range 8 {
		b = clock.Duration(c.RxPauseNS[p]).AppendNS(appendKey(b, rxSpanKey, p))
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *RNICCounters) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, (*plainRNIC)(c)); err != nil {
		return err
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	for p := range 8 {
		for key, into := range map[string]any{
			fmt.Sprintf(rxPauseKey, p): &c.RxPause[p],
			fmt.Sprintf(txPauseKey, p): &c.TxPause[p],
			fmt.Sprintf(rxSpanKey, p):  &c.RxPauseNS[p],
		} {
			if raw, ok := m[key]; ok {
				if err := json.Unmarshal(raw, into); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
		}
	}
	return nil
}

// SwitchCounters are a switch's counters, by port number and pool name, and the
// frames that it dropped, by reason; reasons without any are left out.
type SwitchCounters struct {
	Ports map[string]*PortCounters `json:"ports"`
	Pools map[string]*PoolCounters `json:"pools"`
	Drops map[string]uint64        `json:"drops_by_reason,omitempty"`
}

// PortCounters are one port's counters. Priorities, priority groups and
// queues that were never touched are left out.
type PortCounters struct {
	Peer     string                   `json:"peer,omitempty"` // device:port at the cable's other end
	RxFrames uint64                   `json:"rx_frames"`
	TxFrames uint64                   `json:"tx_frames"`
	RxBytes  uint64                   `json:"rx_bytes"`
	TxBytes  uint64                   `json:"tx_bytes"`
	CRC      uint64                   `json:"crc_errors"`
	InDrops  uint64                   `json:"in_drops"`
	RxPause  uint64                   `json:"rx_pause,omitempty"` // 802.3x PAUSE, which stops nothing here
	PFC      map[string]*PFCCounters  `json:"pfc,omitempty"`
	Watchdog map[string]*WatchCounter `json:"watchdog,omitempty"`
	PG       map[string]*PGCounters   `json:"pg,omitempty"`
	Queue    map[string]*QueueCounter `json:"queue,omitempty"`
}

// PFCCounters count PFC frames of one priority on one port.
type PFCCounters struct {
	RxPause   uint64 `json:"rx_pause"`
	RxResume  uint64 `json:"rx_resume"`
	TxPause   uint64 `json:"tx_pause"`
	TxResume  uint64 `json:"tx_resume"`
	RxPauseNS NS     `json:"rx_pause_ns"` // time this port was paused
	TxPauseNS NS     `json:"tx_pause_ns"` // time it held its peer paused
	Ignored   uint64 `json:"ignored"`     // PFC frames for a class that is not lossless here
}

// WatchCounter counts the PFC watchdog's work on one priority of one port.
type WatchCounter struct {
	Detected  uint64 `json:"detected"`
	Restored  uint64 `json:"restored"`
	TxDropped uint64 `json:"tx_dropped"`
	RxDropped uint64 `json:"rx_dropped"`
}

// PGCounters describe an ingress priority group.
type PGCounters struct {
	SharedWatermark   int64  `json:"shared_watermark_bytes"`
	HeadroomWatermark int64  `json:"headroom_watermark_bytes"`
	Occupancy         int64  `json:"occupancy_bytes,omitempty"` // at the instant of the reading
	XOFFCount         uint64 `json:"xoff_count"`
	FirstXOFFNS       NS     `json:"first_xoff_ns"`
	Drops             uint64 `json:"drops"`
}

// QueueCounter describes an egress queue.
type QueueCounter struct {
	TxFrames  uint64 `json:"tx_frames"`
	Drops     uint64 `json:"drops"`
	Watermark int64  `json:"watermark_bytes"`
	Occupancy int64  `json:"occupancy_bytes,omitempty"` // at the instant of the reading
	ECNMarked uint64 `json:"ecn_marked"`
}

// PoolCounters describe a buffer pool.
type PoolCounters struct {
	Watermark int64 `json:"watermark_bytes"`
	Occupancy int64 `json:"occupancy_bytes,omitempty"` // at the instant of the reading
}
