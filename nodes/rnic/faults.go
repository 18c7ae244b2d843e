package rnic

import (
	"errors"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// faultState is the seam between the RNIC and package fault. wire is the one
// branch that every frame pays.
type faultState struct {
	wire   bool // send and receive must be asked
	pfcOff bool
	rx     rxBuffer
}

// rxBuffer is the receive buffer when it drains slower than the link (slow
// receiver, PCIe stall).
type rxBuffer struct{ slow bool }

func (s *faultState) init(r *RNIC)     {}
func (s *faultState) next() clock.Time { return clock.Never }

func (s *faultState) step(r *RNIC, now clock.Time) {}

// send puts a dequeued frame on the cable through the port's frame faults.
func (s *faultState) send(r *RNIC, now clock.Time, i int, p *txPort, f *wire.Frame) {}

// receive judges an arriving frame; false = it is gone.
func (s *faultState) receive(r *RNIC, now clock.Time, i int, f *wire.Frame) bool { return true }

func (b *rxBuffer) next() clock.Time     { return clock.Never }
func (b *rxBuffer) workNext() clock.Time { return clock.Never }

func (b *rxBuffer) due(r *RNIC, now clock.Time) {}

func (b *rxBuffer) store(r *RNIC, now clock.Time, i int, f *wire.Frame) {}

// Schedule plans a fault.
func (r *RNIC) Schedule(f *topology.Fault, index int32) error {
	return errors.New("rnic: faults are not wired yet")
}

var _ actors.Actor = (*RNIC)(nil)

func (s *faultState) snapshot(r *RNIC, w *snap.Writer) {}
func (s *faultState) restore(r *RNIC, d *snap.Reader)  {}
