package qp_test

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/cc"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
)

// One test a case of the transport cases, T-C23 to T-C48.

func TestTC23RNRExhaustion(t *testing.T) {
	for _, c := range []struct {
		retry, sends int
		done, count  string
	}{
		{3, 4, "rnr_retry_exc_err wr_flush_err", "rq.rnr_nak_retry_err=3 rq.req_rnr_retries_exceeded=1 rs.out_of_buffer=4 rq.req_cqe_error=1 rq.req_cqe_flush_error=1"},
		{0, 1, "rnr_retry_exc_err wr_flush_err", "rq.req_rnr_retries_exceeded=1 rs.out_of_buffer=1"},
	} {
		s := rnrPair(t, func(a, b *qp.Config) { a.RNRRetry, b.MinRNRTimer = uint8(c.retry), 1 })
		s.post(qp.WR{Verb: qp.Send, Len: 100})
		s.at(clock.Time(us), func() { s.post(qp.WR{Verb: qp.Write, Len: 10}) })
		s.run(clock.Never)
		s.wantDone(c.done)
		s.wantCounters(c.count)
		if n := strings.Count(strings.Join(s.lines, " "), "SEND_O 100"); n != c.sends || s.a.q.State() != qp.StateErr {
			t.Fatalf("%d sends in state %v, want %d in ERR", n, s.a.q.State(), c.sends)
		}
	}
	s := rnrPair(t, func(a, b *qp.Config) { a.RNRRetry, b.MinRNRTimer = 7, 1 })
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Time(50 * 50 * us))
	if s.a.cnt.RnrNakRetryErr < 45 || s.a.q.State() != qp.StateRTS || len(s.a.done) != 0 {
		t.Fatalf("rnr_retry 7: %d rounds, state %v", s.a.cnt.RnrNakRetryErr, s.a.q.State())
	}
}

// blackHole loses everything from the start.
func blackHole(clock.Time, bool) bool { return true }

func TestTC24RetryExhaustion(t *testing.T) {
	for _, retry := range []uint8{3, 0} {
		c := caseConfig()
		c.Timeout, c.RetryCnt = qp.AckTimeout(10), retry
		s := newSim(t, c, c, 100)
		s.dead = blackHole
		s.post(qp.WR{Verb: qp.Send, Len: 100})
		s.post(qp.WR{Verb: qp.Send, Len: 100})
		s.run(clock.Never)
		s.wantDone("retry_exc_err wr_flush_err")
		if s.a.cnt.LocalAckTimeoutErr != uint64(retry) || s.a.cnt.TransportRetriesExc != 1 {
			t.Fatalf("retry_cnt %d: %d timeouts, %d exceeded", retry, s.a.cnt.LocalAckTimeoutErr, s.a.cnt.TransportRetriesExc)
		}
		if want := clock.Time(qp.AckTimeout(10)) * clock.Time(retry+1); s.now != want {
			t.Fatalf("error at %v, want %v", s.now, want)
		}
		for i, at := range s.times { // two packets a round, each round at k·T
			if want := clock.Time(qp.AckTimeout(10)) * clock.Time(i/2); at != want && i%2 == 0 {
				t.Fatalf("transmission %d at %v, want %v", i, at, want)
			}
		}
		var fx qp.Effects
		f := wire.Frame{Kind: wire.KindAck, Len: wire.AckFrame}
		f.SetOp(wire.Acknowledge, 0x11)
		f.SetPSN(100)
		s.a.q.HandleFrame(s.now, &f, false, &fx)
		if len(fx.Done)+len(fx.Notes) != 0 {
			t.Fatal("a packet in ERR had an effect")
		}
	}
}

func TestTC24Window(t *testing.T) {
	c := caseConfig()
	c.Timeout, c.WindowT4 = qp.AckTimeout(10), true
	s := newSim(t, c, c, 100)
	s.dead = blackHole
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Never)
	T := qp.AckTimeout(10)
	last := clock.Time(0)
	varied := false
	for _, at := range append(s.times[1:], s.now) {
		d := at.Sub(last)
		if d < T || d > 4*T {
			t.Fatalf("gap %v outside T..4T", d)
		}
		varied = varied || d != T
		last = at
	}
	if !varied {
		t.Fatal("every gap is T: no window")
	}
}

func TestTC25Retry7(t *testing.T) {
	c := caseConfig()
	c.Timeout, c.RetryCnt = qp.AckTimeout(10), 7
	s := newSim(t, c, c, 100)
	s.dead = blackHole
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Never)
	if want := clock.Time(qp.AckTimeout(10)) * 8; s.now != want {
		t.Fatalf("fatal at %v, want the 8th expiry %v", s.now, want)
	}
	s.wantDone("retry_exc_err")
	c.Retry7Infinite = true
	s = newSim(t, c, c, 100)
	s.dead = blackHole
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Time(qp.AckTimeout(10)) * 20)
	if s.a.cnt.LocalAckTimeoutErr != 20 || s.a.q.State() != qp.StateRTS {
		t.Fatalf("rxe: %d timeouts in %v", s.a.cnt.LocalAckTimeoutErr, s.a.q.State())
	}
}

func TestTC27NoProgress(t *testing.T) {
	for _, reload := range []bool{false, true} {
		c := caseConfig()
		c.NakReload = reload
		s := newSim(t, c, c, 100)
		s.fault = func(from, n int, f *wire.Frame) verdict { return verdict{drop: from == 0 && f.PSN() == 100} }
		s.post(qp.WR{Verb: qp.Write, Len: 2048})
		s.run(clock.Never)
		s.wantDone("retry_exc_err")
		want := "rq.packet_seq_err=1 rs.out_of_sequence=1 rq.local_ack_timeout_err=2 rq.req_transport_retries_exceeded=1"
		if reload {
			want = strings.Replace(want, "timeout_err=2", "timeout_err=3", 1)
		}
		s.wantCounters(want)
		if n := strings.Count(strings.Join(s.lines, " "), "NAK"); n != 1 {
			t.Fatalf("%d NAKs", n)
		}
	}
}

func TestTC28TimerOff(t *testing.T) {
	c := caseConfig()
	c.Timeout = 0
	s := newSim(t, c, c, 100)
	s.fault = drops(req(100, 1))
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Never)
	if len(s.a.done) != 0 || s.a.q.Req.Outstanding() != 1 || s.a.q.Req.Deadline() != clock.Never || s.a.q.State() != qp.StateRTS {
		t.Fatalf("done %v outstanding %d deadline %v", s.a.done, s.a.q.Req.Outstanding(), s.a.q.Req.Deadline())
	}
	s.wantWire("SEND_O 100*!")
}

func TestTC29Wrap(t *testing.T) {
	s := newSim(t, caseConfig(), caseConfig(), 0xFFFFFE)
	s.fault = drops(req(0, 1))
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 16777214, WRITE_M 16777215, WRITE_M 0!, WRITE_L 1*(oos), NAK 0/0, WRITE_M 0, WRITE_L 1*, ACK 1/1")
	s = newSim(t, caseConfig(), caseConfig(), 0xFFFFFE)
	s.fault = drops(resp(0, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 4096, VA: 512})
	s.run(clock.Never)
	s.wantWire("READ_REQ 16777214+512:4096*, RF 16777214, RM 16777215, RM 0!, RL 1, READ_REQ 0+2560:2048*(dup), RF 0, RL 1")
	s.wantDone("success")
}

// stray is a SEND_ONLY with AckReq at the responder.
func stray(psn wire.PSN) *wire.Frame {
	f := &wire.Frame{Kind: wire.KindData, Len: uint16(wire.RoCELen(wire.SendOnly, 100)), Iter: 1}
	f.SetOp(wire.SendOnly, 0x22)
	f.SetPSN(psn)
	f.Set(wire.FlagAckReq)
	return f
}

func TestTC30RegionBoundaries(t *testing.T) {
	fresh := func() *sim {
		s := newSim(t, caseConfig(), caseConfig(), 999)
		s.post(qp.WR{Verb: qp.Send, Len: 100})
		s.run(clock.Never)
		s.strict = false
		s.lines, s.times = nil, nil
		if s.b.q.Resp.EPSN() != 1000 {
			t.Fatalf("ePSN %d", s.b.q.Resp.EPSN())
		}
		return s
	}
	feed := func(s *sim, psn wire.PSN) {
		s.b.q.HandleFrame(s.now, stray(psn), false, &s.fx)
		s.take(s.b)
		s.run(clock.Never)
	}
	s := fresh()
	feed(s, 999)
	s.wantWire("ACK 999/1")
	feed(s, 1001)
	feed(s, wire.PSN(1000).Add(1<<23-1))
	s.wantWire("ACK 999/1, NAK 1000/1")
	if s.b.cnt.DuplicateRequest != 1 || s.b.cnt.OutOfSequence != 1 {
		t.Fatalf("duplicates %d, out of sequence %d", s.b.cnt.DuplicateRequest, s.b.cnt.OutOfSequence)
	}
	feed(s, wire.PSN(1000).Add(1<<23+1))
	feed(s, wire.PSN(1000).Add(1<<23)) // implementation defined: a duplicate here
	if s.b.cnt.DuplicateRequest != 3 || s.b.cnt.OutOfSequence != 1 || len(s.b.recv) != 1 {
		t.Fatalf("duplicates %d, out of sequence %d", s.b.cnt.DuplicateRequest, s.b.cnt.OutOfSequence)
	}
}

func TestTC31Ghosts(t *testing.T) {
	s := newSim(t, caseConfig(), caseConfig(), 150)
	for range 50 {
		s.post(qp.WR{Verb: qp.Send, Len: 100})
	}
	s.run(clock.Never)
	s.strict = false
	if s.a.q.Req.Una() != 200 || s.a.q.Req.Next() != 200 {
		t.Fatalf("una %d next %d", s.a.q.Req.Una(), s.a.q.Req.Next())
	}
	before, notes := string(s.a.q.Req.AppendState(nil)), len(s.a.note)
	for _, g := range []struct {
		op  wire.Opcode
		syn uint8
		psn wire.PSN
	}{{wire.Acknowledge, 0x1f, 199}, {wire.Acknowledge, 0x1f, 200}, {wire.Acknowledge, 0x1f, 500},
		{wire.Acknowledge, wire.SynNAKSequence, 500}, {wire.ReadRespOnly, 0x1f, 200}} {
		f := wire.Frame{Kind: wire.KindAck, Len: wire.AckFrame}
		f.SetOp(g.op, 0x11)
		f.SetPSN(g.psn)
		f.SetAETH(g.syn, 50)
		s.a.q.HandleFrame(s.now, &f, false, &s.fx)
		s.take(s.a)
	}
	if string(s.a.q.Req.AppendState(nil)) != before || len(s.a.done) != 50 {
		t.Fatal("a ghost changed the requester")
	}
	if len(s.a.note)-notes != 4 || s.a.cnt.IgnoredResponses != 4 {
		t.Fatalf("%d ignored_response notes, want 4", len(s.a.note)-notes)
	}
	s.lines = nil
	f := *stray(150)
	s.send(s.a, f)
	s.run(clock.Never)
	if got := strings.Join(s.lines, ", "); got != "SEND_O 150*(dup), ACK 199/50" {
		t.Fatal(got)
	}
	s.wantCounters("rs.duplicate_request=1")
}

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

func TestTC41ReadAcksSends(t *testing.T) {
	s := newCase(t)
	s.fault = drops(ack(1))
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.post(qp.WR{Verb: qp.Read, Len: 1024})
	s.run(clock.Never)
	s.wantWire("SEND_O 100*, READ_REQ 101+0:1024*, ACK 100/1!, RO 101")
	s.wantDone("success success")
	s.wantCounters("")
	c := caseConfig()
	c.ReadNoAck, c.AckBeforeReplay = true, true
	s = newSim(t, c, c, 100)
	s.strict = false
	s.fault = drops(ack(1))
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.post(qp.WR{Verb: qp.Read, Len: 1024})
	s.run(clock.Never)
	s.wantDone("success success")
	if s.a.cnt.LocalAckTimeoutErr != 1 || !strings.Contains(strings.Join(s.lines, " "), "SEND_O 100*(dup)") {
		t.Fatalf("old requester: %v", s.lines)
	}
}

func TestTC42RemoteAccessError(t *testing.T) {
	s := newCase(t)
	s.post(qp.WR{Verb: qp.Write, Len: 4096, RKey: 0xbad})
	s.post(qp.WR{Verb: qp.Write, Len: 100})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, WRITE_M 101, WRITE_M 102, WRITE_L 103*, WRITE_O 104*, NAK62 100")
	s.wantDone("rem_access_err wr_flush_err")
	s.wantCounters("rq.req_remote_access_errors=1 rs.resp_remote_access_errors=1")
	if s.a.q.State() != qp.StateErr || s.b.q.State() != qp.StateErr || s.a.q.Req.RetriesLeft() != 3 {
		t.Fatalf("states %v %v, retries %d", s.a.q.State(), s.b.q.State(), s.a.q.Req.RetriesLeft())
	}
}

func TestTC46PathMigration(t *testing.T) {
	c := caseConfig()
	c.Timeout = qp.AckTimeout(10)
	migrating := func(alt bool) *sim {
		s := newSim(t, c, c, 100)
		for _, x := range []*side{s.a, s.b} {
			p := qp.Params{Cfg: &c, Counters: &x.cnt, Memory: &x.mem, QPN: 0x11, PeerQPN: 0x22, Src: 1, Dst: 2, SQPSN: 100, RQPSN: 100, AltPath: alt}
			if x == s.b {
				p.QPN, p.PeerQPN, p.Src, p.Dst = 0x22, 0x11, 2, 1
			}
			x.q.Init(p)
		}
		s.dead = func(at clock.Time, viaAlt bool) bool { return !viaAlt }
		return s
	}
	s := migrating(true)
	var m []bool
	s.fault = func(from, n int, f *wire.Frame) verdict { m = append(m, f.Has(wire.FlagM)); return verdict{} }
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Never)
	s.wantWire("SEND_O 100*!, SEND_O 100*!, SEND_O 100*!, SEND_O 100*!, SEND_O 100*, ACK 100/1")
	s.wantDone("success")
	if got := []bool{m[0], m[3], m[4], m[5]}; got[0] || got[1] || !got[2] || !got[3] {
		t.Fatalf("M bits %v", got)
	}
	for _, x := range []*side{s.a, s.b} {
		if x.q.Migration() != qp.Migrated || s.firstNote(x, qp.NoteMigrate) == clock.Never || !x.q.OnAlternate() {
			t.Fatalf("no PATH_MIG: %v", x.note)
		}
	}
	if s.a.q.Req.RetriesLeft() != 3 || s.a.cnt.TransportRetriesExc != 0 {
		t.Fatalf("retries %d", s.a.q.Req.RetriesLeft())
	}
	// Reload and REARM on both sides: the first M=0 packet makes ARMED.
	s.a.q.Reload()
	s.b.q.Reload()
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Never)
	if s.a.q.Migration() != qp.Armed || s.b.q.Migration() != qp.Armed {
		t.Fatalf("states %v %v after rearming", s.a.q.Migration(), s.b.q.Migration())
	}
	s = migrating(false) // not armed: as T-C24
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Never)
	s.wantDone("retry_exc_err")
	s = migrating(true) // M=1 from the path in use is not a migration
	f := *stray(100)
	f.Set(wire.FlagM)
	s.b.q.HandleFrame(0, &f, false, &s.fx)
	if s.b.q.Resp.EPSN() != 100 || s.b.q.Migration() != qp.Armed {
		t.Fatal("M=1 over the wrong path was taken")
	}
}

func TestTC47Adaptive(t *testing.T) {
	c := caseConfig()
	c.ADP, c.RetryCnt = qp.DefaultADP(), 7
	s := newSim(t, c, c, 100)
	s.dead = blackHole
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Never)
	s.wantDone("retry_exc_err")
	T := qp.AckTimeout(14)
	first := s.times[1].Sub(s.times[0])
	if first > T/4 || len(s.times) <= 8 {
		t.Fatalf("first timeout %v, %d transmissions", first, len(s.times))
	}
	prev := first
	for i := 2; i < len(s.times); i++ {
		d := s.times[i].Sub(s.times[i-1])
		if d != prev && d != 2*prev || d > T {
			t.Fatalf("timeout %v after %v", d, prev)
		}
		prev = d
	}
	if s.now < clock.Time(7*T) || s.now >= clock.Time(8*T) {
		t.Fatalf("failed at %v, budget 7 × %v", s.now, T)
	}
	if s.a.cnt.RoceAdpRetrans == 0 || s.a.cnt.RoceAdpRetransTo != uint64(len(s.times)-1) {
		t.Fatalf("adaptive resends %d, by timeout %d", s.a.cnt.RoceAdpRetrans, s.a.cnt.RoceAdpRetransTo)
	}
	c.ADP = nil
	s = newSim(t, c, c, 100)
	s.dead = blackHole
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Never)
	if s.now != clock.Time(8*T) || len(s.times) != 8 {
		t.Fatalf("off: %d transmissions until %v", len(s.times), s.now)
	}
}

func TestTC48TimerTables(t *testing.T) {
	for n := uint8(0); n <= 31; n++ {
		v, err := qp.VendorTimeout(qp.VendorIBTA, n)
		want := clock.Duration(4096) * clock.Nanosecond << n
		if n == 0 {
			want = 0
		}
		if err != nil || v != want {
			t.Fatalf("ibta %d: %v %v", n, v, err)
		}
		q, _ := qp.VendorTimeout(qp.VendorQEDR, n)
		if want := clock.Millisecond << max(int(n)-8, 0); n > 0 && q != want {
			t.Fatalf("qedr %d: %v want %v", n, q, want)
		}
		if _, err := qp.VendorTimeout(qp.VendorHIP08, n); (err != nil) != (n > 20) {
			t.Fatalf("hip08 %d: %v", n, err)
		}
		for _, floor := range []clock.Duration{4096 * clock.Nanosecond << 16, 4 * us, 16384 * clock.Nanosecond} {
			r, _ := qp.ResolveTimeout(qp.TimeoutParams{Exponent: n, Floor: floor})
			if n > 0 && (r.T != max(want, floor) || r.Clamped != (want < floor) || r.Asked != want) {
				t.Fatalf("floor %v, %d: %+v", floor, n, r)
			}
		}
	}
	for _, c := range []struct{ delay, life, n uint8 }{{15, 18, 19}, {16, 18, 19}, {15, 14, 16}, {20, 18, 21}, {4, 1, 4}} {
		if got := qp.CMLinux(c.delay, c.life); got != c.n {
			t.Errorf("linux (%d,%d) = %d, want %d", c.delay, c.life, got, c.n)
		}
	}
	for _, c := range []struct {
		m    qp.TimeoutMode
		want clock.Duration
	}{{qp.TimeoutArticle, 208_896 * clock.Nanosecond}, {qp.TimeoutLinux, 2_147_483_648 * clock.Nanosecond}, {qp.TimeoutExact, 2_281_701_376 * clock.Nanosecond}} {
		r, err := qp.ResolveTimeout(qp.TimeoutParams{Mode: c.m, PacketLife: 18, AckDelay: 15})
		if err != nil || r.T != c.want {
			t.Errorf("mode %d: %v, want %v", c.m, r.T, c.want)
		}
	}
	table := []string{"655.36ms", "10us", "20us", "30us", "40us", "60us", "80us", "120us", "160us", "240us", "320us", "480us", "640us", "960us",
		"1.28ms", "1.92ms", "2.56ms", "3.84ms", "5.12ms", "7.68ms", "10.24ms", "15.36ms", "20.48ms", "30.72ms", "40.96ms", "61.44ms", "81.92ms",
		"122.88ms", "163.84ms", "245.76ms", "327.68ms", "491.52ms"}
	for i, w := range table {
		if got := qp.RNRWait(uint8(i), false).String(); got != w {
			t.Errorf("RNR code %d: %s, want %s", i, got, w)
		}
	}
	if got := qp.RNRWait(31, true).String(); got != "126.976us" {
		t.Errorf("article's code 31: %s", got)
	}
}
