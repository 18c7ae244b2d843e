package fault

import (
	"fmt"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/topology"
)

// maxForged bounds the frames of one inject fault.
const maxForged = 1 << 20

// forge builds the frame of an inject fault. The queue pair it pretends to
// belong to is named by `flow` or `qp`; without either it is the first one of
// the target RNIC.
func (p *params) forge(s *Spec) *Forged {
	out := &Forged{Count: p.num("count", 1, maxForged, max(p.f.Count, 1)), Interval: p.dur("interval", clock.Microsecond)}
	if out.Count > maxForged {
		p.fail("count", fmt.Sprintf("must be at most %d frames", maxForged))
		out.Count = 1
	}
	if out.Interval <= 0 {
		p.fail("interval", "must be above 0, from one forged frame to the next; left out it is 1us")
		out.Interval = clock.Microsecond
	}
	if out.Interval > clock.Duration(maxTime)/clock.Duration(out.Count) {
		p.fail("interval", fmt.Sprintf("count times interval must be at most %v", maxTime))
	}
	f := &out.Frame
	s.Count = 0
	switch p.f.Params["opcode"] {
	case "pfc":
		p.get("opcode")
		p.pause(s, f)
		return out
	case "pause":
		p.get("opcode")
		f.Kind, f.Len, f.A = wire.KindPause, wire.PFCFrame, uint64(p.quanta())
		return out
	}
	op := p.opcode()
	f.Kind, f.Iter = wire.KindOf(op), 1
	psn := int64(0)
	if p.f.Match.HasPSN {
		psn = int64(p.f.Match.PSN)
	}
	f.SetPSN(wire.PSN(p.num("psn", 0, wire.PSNMask, psn)))
	p.ends(s, f, op)
	if n := p.num("syndrome", 0, 255, -1); n >= 0 || op.Ext()&wire.ExtAETH != 0 {
		syn := uint8(wire.SynUnlimited)
		if n >= 0 {
			syn = uint8(n)
		}
		f.SetAETH(syn, uint32(p.num("msn", 0, wire.PSNMask, 0)))
	}
	size := int64(0)
	if _, ok := p.get("size"); ok {
		size = p.size("size")
	}
	p.body(f, op, size)
	if v, _ := p.get("ackreq"); v == "true" || v == "1" || v == "" && op.IsRequest() && !middle(op) {
		f.Set(wire.FlagAckReq)
	}
	if v, _ := p.get("m"); v == "true" || v == "1" {
		f.Set(wire.FlagM)
	}
	f.TTL = uint8(p.num("ttl", 1, 255, 64))
	f.TOS = uint8(p.num("dscp", 0, 63, int64(f.DSCP())))<<2 | uint8(p.num("ecn", 0, 3, int64(f.ECN())))
	if _, ok := p.get("src"); ok {
		f.Src = p.rnic("src")
	}
	if _, ok := p.get("dst"); ok {
		f.Dst = p.rnic("dst")
	}
	return out
}

// quanta is how long a forged frame pauses.
func (p *params) quanta() uint16 { return uint16(p.num("quanta", 0, 65535, 65535)) }

// pause makes f a PFC frame: quanta for each of the priorities, which may be
// none.
func (p *params) pause(s *Spec, f *wire.Frame) {
	f.Kind, f.Len = wire.KindPFC, wire.PFCFrame
	q := p.quanta()
	if v := p.f.Params["priorities"]; v == "none" {
		p.get("priorities")
		return
	}
	mask := p.defaultPrios(s)
	if list := p.list("priorities", 7); len(list) > 0 {
		mask = 0
		for _, n := range list {
			mask |= 1 << n
		}
	}
	for n := range 8 {
		if mask&(1<<n) != 0 {
			f.SetPFCTime(n, q)
		}
	}
}

func (p *params) opcode() wire.Opcode {
	if v, ok := p.get("opcode"); ok {
		op, err := wire.ParseOpcode(v)
		if err != nil {
			p.fail("opcode", err.Error())
		}
		return op
	}
	if p.f.Match.HasOp {
		return wire.Opcode(p.f.Match.Op)
	}
	return wire.SendOnly
}

func middle(op wire.Opcode) bool {
	switch op {
	case wire.SendFirst, wire.SendMiddle, wire.WriteFirst, wire.WriteMiddle:
		return true
	}
	return false
}

// body sets length and RETH; memory words of size and address are optional.
func (p *params) body(f *wire.Frame, op wire.Opcode, size int64) {
	f.Len = uint16(wire.RoCELen(op, int(min(size, 4096))))
	if op.Ext()&(wire.ExtRETH|wire.ExtAtomic) != 0 {
		f.A = uint64(p.num("va", 0, 1<<62, 0))
		f.B = uint64(p.num("rkey", 0, 1<<32-1, 0))<<32 | uint64(uint32(p.num("length", 0, 1<<32-1, size)))
	}
	if op == wire.ReadRequest {
		f.Len = uint16(wire.RoCELen(op, 0))
	}
	f.SetPad(int(min(size, 4096)))
}

// ends sets addresses, queue pair, source port and class from the queue pair
// that the frame claims to belong to.
func (p *params) ends(s *Spec, f *wire.Frame, op wire.Opcode) {
	q := p.pair()
	if q == nil {
		p.errs = append(p.errs, p.errorf("inject needs flow=NAME or qp=N of a queue pair in the file"))
		return
	}
	toB := op.IsRequest() || op == wire.CNP
	if num := p.rnicNum(); num != 0 && q.A != q.B {
		// The named RNIC is the source when the frame leaves it, else the destination.
		toB = (num == q.A) == (s.Dir != In)
	}
	f.TOS = q.DSCP<<2 | wire.ECT0
	f.SPort = q.SPort
	if toB {
		f.Src, f.Dst = q.A, q.B
		f.SetOp(op, uint32(p.num("dest_qp", 0, wire.PSNMask, int64(q.BQPN))))
		return
	}
	f.Src, f.Dst = q.B, q.A
	f.SetOp(op, uint32(p.num("dest_qp", 0, wire.PSNMask, int64(q.AQPN))))
}

// rnicNum is the number of the target RNIC, 0 when the target is a switch.
func (p *params) rnicNum() uint32 {
	if p.f.Dev < 0 || p.plan.Devices[p.f.Dev].Kind != topology.RNIC {
		return 0
	}
	return uint32(p.plan.Devices[p.f.Dev].Num)
}

// pair finds the queue pair that a forged frame names.
func (p *params) pair() *topology.QP {
	for _, id := range p.f.Match.FlowIDs {
		if q := p.plan.Flows[id].QP; q >= 0 {
			return &p.plan.QPs[q]
		}
	}
	num := p.rnicNum()
	qpn := uint32(p.num("qp", 0, wire.PSNMask, int64(p.f.Match.QPN)))
	for i := range p.plan.QPs {
		q := &p.plan.QPs[i]
		mine := num == 0 || q.A == num || q.B == num
		named := qpn == 0 || q.AQPN == qpn && (num == 0 || q.A == num) || q.BQPN == qpn && (num == 0 || q.B == num)
		if mine && named {
			return q
		}
	}
	return nil
}

// forgeNext returns the n-th frame's instant, Never after the last.
func (s *Spec) forgeNext(n int64) clock.Time {
	if n >= s.Forge.Count {
		return clock.Never
	}
	return s.At.Add(clock.Duration(n) * s.Forge.Interval)
}
