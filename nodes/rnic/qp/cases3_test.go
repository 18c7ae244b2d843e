package qp_test

import (
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/cc"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
)

// One test a case of the transport cases, T-C33 to T-C39.

// lossEvery drops every packet of the requester whose running number has a low
// byte of 0xFF (an IP ID in step with transmissions).
func lossEvery(n *int) faultFunc {
	return func(from, _ int, f *wire.Frame) verdict {
		if from != 0 {
			return verdict{}
		}
		*n++
		return verdict{drop: *n%256 == 255}
	}
}

// T-C33. Readings: the low byte of the IP ID is that of the count of
// transmissions, resent ones included, from 1, so 255 packets pass between two
// losses. "About" is 3 % for go-back-N, whose last round is not whole, and two
// packets for selective repeat. Go-back-0 "never" completes: not in 20 ms, in
// which it sends 24 times the message's packets.
func TestTC33RecoverySchemes(t *testing.T) {
	run := func(r qp.Recovery, until clock.Time) (*sim, int) {
		c := qp.Generic()
		c.Recovery, c.RetryCnt = r, 7
		s := newSim(t, c, c, 0)
		s.delay, s.noLog = 2*us, true
		s.strict = r != qp.GoBack0
		n := 0
		s.fault = lossEvery(&n)
		s.post(qp.WR{Verb: qp.Send, Len: 4 << 20})
		s.run(until)
		return s, n
	}
	s, n := run(qp.GoBack0, clock.Time(20*ms))
	if len(s.a.done) != 0 || s.a.q.State() != qp.StateRTS || n < 100_000 || len(s.b.recv) != 0 {
		t.Fatalf("go-back-0: %d done, %d sent in %v", len(s.a.done), n, s.a.q.State())
	}
	s, n = run(qp.GoBackN, clock.Never)
	s.wantDone("success")
	w := 41 // packets between a drop and its NAK taking effect: 2 × 2 us and two packet times
	want := 4096 * 256 / (255 - w)
	if n < want*97/100 || n > want*103/100 || s.a.cnt.LocalAckTimeoutErr != 0 {
		t.Fatalf("go-back-N: %d sent, want about %d; %d timeouts", n, want, s.a.cnt.LocalAckTimeoutErr)
	}
	s, n = run(qp.SelectiveRepeat, clock.Never)
	s.wantDone("success")
	if n < 4110 || n > 4114 || s.a.cnt.LocalAckTimeoutErr != 0 || s.b.cnt.DuplicateRequest != 0 {
		t.Fatalf("selective repeat: %d sent, %d timeouts, %d duplicates", n, s.a.cnt.LocalAckTimeoutErr, s.b.cnt.DuplicateRequest)
	}
	if s.a.cnt.PacketSeqErr != s.b.cnt.OutOfSequence || s.a.cnt.PacketSeqErr != uint64(n-4096) {
		t.Fatalf("NAKs %d, gaps %d, resent %d", s.a.cnt.PacketSeqErr, s.b.cnt.OutOfSequence, n-4096)
	}
}

func TestTC34ICRC(t *testing.T) {
	s := newCase(t)
	s.fault = func(from, n int, f *wire.Frame) verdict { return verdict{icrc: req(101, 1)(from, n, f)} }
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, WRITE_M 101(icrc), WRITE_M 102(oos), WRITE_L 103*(oos), NAK 101/0, WRITE_M 101, WRITE_M 102, WRITE_L 103*, ACK 103/1")
	s.wantCounters("rq.packet_seq_err=1 rs.out_of_sequence=1")
	if s.b.icrc != 1 {
		t.Fatalf("%d ICRC drops", s.b.icrc)
	}
}

func TestTC35EcnToCnp(t *testing.T) {
	s := newCase(t)
	// Packets 1, 2 a microsecond apart, 6 sixty microseconds later.
	s.gap = us
	s.fault = func(from, n int, f *wire.Frame) verdict {
		p := f.PSN()
		v := verdict{ce: from == 0 && (p == 100 || p == 101 || p == 105)}
		if from == 0 && p >= 105 {
			v.delay = 56 * us
		}
		return v
	}
	np := cc.NP{Interval: 50 * us}
	par := cc.Paper()
	var rp cc.DCQCN
	rp.Init(&par, 100*clock.Gbps)
	var marked, cnps, handled, cuts int
	s.onRecv = func(x *side, f *wire.Frame) {
		if x == s.b && f.Kind == wire.KindData && f.ECN() == wire.CE {
			marked++
			if np.Mark(s.now, x.q.QPN(), 2, f.Src) {
				cnps++
				var c wire.Frame
				x.q.CNPFrame(&c, 48<<2|wire.ECT0)
				if c.DstQPN() != 0x11 || c.PSN() != 0 || !c.Has(wire.FlagBECN) || c.Has(wire.FlagAckReq) || c.Len != wire.CNPFrame || c.Index != uint32(cnps) {
					t.Fatalf("CNP %+v", c)
				}
				s.send(x, c)
			}
		}
		if x == s.a && f.Kind == wire.KindCNP {
			handled++
			old := rp.Rate(s.now)
			rp.OnFeedback(s.now, cc.Feedback{Kind: cc.CNP})
			if rp.Rate(s.now) < old {
				cuts++
			}
		}
	}
	s.post(qp.WR{Verb: qp.Write, Len: 8 * 1024})
	s.run(clock.Never)
	if marked != 3 || cnps != 2 || handled != 2 || cuts != 2 {
		t.Fatalf("marked %d, CNPs %d, handled %d, cuts %d", marked, cnps, handled, cuts)
	}
	s.wantDone("success")
}

func TestTC36NackRaisesCnp(t *testing.T) {
	for _, on := range []bool{true, false} {
		c := caseConfig()
		c.NackTriggersCNP = on
		s := newSim(t, c, c, 100)
		asked := 0
		s.strict = false
		s.fault = drops(req(101, 1))
		s.post(qp.WR{Verb: qp.Write, Len: 4096})
		for range 4 { // feed the responder by hand to see the effect
			var f wire.Frame
			if !s.a.q.Req.NextPacket(s.now, &f) {
				t.Fatal("no packet")
			}
			if f.PSN() != 101 {
				s.b.q.HandleFrame(s.now, &f, false, &s.fx)
				if s.fx.CNP {
					asked++
				}
				s.fx.Reset()
			}
		}
		if want := int(b2u(on)); asked != want {
			t.Fatalf("CNPs with NAKs: %d, want %d", asked, want)
		}
	}
}

func TestTC37ZeroLength(t *testing.T) {
	c := caseConfig()
	c.RecvQueue, c.RecvRepost = 1, clock.Duration(clock.Never)
	s := newSim(t, caseConfig(), c, 100)
	s.post(qp.WR{Verb: qp.Send, Len: 0})
	s.post(qp.WR{Verb: qp.Write, Len: 0, RKey: 0xdead})
	s.run(clock.Never)
	s.wantWire("SEND_O 100*, WRITE_O 101*, ACK 100/1, ACK 101/2")
	s.wantDone("success success")
	if len(s.b.recv) != 2 || s.b.recv[0].Bytes != 0 || !s.b.recv[0].CQE || s.b.recv[1].CQE {
		t.Fatalf("receives %+v", s.b.recv)
	}
}

func TestTC39MaximumMessage(t *testing.T) {
	for _, c := range []struct {
		mtu  int
		psns int32
	}{{4096, 524_288}, {256, 1 << 23}} {
		cfg := caseConfig()
		cfg.MTU, cfg.AckFreqLog = c.mtu, 0
		var a qp.QP
		var fx qp.Effects
		a.Init(qp.Params{Cfg: &cfg, QPN: 0x11, PeerQPN: 0x22, Src: 1, Dst: 2})
		a.Req.Post(0, &qp.WR{Verb: qp.Write, Len: qp.MaxMessage}, &fx)
		a.Req.Post(0, &qp.WR{Verb: qp.Write, Len: 100}, &fx)
		var f, last wire.Frame
		n := int32(0)
		for a.Req.NextPacket(0, &f) {
			if f.Op() == wire.WriteOnly {
				break
			}
			last = f
			n++
		}
		want := min(c.psns, wire.MaxOutstanding)
		if n != want || !last.Has(wire.FlagAckReq) {
			t.Fatalf("mtu %d: %d packets out, want %d with AckReq on the last", c.mtu, n, want)
		}
		if c.psns > want && f.Op() == wire.WriteOnly {
			t.Fatal("the next message started with the window full")
		}
	}
	s := newCase(t)
	s.post(qp.WR{Verb: qp.Write, Len: qp.MaxMessage + 1})
	s.wantDone("loc_len_err")
	s = newCase(t) // behind other work it completes in its turn
	s.post(qp.WR{Verb: qp.Write, Len: 10})
	s.post(qp.WR{Verb: qp.Read, Len: qp.MaxMessage + 1})
	s.post(qp.WR{Verb: qp.Write, Len: 10})
	s.run(clock.Never)
	s.wantDone("success loc_len_err wr_flush_err")
	s = newCase(t) // a forged length on the wire
	f := wire.Frame{Kind: wire.KindData, Len: uint16(wire.RoCELen(wire.WriteFirst, 1024)), B: uint64(s.b.key)<<32 | (qp.MaxMessage + 1)}
	f.SetOp(wire.WriteFirst, 0x22)
	f.SetPSN(100)
	s.send(s.a, f)
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, NAK61 100")
	// READ: one PSN a response, the window holds 2^23-1.
	cfg := caseConfig()
	cfg.MTU = 256
	s = newSim(t, cfg, cfg, 0)
	s.post(qp.WR{Verb: qp.Read, Len: qp.MaxMessage})
	s.wantDone("loc_len_err")
}
