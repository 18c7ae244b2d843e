package actors

import (
	"sync"
	"sync/atomic"

	"github.com/rocemu/rocemu/clock"
)

// pool is the worker goroutines of one engine. Inside a window actors share
// nothing, so which worker takes which actor cannot matter.
type pool struct {
	start []chan struct{}
	done  sync.WaitGroup
	next  atomic.Int64
	grab  int64
	e     *Engine
	end   clock.Time

	leg   *leg // nil: a window of active actors
	units bool
	tasks int64
}

// leastGrab is how many actors a worker takes at once, at least; switches come
// first in id order and are dear, so the steps are small. Longer ones let more
// memory be asked for ahead: a worker may look only at what it has taken.
const leastGrab = 4

func newPool(n int) *pool {
	p := &pool{start: make([]chan struct{}, n)}
	for i := range p.start {
		c := make(chan struct{}, 1)
		p.start[i] = c
		go func() {
			for range c {
				p.work(i + 1)
				p.done.Done()
			}
		}()
	}
	return p
}

func (p *pool) run(e *Engine, end clock.Time) {
	p.e, p.end = e, end
	p.next.Store(0)
	p.grab = int64(min(max(len(e.active)/(8*(len(p.start)+1)), leastGrab), 4*leastGrab))
	p.share()
}

// runLeg runs the tasks of a phase of a round.
func (p *pool) runLeg(e *Engine, l *leg, units bool, tasks int) {
	p.e, p.leg, p.units, p.tasks = e, l, units, int64(tasks)
	p.next.Store(0)
	p.share()
	p.leg = nil
}

// share has all workers take from what there is to do until nothing is left.
func (p *pool) share() {
	p.done.Add(len(p.start))
	for _, c := range p.start {
		c <- struct{}{}
	}
	p.work(0)
	p.done.Wait()
}

func (p *pool) work(worker int) {
	if p.leg != nil {
		for i := p.next.Add(1) - 1; i < p.tasks; i = p.next.Add(1) - 1 {
			p.e.task(p.leg, p.units, int(i), &p.e.scratch[worker])
		}
		return
	}
	for {
		i := int(p.next.Add(p.grab) - p.grab)
		if i >= len(p.e.active) {
			return
		}
		mine := p.e.active[i:min(i+int(p.grab), len(p.e.active))]
		for k, d := range mine {
			p.e.hint(mine, k) // the actors beyond may be running elsewhere
			p.e.advance(d, p.e.start, p.end, p.end, &p.e.scratch[worker])
		}
	}
}

func (p *pool) close() {
	for _, c := range p.start {
		close(c)
	}
}
