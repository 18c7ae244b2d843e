package chain

import (
	"cmp"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
)

// Assembler makes chains out of records. It is used from one goroutine.
type Assembler struct {
	dir   *Directory
	emit  func(*Chain)
	acct  Accounts
	conns map[int32]*conn
	seen  map[int32]uint32 // device → next expected record number
	open  int
	batch []record.Record
}

// conn is the state of one queue pair that had trouble.
type conn struct {
	id      int32
	chains  []*Chain // by age; all but the last are repaired
	pending []record.Record
	posted  []record.Record
	next    uint32 // ordinal of the next chain
}

// New returns an assembler that hands every whole chain to emit, which owns it
// from then on.
func New(dir *Directory, emit func(*Chain)) *Assembler {
	return &Assembler{dir: dir, emit: emit, conns: map[int32]*conn{}, seen: map[int32]uint32{}}
}

// Accounts returns the counts so far.
func (a *Assembler) Accounts() Accounts { return a.acct }

// Add takes the records of one batch of windows, of any devices and in any
// order. Nothing in a later batch may be earlier than what this one holds,
// except records that a replay made again: those are recognised by their
// number and ignored.
func (a *Assembler) Add(recs []record.Record) {
	a.batch = a.batch[:0]
	for i := range recs {
		r := &recs[i]
		want, known := a.seen[r.Dev]
		if next := known && r.Seq == want || !known && r.Seq <= 1; !next && r.Kind != record.Deadlock {
			a.outOfOrder(recs[i:])
			break
		}
		a.keep(r)
	}
	byTime := func(x, y record.Record) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Dev, y.Dev), cmp.Compare(x.Seq, y.Seq))
	}
	if !slices.IsSortedFunc(a.batch, byTime) {
		slices.SortFunc(a.batch, byTime)
	}
	for i := range a.batch {
		a.one(&a.batch[i])
	}
}

// keep adds a record to the batch if it is new and belongs into chains.
func (a *Assembler) keep(r *record.Record) {
	if a.fresh(r) && relevant(r.Kind) {
		a.batch = append(a.batch, *r)
	}
}

// outOfOrder takes the rest of a batch in which numbers do not follow one
// another: they are checked in their own order, since a posting is noted late,
// with the time it had.
func (a *Assembler) outOfOrder(recs []record.Record) {
	rest := slices.Clone(recs)
	slices.SortFunc(rest, func(x, y record.Record) int {
		return cmp.Or(cmp.Compare(x.Dev, y.Dev), cmp.Compare(x.Seq, y.Seq))
	})
	for i := range rest {
		a.keep(&rest[i])
	}
}

// fresh keeps account of record numbers: a device numbers its records from 1
// without holes, and a replay repeats numbers.
func (a *Assembler) fresh(r *record.Record) bool {
	if r.Kind == record.Deadlock {
		return false // an observer's note: it has no number
	}
	want, known := a.seen[r.Dev]
	switch {
	case known && r.Seq < want:
		a.acct.Replayed++
		return false
	case known && r.Seq > want:
		a.acct.Missing += uint64(r.Seq - want)
	}
	a.seen[r.Dev] = r.Seq + 1
	return true
}

// relevant kinds name a packet of a queue pair and belong into chains.
func relevant(k record.Kind) bool {
	switch k {
	case record.Drop, record.OutOfSeq, record.NakSent, record.NakRecv, record.RnrSent, record.RnrRecv,
		record.ImpliedNak, record.Timeout, record.Retransmit, record.Rewind, record.ReqDone, record.ReqPosted,
		record.QPError, record.Migrate:
		return true
	}
	return false
}

// one takes a single record in order.
func (a *Assembler) one(r *record.Record) {
	id, _, ok := a.dir.Conn(r.Src, r.Dst, r.QPN)
	if !ok {
		if r.Kind == record.Drop {
			a.acct.Unclaimed++
		}
		return
	}
	c := a.conns[id]
	if c == nil {
		if r.Kind == record.ReqDone {
			return
		}
		c = &conn{id: id}
		a.conns[id] = c
	}
	switch r.Kind {
	case record.Drop:
		a.lose(c, r)
	case record.ReqPosted:
		c.post(r)
	case record.ReqDone:
		a.done(c, r)
	case record.QPError:
		a.fail(c, r)
	case record.Migrate:
		if k := c.current(); k != nil {
			k.add(r)
		}
	default:
		a.sign(c, r)
	}
}

// current is the chain that is being repaired, nil when none is.
func (c *conn) current() *Chain {
	if n := len(c.chains); n > 0 && !c.chains[n-1].repaired {
		return c.chains[n-1]
	}
	return nil
}

// lose keeps a loss until a chain claims it.
func (a *Assembler) lose(c *conn, r *record.Record) {
	if len(c.pending) == MaxPending {
		c.pending = slices.Delete(c.pending, 0, 1)
		a.acct.Unclaimed++
	}
	c.pending = append(c.pending, *r)
}

// post keeps the posting time of a request that retransmits.
func (c *conn) post(r *record.Record) {
	if len(c.posted) == MaxPosted {
		c.posted = slices.Delete(c.posted, 0, 1)
	}
	c.posted = append(c.posted, *r)
}

// sign is trouble seen at an end: it continues the current chain or, when it
// speaks of a later packet after something was sent again, opens the next one.
func (a *Assembler) sign(c *conn, r *record.Record) {
	k := c.current()
	news := r.Kind != record.Retransmit && r.Kind != record.Rewind
	if k != nil && news && k.resent && after(r.PSN, k.PSN) {
		k.repaired, k.Recover = true, true
		a.claim(c, k, func(p *record.Record) bool { return k.covers(p.PSN) && p.At < r.At && p.PSN != r.PSN })
		k = nil
	}
	if k == nil {
		if k = a.start(c, r); k == nil {
			return
		}
	}
	if news {
		a.claimFor(c, k, r)
	}
	switch r.Kind {
	case record.NakRecv, record.Timeout, record.RnrRecv, record.ImpliedNak:
		k.Rounds++
	case record.Rewind:
		if old := uint32(r.X) & 0xffffff; !k.resent || after(old, k.edge) {
			k.edge = old
		}
		k.resent = true
	case record.Retransmit:
		k.Resends++
		k.resent = true
		if next := (r.PSN + 1) & 0xffffff; k.edge == k.PSN || after(next, k.edge) {
			k.edge = next
		}
	}
	k.add(r)
}

// covers reports whether the chain's retransmission includes psn.
func (k *Chain) covers(psn uint32) bool { return !after(k.PSN, psn) && after(k.edge, psn) }

// start opens a chain at record r.
func (a *Assembler) start(c *conn, r *record.Record) *Chain {
	a.acct.Made++
	if a.open == MaxOpen {
		a.acct.Dropped++
		return nil
	}
	a.open++
	k := &Chain{Conn: c.id, Flow: -1, Request: -1, PSN: r.PSN, edge: r.PSN, Ordinal: c.next, Posted: clock.Never, Begin: r.At}
	c.next++
	c.chains = append(c.chains, k)
	return k
}

// claimFor moves the losses that explain r from the pending ones into k: the
// packet that r names, or, when that one is not among them (a timeout names
// the oldest unacknowledged packet, not the lost one), all not before it.
func (a *Assembler) claimFor(c *conn, k *Chain, r *record.Record) {
	exact := func(p *record.Record) bool { return p.PSN == r.PSN }
	if r.Kind != record.Timeout && slices.ContainsFunc(c.pending, func(p record.Record) bool { return exact(&p) }) {
		a.claim(c, k, exact)
		return
	}
	a.claim(c, k, func(p *record.Record) bool { return !after(r.PSN, p.PSN) })
}

func (a *Assembler) claim(c *conn, k *Chain, want func(*record.Record) bool) {
	rest := c.pending[:0]
	for i := range c.pending {
		if p := &c.pending[i]; want(p) {
			k.add(p)
		} else {
			rest = append(rest, *p)
		}
	}
	c.pending = rest
}

// add appends a step, or folds it when the chain is long.
func (k *Chain) add(r *record.Record) {
	if len(k.Steps) >= MaxSteps || r.Kind == record.Retransmit && k.Resends > MaxResends {
		k.Folded++
		return
	}
	k.Begin = clock.Min(k.Begin, r.At)
	k.Steps = append(k.Steps, Step{Record: *r, Since: r.At, Until: r.At, Cause: -1})
}
