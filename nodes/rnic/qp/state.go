package qp

import (
	"encoding/binary"
	"errors"

	"github.com/rocemu/rocemu/nodes/wire"
)

// Snapshots are canonical: the same state gives the same bytes. Little endian,
// every scalar eight bytes, slices preceded by their length. What Init sets
// (settings, addresses, keys) is not part of them: restore into an initialised
// QP. Reading trusts nothing: a snapshot that no run could have written is
// refused.

var errState = errors.New("qp: snapshot: truncated or impossible state")

// coder walks the same fields for writing and for reading, so that the two
// cannot disagree.
type coder struct {
	b    []byte
	read bool
	err  error
}

func (k *coder) fail() { k.err = errState }

func (k *coder) u64(v *uint64) {
	if !k.read {
		k.b = binary.LittleEndian.AppendUint64(k.b, *v)
		return
	}
	if len(k.b) < 8 || k.err != nil {
		k.fail()
		return
	}
	*v = binary.LittleEndian.Uint64(k.b)
	k.b = k.b[8:]
}

// num codes any integer; a value that does not fit its type is refused.
func num[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](k *coder, vs ...*T) {
	for _, v := range vs {
		u := uint64(*v)
		k.u64(&u)
		*v = T(u)
		if uint64(*v) != u {
			k.fail()
		}
	}
}

func (k *coder) bits(vs ...*bool) {
	u := uint64(0)
	for i, v := range vs {
		if *v {
			u |= 1 << i
		}
	}
	k.u64(&u)
	if u>>len(vs) != 0 {
		k.fail()
	}
	for i, v := range vs {
		*v = u>>i&1 != 0
	}
}

// count codes a slice length of elements of at least size bytes, at most limit.
func (k *coder) count(n, size, limit int) int {
	num(k, &n)
	if k.read && (n < 0 || n > limit || n > len(k.b)/size) {
		k.fail()
	}
	if k.err != nil {
		return 0
	}
	return n
}

func (k *coder) passes(ps *[]pass) {
	n := k.count(len(*ps), 24, maxPasses)
	if k.read {
		*ps = make([]pass, n)
	}
	for i := range *ps {
		x := &(*ps)[i]
		num(k, &x.from, &x.to)
		num(k, &x.n)
	}
}

// AppendState appends the whole QP's state; ReadState restores it and returns
// the rest of b.
func (q *QP) AppendState(b []byte) []byte {
	b = q.Context.AppendState(b)
	b = q.Req.AppendState(b)
	return q.Resp.AppendState(b)
}

// ReadState restores a QP that Init made.
func (q *QP) ReadState(b []byte) ([]byte, error) {
	b, err := q.Context.ReadState(b)
	if err == nil {
		b, err = q.Req.ReadState(b)
	}
	if err == nil {
		b, err = q.Resp.ReadState(b)
	}
	return b, err
}

func (c *Context) code(k *coder) {
	num(k, &c.state)
	num(k, &c.mig)
	num(k, &c.cnps)
	k.bits(&c.alt, &c.altKnown)
	if c.state > StateErr || c.mig > Armed {
		k.fail()
	}
}

// AppendState appends c's state.
func (c *Context) AppendState(b []byte) []byte {
	k := coder{b: b}
	c.code(&k)
	return k.b
}

// ReadState restores c and returns the rest of b.
func (c *Context) ReadState(b []byte) ([]byte, error) {
	k := coder{b: b, read: true}
	c.code(&k)
	c.stampM()
	return k.b, k.err
}

const wqeBytes = 15 * 8

func (k *coder) wqe(w *wqe) {
	num(k, &w.id, &w.va, &w.a, &w.b, &w.ssn)
	num(k, &w.first)
	num(k, &w.start)
	num(k, &w.len, &w.npkt, &w.idx, &w.rkey, &w.imm)
	num(k, &w.verb)
	num(k, &w.flags)
	num(k, &w.bad)
	if w.verb >= verbs && w.bad == Success {
		k.fail()
	}
}

func (r *Requester) code(k *coder) {
	num(k, &r.cur, &r.idx, &r.adp.arms, &r.rd)
	num(k, &r.una, &r.nxt, &r.max, &r.high, &r.post, &r.sr, &r.from, &r.passFrom, &r.passEnd, &r.sampSeq)
	num(k, &r.ssn, &r.lsn)
	num(k, &r.ack, &r.react, &r.rnr, &r.sampAt)
	num(k, &r.ackT, &r.early, &r.adp.spent)
	num(k, &r.retry, &r.rnrLeft, &r.adp.val, &r.adp.used, &r.adp.rng)
	num(k, &r.cause, &r.reactTo)
	k.bits(&r.rdmar, &r.probe, &r.probed, &r.noCredit, &r.c.drained, &r.adp.begun)
	k.passes(&r.passes)
	n := k.count(int(r.n), wqeBytes, 1<<24)
	if k.read {
		r.head, r.n = 0, uint32(n)
		size := 4
		for size < n {
			size *= 2
		}
		r.ring = nil
		if n > 0 {
			r.ring = make([]wqe, size)
		}
	}
	for i := range uint32(n) {
		k.wqe(r.at(i))
	}
	if k.read && k.err == nil && !r.sane() {
		k.fail()
	}
}

// sane checks what every method relies on: the order of the send pointers and
// requests that follow one another without a gap.
func (r *Requester) sane() bool {
	if r.una < 0 || r.una > r.nxt || r.nxt > r.max || r.max > r.post || r.cur > r.n || r.high > r.max {
		return false
	}
	at := r.una
	for i := range r.n {
		w := r.at(i)
		if i == 0 {
			if w.first > r.una {
				return false
			}
			at = w.first
		}
		if w.first != at || w.npkt > wire.MaxOutstanding+1 || (w.npkt == 0) != (w.bad != Success) || w.ssn != r.ssn-uint64(r.n-i) {
			return false
		}
		at = w.end()
	}
	if at != r.post {
		return false
	}
	if r.cur < r.n {
		w := r.at(r.cur)
		return r.nxt >= w.first && (r.nxt < w.end() || w.npkt == 0)
	}
	return r.nxt == r.post
}

// AppendState appends r's state.
func (r *Requester) AppendState(b []byte) []byte {
	k := coder{b: b}
	r.code(&k)
	return k.b
}

// ReadState restores r and returns the rest of b.
func (r *Requester) ReadState(b []byte) ([]byte, error) {
	k := coder{b: b, read: true}
	r.code(&k)
	return k.b, k.err
}

const resourceBytes = 14 * 8

func (k *coder) resource(x *resource) {
	num(k, &x.first)
	num(k, &x.va, &x.orig, &x.msg)
	num(k, &x.at)
	num(k, &x.len, &x.rkey, &x.npkt, &x.idx, &x.k0, &x.k, &x.sentK)
	num(k, &x.op)
	k.bits(&x.pend, &x.again, &x.ack)
}

func (p *Responder) code(k *coder) {
	num(k, &p.epsn, &p.first, &p.ackSeq, &p.nakPSN)
	num(k, &p.msn, &p.va)
	num(k, &p.off, &p.dlen, &p.rkey, &p.head, &p.low, &p.pending, &p.respIdx, &p.acks, &p.naks, &p.rnrs)
	num(k, &p.rq, &p.rqDone)
	num(k, &p.ackAt, &p.nakAt, &p.rnrUntil)
	num(k, &p.open)
	num(k, &p.nak)
	num(k, &p.nakSyn)
	num(k, &p.short)
	k.passes(&p.passes)
	p.codeReposts(k)
	p.codeRing(k)
	p.codeReorder(k)
	if k.read {
		p.c.serves = true
	}
	if p.epsn < 0 || !p.ringSane() || p.open > openWrite || p.nak > nakRNRSeq {
		k.fail()
	}
}

// ringSane checks that the resources to be answered are where low and pending
// say, and inside their ranges.
func (p *Responder) ringSane() bool {
	n, low := uint32(0), p.head
	for d := uint32(1); d <= min(p.head, uint32(len(p.ring))); d++ {
		if x := p.res(p.head - d); x.pend {
			n, low = n+1, p.head-d
			if x.k >= x.npkt || x.k0 > x.k || x.sentK > x.npkt {
				return false
			}
		}
	}
	return n == p.pending && (n == 0 || low == p.low)
}

func (p *Responder) codeReposts(k *coder) {
	live := p.reposts[min(int(p.rqHead), len(p.reposts)):]
	n := k.count(len(live), 16, 1<<24)
	if k.read {
		live = make([]repost, n)
		p.reposts, p.rqHead = live, 0
	}
	for i := range live {
		num(k, &live[i].at)
		num(k, &live[i].n)
	}
}

func (p *Responder) codeRing(k *coder) {
	n := k.count(len(p.ring), resourceBytes, 255)
	if k.read {
		p.ring = nil
		if n > 0 {
			p.ring = make([]resource, n)
		}
		if n != 0 && n != p.c.cfg.MaxDestRdAtomic {
			k.fail()
		}
	}
	for i := range p.ring {
		k.resource(&p.ring[i])
	}
}

// codeReorder codes the held packets in order of sequence number.
func (p *Responder) codeReorder(k *coder) {
	n := k.count(int(p.robN), 8*11, 1<<16)
	if k.read {
		p.rob, p.robN = nil, 0
		size := p.reorderMax()
		for range n {
			var d int64
			var f wire.Frame
			num(k, &d)
			k.frame(&f)
			if k.err != nil || d < 1 || d >= size || f.Len == 0 {
				k.fail()
				return
			}
			if p.rob == nil {
				p.rob = make([]wire.Frame, size)
			}
			p.rob[(p.epsn+d)%size] = f
			p.robN++
		}
		return
	}
	size := int64(len(p.rob))
	for d := int64(1); d < size; d++ {
		if f := &p.rob[(p.epsn+d)%size]; f.Len != 0 {
			num(k, &d)
			k.frame(f)
		}
	}
}

func (k *coder) frame(f *wire.Frame) {
	op, qpn, psn, fl := f.Op(), f.DstQPN(), f.PSN(), f.Flags()
	num(k, &f.At)
	num(k, &f.A, &f.B, &f.C)
	num(k, &f.D, &f.Src, &f.Dst, &f.Index, &qpn)
	num(k, &f.Len, &f.SPort)
	num(k, &psn)
	num(k, &op)
	num(k, &fl)
	num(k, &f.Kind)
	num(k, &f.TOS, &f.TTL, &f.Iter)
	f.SetOp(op, qpn)
	f.SetPSN(psn)
	f.Clear(^wire.Flags(0))
	f.Set(fl)
}

// AppendState appends p's state.
func (p *Responder) AppendState(b []byte) []byte {
	k := coder{b: b}
	p.code(&k)
	return k.b
}

// ReadState restores p and returns the rest of b.
func (p *Responder) ReadState(b []byte) ([]byte, error) {
	k := coder{b: b, read: true}
	p.code(&k)
	return k.b, k.err
}

// AppendState appends the state of the memory: keys that were invalidated and
// the words. ReadState restores it into a memory with the same regions.
func (m *Memory) AppendState(b []byte) []byte {
	k := coder{b: b}
	m.code(&k)
	return k.b
}

// ReadState restores m and returns the rest of b.
func (m *Memory) ReadState(b []byte) ([]byte, error) {
	k := coder{b: b, read: true}
	m.code(&k)
	return k.b, k.err
}

func (m *Memory) code(k *coder) {
	n := k.count(len(m.regions), 8, 1<<24)
	if n != len(m.regions) {
		k.fail()
		return
	}
	for i := range m.regions {
		k.bits(&m.regions[i].Valid)
	}
	w := k.count(len(m.addrs), 16, 1<<28)
	if k.read {
		m.addrs, m.words = make([]uint64, w), make([]uint64, w)
	}
	for i := range m.addrs {
		num(k, &m.addrs[i], &m.words[i])
		if i > 0 && m.addrs[i] <= m.addrs[i-1] {
			k.fail()
		}
	}
}
