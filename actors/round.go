package actors

import (
	"context"

	"github.com/rocemu/rocemu/clock"
)

// A round is a stretch of windows that actors run through in their own time, as
// far as the frames they can still get allow. The fabric's graph has two
// colours: leaves get frames only from RNICs and spines, those only from leaves
// and cores. When all of one colour have executed up to T, everything that the
// others get before T+W is known: they may go on to T+W, then the first to
// T+2W. So each visit of an actor covers two windows, with half as many visits
// and half as many times that its memory comes from afar. An RNIC whose cables
// all lead to one leaf follows that leaf at once, while what the leaf sent is
// still near.
//
// What an actor sends from t on arrives at t+W at the earliest, and no
// neighbour is ever further than W ahead: rule W0 in ADR 2 holds for pairs of
// neighbours instead of for all.

// rounds is how a bipartite fabric is run.
type rounds struct {
	units []unit
	back  bool    // this visit goes through units and free ones from the last to the first, see turned
	free  []int32 // first colour, with neighbours in several units: spines
	of    []int32 // by device: its unit; a free one has a number of its own behind them, one not hosted -1
}

// unit is a device of the second colour, the hub, and after it those of the
// first that have no other neighbour: a leaf and its RNICs.
type unit []int32

// newRounds colours the fabric, of which other processes may host a part, in
// every process alike; nil when it has a cycle of odd length.
func newRounds(e *Engine) *rounds {
	colour := make([]int8, len(e.actors))
	r := &rounds{of: make([]int32, len(e.actors))}
	for root := range int32(len(e.actors)) {
		if colour[root] != 0 {
			continue
		}
		part := e.colour(root, colour)
		if part == nil {
			return nil
		}
		r.split(e, part, colour)
	}
	for i, d := range r.free {
		r.of[d] = int32(len(r.units) + i)
	}
	e.ran = len(e.local) // at first all have something to do
	for i := range e.scratch {
		e.scratch[i].post = make([]post, len(r.units)+len(r.free))
	}
	return r
}

// colour gives the devices that hang together with root 1 and -1 in turn and
// lists them; nil when that is not possible.
func (e *Engine) colour(root int32, colour []int8) []int32 {
	part := []int32{root}
	colour[root] = 1
	for i := 0; i < len(part); i++ {
		d := part[i]
		for _, c := range e.cfg.Cables[d] {
			switch colour[c.Peer] {
			case 0:
				colour[c.Peer] = -colour[d]
				part = append(part, c.Peer)
			case colour[d]:
				return nil
			}
		}
	}
	return part
}

// only returns the one neighbour of d, -1 when there are several or none.
func (e *Engine) only(d int32) int32 {
	n := int32(-1)
	for _, c := range e.cfg.Cables[d] {
		if n >= 0 && c.Peer != n {
			return -1
		}
		n = c.Peer
	}
	return n
}

// split sorts what is hosted of a coloured part into units; hubs have the colour
// that gives most devices a unit of their own.
func (r *rounds) split(e *Engine, part []int32, colour []int8) {
	var leaves [2]int
	for _, d := range part {
		if e.only(d) >= 0 {
			leaves[(colour[d]+1)/2]++
		}
	}
	hub := int8(1)
	if leaves[1] > leaves[0] {
		hub = -1
	}
	for _, d := range part {
		if r.of[d] = -1; colour[d] == hub && e.Hosts(d) {
			r.of[d] = int32(len(r.units))
			r.units = append(r.units, unit{d})
		}
	}
	for _, d := range part {
		if colour[d] == hub || !e.Hosts(d) {
			continue
		}
		if n := e.only(d); n >= 0 && e.Hosts(n) {
			r.of[d] = r.of[n]
			u := &r.units[r.of[n]]
			*u = append(*u, d)
		} else {
			r.free = append(r.free, d)
		}
	}
}

// leg is a visit: the stretch of a round that the hubs and after them all
// others may run through.
type leg struct {
	hub, hubTo clock.Time // hubs have executed up to hub and go on to hubTo
	own, ownTo clock.Time // the others, free or behind their hub
}

// leastRound is the number of windows below which a round between processes, and
// leastAlone that below which one in a single process does not pay.
const (
	leastRound = 4
	leastAlone = 2
)

// span is how many windows from start on may be run as one round, given that
// none may pass at or cut, which may lie in the last; 1 = none. It depends on
// what all processes know.
func (e *Engine) span(s *Summary, start, at, cut clock.Time) int {
	if e.Stride < leastRound || cut <= start || s.Outstanding == 0 && s.NextWork == clock.Never {
		return 1
	}
	at = min(at, cut)
	if e.hold > 0 {
		at = min(at, e.hold)
	}
	n, least, w := e.Stride, leastRound, e.cfg.Window
	if e.Carrier == nil {
		n, least = n-int(e.windows%uint64(e.Stride)), leastAlone
		n = int(min(clock.Duration(n), (at.Sub(start)+w-1)/w))
	} else {
		n = int(min(clock.Duration(n), at.Sub(start)/w))
	}
	if n < least {
		return 1
	}
	if e.rounds == nil {
		if e.rounds = newRounds(e); e.rounds == nil {
			e.Stride = 0
			return 1
		}
	}
	if e.Carrier != nil {
		n &^= 1 // a visit of one window takes as many exchanges as one of two
	}
	return n
}

// stretch runs the windows from start to end as a round.
func (e *Engine) stretch(ctx context.Context, start, end clock.Time) error {
	end, err := e.round(ctx, start, end)
	if err != nil {
		return err
	}
	if e.now = end; e.Carrier != nil {
		e.windows++
	} else {
		e.windows += uint64((end.Sub(start) + e.cfg.Window - 1) / e.cfg.Window)
	}
	return nil
}

// round runs everything from start up to end at most and returns where it
// stopped: earlier when the work seems to be over.
func (e *Engine) round(ctx context.Context, start, end clock.Time) (clock.Time, error) {
	w := e.cfg.Window
	e.alone = true
	e.visit(&leg{hub: start, hubTo: start, own: start, ownTo: min(start.Add(w), end)}, hubs|behind|free)
	for at := start; at < end; at = min(at.Add(2*w), end) {
		if at > start && e.fades(at) {
			end = min(end, at.Add(w))
		}
		l := leg{hub: at, hubTo: min(at.Add(2*w), end), own: min(at.Add(w), end), ownTo: min(at.Add(3*w), end)}
		if e.Carrier == nil {
			e.visit(&l, hubs|behind|free)
			continue
		}
		if err := e.meet(ctx, at); err != nil {
			return 0, err
		}
		e.visit(&l, hubs|behind)
		if err := e.meet(ctx, l.own); err != nil {
			return 0, err
		}
		e.visit(&l, free)
	}
	e.hearAll()
	return end, nil
}

// meet exchanges with the other processes after a phase of a round: no frame
// that they sent in it arrives before now.
func (e *Engine) meet(ctx context.Context, now clock.Time) (err error) {
	e.now = now
	e.windows++
	e.hearAll()
	e.within, err = e.exchange(ctx)
	return err
}

// fades says whether the round, where the hubs are at at, had better end soon.
func (e *Engine) fades(at clock.Time) bool {
	idle := e.idle() // also says how many workers pay
	if e.Carrier == nil {
		return idle || e.quiet()
	}
	s := &e.within
	return s.Next >= at.Add(2*e.cfg.Window) || s.Outstanding == 0 && s.NextWork == clock.Never
}

// idle says whether nobody had anything to do since it was asked last: the next
// window may begin much later.
func (e *Engine) idle() bool {
	e.ran = 0
	for i := range e.scratch {
		e.ran += e.scratch[i].ran
		e.scratch[i].ran = 0
	}
	return e.ran == 0
}

// quiet says whether the run may end soon: nothing is to come at all, or no
// request is outstanding and what is to come is no work. At a place in a round
// where that was not so before, the last event or work lies less than four
// windows, which Config.Settle is at least, before the place where the round
// then stops.
func (e *Engine) quiet() bool {
	if !e.calm() {
		return false
	}
	e.hearAll()
	return e.calm()
}

// calm is quiet as far as all have heard what was sent to them.
func (e *Engine) calm() bool {
	done, still := true, true
	for _, d := range e.local {
		done = done && e.st[d].Outstanding == 0 && e.work[d] == clock.Never
		still = still && e.next[d] == clock.Never
		if !done && !still {
			return false
		}
	}
	return true
}

// part is who runs in a visit, a set.
type part uint8

const (
	hubs   part = 1 << iota
	behind      // with hubs: those behind them
	free
)

// visit runs some of the actors through a leg; the workers share it where enough
// had something to do in the one before.
func (e *Engine) visit(l *leg, who part) {
	if who&hubs != 0 {
		e.rounds.back = !e.rounds.back
	}
	if e.pool != nil && e.ran >= 2*minParallel {
		e.pool.runLeg(e, l, who)
		e.lend()
		return
	}
	w := &e.scratch[0]
	if who&hubs != 0 {
		n := len(e.rounds.units)
		for k := range n {
			i := turned(k, n, e.rounds.back)
			e.lead(l, i, w)
			if k+1 < n {
				e.soon(e.rounds.units[turned(k+1, n, e.rounds.back)][0], l.hubTo)
			}
			e.follow(l, e.rounds.units[i][1:], w)
			e.settle(int32(i), w)
		}
		e.publish(w)
	}
	if who&free != 0 {
		n := len(e.rounds.free)
		for k := range n {
			if k+1 < n {
				e.soon(e.rounds.free[turned(k+1, n, e.rounds.back)], l.ownTo)
			}
			e.rove(l, e.rounds.free[turned(k, n, e.rounds.back)], w)
		}
		e.publish(w)
	}
}

// turned is place i of n in a visit that may go back. Every other visit does:
// what the one before touched last is still near then, while going round and round
// would find nothing in a cache that does not hold all of it.
func turned(i, n int, back bool) int {
	if back {
		return n - 1 - i
	}
	return i
}

// lead runs the hub of a unit through a leg: then those behind it share nothing.
func (e *Engine) lead(l *leg, i int, w *scratch) {
	u := e.rounds.units[i]
	e.hear(u[0])
	e.arrives(u[0], l.hubTo)
	e.leap(u[0], l.hub, l.hubTo, w)
	e.settle(int32(i), w)
}

// follow runs some of a unit behind its hub. It lists first those that have
// something to do, so that memory is asked for ahead of these alone.
func (e *Engine) follow(l *leg, some []int32, w *scratch) {
	w.busy = w.busy[:0]
	for _, d := range some {
		if e.next[d] < l.ownTo {
			w.busy = append(w.busy, d)
		}
	}
	e.hintFirst(w.busy)
	for k, d := range w.busy {
		e.hint(w.busy, k)
		e.leap(d, l.own, l.ownTo, w)
	}
}

// rove runs a free device.
func (e *Engine) rove(l *leg, d int32, w *scratch) {
	e.hear(d)
	e.arrives(d, l.ownTo)
	e.leap(d, l.own, l.ownTo, w)
}

// leap runs one actor, which has executed up to from, up to end.
func (e *Engine) leap(d int32, from, end clock.Time, w *scratch) {
	if e.next[d] >= end {
		return
	}
	w.ran++
	e.advance(d, end, max(from, 0).Add(e.cfg.Window), w)
}

// settle publishes what stays inside a unit. What was looked at before goes
// elsewhere, and to no unit: hubs have neighbours of their own unit and free ones.
func (e *Engine) settle(unit int32, w *scratch) {
	k := w.away
	for _, c := range w.dirty[k:] {
		if e.rounds.of[c.dst] == unit {
			e.show(c)
		} else {
			w.dirty[k] = c
			k++
		}
	}
	w.dirty, w.away = w.dirty[:k], k
}
