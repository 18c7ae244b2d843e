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
	e     *Engine
	end   clock.Time
}

// grab is how many actors a worker takes at once; switches come first in id
// order and are dear, so the steps are small.
const grab = 4

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
	p.done.Add(len(p.start))
	for _, c := range p.start {
		c <- struct{}{}
	}
	p.work(0)
	p.done.Wait()
}

func (p *pool) work(worker int) {
	for {
		i := int(p.next.Add(grab)) - grab
		if i >= len(p.e.active) {
			return
		}
		for k, d := range p.e.active[i:min(i+grab, len(p.e.active))] {
			p.e.hint(p.e.active, i+k)
			p.e.advance(d, p.end, &p.e.scratch[worker])
		}
	}
}

func (p *pool) close() {
	for _, c := range p.start {
		close(c)
	}
}
