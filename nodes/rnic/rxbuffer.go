package rnic

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/fault"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// rxBuffer is the receive buffer. As long as it drains at link rate it is
// always empty and costs nothing; a slow receiver or a PCIe stall fills it. It
// sends XOFF when what is free falls below the headroom of its cable and XON
// xonGap later; what does not fit is lost (model-rules, "Timers and retries").
type rxBuffer struct {
	slow bool // frames go through the buffer

	size, headroom int64
	prios          uint8
	rate           clock.Rate // drains at; 0 = stalled
	line           clock.Rate
	quanta         clock.Duration // half of what an XOFF lasts

	q       []stored
	used    int64
	done    clock.Time // when the head is drained; Never = nobody drains
	carry   int64
	xoff    bool
	refresh clock.Time
}

type stored struct {
	f    wire.Frame
	port int32
}

// xonGap is how much more than headroom must be free before XON.
const xonGap = 18_000

func (b *rxBuffer) init(r *RNIC) {
	p := &r.dev.Ports[0]
	peer := &r.plan.Devices[p.Peer]
	in := topology.HeadroomInput{Rate: p.Rate, Prop: p.Prop, MTU: 9216, Response: p.PeerResponse, Half: p.IngressHalf, Cell: 208}
	if peer.Switch != nil {
		in.MTU, in.Cell = peer.Ports[p.PeerPort-1].MTU, peer.Switch.Cell
	}
	b.headroom = topology.HeadroomAuto(in).Bytes
	b.rate, b.line = p.Rate, p.Rate
	b.done, b.refresh = clock.Never, clock.Never
	b.resize(r)
}

// resize takes what the RNIC's settings say of the buffer.
func (b *rxBuffer) resize(r *RNIC) {
	b.size, b.prios = r.nic.RxBuffer, 0
	b.quanta = r.ports[0].RefreshSpan(r.nic.Quanta)
	for prio, on := range r.nic.Lossless {
		if on {
			b.prios |= 1 << prio
		}
	}
}

// set follows the faults that slow the drain: a stall beats a slow receiver.
func (b *rxBuffer) set(r *RNIC, now clock.Time, d *fault.Device) {
	b.rate = b.line
	if a := d.Active(fault.SlowReceiver, 0); a != nil {
		b.rate = min(a.Rate, b.line)
	}
	if d.Active(fault.PCIeStall, 0) != nil {
		b.rate = 0
	}
	b.slow = b.rate != b.line || len(b.q) > 0
	if b.done == clock.Never {
		b.drain(now)
	}
}

// drain starts on the head of the buffer.
func (b *rxBuffer) drain(now clock.Time) {
	if b.done = clock.Never; len(b.q) == 0 || b.rate == 0 {
		b.carry = 0
		return
	}
	var d clock.Duration
	d, b.carry = b.rate.Serialise(int64(b.q[0].f.Len)+wire.Overhead, b.carry)
	b.done = now.Add(d)
}

// store puts an arrived frame into the buffer.
func (b *rxBuffer) store(r *RNIC, now clock.Time, i int, f *wire.Frame) {
	if b.used+int64(f.Len) > b.size {
		r.drop(now, i, f, report.RxOverflow)
		return
	}
	b.q = append(b.q, stored{*f, int32(i)})
	b.used += int64(f.Len)
	if len(b.q) == 1 && b.done == clock.Never {
		b.drain(now)
	}
	if !b.xoff && b.prios != 0 && b.size-b.used < b.headroom && !r.faults.pfcOff {
		b.xoff = true
		b.announce(r, now)
	}
}

func (b *rxBuffer) announce(r *RNIC, now clock.Time) {
	for i := range r.ports {
		r.sendPFC(now, i, b.prios, 0)
	}
	b.refresh = now.Add(b.quanta)
}

func (b *rxBuffer) next() clock.Time {
	if b == nil || !b.slow {
		return clock.Never
	}
	return min(b.done, b.refresh)
}

func (b *rxBuffer) workNext() clock.Time {
	if b == nil || !b.slow {
		return clock.Never
	}
	return b.done
}

// due hands the drained frame to the transport, or repeats the pause.
func (b *rxBuffer) due(r *RNIC, now clock.Time) {
	if b.done > now {
		b.announce(r, now)
		return
	}
	x := b.q[0]
	b.q = b.q[:copy(b.q, b.q[1:])]
	b.used -= int64(x.f.Len)
	b.drain(now)
	if b.xoff && b.size-b.used >= b.headroom+xonGap {
		b.resume(r, now)
	}
	if len(b.q) == 0 && b.rate == b.line {
		b.slow = false
		if b.xoff {
			b.resume(r, now)
		}
	}
	r.lastWork = now
	r.deliver(now, int(x.port), &x.f)
}

func (b *rxBuffer) resume(r *RNIC, now clock.Time) {
	b.xoff, b.refresh = false, clock.Never
	for i := range r.ports {
		r.sendPFC(now, i, 0, b.prios)
	}
}

// clear loses what is stored: the device is down.
func (b *rxBuffer) clear(r *RNIC, now clock.Time) {
	for i := range b.q {
		r.drop(now, int(b.q[i].port), &b.q[i].f, report.DeviceDown)
	}
	b.q, b.used, b.xoff = b.q[:0], 0, false
	b.done, b.refresh = clock.Never, clock.Never
	b.slow = b.rate != b.line
}

func (b *rxBuffer) snapshot(w *snap.Writer) {
	w.Bool(b.slow)
	w.Bool(b.xoff)
	w.I64(int64(b.rate))
	w.Time(b.done)
	w.Time(b.refresh)
	w.I64(b.carry)
	w.Len(len(b.q))
	for i := range b.q {
		w.U32(uint32(b.q[i].port))
		w.Frame(&b.q[i].f)
	}
}

func (b *rxBuffer) restore(r *snap.Reader) {
	b.slow, b.xoff = r.Bool(), r.Bool()
	b.rate = clock.Rate(r.I64())
	b.done, b.refresh, b.carry = r.Time(), r.Time(), r.I64()
	b.q, b.used = b.q[:0], 0
	for range r.Len() {
		var x stored
		x.port = int32(r.U32())
		r.Frame(&x.f)
		if r.Err != nil {
			return
		}
		b.q = append(b.q, x)
		b.used += int64(x.f.Len)
	}
}
