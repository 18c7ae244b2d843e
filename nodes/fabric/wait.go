package fabric

import (
	"math/bits"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

func firstBit(m uint8) int { return bits.TrailingZeros8(m) }

// waits counts, for each egress queue that lossless traffic may take, the
// frames it holds by ingress port: the part of the wait-for graph that a
// device knows. They are counted only from when a PG goes to XOFF: before, what
// the queues hold says it all, and a count would be a cache line a frame.
type waits struct {
	idx      []int16 // port·8+queue → row, -1 = not tracked
	held     []uint32
	since    []clock.Time // when held became positive; kept only while some PG is in XOFF
	n, rows  int          // ports; queues that are tracked
	xoffs    int          // PGs in XOFF, as announced
	counting bool         // held is up to date
	calm     int          // visits since some PG was in XOFF
}

// calmVisits is for how many visits without XOFF waits are counted on: to begin
// again takes a look at every frame.
const calmVisits = 64

// rest ends the counting some time after the last XOFF.
func (w *waits) rest() {
	if w.xoffs > 0 {
		w.calm = 0
	} else if w.calm++; w.calm > calmVisits {
		w.counting = false
	}
}

// countWaits makes sure that waits are counted.
func (s *Switch) countWaits() {
	w := &s.wait
	if w.calm = 0; w.counting {
		return
	}
	if w.counting = true; w.held == nil { // in most switches never
		w.held, w.since = make([]uint32, w.rows*w.n), make([]clock.Time, w.rows*w.n)
	}
	clear(w.held)
	for i := range s.ports {
		for k := range s.ports[i].q {
			q := &s.ports[i].q[k]
			if q.row >= 0 {
				q.each(func(_ *wireFrame, m stored) { w.held[int(q.row)+int(m.pg)>>3]++ })
			}
		}
	}
}

func (s *Switch) initWaits() {
	w := &s.wait
	w.n = len(s.ports)
	w.idx = make([]int16, 8*w.n)
	tcs := s.losslessClasses()
	for i := range s.ports {
		p := &s.ports[i]
		for q := range 8 {
			w.idx[i<<3+q] = -1
		}
		for m := tcs; m != 0; m &= m - 1 {
			if q := int(p.maps.tcToQueue.of(uint8(firstBit(m)))); w.idx[i<<3+q] < 0 {
				w.idx[i<<3+q] = int16(w.rows)
				w.rows++
			}
		}
	}
	for k, r := range w.idx {
		s.ports[k>>3].q[k&7].row = int32(r) * int32(w.n)
	}
}

// losslessClasses is the mask of traffic classes that some port puts into a
// lossless PG.
func (s *Switch) losslessClasses() (tcs uint8) {
	for i := range s.ports {
		p := &s.ports[i]
		for tc := range 8 {
			if p.pgPrios[p.maps.tcToPG.of(uint8(tc))] != 0 {
				tcs |= 1 << tc
			}
		}
	}
	return tcs
}

// enter counts a frame that a queue with this row takes from an ingress port.
func (w *waits) enter(now clock.Time, row int32, ingress int) {
	if w.counting && row >= 0 {
		k := int(row) + ingress
		h := &w.held[k]
		if *h++; *h == 1 && w.xoffs > 0 {
			w.since[k] = now
		}
	}
}

func (w *waits) leave(row int32, ingress int) {
	if w.counting && row >= 0 {
		w.held[int(row)+ingress]--
	}
}

// PausedQueue is an egress queue that holds frames and that the peer of its
// port, a switch, has paused.
type PausedQueue struct {
	Port  uint16
	Prio  uint8 // PFC priority
	Since clock.Time
}

// HeldIn says that a stopped group has frames in the egress queue that PFC
// priority Prio stops at Port; Prio is NoPrio where no priority does.
type HeldIn struct {
	Port  uint16
	Prio  uint8
	Since clock.Time // of the first of them, 0 = before the group's XOFF
}

// NoPrio marks a queue without PFC.
const NoPrio = 0xFF

// StoppedGroup is an ingress PG in XOFF: it pauses the priorities in Prios of
// its port's peer until its frames, which wait in Held, have gone.
type StoppedGroup struct {
	Port   uint16
	Prios  uint8 // mask
	Slice  uint16
	Since  clock.Time
	Shared int64 // its cells in the slice's shared pool
	// ResumeAt is the most cells of the slice's shared pool that may be in use,
	// the group's own included, for XON with what the group holds now; -1 when
	// it cannot resume before it has sent something.
	ResumeAt int64
	Held     []HeldIn
}

// WaitState is a device's part of the wait-for graph: the groups in XOFF all of
// whose frames wait in queues that other switches have paused, and these
// queues. A device none of whose groups stops a switch has none: nobody waits
// for it.
type WaitState struct {
	Dev    int32
	Queues []PausedQueue
	Groups []StoppedGroup
}

func (w *WaitState) equal(o *WaitState) bool {
	return slices.Equal(w.Queues, o.Queues) && slices.EqualFunc(w.Groups, o.Groups, func(a, b StoppedGroup) bool {
		return a.Port == b.Port && a.Prios == b.Prios && a.Slice == b.Slice && a.Since == b.Since && a.Shared == b.Shared &&
			a.ResumeAt == b.ResumeAt && slices.Equal(a.Held, b.Held)
	})
}

// Waits returns the device's part of the wait-for graph at now, in order of
// port and class.
func (s *Switch) Waits(plan *topology.Plan, now clock.Time) WaitState {
	w := WaitState{Dev: s.id}
	if s.wait.xoffs == 0 {
		return w
	}
	toSwitch := func(i int) bool { return plan.Devices[s.plan.Ports[i].Peer].Switch != nil }
	paused := s.paused(now, toSwitch)
	if len(paused) == 0 || len(s.stopping(paused, toSwitch)) == 0 {
		return w
	}
	w.Groups = s.stopping(paused, func(int) bool { return true })
	for _, q := range paused {
		if slices.ContainsFunc(w.Groups, func(g StoppedGroup) bool { return g.holds(q) }) {
			w.Queues = append(w.Queues, q)
		}
	}
	return w
}

// paused lists the queues that cannot send at the ports that facing says yes to.
func (s *Switch) paused(now clock.Time, facing func(port int) bool) (out []PausedQueue) {
	for i := range s.ports {
		p := &s.ports[i]
		if p.nonEmpty == 0 || !facing(i) {
			continue
		}
		for m := p.port.PausedMask(now) & p.pfcOn; m != 0; m &= m - 1 {
			n := firstBit(m)
			q := p.pfcToQ[n]
			if p.q[q].n > 0 && p.pausedQueues(now)&(1<<q) != 0 {
				out = append(out, PausedQueue{uint16(i + 1), uint8(n), p.c.PFC[n].rxSince.Add(p.port.PauseLag())})
			}
		}
	}
	return out
}

// stopping lists the groups in XOFF whose frames all wait in paused queues, at
// the ports that facing says yes to.
func (s *Switch) stopping(paused []PausedQueue, facing func(port int) bool) (out []StoppedGroup) {
	for i := range s.ports {
		if !facing(i) {
			continue
		}
		for x := s.ports[i].xoffSent; x != 0; x &= x - 1 {
			g := s.stopped(i, firstBit(x))
			free := slices.ContainsFunc(g.Held, func(h HeldIn) bool {
				return !slices.ContainsFunc(paused, func(q PausedQueue) bool { return q.Port == h.Port && q.Prio == h.Prio })
			})
			if !free {
				out = append(out, g)
			}
		}
	}
	return out
}

// holds says whether frames of the group wait in a queue.
func (g *StoppedGroup) holds(q PausedQueue) bool {
	return slices.ContainsFunc(g.Held, func(h HeldIn) bool { return h.Port == q.Port && h.Prio == q.Prio })
}

func (s *Switch) stopped(k, g int) StoppedGroup {
	p := &s.ports[k]
	o := StoppedGroup{Port: uint16(k + 1), Prios: p.pgPrios[g], Since: p.c.PFC[firstBit(p.pgPrios[g])].txSince}
	o.Slice, o.Shared, o.ResumeAt = s.mmu.resume(k<<3 + g)
	for i := range s.ports {
		e := &s.ports[i]
		for q := range 8 {
			r := int(s.wait.idx[i<<3+q])
			if r < 0 || s.wait.held[r*s.wait.n+k] == 0 || !p.maps.tcToQueueHits(g, q, &e.maps) {
				continue
			}
			o.Held = append(o.Held, HeldIn{uint16(i + 1), e.prioOf(q), s.wait.since[r*s.wait.n+k]})
		}
	}
	return o
}

// prioOf is the lowest PFC priority that stops queue q, NoPrio when none does.
func (p *portState) prioOf(q int) uint8 {
	for n := range 8 {
		if p.pfcOn&(1<<n) != 0 && int(p.pfcToQ[n]) == q {
			return uint8(n)
		}
	}
	return NoPrio
}

// tcToQueueHits reports whether some traffic class takes PG g here and queue q
// at egress.
func (m *maps) tcToQueueHits(g, q int, egress *maps) bool {
	for tc := range uint8(8) {
		if int(m.tcToPG.of(tc)) == g && int(egress.tcToQueue.of(tc)) == q {
			return true
		}
	}
	return false
}

// resume returns a PG's slice, its shared cells, and [StoppedGroup.ResumeAt].
func (m *MMU) resume(pg int) (slice uint16, shared, at int64) {
	p := &m.pg[pg]
	need := p.xonAt(m.cell)
	at = -1
	if size := int64(m.sl[p.slice].size); need <= size {
		at = size - need
	}
	return p.slice, int64(p.shared()), at
}
