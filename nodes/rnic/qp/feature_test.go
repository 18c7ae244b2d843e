package qp_test

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
)

func TestMaxRdAtomicBlocks(t *testing.T) {
	c := caseConfig()
	c.MaxRdAtomic = 1
	s := newSim(t, c, c, 100)
	s.post(qp.WR{Verb: qp.Read, Len: 100})
	s.post(qp.WR{Verb: qp.Read, Len: 100})
	s.post(qp.WR{Verb: qp.Write, Len: 100})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:100*, RO 100, READ_REQ 101+0:100*, WRITE_O 102*, RO 101, ACK 102/3")
}

func TestFenceWaitsForReads(t *testing.T) {
	s := newCase(t)
	s.post(qp.WR{Verb: qp.Write, Len: 10})
	s.post(qp.WR{Verb: qp.Read, Len: 100})
	s.post(qp.WR{Verb: qp.Send, Len: 10, Fence: true})
	s.run(clock.Never)
	s.wantWire("WRITE_O 100*, READ_REQ 101+0:100*, ACK 100/1, RO 101, SEND_O 102*, ACK 102/3")
}

func TestUnsignalledErrorsSignal(t *testing.T) {
	s := newCase(t)
	s.post(qp.WR{Verb: qp.Write, Len: 10, Unsignalled: true})
	s.post(qp.WR{Verb: qp.Write, Len: 10, Unsignalled: true, RKey: 1})
	s.run(clock.Never)
	s.wantDone("success rem_access_err")
	if s.a.done[0].Signalled || !s.a.done[1].Signalled {
		t.Fatalf("%+v", s.a.done)
	}
}

func TestSQDDrains(t *testing.T) {
	s := newCase(t)
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.at(clock.Time(150*ns), func() { s.a.q.SetState(s.now, qp.StateSQD, &s.fx) })
	s.at(clock.Time(ms), func() { s.a.q.SetState(s.now, qp.StateRTS, &s.fx) })
	s.run(clock.Time(500 * us))
	s.wantDone("success")
	if s.firstNote(s.a, qp.NoteDrained) == clock.Never {
		t.Fatal("no drained event")
	}
	s.run(clock.Never)
	s.wantDone("success success")
}

func TestStatesRefuse(t *testing.T) {
	s := newCase(t)
	s.a.q.SetState(0, qp.StateRTR, &s.fx)
	if s.a.q.Req.Post(0, &qp.WR{Verb: qp.Send}, &s.fx) {
		t.Fatal("posted in RTR")
	}
	s.a.q.SetState(0, qp.StateErr, &s.fx)
	if !s.a.q.Req.Post(0, &qp.WR{Verb: qp.Send}, &s.fx) {
		t.Fatal("refused in ERR: it must flush")
	}
	s.take(s.a)
	s.wantDone("wr_flush_err")
	c := caseConfig()
	c.SendQueue = 1
	s = newSim(t, c, c, 0)
	s.post(qp.WR{Verb: qp.Send})
	if s.a.q.Req.Post(0, &qp.WR{Verb: qp.Send}, &s.fx) {
		t.Fatal("posted beyond the send queue's depth")
	}
}

func TestCreditsLimitSends(t *testing.T) {
	c := caseConfig()
	c.Credits, c.RecvQueue, c.RecvRepost = true, 2, 100*us
	s := newSim(t, c, c, 100)
	for range 6 {
		s.post(qp.WR{Verb: qp.Send, Len: 10})
	}
	s.run(clock.Never)
	s.wantDone(strings.TrimSpace(strings.Repeat("success ", 6)))
	// The first message goes without credits, then as many as the ACK grants
	// and one beyond: no burst of six.
	if !strings.HasPrefix(strings.Join(s.lines, ", "), "SEND_O 100*, ACK 100/1, SEND_O 101*, SEND_O 102*, ACK 101/2") {
		t.Fatal(s.lines)
	}
	c.Credits = false
	s = newSim(t, c, c, 100)
	for range 6 {
		s.post(qp.WR{Verb: qp.Send, Len: 10})
	}
	s.run(clock.Never)
	if !strings.HasPrefix(strings.Join(s.lines, ", "), "SEND_O 100*, SEND_O 101*, SEND_O 102*, SEND_O 103*(oos), SEND_O 104*(oos), SEND_O 105*(oos), ACK") {
		t.Fatal(s.lines)
	}
}

func TestErrorClasses(t *testing.T) {
	ro := func(s *sim) uint32 { return s.b.mem.Register(0, 4096, qp.RemoteRead, 1, false) }
	for _, c := range []struct {
		name string
		wr   func(s *sim) qp.WR
		want string
	}{
		{"write to a read-only region", func(s *sim) qp.WR { return qp.WR{Verb: qp.Write, Len: 8, RKey: ro(s)} }, "rem_access_err"},
		{"write past the region", func(s *sim) qp.WR { return qp.WR{Verb: qp.Write, Len: 8, VA: 1<<32 - 4} }, "rem_access_err"},
		{"atomic without the right", func(s *sim) qp.WR { return qp.WR{Verb: qp.FetchAdd, RKey: ro(s)} }, "rem_access_err"},
		{"misaligned atomic", func(s *sim) qp.WR { return qp.WR{Verb: qp.FetchAdd, VA: 4} }, "rem_inv_req_err"},
		{"read within a read-only region", func(s *sim) qp.WR { return qp.WR{Verb: qp.Read, Len: 4096, RKey: ro(s)} }, "success"},
		{"read past it", func(s *sim) qp.WR { return qp.WR{Verb: qp.Read, Len: 4097, RKey: ro(s)} }, "rem_access_err"},
	} {
		s := newCase(t)
		s.post(c.wr(s))
		s.run(clock.Never)
		if len(s.a.done) != 1 || s.a.done[0].Status.String() != c.want {
			t.Errorf("%s: %+v, want %s", c.name, s.a.done, c.want)
		}
		if ok := s.b.q.State() == qp.StateRTS; ok != (c.want == "success") {
			t.Errorf("%s: responder in %v", c.name, s.b.q.State())
		}
	}
	// Class A: a local fault of the responder.
	s := newCase(t)
	s.post(qp.WR{Verb: qp.Send, Len: 3000})
	s.at(clock.Time(20*us+150*ns), func() { s.b.q.Resp.LocalFault(s.now, &s.fx); s.take(s.b) })
	s.run(clock.Never)
	s.wantDone("rem_op_err")
	if n := len(s.b.recv); n != 1 || s.b.recv[0].Status != qp.LocQPOpErr {
		t.Fatalf("receive %+v", s.b.recv)
	}
	// Class J: a bad R_Key in SEND_INV ends the responder without a word.
	s = newCase(t)
	s.post(qp.WR{Verb: qp.SendInv, Len: 10, Imm: 0xbad})
	s.run(clock.Never)
	s.wantDone("retry_exc_err")
	if strings.Contains(strings.Join(s.lines, " "), "NAK") || s.b.q.State() != qp.StateErr {
		t.Fatalf("%v, responder %v", s.lines, s.b.q.State())
	}
}

func TestOpcodeSequence(t *testing.T) {
	frame := func(op wire.Opcode, n int) wire.Frame {
		f := wire.Frame{Kind: wire.KindData, Len: uint16(wire.RoCELen(op, n)), B: uint64(n)}
		f.SetOp(op, 0x22)
		f.SetPSN(100)
		return f
	}
	for _, f := range []wire.Frame{
		frame(wire.SendMiddle, 1024), frame(wire.WriteLast, 100), frame(wire.SendFirst, 100),
		frame(wire.SendOnly, 1028), frame(wire.Flush, 0),
	} {
		s := newCase(t)
		s.strict = false
		s.send(s.a, f)
		s.run(clock.Never)
		if got := s.lines[len(s.lines)-1]; got != "NAK61 100" || s.b.q.State() != qp.StateErr {
			t.Errorf("%v %d bytes: %v", f.Op(), f.Len, s.lines)
		}
	}
}

// The iteration counts transmissions of the packet, the index names its first.
func TestIterationAndIndex(t *testing.T) {
	s := newCase(t)
	type key struct {
		psn  wire.PSN
		iter uint8
	}
	seen := map[key]int{}
	s.fault = func(from, n int, f *wire.Frame) verdict {
		if from != 0 {
			return verdict{}
		}
		if f.Index != uint32(f.PSN())-99 {
			t.Fatalf("PSN %d has index %d", f.PSN(), f.Index)
		}
		if int(f.Iter) != n {
			t.Fatalf("PSN %d: iteration %d, sent %d times", f.PSN(), f.Iter, n)
		}
		seen[key{f.PSN(), f.Iter}]++
		return verdict{drop: f.PSN() == 102 && n <= 2 || f.PSN() == 105 && n == 1}
	}
	s.post(qp.WR{Verb: qp.Write, Len: 10 * 1024})
	s.run(clock.Never)
	s.wantDone("success")
	if seen[key{102, 3}] != 1 || seen[key{109, 2}] != 1 {
		t.Fatalf("%v", seen)
	}
	// READ responses: their own stream.
	s = newCase(t)
	s.fault = func(from, n int, f *wire.Frame) verdict {
		if from == 1 && (int(f.Iter) != n || f.Index != uint32(f.PSN())-99) {
			t.Fatalf("response %d: iteration %d index %d, sent %d times", f.PSN(), f.Iter, f.Index, n)
		}
		return verdict{drop: from == 1 && (f.PSN() == 102 && n == 1 || f.PSN() == 104 && n == 2)}
	}
	s.post(qp.WR{Verb: qp.Read, Len: 8 * 1024})
	s.run(clock.Never)
	s.wantDone("success")
}

func TestShortages(t *testing.T) {
	for _, c := range []struct {
		short qp.Shortage
		wr    qp.WR
	}{
		{qp.RQEmpty, qp.WR{Verb: qp.Send, Len: 10}},
		{qp.MRNotReady, qp.WR{Verb: qp.Write, Len: 10}},
		{qp.MRNotReady, qp.WR{Verb: qp.Read, Len: 10}},
		{qp.NoResource, qp.WR{Verb: qp.FetchAdd}},
	} {
		s := newCase(t)
		s.b.q.Resp.SetShortage(c.short)
		s.post(c.wr)
		s.at(clock.Time(900*us), func() { s.b.q.Resp.SetShortage(0) })
		s.run(clock.Never)
		s.wantDone("success")
		s.wantCounters("rq.rnr_nak_retry_err=2 rs.out_of_buffer=2")
	}
	c := caseConfig()
	c.RecvQueue = 2
	s := newSim(t, c, c, 100)
	s.b.q.Resp.SetShortage(qp.RQPause)
	for range 4 {
		s.post(qp.WR{Verb: qp.Send, Len: 10})
	}
	s.at(clock.Time(300*us), func() { s.b.q.Resp.SetShortage(0) })
	s.run(clock.Never)
	s.wantDone("success success success success")
	s.wantCounters("rq.rnr_nak_retry_err=1 rs.out_of_buffer=1")
}

func TestReactionLatencies(t *testing.T) {
	c := caseConfig()
	c.NakLatency, c.ReactLatency = 2*us, 5*us
	s := newSim(t, c, c, 100)
	s.fault = drops(req(101, 1))
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, WRITE_M 101!, WRITE_M 102(oos), WRITE_L 103*(oos), NAK 101/0, WRITE_M 101, WRITE_M 102, WRITE_L 103*, ACK 103/1")
	if d := s.times[4].Sub(s.times[2].Add(s.delay)); d != 2*us {
		t.Errorf("NAK generation %v", d)
	}
	if d := s.times[5].Sub(s.times[4].Add(s.delay)); d != 5*us {
		t.Errorf("NAK reaction %v", d)
	}
	c.ReadNakLatency = 150 * us
	s = newSim(t, c, c, 100)
	s.fault = drops(resp(101, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:4096*, RF 100, RM 101!, RM 102, RL 103, READ_REQ 101+1024:3072*(dup), RF 101, RM 102, RL 103")
	if d := s.times[5].Sub(s.times[3].Add(s.delay)); d != 150*us {
		t.Errorf("READ re-request %v", d)
	}
}

func TestIntegrityIsChecked(t *testing.T) {
	s := newCase(t)
	s.strict = false
	s.fault = func(from, n int, f *wire.Frame) verdict {
		if from == 0 && f.PSN() == 101 {
			f.C ^= 1
		}
		return verdict{}
	}
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	if s.b.cnt.IntegrityErrors != 1 || s.firstNote(s.b, qp.NoteIntegrity) == clock.Never {
		t.Fatal("a flipped bit went unnoticed")
	}
}

func TestCompletionTimes(t *testing.T) {
	s := newCase(t)
	s.at(clock.Time(3*us), func() { s.post(qp.WR{Verb: qp.Send, Len: 100}) })
	s.run(clock.Never)
	d := s.a.done[0]
	if d.FirstTx != clock.Time(3*us) || d.RemoteAt != clock.Time(23*us) {
		t.Fatalf("first dequeue %v, last bit at the receiver %v", d.FirstTx, d.RemoteAt)
	}
}
