package qp

import (
	"errors"
	"fmt"

	"github.com/rocemu/rocemu/clock"
)

// Config holds the attributes of a QP and what its NIC model does with them.
// It is shared by all QPs with equal settings and read-only after Validate.
// Fields bear the plan's names (topology.QPParams, Personality).
type Config struct {
	MTU       int // path MTU, payload bytes: 256, 512, 1024, 2048, 4096
	Recovery  Recovery
	SendQueue int // most work requests posted and not completed; 0 = unlimited

	// Timers and budgets (transport §2.8, §3). Timeouts are effective values:
	// see ResolveTimeout for modes and floors.
	Timeout     clock.Duration // local ACK timeout; 0 = never
	AltTimeout  clock.Duration // on the alternate path; 0 = Timeout
	WindowT4    bool           // fires in [T, 4T] instead of at T
	RetryCnt    uint8          // 0..7
	RNRRetry    uint8          // 0..7, 7 = for ever
	MinRNRTimer uint8          // 0..31, sent in RNR NAKs
	RNRLinear   bool           // article's decoding: code × 4.096 us
	ADP         *ADP           // adaptive retransmission, nil = off

	MaxRdAtomic     int    // READs and atomics in flight as requester
	MaxDestRdAtomic int    // responder resources
	PSNWindow       uint32 // most PSNs unacknowledged; 0 = 2^23-1

	AckEvery    bool           // every packet carries AckReq
	AckFreqLog  uint8          // AckReq also on every 2^n-th packet; 0 = last of a message only
	RecvQueue   int            // receives posted at start
	RecvRepost  clock.Duration // from a receive's completion to its reposting; clock.Never = never
	RecvBatch   int            // reposted in batches of this many, at least 1
	DupAckAll   bool
	RNREarly    RNREarly
	PartialRead bool // a READ restart asks for the missing tail only
	ImpliedNAK  bool // false: left to the timeout
	Credits     bool // real credits instead of code 31

	// Personality.
	NakLatency      clock.Duration // gap seen to NAK ready
	ReadNakLatency  clock.Duration // READ gap seen to re-request
	ReactLatency    clock.Duration // NAK received to rewind
	MBit            bool           // M bit sent while MIGRATED
	Retry7Infinite  bool
	NakReload       bool // a sequence NAK reloads retry_cnt instead of using it
	OOSBehindRNR    bool // sequence NAK for packets behind an RNR
	ReadGapTimeout  bool // a READ response gap is left to the timeout
	ProbeOne        bool // after a timeout one packet is sent and awaited
	NackTriggersCNP bool
	SlowRestart     bool
	ReadNoAck       bool // old requesters: a READ response does not acknowledge earlier SENDs
	AckBeforeReplay bool // plain ACK ahead of a replayed READ or atomic
	ReorderMax      int  // selective repeat: packets held beyond a gap; 0 = 1024

	IngressHalf clock.Duration // from a frame's last bit to its At at this RNIC
	Seed        uint64         // keys the draws of WindowT4 and ADP
}

// Generic returns the generic personality's settings (model-rules, "Timers
// and retries"; interface.md defaults).
func Generic() Config {
	return Config{
		MTU: 1024, Timeout: AckTimeout(14), RetryCnt: 7, RNRRetry: 7, MinRNRTimer: 12,
		MaxRdAtomic: 16, MaxDestRdAtomic: 16, AckFreqLog: 8, RecvQueue: 512, RecvBatch: 1,
		PartialRead: true, ImpliedNAK: true, MBit: true,
	}
}

// Validate reports every field out of range; it changes nothing.
func (c *Config) Validate() error {
	var errs []error
	bad := func(cond bool, field string, v any, allowed string) {
		if cond {
			errs = append(errs, fmt.Errorf("qp: %s %v: allowed %s", field, v, allowed))
		}
	}
	bad(!validMTU(c.MTU), "mtu", c.MTU, "256, 512, 1024, 2048, 4096")
	bad(c.RetryCnt > 7, "retry_cnt", c.RetryCnt, "0..7")
	bad(c.RNRRetry > 7, "rnr_retry", c.RNRRetry, "0..7")
	bad(c.MinRNRTimer > 31, "min_rnr_timer", c.MinRNRTimer, "0..31")
	bad(c.Timeout < 0, "timeout", c.Timeout, "0 or more")
	bad(c.MaxRdAtomic < 0 || c.MaxRdAtomic > 255, "max_rd_atomic", c.MaxRdAtomic, "0..255")
	bad(c.MaxDestRdAtomic < 0 || c.MaxDestRdAtomic > 255, "max_dest_rd_atomic", c.MaxDestRdAtomic, "0..255")
	bad(c.RecvQueue < 0 || c.RecvQueue > 1<<24, "recv_queue", c.RecvQueue, "0..2^24")
	bad(c.RecvBatch < 1 && c.RecvQueue > 0, "recv_batch", c.RecvBatch, "1 or more")
	bad(c.AckFreqLog > 23, "ack frequency", c.AckFreqLog, "0..23")
	bad(c.ReorderMax < 0 || c.ReorderMax > 1<<16, "reorder buffer", c.ReorderMax, "0..65536")
	return errors.Join(errs...)
}

func validMTU(m int) bool {
	return m == 256 || m == 512 || m == 1024 || m == 2048 || m == 4096
}
