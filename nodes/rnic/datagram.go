package rnic

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
)

// Datagram flows (`transport: udp`) are paced streams beside RDMA: no ECN
// capability, no acknowledgement; what arrives is counted where it arrives.

// udpHeaders is what a datagram's frame adds to its payload.
const udpHeaders = wire.EthHeader + wire.IPv4Header + wire.UDPHeader + wire.FCSSize

// total is the number of payload bytes of a datagram flow, -1 = for ever.
func (fl *flow) total() int64 {
	if fl.f.Count < 0 {
		return -1
	}
	return fl.f.Size * max(fl.f.Count, 1)
}

// datagramSize is the payload of the next datagram: a full one, or what is left
// of the request, whose bytes no other shares a datagram with.
func (fl *flow) datagramSize() int64 {
	if fl.f.Size <= 0 {
		return 0
	}
	return min(int64(fl.f.Packet), fl.f.Size-fl.posted%fl.f.Size)
}

// datagrams is how many datagrams the bytes posted so far took.
func (fl *flow) datagrams() uint32 {
	if fl.f.Size <= 0 {
		return 1
	}
	n, p := fl.f.Size, int64(fl.f.Packet)
	return uint32(fl.posted/n*((n+p-1)/p) + (fl.posted%n+p-1)/p)
}

// datagramDue starts a stream, or lets its next datagram into the ring.
func (r *RNIC) datagramDue(now clock.Time, i int32, fl *flow) {
	if fl.posted == 0 && fl.began == 0 {
		fl.began = now
		r.outstanding++
		r.lastProgress = now
	}
	if !fl.inRing {
		fl.inRing = true
		r.data.push(i*senders + sendUDP)
	}
	r.trySend(now)
}

// datagramTurn is the stream's turn on the data ring.
func (r *RNIC) datagramTurn(now clock.Time, i int, p *txPort, n int32, f *wire.Frame) bool {
	fl := &r.flows[n]
	prio := r.nic.PrioOf[fl.f.DSCP&63]
	if p.Paused(now, int(prio)) {
		r.held[prio].push(n*senders + sendUDP)
		return false
	}
	fl.inRing = false
	size := fl.datagramSize()
	*f = wire.Frame{
		Kind: wire.KindUDP, Src: r.k, Dst: fl.f.To, SPort: fl.f.SPort, TOS: fl.f.DSCP << 2, TTL: 64, Iter: 1,
		Len: uint16(max(size+udpHeaders, wire.MinFrame)), B: uint64(size), A: uint64(fl.f.ID),
	}
	fl.posted += size
	f.Index = fl.datagrams()
	r.lastProgress = now
	between := fl.f.Size <= 0 || fl.posted%fl.f.Size == 0
	if between { // a request ends when its last datagram is sent: nobody answers
		fl.done++
		r.sample(fl, fl.due, now, report.Success)
	}
	if t := fl.total(); t >= 0 && fl.posted >= t {
		r.outstanding--
		return true
	}
	r.paceDatagram(now, n, fl, int64(f.Len)+wire.Overhead, between)
	return true
}

// paceDatagram plans the stream's next turn: by its rate and, between requests,
// its interval; or at once.
func (r *RNIC) paceDatagram(now clock.Time, n int32, fl *flow, bytes int64, between bool) {
	if fl.f.Rate > 0 {
		base := fl.next
		d, c := fl.f.Rate.Serialise(bytes, fl.carry)
		if now.Sub(base) > d || base == 0 { // as for queue pairs: up to a packet's time is caught up with
			base = now
			d, c = fl.f.Rate.Serialise(bytes, 0)
		}
		fl.next, fl.carry = base.Add(d), c
	}
	next := clock.Max(fl.next, now)
	if between && fl.f.Interval > 0 {
		next = clock.Max(next, fl.began.Add(fl.f.Interval*clock.Duration(fl.done)))
	}
	if between {
		fl.due = next
	}
	if next > now {
		r.start.push(due{next, n})
		return
	}
	fl.inRing = true
	r.data.push(n*senders + sendUDP)
}

// datagram takes a datagram off the wire.
func (r *RNIC) datagram(now clock.Time, f *wire.Frame) {
	id := int32(f.A)
	if id < 0 || int(id) >= len(r.plan.Flows) || r.plan.Flows[id].To != r.k {
		return
	}
	r.lastProgress = now
	for i := range r.udp {
		if r.udp[i].Flow == id {
			v := &r.udp[i]
			v.Messages++
			v.Bytes += int64(f.B)
			v.Last = now
			return
		}
	}
	r.udp = append(r.udp, report.RecvPart{Flow: id, Messages: 1, Bytes: int64(f.B), Last: now})
}
