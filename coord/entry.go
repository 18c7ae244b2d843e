// Package coord is the control plane of a cluster: a ledger replicated by Raft
// that grants virtual time, places devices on processes, orders faults and
// checkpoints and survives the loss of any process; the agent that runs a
// process's share; and the services that emuctl talks to. No frame and no
// window passes through the ledger. Start at [State.Apply] (what the ledger
// means), then [Node] (a process).
package coord

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rocemu/rocemu/clock"
)

// Kind names a ledger entry.
type Kind string

// Entry kinds.
const (
	KindSubmit     Kind = "submit"
	KindMember     Kind = "member"
	KindEvict      Kind = "evict"
	KindPlace      Kind = "place"
	KindMove       Kind = "move"
	KindWish       Kind = "wish" // move at the next checkpoint
	KindGrant      Kind = "grant"
	KindFault      Kind = "fault"
	KindPause      Kind = "pause"
	KindResume     Kind = "resume"
	KindStep       Kind = "step"
	KindPace       Kind = "pace"
	KindStop       Kind = "stop"
	KindCkptPlan   Kind = "ckpt-plan"
	KindCkptCommit Kind = "ckpt-commit"
	KindRollback   Kind = "rollback" // a checkpoint is lost: everybody goes back
	KindDone       Kind = "done"
	KindFail       Kind = "fail" // diverged, refused, a gap
)

// Entry is one command of the ledger. Cmd makes it idempotent: a second entry
// with the same Cmd changes nothing and has the first one's result.
type Entry struct {
	Cmd  string `json:"cmd,omitempty"`
	Kind Kind   `json:"kind"`
	Run  string `json:"run,omitempty"` // the run it is for; another current run refuses it

	Spec   *RunSpec       `json:"spec,omitempty"`
	Member *Member        `json:"member,omitempty"`
	Slots  []Slot         `json:"slots,omitempty"`  // place
	Owner  []int32        `json:"owner,omitempty"`  // place: slot by device
	Hash   string         `json:"hash,omitempty"`   // place: of the resolved plan
	Window clock.Duration `json:"window,omitempty"` // place: of the resolved plan
	End    clock.Time     `json:"end,omitempty"`    // place: of the resolved plan
	Slot   int            `json:"slot,omitempty"`   // move, done
	Inc    uint64         `json:"inc,omitempty"`    // done; fail and rollback when a slot says so
	To     string         `json:"to,omitempty"`     // move
	At     clock.Time     `json:"at,omitempty"`     // grant end; wanted instant of fault, stop, checkpoint
	Fault  *Fault         `json:"fault,omitempty"`
	With   []Fault        `json:"with,omitempty"` // at the same instant as Fault; all of them or none
	Pace   *Pace          `json:"pace,omitempty"`
	Ckpt   *Ckpt          `json:"ckpt,omitempty"`
	Name   string         `json:"name,omitempty"` // ckpt-plan: keep under this name
	Firm   bool           `json:"firm,omitempty"` // ckpt-plan: At or not at all
	New    bool           `json:"new,omitempty"`  // ckpt-plan: nothing is kept under Name yet
	Done   *Done          `json:"done,omitempty"`
	Why    string         `json:"why,omitempty"`
}

// RunSpec is a run as submitted: the text of its files, so that every process
// resolves the same plan.
type RunSpec struct {
	ID      string   `json:"id"`
	Files   []File   `json:"files"`
	Set     []string `json:"set,omitempty"`
	Seed    *uint64  `json:"seed,omitempty"`
	Members int      `json:"members,omitempty"` // processes to wait for and to use; 0 = those there are
	Batch   bool     `json:"batch,omitempty"`   // long grants: nobody waits for live faults
	// Horizon is the wall time, in milliseconds, that a grant is meant to last;
	// 0 = 250, in a batch 3000.
	Horizon int    `json:"horizon_ms,omitempty"`
	Restore string `json:"restore,omitempty"` // name of a snapshot to start from
	Pause   bool   `json:"pause,omitempty"`   // start paused
	Build   string `json:"build,omitempty"`   // of the leader that accepted it
	Epoch   int64  `json:"epoch,omitempty"`   // of exported times: the submission, Unix ns
	Series  bool   `json:"series,omitempty"`  // sample the counters, also where the files do not ask
	Splits  bool   `json:"splits,omitempty"`  // note the frames of some flows, to split their time
	// CkptMS is the wall time between checkpoints in milliseconds, 0 = 10000,
	// negative = none.
	CkptMS int `json:"ckpt_ms,omitempty"`
}

// File is one input file.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Member is one emud process.
type Member struct {
	Name    string   `json:"name"`
	Boot    string   `json:"boot"` // changes at every start of the process
	Build   string   `json:"build"`
	Cores   int      `json:"cores"`
	Devices []string `json:"devices,omitempty"`  // pinned
	Raft    string   `json:"raft,omitempty"`     // address of a coordinator
	NoSlots bool     `json:"no_slots,omitempty"` // coordinates only
	Up      bool     `json:"up"`
	Why     string   `json:"why,omitempty"` // when it is not up
}

// Slot is a fixed share of the fabric: what one engine runs. It moves as a
// whole; Inc counts its owners.
type Slot struct {
	Owner  string `json:"owner"`
	Inc    uint64 `json:"inc"`
	Weight int64  `json:"weight"`
	Next   string `json:"next,omitempty"` // owner from the next checkpoint on
	Done   *Done  `json:"done,omitempty"`
}

// Fault is a live fault or change, in its text form.
type Fault struct {
	Name  string         `json:"name"`
	Text  string         `json:"text"`
	Clear bool           `json:"clear,omitempty"` // ends the fault of this name
	Set   bool           `json:"set,omitempty"`   // Text is PATH=VALUE
	Want  clock.Time     `json:"want,omitempty"`
	Firm  bool           `json:"firm,omitempty"` // Want or not at all
	Eff   clock.Time     `json:"eff"`
	For   clock.Duration `json:"for,omitempty"`
	Seq   uint64         `json:"seq"`
	// Base is the grant at the fault's place in the ledger: whoever passes a
	// later instant knows of the fault.
	Base clock.Time `json:"base,omitempty"`
	// Index numbers the run's live faults from 0; the end of a fault carries
	// the index of the fault it ends.
	Index int `json:"index"`
}

// faults are the faults of an entry. They take effect at one instant, the one
// that the first of them wants.
func (e *Entry) faults() []Fault {
	if e.Fault == nil {
		return nil
	}
	l := append([]Fault{*e.Fault}, e.With...)
	for i := range l {
		l[i].Want, l[i].Firm = e.Fault.Want, e.Fault.Firm
	}
	return l
}

// Pace ties virtual to wall time: virtual = V0 + Num/Den × wall since the
// entry. Num 0 = as fast as possible.
type Pace struct {
	Num int64 `json:"num"`
	Den int64 `json:"den"`
}

// Ckpt is a checkpoint: every slot right before window N, the first that
// starts at or after B.
type Ckpt struct {
	B     clock.Time `json:"b"`
	N     uint64     `json:"n"`
	Name  string     `json:"name,omitempty"` // a snapshot somebody asked for
	Blobs []Blob     `json:"blobs"`
}

// Blob is a slot's state in a checkpoint.
type Blob struct {
	Inc  uint64 `json:"inc"`
	N    uint64 `json:"n"`
	Sum  string `json:"sum"` // SHA-256, hex
	Size int64  `json:"size"`
	// Now is the end of window N-1, which may lie behind B.
	Now clock.Time `json:"now,omitempty"`
	// Notes are the blobs of what was noted up to here, oldest first.
	Notes []string `json:"notes,omitempty"`
}

// Done is how a slot's run ended.
type Done struct {
	End         int        `json:"end"` // actors.End
	At          clock.Time `json:"at"`
	LastWork    clock.Time `json:"last_work"`
	Progress    clock.Time `json:"progress"`
	NextWork    clock.Time `json:"next_work"`
	Outstanding int64      `json:"outstanding"`
	Windows     uint64     `json:"windows"`
	Digest      [2]uint64  `json:"digest"`
	Parts       string     `json:"parts"`           // SHA-256 of the encoded parts
	Notes       []string   `json:"notes,omitempty"` // of the blobs of what was noted, oldest first
	Cost        Cost       `json:"cost"`
}

// Cost is what a slot's run took.
type Cost struct {
	WallNS   int64  `json:"wall_ns"`
	WaitNS   int64  `json:"wait_ns"`
	CPUNS    int64  `json:"cpu_ns"` // of the slot's process, while the slot ran
	RSS      int64  `json:"rss"`    // peak of the slot's process since it began
	BytesOut uint64 `json:"bytes_out"`
	Workers  int    `json:"workers"`
	Resent   uint64 `json:"resent"`
	Naks     uint64 `json:"naks"`
}

// MaxEntry bounds an encoded entry; it holds a fabric file.
const MaxEntry = 16 << 20

// Encode writes an entry.
func (e *Entry) Encode() ([]byte, error) {
	b, err := json.Marshal(e)
	if err == nil && len(b) > MaxEntry {
		err = fmt.Errorf("coord: entry of %d bytes, at most %d", len(b), MaxEntry)
	}
	return b, err
}

var errEntry = errors.New("coord: malformed ledger entry")

// DecodeEntry reads an entry strictly: unknown fields are an error, since two
// builds would understand them differently.
func DecodeEntry(b []byte) (*Entry, error) {
	if len(b) > MaxEntry {
		return nil, fmt.Errorf("%w: %d bytes", errEntry, len(b))
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var e Entry
	if err := d.Decode(&e); err != nil {
		return nil, fmt.Errorf("%w: %v", errEntry, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%w: bytes after its end", errEntry)
	}
	return &e, nil
}
