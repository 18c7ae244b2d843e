package actors

// How the workers of a pool share a visit. Hubs go first, each followed by those
// behind it, then the free devices. Those behind the last hub of a worker wait:
// they and the free ones need nothing of each other, so whoever would have to
// wait, for the last hubs or at the end, runs some of them.

// runLeg runs who of a visit.
func (p *pool) runLeg(e *Engine, l *leg, who part) {
	p.e, p.leg, p.who = e, l, who
	if l.hub == l.hubTo || len(p.units.seen) != len(e.rounds.units) { // a round begins, or the first
		p.units.balance(len(e.rounds.units), func(i int) uint64 { return e.st[e.rounds.units[i][0]].Events })
		p.free.balance(len(e.rounds.free), func(i int) uint64 { return e.st[e.rounds.free[i]].Events })
	}
	p.units.begin(e.rounds.back)
	p.free.begin(e.rounds.back)
	if len(p.rest) < len(e.rounds.units) {
		p.rest = make([]rest, len(e.rounds.units))
	}
	for i := range p.rest {
		p.rest[i].next.Store(notYet)
	}
	p.leading.Store(int64(len(e.rounds.units)))
	p.share()
	p.leg = nil
}

// visit is one worker's part of a visit.
func (p *pool) visit(worker int, w *scratch) {
	last := -1 // the unit whose hub it led last
	if p.who&hubs != 0 {
		for i, ok := p.units.take(worker); ok; i, ok = p.units.take(worker) {
			p.lead(i, w)
			last = i
			if next, ok := p.units.peek(worker); ok {
				p.e.soon(p.e.rounds.units[next][0], p.leg.hubTo)
				p.help(i, w)
			}
		}
		p.await(worker, last, w)
	}
	if p.who&free != 0 {
		for i, ok := p.free.take(worker); ok; i, ok = p.free.take(worker) {
			if next, ok := p.free.peek(worker); ok {
				p.e.soon(p.e.rounds.free[next], p.leg.ownTo)
			}
			p.rove(i, w)
		}
		if last >= 0 {
			p.help(last, w)
		}
		for i, ok := p.free.steal(worker); ok; i, ok = p.free.steal(worker) {
			p.rove(i, w)
		}
	}
	if p.who&behind != 0 {
		for i := range p.e.rounds.units {
			p.help(i, w)
		}
	}
}

// await returns when all hubs have passed through the leg, and does what can be
// done meanwhile: nearest first.
func (p *pool) await(worker, last int, w *scratch) {
	for p.leading.Load() > 0 {
		if last >= 0 && p.helpSome(last, w) {
			continue
		}
		if i, ok := p.units.steal(worker); ok {
			p.lead(i, w)
			continue
		}
		if !p.helpAny(w) {
			p.parking(worker).await(func() bool { return p.leading.Load() == 0 })
		}
	}
}

func (p *pool) lead(i int, w *scratch) {
	p.e.lead(p.leg, i, w)
	p.e.send(w)
	p.rest[i].next.Store(0)
	if p.leading.Add(-1) == 0 {
		for v := range len(p.helpers) + 1 {
			p.parking(v).wake()
		}
	}
}

func (p *pool) rove(i int, w *scratch) {
	p.e.rove(p.leg, p.e.rounds.free[i], w)
	p.e.send(w)
}

// help runs what is free of a unit, helpSome some of it, helpAny some of any; the
// last two say whether there was any.
func (p *pool) help(unit int, w *scratch) {
	for p.helpSome(unit, w) {
	}
}

func (p *pool) helpSome(unit int, w *scratch) bool {
	u := p.e.rounds.units[unit][1:]
	for r := &p.rest[unit].next; ; {
		i := r.Load()
		if i >= int64(len(u)) {
			return false
		}
		some := u[i:]
		some = some[:min(max(len(some)/2, restGrab), len(some))]
		if r.CompareAndSwap(i, i+int64(len(some))) {
			p.e.follow(p.leg, some, w)
			p.e.send(w)
			return true
		}
	}
}

func (p *pool) helpAny(w *scratch) bool {
	for i := range p.e.rounds.units {
		if p.helpSome(i, w) {
			return true
		}
	}
	return false
}

// parking is where a worker waits.
func (p *pool) parking(worker int) *parking {
	if worker == 0 {
		return &p.caller
	}
	return &p.helpers[worker-1].parking
}
