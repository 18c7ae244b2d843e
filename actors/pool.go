package actors

import (
	"runtime"
	"sync/atomic"

	"github.com/rocemu/rocemu/actors/mem"
	"github.com/rocemu/rocemu/clock"
)

// pool is the worker goroutines of one engine. Inside a window actors share
// nothing, so which worker takes which actor cannot matter.
type pool struct {
	helpers []helper
	turn    atomic.Uint64 // grows when there is something to do
	busy    atomic.Int64  // helpers that are not done with this turn
	closed  atomic.Bool
	caller  parking
	next    atomic.Int64
	grab    int64
	e       *Engine
	end     clock.Time

	leg *leg // nil: a window of active actors
	who part

	_       [mem.Line]byte
	leading atomic.Int64 // hubs that have not passed through the leg
	_       [mem.Line]byte
	units   shared
	free    shared
	rest    []rest // by unit
}

// rest is what is left of a list that several workers may take of.
type rest struct {
	next atomic.Int64 // from here on it is free to take
	_    [56]byte
}

// notYet is a rest's next while its hub runs. Half of a rest is taken at once, so
// that memory can be asked for ahead, but at least restGrab.
const (
	notYet   = 1 << 40
	restGrab = 2
)

// helper is a worker beside the caller's own goroutine.
type helper struct {
	parking
	_ [64]byte // each its own cache line
}

// leastGrab is how many actors a worker takes at once, at least; switches come
// first in id order and are dear, so the steps are small. Longer ones let more
// memory be asked for ahead: a worker may look only at what it has taken.
const leastGrab = 4

func newPool(n int) *pool {
	p := &pool{helpers: make([]helper, n), units: newShared(n + 1), free: newShared(n + 1)}
	p.caller.init(n + 1)
	for i := range p.helpers {
		h := &p.helpers[i]
		h.init(n + 1)
		go func() {
			for turn := uint64(1); ; turn++ {
				h.await(func() bool { return p.turn.Load() >= turn })
				if p.closed.Load() {
					return
				}
				p.work(i + 1)
				if p.busy.Add(-1) == 0 {
					p.caller.wake()
				}
			}
		}()
	}
	return p
}

func (p *pool) run(e *Engine, end clock.Time) {
	p.e, p.end = e, end
	p.grab = int64(min(max(len(e.active)/(8*(len(p.helpers)+1)), leastGrab), 4*leastGrab))
	p.share()
}

// share has all workers take from what there is to do until nothing is left.
func (p *pool) share() {
	p.next.Store(0)
	p.busy.Store(int64(len(p.helpers)))
	p.turn.Add(1)
	for i := range p.helpers {
		p.helpers[i].wake()
	}
	p.work(0)
	p.caller.await(func() bool { return p.busy.Load() == 0 })
}

func (p *pool) work(worker int) {
	if p.leg != nil {
		p.visit(worker, &p.e.scratch[worker])
		return
	}
	for {
		i := int(p.next.Add(p.grab) - p.grab)
		if i >= len(p.e.active) {
			return
		}
		mine := p.e.active[i:min(i+int(p.grab), len(p.e.active))]
		p.e.hintFirst(mine)
		for k, d := range mine {
			p.e.hint(mine, k) // the actors beyond may be running elsewhere
			p.e.advance(d, p.end, p.end, &p.e.scratch[worker])
		}
	}
}

func (p *pool) close() {
	p.closed.Store(true)
	p.turn.Store(1 << 63)
	for i := range p.helpers {
		p.helpers[i].wake()
	}
}

// parking is where one goroutine waits for others: it looks for a while before
// it sleeps, because to wake it costs more than most waits take.
type parking struct {
	asleep atomic.Bool
	bell   chan struct{}
	looks  int
}

// mostLooks is how often a goroutine looks before it sleeps: some 100 µs, which
// is what it takes to wake it. With more goroutines than processors looking would
// only keep others from working.
const mostLooks = 1 << 16

func (k *parking) init(workers int) {
	k.bell = make(chan struct{}, 1)
	if workers <= runtime.GOMAXPROCS(0) {
		k.looks = mostLooks
	}
}

// await returns once ok, which somebody makes true before calling wake.
func (k *parking) await(ok func() bool) {
	for range k.looks {
		if ok() {
			return
		}
	}
	for !ok() {
		k.asleep.Store(true)
		if ok() && k.asleep.CompareAndSwap(true, false) {
			return
		}
		<-k.bell // whoever took asleep back rings
	}
}

// wake rings if the goroutine sleeps or is about to.
func (k *parking) wake() {
	if k.asleep.CompareAndSwap(true, false) {
		k.bell <- struct{}{}
	}
}
