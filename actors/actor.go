// Package actors runs the fabric: every RNIC, leaf, spine and core is an
// [Actor], a logical process with its own events; the [Engine] advances all of
// them through floating windows [M, M+W) of virtual time and moves frames
// between them. Nothing an actor does depends on how time is cut into windows,
// on the number of workers or on where other actors run, so a run's digest is
// a function of plan and seed alone. This package knows no protocol and reads
// no clock. Start at [Engine.Run]; rules W0–W6 are in docs/adr/0002.
package actors

import (
	"fmt"
	"math/bits"

	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
)

// Actor is one device.
type Actor interface {
	// Advance processes every event with time < end in the total order and
	// fills st. Advance(a) then Advance(b) must equal Advance(b).
	Advance(end clock.Time, in *Inbox, out *Outbox, st *Status)
	// Snapshot writes the whole state canonically: equal states, equal bytes.
	Snapshot(w *snap.Writer)
	// Restore replaces the state of a freshly built actor.
	Restore(r *snap.Reader) error
	// Chain returns the digest chain as it stands.
	Chain() Chain
}

// Status is what an actor tells the engine after a window. The engine keeps
// one for each actor; Advance overwrites all fields except the counters, which
// only grow.
type Status struct {
	Next         clock.Time // earliest pending internal event
	NextWork     clock.Time // the same without periodic events (PFC refresh, watchdog polls, samples)
	LastWork     clock.Time // last non-periodic event processed
	LastProgress clock.Time // last completion, or advance of a UNA or ePSN
	LastEvent    clock.Time // last event of any kind processed
	Outstanding  int64      // requests posted and not completed
	Events       uint64
	Hops         uint64 // frames put on a link, PFC apart

	NextFault clock.Time // earliest start or end of a fault still to come; who has none need not touch it
	_         [56]byte   // what each visit writes is one cache line
}

// Chain is an actor's 128-bit digest over its events and verdicts. It is one
// multiply an event.
type Chain struct{ Hi, Lo uint64 }

// NewChain starts the chain of a named device.
func NewChain(seed uint64, device string) Chain {
	h := clock.HashString(seed^digestVersion, device)
	return Chain{Hi: h, Lo: clock.Mix(h, seed, digestVersion)}
}

// digestVersion changes when the content of chains changes on purpose.
const digestVersion = 1

// Mix adds an event: its time, a key that names it, and what was decided.
func (c *Chain) Mix(t clock.Time, key, verdict uint64) {
	hi, lo := bits.Mul64(c.Lo^uint64(t)^0x9E3779B97F4A7C15, c.Hi^key|1)
	c.Hi = bits.RotateLeft64(c.Lo, 29) + hi ^ verdict*0xD6E8FEB86659FD93
	c.Lo = lo + key ^ bits.RotateLeft64(verdict, 17)
}

// Digest is the sum over actors of their finished chains, modulo 2^128; the
// sum does not depend on order or placement.
type Digest struct{ Hi, Lo uint64 }

// Add folds one actor's chain in.
func (d *Digest) Add(name uint64, c Chain) {
	hi := clock.Mix(name, c.Hi, c.Lo)
	lo := clock.Mix(c.Lo, name, c.Hi)
	var carry uint64
	d.Lo, carry = bits.Add64(d.Lo, lo, 0)
	d.Hi, _ = bits.Add64(d.Hi, hi, carry)
}

// Plus returns the sum of two digests: of the actors of two processes.
func (d Digest) Plus(o Digest) Digest {
	lo, carry := bits.Add64(d.Lo, o.Lo, 0)
	hi, _ := bits.Add64(d.Hi, o.Hi, carry)
	return Digest{Hi: hi, Lo: lo}
}

// String is the digest in hexadecimal, 32 digits.
func (d Digest) String() string { return fmt.Sprintf("%016x%016x", d.Hi, d.Lo) }
