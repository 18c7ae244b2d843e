package qp

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// Params are what one end of a connection is made of.
type Params struct {
	Cfg      *Config
	Counters *Counters // may be shared by the QPs of an RNIC
	Memory   *Memory   // of the RNIC; nil = nothing registered
	QPN      uint32
	PeerQPN  uint32
	Src, Dst uint32   // RNIC numbers
	SPort    uint16   // UDP source port of what this end sends
	TOS      uint8    // DSCP<<2 | ECN of what this end sends
	SQPSN    wire.PSN // initial PSN of this end's requests
	RQPSN    wire.PSN // of the peer's
	AltPath  bool     // an alternate path is loaded: starts ARMED
}

// QP is one end of an RC connection: a requester and a responder over a
// common context. It must not be copied after Init. See the package comment
// for how an actor drives it.
//
// What a packet touches lies together: a cache line of Context, three of the
// requester and the first of its requests, one and a half of the responder.
// Thousands of queue pairs do not stay in a processor's caches, so each line
// that a packet needs is a fetch. TestHotLines keeps it so.
type QP struct {
	Context
	Req  Requester
	Resp Responder
}

// Context is what both halves of a QP share: addresses, state, path. It is one
// cache line.
type Context struct {
	cfg *Config
	cnt *Counters
	mem *Memory

	// Addresses of every frame this end sends.
	src, dst uint32
	peer     uint32 // QPN
	sport    uint16
	tos      uint8
	bth      wire.Flags // the M bit

	rxKey    uint64 // content identity of the peer's requests
	qpn      uint32
	cnps     uint32
	mtuShift uint8
	state    State
	mig      Migration
	alt      bool // current path is the alternate one
	altKnown bool // an alternate path is loaded
	serves   bool // a request has come, or a NAK is due: the responder may owe something
	drained  bool // in SQD, and what was begun is acknowledged
}

// Init makes q an end of a connection in state RTS.
func (q *QP) Init(p Params) {
	*q = QP{}
	c := &q.Context
	c.cfg, c.cnt, c.mem = p.Cfg, p.Counters, p.Memory
	if c.cnt == nil {
		c.cnt = new(Counters)
	}
	c.src, c.dst, c.sport, c.tos = p.Src, p.Dst, p.SPort, p.TOS
	c.qpn, c.peer = p.QPN, p.PeerQPN&wire.PSNMask
	c.rxKey = contentKey(p.Dst, p.PeerQPN)
	for m := p.Cfg.MTU; m > 1; m >>= 1 {
		c.mtuShift++
	}
	c.state = StateRTS
	if p.AltPath {
		c.altKnown, c.mig = true, Armed
	}
	q.Req.init(q, p.SQPSN)
	q.Resp.init(q, p.RQPSN)
	c.stampM()
}

// frame begins a frame to the peer: addresses, BTH, and nothing else.
func (c *Context) frame(f *wire.Frame, kind wire.Kind, op wire.Opcode, psn wire.PSN) {
	f.At, f.A, f.B, f.C, f.D = 0, 0, 0, 0, 0
	f.Src, f.Dst, f.SPort = c.src, c.dst, c.sport
	f.SetBTH(op, c.peer, psn, c.bth)
	f.Kind, f.TOS, f.TTL, f.Iter = kind, c.tos, 64, 1
}

// Serves reports whether the responder may owe a response: no request came as
// long as it says no, and ResponseReady is Never.
func (c *Context) Serves() bool { return c.serves }

// State returns the QP's state.
func (c *Context) State() State { return c.state }

// Config returns the QP's shared settings.
func (c *Context) Config() *Config { return c.cfg }

// SetConfig replaces the settings of a QP that is in use. MTU, recovery, queue
// sizes and READ resources must be the same; budgets count anew from the next
// progress, timers from when they are next armed.
func (c *Context) SetConfig(cfg *Config) { c.cfg = cfg }

// QPN returns this end's number; PeerQPN the other end's.
func (c *Context) QPN() uint32     { return c.qpn }
func (c *Context) PeerQPN() uint32 { return c.peer }

// SetState moves the QP between INIT, RTR, RTS and SQD. ERR flushes.
func (q *QP) SetState(now clock.Time, s State, fx *Effects) {
	if s == StateErr {
		q.toErr(now, WRFlushErr, fx)
		return
	}
	if s == StateReset {
		q.Req.init(q, q.Req.psn0)
		q.Resp.init(q, q.Resp.psn0)
	}
	q.Context.state = s
	if s == StateSQD {
		q.Req.checkDrained(fx)
	}
}

// CNPFrame fills f with a congestion notification to the peer, under the ToS
// given (transport §1.11); Index is its ordinal on this QP.
func (c *Context) CNPFrame(f *wire.Frame, tos uint8) {
	c.frame(f, wire.KindCNP, wire.CNP, 0)
	f.Clear(wire.FlagM)
	f.Set(wire.FlagBECN)
	c.cnps++
	f.TOS, f.Len, f.Index = tos, wire.CNPFrame, c.cnps
}

// toErr moves the QP to ERR: posted receives and all work requests left are
// flushed in order. st is what the cause was; Success = no failed request.
func (q *QP) toErr(now clock.Time, st Status, fx *Effects) {
	if q.state == StateErr {
		return
	}
	q.state = StateErr
	fx.note(Note{Kind: NoteQPError, Reason: uint8(st)})
	q.Req.flush(now, fx)
	q.Resp.flush(fx)
}

// HandleFrame dispatches a frame that arrived for this QP at now; alt tells
// that it came over the alternate path. Frames of other services are ignored.
func (q *QP) HandleFrame(now clock.Time, f *wire.Frame, alt bool, fx *Effects) {
	if q.mig != Migrated && !q.Context.checkPath(f, alt, fx) {
		return
	}
	if op := f.Op(); op.IsResponse() {
		q.Req.HandleResponse(now, f, fx)
	} else if op.IsRequest() {
		q.Resp.HandleRequest(now, f, fx)
	}
}

// contentKey is the identity of the requests of one QP.
func contentKey(src, qpn uint32) uint64 {
	return clock.Mix(0x52444d41, uint64(src)<<32|uint64(qpn), 1)
}

// readSalt sets READ data apart from request data of the same message.
const readSalt = 0x72656164

// tag is the content of the payload at off in message msg of the stream key:
// what a frame carries in C for its payload.
func tag(key uint64, msg uint64, off uint32) uint64 {
	return clock.Mix(key, msg, uint64(off))
}
