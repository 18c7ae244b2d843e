package rnic

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/topology"
)

// QPContext is what one end of a queue pair knows at an instant: its settings
// as negotiated and in force, and where it stands. PSNs are those on the wire.
type QPContext struct {
	QP       int32  // id in the plan
	Name     string // from the file, or empty
	QPN      uint32
	Peer     uint32 // RNIC number
	PeerQPN  uint32
	Requests bool   // this end posts the work requests
	Used     bool   // false: no packet yet; what follows are initial values
	State    string // RESET INIT RTR RTS SQD ERR

	MTU       int
	SPort     uint16
	DSCP      uint8
	Connect   string // preset | cm
	Migration string // MIGRATED | REARM | ARMED
	Path      string // primary | alternate
	Port      int    // number of the port in use
	AltPort   int    // 0 = no alternate path loaded

	Timers    Timers
	WindowT4  bool
	Adaptive  bool
	AckExpiry clock.Time // local ACK timer, Never = stopped
	RNRWait   clock.Duration
	RNRUntil  clock.Time // end of an RNR wait, in the past if there is none
	RetryCnt  uint8
	RetryLeft uint8
	RNRRetry  uint8 // 7 = for ever
	RNRLeft   uint8

	SQPSN, Una, Next, Max uint32 // requester
	Outstanding           int    // requests posted and not completed
	InFlight              int64  // PSNs sent and not acknowledged
	MaxRdAtomic           int
	EPSN, MSN             uint32 // responder
	Receives              int    // posted
	MaxDestRdAtomic       int
	Retransmitted         uint64 // packets sent again by this end
}

var migNames = [...]string{qp.Migrated: "MIGRATED", qp.Rearm: "REARM", qp.Armed: "ARMED"}

// QPNs returns the numbers of the RNIC's queue pairs, ascending.
func (r *RNIC) QPNs() []uint32 {
	var out []uint32
	for i := range r.pairs {
		if r.pairs[i].id >= 0 {
			out = append(out, FirstQPN+uint32(i))
		}
	}
	return out
}

// QPContext returns the context of queue pair qpn; false if there is none. It
// must not be called while the actor runs.
func (r *RNIC) QPContext(qpn uint32) (QPContext, bool) {
	i := int64(qpn) - FirstQPN
	if i < 0 || i >= int64(len(r.pairs)) || r.pairs[i].id < 0 {
		return QPContext{}, false
	}
	p := &r.pairs[i]
	pq := &r.plan.QPs[p.id]
	par, peer, other := r.ends(p)
	cfg := r.idx.of(r.k, pq)
	if p.q != nil {
		cfg = p.q.Config()
	}
	c := QPContext{
		QP: p.id, Name: pq.Name, QPN: qpn, Peer: p.peer, PeerQPN: other, Requests: p.asks, State: qp.StateRTS.String(),
		MTU: pq.MTU, SPort: pq.SPort, DSCP: pq.DSCP, Connect: "preset", Migration: migNames[qp.Migrated], Path: "primary",
		Port: r.ports[0].num, AltPort: par.AltPort, Timers: r.timers(par, peer, cfg), WindowT4: cfg.WindowT4, Adaptive: cfg.ADP != nil,
		AckExpiry: clock.Never, RNRWait: qp.RNRWait(peer.MinRNRTimer, cfg.RNRLinear), RetryCnt: cfg.RetryCnt, RetryLeft: cfg.RetryCnt,
		RNRRetry: cfg.RNRRetry, RNRLeft: cfg.RNRRetry, SQPSN: par.InitialPSN, Una: par.InitialPSN, Next: par.InitialPSN, Max: par.InitialPSN,
		MaxRdAtomic: cfg.MaxRdAtomic, EPSN: peer.InitialPSN, Receives: cfg.RecvQueue, MaxDestRdAtomic: cfg.MaxDestRdAtomic,
	}
	if par.ConnectCM {
		c.Connect = "cm"
	}
	if par.AltPort > 0 {
		c.Migration = migNames[qp.Armed]
	}
	if p.q != nil {
		r.live(&c, p)
	}
	return c, true
}

// timers is how the timeout came about; what is in force is cfg's, which a
// change of settings may have replaced.
func (r *RNIC) timers(par, peer *topology.QPParams, cfg *qp.Config) Timers {
	t := timersOf(r.nic, par, peer)
	t.Effective, t.Alternate = cfg.Timeout, cfg.AltTimeout
	return t
}

// live fills what the machines know.
func (r *RNIC) live(c *QPContext, p *pair) {
	q, s := &p.q.Req, &p.q.Resp
	c.Used, c.State, c.Migration = true, p.q.State().String(), migNames[p.q.Migration()]
	if p.q.OnAlternate() {
		c.Path, c.Port = "alternate", r.ports[min(1, len(r.ports)-1)].num
	}
	c.AckExpiry, c.RNRUntil, c.RetryLeft, c.RNRLeft = q.AckDeadline(), q.RNRUntil(), q.RetriesLeft(), q.RNRRetriesLeft()
	c.Una, c.Next, c.Max = uint32(q.Una()), uint32(q.Next()), uint32(q.Max())
	c.Outstanding, c.InFlight = q.Outstanding(), q.InFlight()
	c.EPSN, c.MSN, c.Receives = uint32(s.EPSN()), s.MSN(), s.Posted()
	c.Retransmitted = p.retrans
}

// ends returns the attributes of this end of p and of the other, and the
// other's number.
func (r *RNIC) ends(p *pair) (own, other *topology.QPParams, peerQPN uint32) {
	q := &r.plan.QPs[p.id]
	if p.asks {
		return q.Params, q.BParams, q.BQPN
	}
	return q.BParams, q.Params, q.AQPN
}

// noteClamp records that the timeout of p is the device's floor and not what
// was asked.
func (r *RNIC) noteClamp(now clock.Time, p *pair) {
	own, other, peerQPN := r.ends(p)
	if own.TimeoutFloor == 0 {
		return
	}
	if t := timersOf(r.nic, own, other); t.Clamped {
		r.note(record.Record{At: now, Kind: record.Clamp, Src: r.k, Dst: p.peer, QPN: peerQPN, X: int64(t.Negotiated), Y: int64(t.Effective)})
	}
}
