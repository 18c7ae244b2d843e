package qp

import (
	"math"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

// wqe is a posted work request as a range of PSNs. Its first half is what every
// packet needs.
type wqe struct {
	first int64  // sequence number of its first PSN
	ssn   uint64 // message number on the QP, from 0
	npkt  uint32 // PSNs it takes; 0 = refused at post
	len   uint32
	idx   uint32 // psn_index of its first packet
	verb  Verb
	flags uint8
	bad   Status

	va    uint64
	a, b  uint64 // swap or add, compare
	id    uint64
	start clock.Time
	rkey  uint32
	imm   uint32
}

const (
	wFence uint8 = 1 << iota
	wUnsignalled
	wSolicited
	wRetrans
)

func (w *wqe) end() int64 { return w.first + int64(w.npkt) }

// pass is a stretch [from, to) of sequence numbers that was sent again n times.
type pass struct {
	from, to int64
	n        uint32
}

// Requester is the sending half of a QP. Inside, PSNs are sequence numbers of
// 64 bits counted from the initial PSN, so that order is plain comparison:
// una ≤ nxt ≤ max ≤ post.
type Requester struct {
	// Each packet sent or acknowledged: three cache lines.
	c    *QP
	ring []wqe  // power of two; head is the oldest not completed
	key  uint64 // content identity of this end's requests
	una  int64  // oldest unacknowledged
	nxt  int64  // next to send
	max  int64  // highest sent + 1

	head    uint32
	n       uint32
	cur     uint32 // offset from head of the request that holds nxt
	psn0    wire.PSN
	sr      int64      // selective repeat: this packet is to be sent again while it is una
	rnr     clock.Time // no packet before this
	ack     clock.Time // local ACK timer, Never = stopped
	sampAt  clock.Time
	sampSeq int64

	rdmar    bool // a READ or atomic was restarted: only its answer counts
	probe    bool // one packet is sent and awaited
	probed   bool
	noCredit bool // credit control is off
	retry    uint8
	rnrLeft  uint8
	cause    NoteKind // of the last rewind
	reactTo  NoteKind

	react clock.Time // a rewind waits for the NIC's reaction latency
	from  int64      // una that progress has accounted for
	high  int64      // highest una ever: what counts as progress
	ackT  clock.Duration
	one   [1]wqe // the ring, until more are needed

	post int64 // next to allocate
	ssn  uint64
	lsn  uint64 // credit limit, a message number from 1
	idx  uint32 // next psn_index - 1
	rd   uint32 // READs and atomics in flight

	passes   []pass // finished retransmission passes that still matter
	passFrom int64  // the pass under way runs from here
	passEnd  int64  // to here: the max at its rewind

	early clock.Duration // bug injector: waits this after RNR; -1 off
	adp   adpState
}

func (r *Requester) init(c *QP, psn0 wire.PSN) {
	*r = Requester{
		c: c, psn0: psn0, ack: clock.Never, react: clock.Never, early: -1, sampSeq: unset, sr: unset,
		key: contentKey(c.src, c.qpn), retry: c.cfg.RetryCnt, rnrLeft: c.cfg.RNRRetry, noCredit: !c.cfg.Credits,
	}
	c.drained = false
}

func (r *Requester) at(i uint32) *wqe { return &r.ring[(r.head+i)&uint32(len(r.ring)-1)] }

func (r *Requester) wire(seq int64) wire.PSN { return r.psn0.Add(int(seq & wire.PSNMask)) }

// Outstanding returns the requests posted and not completed; InFlight the
// PSNs sent and not acknowledged.
func (r *Requester) Outstanding() int { return int(r.n) }
func (r *Requester) InFlight() int64  { return r.nxt - r.una }

// Una, Next and Max return the wire PSNs of the send pointers.
func (r *Requester) Una() wire.PSN  { return r.wire(r.una) }
func (r *Requester) Next() wire.PSN { return r.wire(r.nxt) }
func (r *Requester) Max() wire.PSN  { return r.wire(r.max) }

// RetriesLeft and RNRRetriesLeft return the counters as they stand.
func (r *Requester) RetriesLeft() uint8    { return r.retry }
func (r *Requester) RNRRetriesLeft() uint8 { return r.rnrLeft }

// RNRUntil returns the end of an RNR wait, in the past if there is none.
func (r *Requester) RNRUntil() clock.Time { return r.rnr }

// AckDeadline returns when the local ACK timer fires, Never if stopped.
func (r *Requester) AckDeadline() clock.Time { return r.ack }

// Cause returns what the last rewind was for.
func (r *Requester) Cause() NoteKind { return r.cause }

// SetEarlyRNR is the bug injector "early RNR": the requester resends wait
// after an RNR NAK whatever it asked for; negative = off.
func (r *Requester) SetEarlyRNR(wait clock.Duration) { r.early = wait }

// Post adds a work request. It returns false if the send queue is full or the
// QP takes no work (before RTS). A request that can never be sent (too long)
// completes with LocLenErr in its turn and fails the QP; in ERR a request is
// flushed at once.
func (r *Requester) Post(now clock.Time, wr *WR, fx *Effects) bool {
	st := r.c.state
	if st < StateRTS || (r.c.cfg.SendQueue > 0 && int(r.n) >= r.c.cfg.SendQueue) {
		return false
	}
	if int(r.n) == len(r.ring) {
		r.grow()
	}
	w := r.at(r.n)
	r.fill(w, wr)
	r.n++
	r.c.drained = false
	if st == StateErr {
		r.flush(now, fx)
	} else if r.n == 1 && w.bad != Success {
		r.fail(now, w.bad, fx)
	}
	return true
}

func (r *Requester) fill(w *wqe, wr *WR) {
	*w = wqe{
		id: wr.ID, va: wr.VA, a: wr.Swap, b: wr.Compare, first: r.post, ssn: r.ssn, start: clock.Never,
		idx: r.idx, rkey: wr.RKey, imm: wr.Imm, verb: wr.Verb,
	}
	r.ssn++
	if wr.Fence {
		w.flags |= wFence
	}
	if wr.Unsignalled {
		w.flags |= wUnsignalled
	}
	if wr.Solicited {
		w.flags |= wSolicited
	}
	n := wr.Len
	if wr.Verb >= CmpSwap {
		n = 8
	}
	mtu := int64(r.c.cfg.MTU)
	pk := max(1, (n+mtu-1)/mtu)
	switch {
	case n < 0, n > MaxMessage, wr.Verb == Read && pk > wire.MaxOutstanding, wr.Verb >= verbs:
		w.bad = LocLenErr
		w.len = uint32(min(max(n, 0), math.MaxUint32))
		return
	case wr.Verb >= CmpSwap:
		pk = 1
	}
	w.len, w.npkt = uint32(n), uint32(pk)
	r.post += pk
	if wr.Verb == Read {
		pk = 1
	}
	r.idx += uint32(pk)
}

func (r *Requester) grow() {
	ring := r.one[:]
	if r.n > 0 {
		ring = make([]wqe, 2*len(r.ring))
	}
	for i := uint32(0); i < r.n; i++ {
		ring[i] = *r.at(i)
	}
	r.ring, r.head = ring, 0
}

// pop completes the oldest request.
func (r *Requester) pop(now clock.Time, st Status, fx *Effects) *Completion {
	w := r.at(0)
	if w.verb >= Read && w.npkt > 0 && r.nxt >= w.end() && r.rd > 0 {
		r.rd--
	}
	fx.Any = true
	fx.Done = append(fx.Done, Completion{
		ID: w.id, FirstTx: w.start, Bytes: w.len, SSN: uint32(w.ssn), Verb: w.verb,
		Status: st, Signalled: w.flags&wUnsignalled == 0 || st != Success, Retrans: w.flags&wRetrans != 0,
	})
	switch st {
	case Success:
	case WRFlushErr:
		r.c.cnt.ReqCQEFlushError++
	default:
		r.c.cnt.ReqCQEError++
	}
	r.head = (r.head + 1) & uint32(len(r.ring)-1)
	r.n--
	if r.cur > 0 {
		r.cur--
	}
	return &fx.Done[len(fx.Done)-1]
}

// fail ends the oldest request with st and the QP with it.
func (r *Requester) fail(now clock.Time, st Status, fx *Effects) {
	r.stop()
	r.pop(now, st, fx)
	r.c.toErr(now, st, fx)
}

// flush ends all requests left with WR_FLUSH_ERR, in order.
func (r *Requester) flush(now clock.Time, fx *Effects) {
	r.stop()
	for r.n > 0 {
		r.pop(now, WRFlushErr, fx)
	}
	r.una, r.nxt, r.max, r.cur, r.rd = r.post, r.post, r.post, 0, 0
	r.passes = r.passes[:0]
}

func (r *Requester) stop() {
	r.ack, r.react, r.rnr = clock.Never, clock.Never, 0
	r.sr, r.rdmar, r.probe, r.probed, r.sampSeq = unset, false, false, false, unset
}

func (r *Requester) checkDrained(fx *Effects) {
	if r.c.state != StateSQD || r.c.drained || r.una != r.max {
		return
	}
	if r.n > 0 && r.at(0).first != r.una {
		return // a begun message is to be finished
	}
	r.c.drained = true
	fx.note(Note{Kind: NoteDrained})
}
