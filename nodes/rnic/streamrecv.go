package rnic

import (
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/tcp"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// sink is the receiving end of one TCP flow: segments wait for the core, then
// for the machine; answers wait for their turn to be sent.
type sink struct {
	r      tcp.Receiver
	f      *topology.Flow
	id     int32
	wait   fifo[arrived] // with the core, in order of done
	acks   fifo[tcp.Ack] // to be sent, oldest first
	core   clock.Time
	cpu    clock.Duration
	last   clock.Time // latest byte handed to the application
	wakeAt clock.Time
	inRing bool
	gone   bool // the device lost its state: segments find no stream
}

// arrived is a segment that the receiving core works on until done.
type arrived struct {
	done clock.Time
	seq  int64
	n    int64
	sent clock.Time
	ce   bool
}

func (r *RNIC) initSinks() {
	ids := r.idx.sinks[r.k-1]
	r.sinks = make([]sink, len(ids))
	for i, id := range ids {
		r.sinks[i] = sink{f: &r.plan.Flows[id], id: id, wakeAt: clock.Never}
	}
}

// localSink finds the local number of a stream that ends here.
func (r *RNIC) localSink(id int32) int32 {
	lo, hi := 0, len(r.sinks)
	for lo < hi {
		if m := (lo + hi) / 2; r.sinks[m].id < id {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return int32(lo)
}

// received1 hands a data segment to the receiving core.
func (r *RNIC) received1(now clock.Time, id int32, f *wire.Frame) {
	i := r.localSink(id)
	k := &r.sinks[i]
	if k.gone {
		return
	}
	h := &r.nic.Host
	n := int64(f.A >> 32)
	cost := copyCost(h, n)
	k.core = max(k.core, now.Add(h.StackLatency)).Add(cost)
	k.cpu += cost
	if k.wait.len() == 0 {
		r.waits++
	}
	k.wait.push(arrived{
		done: k.core, seq: wire.Unwrap(k.r.Next(), uint32(f.A)), n: n, sent: clock.Time(f.C),
		ce: f.ECN() == wire.CE && !r.faults.ecnOff,
	})
	r.armSink(i, k)
}

func (r *RNIC) armSink(i int32, k *sink) {
	if k.wait.len() > 0 && k.wait.front().done < k.wakeAt {
		k.wakeAt = k.wait.front().done
		r.wake.push(due{k.wakeAt, -2 - 2*i})
	}
}

// sinkWake is the end of the core's work on a segment.
func (r *RNIC) sinkWake(now clock.Time, d due) {
	i := (-2 - d.id) / 2
	k := &r.sinks[i]
	if k.wakeAt != d.at {
		return // cancelled
	}
	k.wakeAt = clock.Never
	for k.wait.len() > 0 && k.wait.front().done <= now {
		w := k.wait.pop()
		var a tcp.Ack
		if k.r.OnSegment(w.seq, w.n, w.sent, w.ce, &a) > 0 {
			k.last, r.lastProgress = now, now
		}
		k.acks.push(a)
		if k.wait.len() == 0 {
			r.waits--
		}
	}
	r.offerAck(i, k)
	r.armSink(i, k)
	r.trySend(now)
}

func (r *RNIC) offerAck(i int32, k *sink) {
	if k.acks.len() > 0 && !k.inRing {
		k.inRing = true
		r.data.push(i*senders + sendTCPAck)
	}
}

// sinkTurn is a receiver's turn on the data ring: it sends one
// acknowledgement.
func (r *RNIC) sinkTurn(now clock.Time, i int, p *txPort, n int32, f *wire.Frame) bool {
	k := &r.sinks[n]
	if !r.streamMay(now, i, p, k.f.DSCP, n*senders+sendTCPAck) {
		return false
	}
	k.inRing = false
	if k.acks.len() == 0 {
		return false
	}
	a := k.acks.pop()
	k.cpu += r.nic.Host.PerPacket
	*f = wire.Frame{
		Kind: wire.KindTCP, Src: r.k, Dst: k.f.From, SPort: k.f.SPort, TOS: k.f.DSCP << 2, TTL: 64, Iter: 1,
		Len: wire.TCPLen(0), B: uint64(k.id)<<32 | uint64(uint32(a.Ack)), C: uint64(a.Echo), Index: uint32(a.Ack / int64(k.f.Packet)),
	}
	f.Set(wire.FlagTCPAck)
	if a.Upto > a.From {
		f.A, f.D = uint64(a.From-a.Ack)<<32, uint32(a.Upto-a.From)
	}
	if a.ECE {
		f.Set(wire.FlagECE)
	}
	r.chain.Mix(now, f.A, f.B)
	r.offerAck(n, k)
	return true
}
