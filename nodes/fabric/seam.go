package fabric

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Faults is what a switch asks of the fault plan; nil when the run has none.
// It is called in virtual time order and keeps all its state itself.
type Faults interface {
	// Next is the earliest start or end of a fault still to come, or Never.
	Next() clock.Time
	// NextFault is the same without frames and periodic events, NextWork the next
	// frame that a fault lets loose.
	NextFault() clock.Time
	NextWork() clock.Time
	// Blame counts a frame that was lost for want of a link, or as too long, and names the fault
	// (index + 1, 0 = none).
	Blame(now clock.Time, f *wire.Frame, why record.Reason) int32
	// Apply starts and ends what is due at now, in name order, through the
	// switch's setters (SetLink, SetRate, …). It runs before all other events of now.
	Apply(now clock.Time, s *Switch, out *actors.Outbox)
	// Snapshot and Restore carry the state of the faults at this device.
	Snapshot(w *snap.Writer)
	Restore(r *snap.Reader) error
}

// Wire is a fault seam on one port end; see [Switch.SetWire]. It may change
// the frame in place (damage it, mark it).
type Wire interface {
	// Out sees a frame that was dequeued and goes onto the cable; f.At is set.
	// Copies and frames held back before are sent by the seam through out.
	Out(now clock.Time, port int, f *wire.Frame, out *actors.Outbox) Verdict
	// In sees a frame that arrives, before anything else looks at it.
	In(now clock.Time, port int, f *wire.Frame) Verdict
}

// Router is a fault seam on the route choice; see [Switch.SetRouter].
type Router interface {
	// Route sees a frame that has a route: hash is its ECMP hash. It returns
	// another egress port (0 = leave it) or a verdict that drops the frame.
	Route(now clock.Time, f *wire.Frame, hash uint32) (egress int, v Verdict)
}

// Act is what becomes of a frame at a seam.
type Act uint8

// Acts.
const (
	Go   Act = iota
	Drop     // lost; Reason and Fault say why
	Late     // goes out, but may overtake or be overtaken (delayed)
	Keep     // the seam keeps the frame and sends it itself later
)

// Verdict is a seam's answer. Injected frames (copies, forged ones) that the
// seam sent on its own are reported in Extra and ExtraBytes, for conservation.
type Verdict struct {
	Act        Act
	Reason     record.Reason
	Fault      int32
	Extra      uint32
	ExtraBytes uint32
}
