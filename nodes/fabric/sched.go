package fabric

import (
	"math/bits"

	"github.com/rocemu/rocemu/topology"
)

// Scheduler chooses among a port's eight queues: strict ones first, the
// highest number first; then deficit round robin by bytes (DWRR) in the order
// of the queue numbers. Paused and empty queues are not offered to it.
type Scheduler struct {
	deficit [8]int64
	quantum [8]int64
	strict  uint8
	turn    uint8 // queue whose turn it is
}

// NewScheduler sets weights up. The smallest weight gets one frame of mtu
// bytes a round, so one visit to a queue always lets it send (O(1)).
func NewScheduler(s *[8]topology.Sched, mtu int) Scheduler {
	var x Scheduler
	x.setWeights(s, mtu)
	return x
}

// setWeights replaces what NewScheduler set; deficits and turn stay.
func (x *Scheduler) setWeights(s *[8]topology.Sched, mtu int) {
	x.strict, x.quantum = 0, [8]int64{}
	least := 0
	for _, q := range s {
		if w := max(q.Weight, 1); !q.Strict && (least == 0 || w < least) {
			least = w
		}
	}
	for i, q := range s {
		if q.Strict {
			x.strict |= 1 << i
			continue
		}
		x.quantum[i] = (int64(mtu)*int64(max(q.Weight, 1)) + int64(least) - 1) / int64(least)
	}
}

// Pick returns the queue to serve among those in ready (not 0). head returns
// the length of a queue's first frame. A queue that is alone is served without
// touching its deficit.
func (s *Scheduler) Pick(ready uint8, q *[8]queue) int {
	if ready&(ready-1) == 0 {
		return bits.TrailingZeros8(ready)
	}
	if t := ready & s.strict; t != 0 {
		return 7 - bits.LeadingZeros8(t)
	}
	i := int(s.turn)
	for {
		if ready&(1<<i) != 0 {
			if l := int64(q[i].front().Len); s.deficit[i] >= l {
				s.deficit[i] -= l
				s.turn = uint8(i)
				return i
			}
		}
		rot := bits.RotateLeft8(ready, -(i + 1))
		i = (i + 1 + bits.TrailingZeros8(rot)) & 7
		s.deficit[i] += s.quantum[i]
	}
}

// Empty forgets a queue's unused deficit when it ran empty (DWRR).
func (s *Scheduler) Empty(q int) { s.deficit[q] = 0 }
