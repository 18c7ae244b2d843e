package coord

import "github.com/rocemu/rocemu/clock"

// Subjects of the control plane. Everything is under "emu.", which is all that
// a member's key may use.
const (
	subjBeat   = "emu.h"            // heartbeat, 5 a second and when an engine starves
	subjLedger = "emu.l"            // leader's feed of committed entries
	subjSync   = "emu.sync"         // request: the whole state
	subjLead   = "emu.lead"         // request to the leader: one entry
	subjStand  = "emu.stand"        // request to the leader: how many entries the ledger has
	subjPiece  = "emu.piece"        // request to the leader: a piece of a submission
	subjBlob   = "emu.blob"         // request to whoever has it: a piece of a blob
	subjReport = "emu.k"            // checkpoint reports
	ctlPrefix  = "emu.ctl."         // services for emuctl
	queueAny   = "emu-coordinators" // any coordinator may answer
)

// heartbeat is what a process says of itself.
type heartbeat struct {
	Member  Member      `json:"member"`
	Seq     uint64      `json:"seq"`
	Leaving bool        `json:"leaving,omitempty"`
	Slots   []SlotState `json:"slots,omitempty"`
	CPU     int64       `json:"cpu_ns"`
	RSS     int64       `json:"rss"`
	// Routines is the number of goroutines: a leak shows.
	Routines int `json:"goroutines"`
}

// SlotState is the progress of one slot.
type SlotState struct {
	Run      string     `json:"run"`
	Slot     int        `json:"slot"`
	Inc      uint64     `json:"inc"`
	State    string     `json:"state"` // restoring, running, done
	N        uint64     `json:"n"`
	M        clock.Time `json:"m"`    // start of the running window
	Want     clock.Time `json:"want"` // end the engine waits for, when past the grant
	Windows  uint64     `json:"windows"`
	WaitNS   int64      `json:"wait_ns"`
	WallNS   int64      `json:"wall_ns"`
	BytesOut uint64     `json:"bytes_out"`
	Naks     uint64     `json:"naks"`
	Resent   uint64     `json:"resent"`
	Repeated uint64     `json:"repeated"`
	Refused  uint64     `json:"refused"`
	Pressure float64    `json:"pressure"` // of the memory for sent batches
	Work     *Work      `json:"work,omitempty"`
}

// Work is what engines have done and have still to do, as they last said: a
// heartbeat tells what was so at the one before. Where it is not known there is
// none.
type Work struct {
	Hops        uint64 `json:"hops"`
	Events      uint64 `json:"events"`
	Outstanding int64  `json:"outstanding"` // requests posted and not completed
}

// feed is one committed entry, or with no entry the leader's beacon.
type feed struct {
	Leader string `json:"leader"`
	Seq    uint64 `json:"seq"`
	Entry  []byte `json:"entry,omitempty"`
}

// ckptReport says that a slot's state is stored.
type ckptReport struct {
	Run  string     `json:"run"`
	Slot int        `json:"slot"`
	B    clock.Time `json:"b"`
	Blob Blob       `json:"blob"`
}
