package qp_test

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
)

// One test a case of the transport cases, T-C23 to T-C31.

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
	}{
		{wire.Acknowledge, 0x1f, 199},
		{wire.Acknowledge, 0x1f, 200},
		{wire.Acknowledge, 0x1f, 500},
		{wire.Acknowledge, wire.SynNAKSequence, 500},
		{wire.ReadRespOnly, 0x1f, 200},
	} {
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
