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
	size := int64(fl.f.Packet)
	if t := fl.total(); t >= 0 {
		size = min(size, t-fl.posted)
	}
	*f = wire.Frame{
		Kind: wire.KindUDP, Src: r.k, Dst: fl.f.To, SPort: fl.f.SPort, TOS: fl.f.DSCP << 2, TTL: 64, Iter: 1,
		Len: uint16(max(size+udpHeaders, wire.MinFrame)), B: uint64(size), A: uint64(fl.f.ID),
	}
	fl.posted += size
	f.Index = uint32((fl.posted + int64(fl.f.Packet) - 1) / int64(fl.f.Packet))
	r.lastProgress = now
	if t := fl.total(); t >= 0 && fl.posted >= t {
		fl.done = fl.posted
		r.outstanding--
		r.st.samples.Add(fl.f.ID, fl.began, now, report.Success)
		return true
	}
	r.paceDatagram(now, n, fl, int64(f.Len)+wire.Overhead)
	return true
}

// paceDatagram plans the stream's next turn: by its rate, or at once.
func (r *RNIC) paceDatagram(now clock.Time, n int32, fl *flow, bytes int64) {
	if fl.f.Rate > 0 {
		d, c := fl.f.Rate.Serialise(bytes, fl.carry)
		fl.carry = c
		fl.next = clock.Max(fl.next, now).Add(d)
		if fl.next > now {
			r.start.push(due{fl.next, n})
			return
		}
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
