package emu

import (
	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// share is a hosted part of a fabric.
type share struct {
	f     *sim.Fabric
	base  int // faults of the file
	notes noter
	taps  taps
	ended bool
	end   func() // of what the process does for it
}

// Close implements io.Closer: nobody runs the share any more.
func (s *share) Close() error {
	s.end()
	return nil
}

func (s *share) Engine() *actors.Engine { return s.f.Engine }

// observe runs between windows.
func (s *share) observe(start clock.Time, n uint64) {
	s.notes.between(s.f, start, n)
	s.taps.read()
}

// Schedule implements coord.Fabric.
func (s *share) Schedule(f *coord.Fault) error {
	i := s.base + f.Index
	if f.Clear {
		for d, n := range s.f.Nodes {
			if n != nil {
				n.ClearFault(int32(i), f.Eff)
				s.f.Engine.Wake(int32(d), f.Eff)
			}
		}
		return nil
	}
	x, err := Fault(s.f.Plan, f)
	if err != nil {
		return err
	}
	s.f.Plan.Faults = withFault(s.f.Plan.Faults, i, x)
	return s.f.Schedule(x, int32(i))
}

// withFault puts x at index i; faults with lower indices that take effect later
// leave a gap until they come.
func withFault(l []topology.Fault, i int, x *topology.Fault) []topology.Fault {
	for len(l) <= i {
		l = append(l, topology.Fault{Dev: -1, Cable: -1, Peer: -1})
	}
	l[i] = *x
	return l
}

// Parts implements coord.Fabric.
func (s *share) Parts(end, at clock.Time) ([]byte, error) {
	s.ended = true
	s.notes.finish(s.f, end, at, s.f.Engine.Windows())
	return report.EncodeParts(s.f.Parts(at))
}

// TakeNotes implements coord.Noter.
func (s *share) TakeNotes() []byte { return s.notes.take(s.f.Engine.Windows()) }

// Keep implements coord.Noter: how far the notes are.
func (s *share) Keep() []byte { return s.notes.keep() }

// Resume implements coord.Noter.
func (s *share) Resume(b []byte, n uint64) error { return s.notes.resume(b, n) }

var _ coord.Noter = (*share)(nil)
