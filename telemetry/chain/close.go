package chain

import (
	"cmp"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
)

// done closes the chains of a request that completed. Requests of a queue pair
// complete in order; the record's PSN is the oldest one unacknowledged after
// it. A completion in error acknowledges nothing and closes the oldest chain.
func (a *Assembler) done(c *conn, r *record.Record) {
	posted, flow := c.take(r)
	n := 0
	for n < len(c.chains) && after(r.PSN, c.chains[n].PSN) {
		n++
	}
	if r.Y != 0 && n == 0 {
		n = min(1, len(c.chains))
	}
	for _, k := range c.chains[:n] {
		k.Request, k.Posted, k.Status = r.X, posted, uint8(r.Y)
		k.Recover = r.Y == 0
		k.Flow = flow
		a.close(c, k, r)
	}
	c.chains = slices.Delete(c.chains, 0, n)
	a.forget(c, r)
}

// fail closes every chain of a queue pair that went into the error state.
func (a *Assembler) fail(c *conn, r *record.Record) {
	for _, k := range c.chains {
		k.Status = r.Reason
		k.Recover = k.repaired
		a.close(c, k, r)
	}
	c.chains = c.chains[:0]
	a.acct.Unclaimed += uint64(len(c.pending))
	c.pending, c.posted = c.pending[:0], c.posted[:0]
}

// take finds when the request of a completion was posted, and its flow.
func (c *conn) take(r *record.Record) (at clock.Time, flow int32) {
	for i := range c.posted {
		if p := &c.posted[i]; p.X == r.X {
			at, flow = p.At, int32(p.Y)-1
			c.posted = slices.Delete(c.posted, 0, i+1)
			return at, flow
		}
	}
	return clock.Never, -1
}

// forget drops losses that the completion proves harmless.
func (a *Assembler) forget(c *conn, r *record.Record) {
	rest := c.pending[:0]
	for _, p := range c.pending {
		if !after(r.PSN, p.PSN) {
			rest = append(rest, p)
		} else {
			a.acct.Unclaimed++
		}
	}
	c.pending = rest
	if len(c.chains)+len(c.pending)+len(c.posted) == 0 && c.next == 0 {
		delete(a.conns, c.id)
	}
}

// close finishes a chain and hands it over.
func (a *Assembler) close(c *conn, k *Chain, last *record.Record) {
	a.claim(c, k, func(p *record.Record) bool { return k.covers(p.PSN) && p.At <= last.At })
	k.Ended = true
	k.End = last.At
	k.Steps = append(k.Steps, Step{Record: *last, Since: last.At, Until: last.At, Cause: -1})
	a.release(k)
}

// release completes what can be told only at the end and emits the chain.
func (a *Assembler) release(k *Chain) {
	slices.SortStableFunc(k.Steps, func(x, y Step) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Dev, y.Dev), cmp.Compare(x.Seq, y.Seq))
	})
	if k.Flow < 0 {
		if f := a.dir.QP(k.Conn).Flows; len(f) == 1 {
			k.Flow = f[0]
		}
	}
	k.Posted = clock.Min(k.Posted, k.Begin)
	k.Trace = traceID(a.dir, k)
	k.link()
	a.open--
	a.acct.Emitted++
	a.emit(k)
}

// Finish emits the chains that are still open when the run ends at t, oldest
// first. They are whole as far as the run went: Ended is false.
func (a *Assembler) Finish(t clock.Time) {
	var rest []*Chain
	for _, c := range a.conns {
		for _, k := range c.chains {
			a.claim(c, k, func(p *record.Record) bool { return !after(k.PSN, p.PSN) })
			rest = append(rest, k)
		}
		a.acct.Unclaimed += uint64(len(c.pending))
		c.chains, c.pending = nil, nil
	}
	slices.SortFunc(rest, func(x, y *Chain) int {
		return cmp.Or(cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.Conn, y.Conn), cmp.Compare(x.Ordinal, y.Ordinal))
	})
	for _, k := range rest {
		k.End = clock.Max(t, k.Begin)
		a.release(k)
	}
}

// causes lists, for each kind, what may have led to it, best first.
var causes = map[record.Kind][]record.Kind{
	record.Drop:       {record.Retransmit},
	record.OutOfSeq:   {record.Drop},
	record.NakSent:    {record.OutOfSeq},
	record.NakRecv:    {record.NakSent, record.OutOfSeq, record.Drop},
	record.RnrSent:    {record.Retransmit},
	record.RnrRecv:    {record.RnrSent},
	record.ImpliedNak: {record.OutOfSeq, record.Drop},
	record.Timeout:    {record.Drop},
	record.Migrate:    {record.Timeout},
	record.Rewind:     {record.NakRecv, record.RnrRecv, record.ImpliedNak, record.Timeout},
	record.Retransmit: {record.Rewind, record.NakRecv, record.RnrRecv, record.ImpliedNak, record.Timeout},
	record.ReqDone:    {record.Retransmit, record.Rewind},
	record.QPError:    {record.Timeout, record.NakRecv, record.RnrRecv, record.Retransmit},
}

// link finds each step's cause and the ends of its span. The latest of the
// possible causes wins.
func (k *Chain) link() {
	var last [64]int // by kind: index of the latest step so far
	for i := range last {
		last[i] = -1
	}
	for i := range k.Steps {
		s := &k.Steps[i]
		for _, kind := range causes[s.Kind] {
			j := last[kind]
			if kind == record.Retransmit && (s.Kind == record.Drop || s.Kind == record.RnrSent) {
				j = k.resendOf(s.PSN, j)
			}
			s.Cause = max(s.Cause, j)
		}
		k.stretch(s)
		last[s.Kind&63] = i
	}
}

// resendOf returns the latest step up to j that sent packet psn again, or -1.
func (k *Chain) resendOf(psn uint32, j int) int {
	for ; j >= 0; j-- {
		if p := &k.Steps[j]; p.Kind == record.Retransmit && p.PSN == psn {
			return j
		}
	}
	return -1
}

// stretch gives waits their length: a NAK's way, a timer's run, an RNR's wait.
func (k *Chain) stretch(s *Step) {
	switch s.Kind {
	case record.NakRecv, record.ImpliedNak:
		if s.Cause >= 0 {
			s.Since = k.Steps[s.Cause].At
		}
	case record.Timeout:
		s.Since = k.Posted
		if s.Y > 0 {
			s.Since = s.At.Add(clock.Duration(-s.Y))
		} else if s.Cause >= 0 {
			s.Since = k.Steps[s.Cause].At
		}
	case record.RnrRecv:
		s.Until = s.At.Add(clock.Duration(s.X))
	}
}
