package rnic

import (
	"fmt"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/report"
)

// Findings of the transport are made at the end, from state that snapshots
// hold, so that a run restored from one tells the same.

func (r *RNIC) fillFindings(part *report.Part) {
	part.Findings = append(part.Findings, r.findings...)
	add := func(code, format string, a ...any) {
		part.Findings = append(part.Findings, report.Finding{Code: code, Where: r.dev.Name, Text: fmt.Sprintf(format, a...)})
	}
	if r.cnt.IntegrityErrors > 0 && len(r.findings) == 0 {
		add(report.CodeInvariant, "%d packets with wrong content or placement before the state was restored", r.cnt.IntegrityErrors)
	}
	if n := r.st.rnrWaits; n > 0 {
		retry := fmt.Sprintf("rnr_retry %d", r.nic.QP.RNRRetry)
		if r.nic.QP.RNRRetry == 7 {
			retry = "rnr_retry infinite"
		}
		add("rnr-wait", "%d RNR waits, %s s lost, %s: receives were not posted in time at the other end", n, seconds(clock.Duration(r.st.rnrLost)), retry)
	}
	r.clampFinding(add)
	r.deadPaths(add)
	if r.recLost > 0 {
		add(report.CodeRecordsLost, "%d exceptional records beyond %d were not kept; counters are complete", r.recLost, maxRecords)
	}
}

// clampFinding tells once which timeouts of the RNIC's requesters are floors.
func (r *RNIC) clampFinding(add func(code, format string, a ...any)) {
	n, first := 0, Timers{}
	for i := range r.pairs {
		p := &r.pairs[i]
		if p.q == nil || !p.asks {
			continue
		}
		own, other, _ := r.ends(p)
		if own.TimeoutFloor == 0 {
			return
		}
		if t := timersOf(r.nic, own, other); t.Clamped {
			if n++; n == 1 {
				first = t
			}
		}
	}
	if n > 0 {
		add("timeout-clamped", "%d QPs asked for a local ACK timeout of %v and got the floor of %v (rnics.qp.timeout_floor)", n, first.Negotiated, first.Effective)
	}
}

// deadPaths tells which QPs died of silence: of a path that never carried an
// answer, where no timeout helps, or of one that stopped, where a longer one
// may (R-C01, R-C15).
func (r *RNIC) deadPaths(add func(code, format string, a ...any)) {
	var never, stopped []string
	for i := range r.pairs {
		p := &r.pairs[i]
		if p.q == nil || !p.died {
			continue
		}
		name := fmt.Sprintf("0x%x to %s", p.q.QPN(), r.plan.RNIC(p.peer).Name)
		if p.acked == 0 && !p.heard && !r.brokenLater(p) {
			never = append(never, name)
		} else {
			stopped = append(stopped, name)
		}
	}
	if len(never) > 0 {
		add("path-never-worked", "path never worked: no answer ever came on QP %s; a longer timeout does not help, look at routes, addresses and MTU", list(never))
	}
	if len(stopped) > 0 {
		add("path-stopped-working", "path stopped working: retries ran out on QP %s; it had %v to come back", list(stopped), r.lastChance())
	}
}

// brokenLater reports whether a fault that starts after the run does hits the
// path of p: before that, the path was good.
func (r *RNIC) brokenLater(p *pair) bool {
	var on, back []bool
	for i := range r.plan.Faults {
		f := &r.plan.Faults[i]
		if f.At == 0 || f.NoAt {
			continue
		}
		if on == nil {
			on, back = make([]bool, len(r.plan.Devices)), make([]bool, len(r.plan.Devices))
			r.mark(on, r.plan.RNICs[r.k-1], p.peer)
			r.mark(back, r.plan.RNICs[p.peer-1], r.k)
		}
		for _, way := range [][]bool{on, back} {
			if f.Dev >= 0 && way[f.Dev] && (f.Cable < 0 || f.Peer < 0 || way[f.Peer]) {
				return true
			}
		}
	}
	return false
}

// mark sets the devices that frames from dev to RNIC number k may pass.
func (r *RNIC) mark(on []bool, dev int32, k uint32) {
	if on[dev] && r.plan.Devices[dev].NIC == nil {
		return
	}
	on[dev] = true
	d := &r.plan.Devices[dev]
	if d.NIC != nil {
		if uint32(d.Num) != k && len(d.Ports) > 0 {
			r.mark(on, d.Ports[0].Peer, k)
		}
		return
	}
	if g := d.Route[k-1]; g >= 0 {
		for _, num := range d.Groups[g] {
			r.mark(on, d.Ports[num-1].Peer, k)
		}
	}
}

// lastChance is the longest silence that a QP of this RNIC survives.
func (r *RNIC) lastChance() clock.Duration {
	for i := range r.pairs {
		if p := &r.pairs[i]; p.q != nil && p.died {
			c := p.q.Config()
			return c.Timeout * clock.Duration(c.RetryCnt)
		}
	}
	return 0
}

// list joins up to four names.
func list(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:4], ", "), len(names)-4)
	}
	return strings.Join(names, ", ")
}

// seconds prints d in seconds with microseconds.
func seconds(d clock.Duration) string {
	us := int64(d / clock.Microsecond)
	return fmt.Sprintf("%d.%06d", us/1000000, us%1000000)
}

// observe keeps of a note what findings need. A step of a finite retry or RNR
// ladder counts as progress (model-rules, "Ends"): the ladder ends by itself.
func (r *RNIC) observe(now clock.Time, p *pair, n *qp.Note) {
	switch n.Kind {
	case qp.NoteTimeout:
		if p.finiteRetries() {
			r.lastProgress = now
		}
	case qp.NoteRnrRecv:
		if p.q.Config().RNRRetry != 7 {
			r.lastProgress = now
		}
		r.st.rnrWaits++
		r.st.rnrLost += uint64(n.X)
		p.heard = true
	case qp.NoteNakRecv, qp.NoteImpliedNak, qp.NoteIgnored:
		p.heard = true
	case qp.NoteQPError:
		p.died = p.died || n.Reason == uint8(qp.RetryExcErr)
	}
}

// finiteRetries reports whether timeouts alone end in an error completion:
// not with endless retries, nor where sequence NAKs reload the counter.
func (p *pair) finiteRetries() bool {
	c := p.q.Config()
	reloads := c.NakReload || c.Recovery == qp.GoBack0
	return !(c.RetryCnt == 7 && c.Retry7Infinite) && !(reloads && p.heard)
}
