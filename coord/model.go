package coord

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
)

// Model is the emulated world as the control plane sees it; the commands bind
// it to topology and sim, tests to a synthetic fabric.
type Model interface {
	// Layout resolves a run: what there is to place. The same spec gives the
	// same layout in every process of one build.
	Layout(spec *RunSpec) (*Layout, error)
	// Build makes the fabric of the hosted devices.
	Build(spec *RunSpec, hosted func(dev int32) bool, workers int) (Fabric, error)
	// CheckFaults refuses faults, changes, or ends of live ones by their names, to
	// take effect together at their Eff or later, that the run cannot take beside
	// the live ones that it has.
	CheckFaults(spec *RunSpec, live, come []Fault) error
}

// Layout is what placement knows of a fabric.
type Layout struct {
	Hash   string // of the resolved plan
	Names  []string
	Groups []Group // racks and single switches, in device order
	Window clock.Duration
	End    clock.Time // the run goes no further: its limit or the end that was asked for; 0 = not known
}

// Group is the unit of placement: devices that stay together.
type Group struct {
	Devices []int32
	Weight  int64 // Gbps of all ports
}

// Fabric is a hosted share of a run.
type Fabric interface {
	Engine() *actors.Engine
	// Schedule plans a live fault in the hosted devices it concerns, or the end
	// of one, at f.Eff.
	Schedule(f *Fault) error
	// Parts encodes what the hosted devices contribute to the result. end is how
	// far the run was executed, at the instant that its result is of: that of
	// the last work where all work ended.
	Parts(end, at clock.Time) ([]byte, error)
}

// Noter is a [Fabric] that keeps notes for whoever watches the run: a log that
// is cut at checkpoints and put together again in order. Whatever is replayed
// is noted again, the same.
type Noter interface {
	// TakeNotes returns the notes since the last call, nil when there are none.
	TakeNotes() []byte
	// Keep is what noting needs to go on from here; Resume takes it back in a
	// fabric restored right before window n.
	Keep() []byte
	Resume(kept []byte, n uint64) error
}

// Looker is a [Fabric] that can be looked at between two windows.
type Looker interface {
	// Look answers a question about the hosted devices right before window n,
	// which starts at start. It must not change them.
	Look(what string, arg []byte, start clock.Time, n uint64) ([]byte, error)
}

// Message is something a fabric publishes on its own.
type Message struct {
	Subject string
	Header  map[string]string
	Data    []byte
}

// HeaderEnd marks the message by which a share, named by its first device, ends
// what it says on a subject. It has no data.
const HeaderEnd = "Emu-End"

// Speaker is a [Fabric] that publishes, in a goroutine of its own: nothing
// waits for it.
type Speaker interface {
	Speak(say func(Message)) (stop func())
}
