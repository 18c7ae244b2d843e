package rnic

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// flow is one single flow at its requester.
type flow struct {
	f      *topology.Flow
	pair   int32        // local, -1 for datagrams
	posted int64        // requests posted (datagrams: bytes sent)
	done   int64        // completed, with any status
	due    clock.Time   // of the next request by interval; datagrams: start of the one in hand
	starts []clock.Time // of requests outstanding, oldest first
	gate   int64        // messages of the gate flow received here
	next   clock.Time   // datagrams: next allowed by the pace
	carry  int64
	inRing bool
	began  clock.Time
	failed bool
	orig   uint64 // last atomic's original value
	hasOrg bool

	stream  *stream // of a TCP flow
	retrans uint64  // its segments sent again
}

// idBits is how many low bits of a work request's number count requests of its
// flow; the rest names the flow.
const idBits = 40

func (r *RNIC) initFlows() {
	ids := r.idx.flows[r.k-1]
	r.flows = make([]flow, len(ids))
	for i, id := range ids {
		f := &r.plan.Flows[id]
		fl := &r.flows[i]
		fl.f, fl.pair, fl.due = f, -1, f.Start
		if f.QP >= 0 {
			fl.pair = int32(r.plan.QPs[f.QP].AQPN - FirstQPN)
			q := &r.pairs[fl.pair]
			q.flows = append(q.flows, int32(i))
		}
		if f.Transport == topology.TCP {
			r.initStream(fl)
		}
		r.start.push(due{f.Start, int32(i)})
	}
}

// workDue starts what is due at now.
func (r *RNIC) workDue(now clock.Time) {
	d := r.start.pop()
	fl := &r.flows[d.id]
	r.chain.Mix(now, 0xF1<<56|uint64(fl.f.ID), uint64(fl.posted))
	if fl.stream != nil {
		r.streamDue(now, d.id, fl)
		return
	}
	if fl.pair < 0 {
		r.datagramDue(now, d.id, fl)
		return
	}
	fresh := r.pairs[fl.pair].q == nil
	p := r.use(fl.pair)
	if fresh {
		r.noteClamp(now, p)
	}
	r.postFlow(now, d.id, fl, p)
	r.settle(now, fl.pair, p)
}

// postFlows posts what the completions at p made room for.
func (r *RNIC) postFlows(now clock.Time, p *pair) {
	for _, i := range p.flows {
		if fl := &r.flows[i]; fl.due <= now {
			r.postFlow(now, i, fl, p)
		}
	}
}

// postFlow posts requests of a flow while its count, window, interval and gate
// allow. On a QP in error each comes back flushed at once.
func (r *RNIC) postFlow(now clock.Time, i int32, fl *flow, p *pair) {
	f := fl.f
	for (f.Count < 0 || fl.posted < f.Count) && fl.posted-fl.done < int64(f.Window) && fl.due <= now {
		if fl.shut() && !fl.failed {
			return
		}
		if fl.failed && f.Count < 0 {
			return
		}
		wr := r.request(i, fl)
		if !p.q.Req.Post(now, &wr, &r.fx) {
			return
		}
		if r.outstanding == 0 {
			r.lastProgress = now
		}
		r.outstanding++
		fl.posted++
		fl.starts = append(fl.starts, max(now, f.Start))
		if f.Interval > 0 {
			fl.due = fl.due.Add(f.Interval)
			if fl.due > now && (f.Count < 0 || fl.posted < f.Count) {
				r.start.push(due{fl.due, i})
			}
		}
		if len(r.fx.Done) > 0 {
			r.completed(now, p)
		}
	}
}

// shut reports whether the gate keeps the flow's next request back.
func (fl *flow) shut() bool { return fl.f.Gate >= 0 && fl.posted+fl.f.GateLag > fl.gate }

// waiting counts flows that have begun, have nothing posted and wait at a gate:
// work that is left, though no request is outstanding.
func (r *RNIC) waiting() int64 {
	var n int64
	for _, id := range r.idx.gates[r.k-1] {
		fl := &r.flows[r.localFlow(id)]
		if fl.posted > 0 && fl.posted == fl.done && !fl.failed && fl.posted != fl.f.Count && fl.shut() {
			n++
		}
	}
	return n
}

// request is the flow's next work request.
func (r *RNIC) request(i int32, fl *flow) qp.WR {
	f := fl.f
	wr := qp.WR{ID: uint64(i)<<idBits | uint64(fl.posted)&(1<<idBits-1), VA: vaOf(f), Len: f.Size, RKey: KeyGood, Verb: qp.Verb(f.Verb)}
	if o := f.Opt; o != nil {
		wr.Fence, wr.Unsignalled = o.Fence, o.Unsignalled
		switch o.RKey {
		case "bad":
			wr.RKey = KeyBad
		case "read-only":
			wr.RKey = KeyReadOnly
		}
		switch f.Verb {
		case topology.CmpSwap:
			wr.Compare, wr.Swap = o.Compare, o.Swap
		case topology.FetchAdd:
			wr.Swap = o.Add
		}
	}
	if f.Verb == topology.SendInv {
		wr.Imm = wr.RKey // the key it invalidates
	}
	return wr
}

// completed books the completions of a call; they come in posting order.
func (r *RNIC) completed(now clock.Time, p *pair) {
	for k := range r.fx.Done {
		c := &r.fx.Done[k]
		fl := &r.flows[c.ID>>idBits]
		start := fl.starts[0]
		fl.starts = fl.starts[:copy(fl.starts, fl.starts[1:])]
		fl.done++
		r.outstanding--
		r.lastProgress = now
		r.sample(fl, start, now, statusOf(c.Status))
		r.chain.Mix(now, 0xC0<<56|c.ID, uint64(c.Status))
		if c.Status != qp.Success {
			fl.failed = true
			continue
		}
		if c.Verb >= qp.CmpSwap {
			fl.orig, fl.hasOrg = c.Orig, true
		}
		if c.RemoteAt != 0 && c.FirstTx != clock.Never && int64(c.Bytes) <= int64(p.q.Config().MTU) {
			r.st.latency(fl.f.ID, c.RemoteAt.Sub(c.FirstTx))
		}
		if c.Retrans {
			r.noteDone(now, p, c)
		}
	}
	r.fx.Done = r.fx.Done[:0]
}

// statusOf names a completion status as results do.
func statusOf(s qp.Status) report.Status {
	switch s {
	case qp.Success:
		return report.Success
	case qp.RetryExcErr:
		return report.RetryExcErr
	case qp.RNRRetryExcErr:
		return report.RNRRetryExcErr
	case qp.RemAccessErr:
		return report.RemAccessErr
	case qp.RemInvReqErr:
		return report.RemInvReqErr
	case qp.LocLenErr:
		return report.LocLenErr
	case qp.WRFlushErr:
		return report.WRFlushErr
	}
	return report.RemOpErr
}

// openGates posts what waited for messages that p received.
func (r *RNIC) openGates(now clock.Time, p *pair) {
	for _, id := range r.idx.gates[r.k-1] {
		f := &r.plan.Flows[id]
		g := &r.plan.Flows[f.Gate]
		if g.QP != p.id {
			continue
		}
		i := r.localFlow(id)
		fl := &r.flows[i]
		fl.gate = p.recvd
		if fl.due <= now && fl.pair >= 0 && f.Start <= now {
			r.gated.push(i)
		}
	}
}

// localFlow finds the local number of a flow that starts here.
func (r *RNIC) localFlow(id int32) int32 {
	ids := r.idx.flows[r.k-1]
	lo, hi := 0, len(ids)
	for lo < hi {
		m := (lo + hi) / 2
		if ids[m] < id {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return int32(lo)
}
