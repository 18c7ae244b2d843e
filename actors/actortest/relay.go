// Package actortest is a small synthetic fabric for tests of the engine, the
// bus and the cluster: relays that forward tokens at random, on a coarse time
// grid so that ties are the rule, with timers, overtaking frames and live
// disturbances. A relay's logic is in pure steps (OnFault, OnArrival, OnTimer),
// so that an oracle can run the same logic without the engine. Start at [New].
package actortest

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Grid is the raster of every instant: all events tie with many others.
const Grid = 100 * clock.Nanosecond

// Emit takes what a step sends.
type Emit func(port int, f *wire.Frame, late bool)

// timer is an own event; Disturb timers are faults.
type timer struct {
	at clock.Time
	id uint64
}

type timers []timer

func (h timers) Len() int      { return len(h) }
func (h timers) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h timers) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].id < h[j].id
}
func (h *timers) Push(x any) { *h = append(*h, x.(timer)) }
func (h *timers) Pop() any {
	o := *h
	x := o[len(o)-1]
	*h = o[:len(o)-1]
	return x
}

// Relay is one actor.
type Relay struct {
	id    int32
	seed  uint64
	lat   []clock.Duration // by port - 1
	free  []clock.Time     // instant the port can send again
	own   timers
	fault timers
	salt  uint64 // changed by disturbances: routes depend on it
	made  uint64
	seq   uint64
	chain actors.Chain
	work  clock.Time
	out   int64
	evs   uint64
	hops  uint64
	burst int // tokens still to be started

	// Delay is wall time spent in every Advance, to make runs last.
	Delay time.Duration
}

// OnFault applies a disturbance.
func (r *Relay) OnFault(t clock.Time) {
	x := heap.Pop(&r.fault).(timer)
	r.salt = clock.Mix(r.salt, x.id, uint64(t))
	r.note(t, x.id, r.salt)
}

// OnArrival handles one frame.
func (r *Relay) OnArrival(t clock.Time, port int, f *wire.Frame, emit Emit) {
	h := clock.Mix(r.salt, f.A, uint64(port))
	r.note(t, f.A, h)
	if f.Kind == wire.KindPFC {
		return
	}
	if f.TTL == 0 {
		r.out--
		return
	}
	f.TTL--
	f.A = clock.Mix(f.A, r.seed, uint64(r.id))
	switch h >> 60 {
	case 0: // hold it back behind a timer
		r.arm(t.Add(clock.Duration(1+h%7)*Grid), f.A&^1)
		r.made++
		r.out-- // the timer starts a new token
	case 1:
		r.send(t, f, true, emit)
	default:
		r.send(t, f, false, emit)
	}
}

// OnTimer handles the earliest own event.
func (r *Relay) OnTimer(t clock.Time, emit Emit) {
	x := heap.Pop(&r.own).(timer)
	r.note(t, x.id, r.salt)
	f := wire.Frame{A: clock.Mix(x.id, r.seed, r.seq), Src: uint32(r.id + 1), Len: 64, TTL: uint8(8 + x.id%24)}
	r.seq++
	r.out++
	if x.id%5 == 0 {
		p := wire.Frame{Kind: wire.KindPFC, A: x.id, Len: 64}
		r.send(t, &p, true, emit)
	}
	r.send(t, &f, false, emit)
	if r.burst > 0 && x.id&1 == 1 { // held tokens have even ids
		r.burst--
		gap := clock.Duration(x.id%13) * Grid
		if x.id%17 == 0 {
			gap = 50 * clock.Microsecond // an idle span
		}
		r.arm(t.Add(gap), clock.Mix(x.id, r.seed, 7)|1)
	}
}

func (r *Relay) arm(at clock.Time, id uint64) { heap.Push(&r.own, timer{at, id}) }

func (r *Relay) note(t clock.Time, key, verdict uint64) {
	r.chain.Mix(t, key, verdict)
	r.work = t
	r.evs++
}

func (r *Relay) send(t clock.Time, f *wire.Frame, late bool, emit Emit) {
	p := int(clock.Mix(f.A, r.salt, 3) % uint64(len(r.lat)))
	dep := max(t, r.free[p])
	if late {
		f.At = t.Add(r.lat[p] + clock.Duration(f.A%3)*Grid)
	} else {
		if f.A%4 == 0 {
			r.free[p] = dep.Add(Grid)
		}
		f.At = dep.Add(r.lat[p])
	}
	if f.Kind != wire.KindPFC {
		r.hops++
	}
	emit(p+1, f, late)
}

// NextOwn and NextFault are the instants of the next steps.
func (r *Relay) NextOwn() clock.Time   { return head(r.own) }
func (r *Relay) NextFault() clock.Time { return head(r.fault) }

func head(h timers) clock.Time {
	if len(h) == 0 {
		return clock.Never
	}
	return h[0].at
}

// Disturb schedules a live fault; the caller tells the engine with Wake.
func (r *Relay) Disturb(at clock.Time, id uint64) { heap.Push(&r.fault, timer{at, id}) }

// Pending calls f for each disturbance that is to come.
func (r *Relay) Pending(f func(at clock.Time, id uint64)) {
	for _, t := range r.fault {
		f(t.at, t.id)
	}
}

// Advance implements actors.Actor.
func (r *Relay) Advance(end clock.Time, in *actors.Inbox, out *actors.Outbox, st *actors.Status) {
	if r.Delay > 0 {
		time.Sleep(r.Delay)
	}
	emit := func(port int, f *wire.Frame, late bool) {
		if late {
			out.SendLate(port, f)
		} else {
			out.Send(port, f)
		}
	}
	for {
		at := in.Next()
		ft, ot := r.NextFault(), r.NextOwn()
		switch {
		case ft < end && ft <= at && ft <= ot:
			r.OnFault(ft)
		case at < end && at <= ot:
			f, port := in.Take()
			own := *f
			r.OnArrival(at, port, &own, emit)
		case ot < end:
			r.OnTimer(ot, emit)
		default:
			r.fill(st)
			return
		}
	}
}

func (r *Relay) fill(st *actors.Status) {
	st.NextFault = r.NextFault()
	st.Next = min(r.NextOwn(), st.NextFault)
	st.NextWork = r.NextOwn()
	st.LastWork, st.LastProgress = r.work, r.work
	st.Outstanding, st.Events, st.Hops = r.out, r.evs, r.hops
}

// Chain implements actors.Actor.
func (r *Relay) Chain() actors.Chain { return r.chain }

// Snapshot implements actors.Actor. Heaps are written sorted: equal states have
// equal bytes whatever their history.
func (r *Relay) Snapshot(w *snap.Writer) {
	w.U64(r.salt)
	w.U64(r.made)
	w.U64(r.seq)
	w.U64(r.chain.Hi)
	w.U64(r.chain.Lo)
	w.Time(r.work)
	w.I64(r.out)
	w.U64(r.evs)
	w.U64(r.hops)
	w.I64(int64(r.burst))
	for _, t := range r.free {
		w.Time(t)
	}
	for _, h := range []timers{r.own, r.fault} {
		c := append(timers(nil), h...)
		w.Len(len(c))
		for len(c) > 0 {
			x := heap.Pop(&c).(timer)
			w.Time(x.at)
			w.U64(x.id)
		}
	}
}

// Restore implements actors.Actor.
func (r *Relay) Restore(rd *snap.Reader) error {
	r.salt, r.made, r.seq = rd.U64(), rd.U64(), rd.U64()
	r.chain = actors.Chain{Hi: rd.U64(), Lo: rd.U64()}
	r.work, r.out, r.evs, r.hops = rd.Time(), rd.I64(), rd.U64(), rd.U64()
	r.burst = int(rd.I64())
	for i := range r.free {
		r.free[i] = rd.Time()
	}
	for _, h := range []*timers{&r.own, &r.fault} {
		*h = nil
		for range rd.Len() {
			x := timer{rd.Time(), rd.U64()}
			if n := len(*h); n > 0 && x.at < (*h)[n-1].at && rd.Err == nil {
				rd.Err = fmt.Errorf("actortest: timers are out of order")
			}
			*h = append(*h, x)
		}
	}
	return rd.Err
}
