package qp_test

import (
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
)

// One test a case of the transport cases, T-C01 to T-C22.

func TestTC01CleanWrite(t *testing.T) {
	s := newCase(t)
	s.post(qp.WR{ID: 1, Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, WRITE_M 101, WRITE_M 102, WRITE_L 103*, ACK 103/1")
	s.wantCounters("rs.rx_write_requests=1")
	s.wantDone("success")
	if s.b.q.Resp.EPSN() != 104 {
		t.Fatalf("ePSN %d", s.b.q.Resp.EPSN())
	}
}

func TestTC02DropMiddle(t *testing.T) {
	s := newCase(t)
	s.fault = drops(req(101, 1))
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, WRITE_M 101!, WRITE_M 102(oos), WRITE_L 103*(oos), NAK 101/0, WRITE_M 101, WRITE_M 102, WRITE_L 103*, ACK 103/1")
	s.wantCounters("rq.packet_seq_err=1 rs.out_of_sequence=1")
	s.wantDone("success")
}

func TestTC04NakLost(t *testing.T) {
	s := newCase(t)
	s.fault = drops(req(101, 1), nak(1))
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, WRITE_M 101!, WRITE_M 102(oos), WRITE_L 103*(oos), NAK 101/0!, T, WRITE_F 100(dup), WRITE_M 101, WRITE_M 102, WRITE_L 103*, ACK 103/1")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.out_of_sequence=1 rs.duplicate_request=1")
}

func TestTC05TailLoss(t *testing.T) {
	s := newCase(t)
	s.fault = drops(req(103, 1))
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, WRITE_M 101, WRITE_M 102, WRITE_L 103*!, T, WRITE_F 100(dup), WRITE_M 101(dup), WRITE_M 102(dup), WRITE_L 103*, ACK 103/1")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.duplicate_request=3")
	if got := s.times[4]; got != clock.Time(qp.AckTimeout(14)) {
		t.Fatalf("resend at %v, want exactly T after the first dequeue", got)
	}
}

func TestTC05EachPacketAcked(t *testing.T) {
	c := caseConfig()
	c.AckEvery = true
	s := newSim(t, c, c, 100)
	s.fault = drops(req(103, 1))
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100*, WRITE_M 101*, WRITE_M 102*, WRITE_L 103*!, ACK 100/0, ACK 101/0, ACK 102/0, T, WRITE_L 103*, ACK 103/1")
	s.wantCounters("rq.local_ack_timeout_err=1")
}

func TestTC05Probe(t *testing.T) {
	c := caseConfig()
	c.ProbeOne = true
	s := newSim(t, c, c, 100)
	s.fault = drops(req(103, 1))
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, WRITE_M 101, WRITE_M 102, WRITE_L 103*!, T, WRITE_F 100*(dup), ACK 102/0, WRITE_L 103*, ACK 103/1")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.duplicate_request=1")
}

func TestTC06DropFirst(t *testing.T) {
	s := newCase(t)
	s.fault = drops(req(100, 1))
	s.post(qp.WR{Verb: qp.Write, Len: 4096})
	s.run(clock.Never)
	s.wantWire("WRITE_F 100!, WRITE_M 101(oos), WRITE_M 102(oos), WRITE_L 103*(oos), NAK 100/0, WRITE_F 100, WRITE_M 101, WRITE_M 102, WRITE_L 103*, ACK 103/1")
	s.wantCounters("rq.packet_seq_err=1 rs.out_of_sequence=1")
}

func TestTC07LostAck(t *testing.T) {
	c := caseConfig()
	c.RecvQueue, c.RecvRepost = 2, clock.Duration(clock.Never)
	s := newSim(t, caseConfig(), c, 100)
	s.fault = drops(ack(1))
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.run(clock.Never)
	s.wantWire("SEND_O 100*, ACK 100/1!, T, SEND_O 100*(dup), ACK 100/1")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.duplicate_request=1")
	s.wantDone("success")
	if len(s.b.recv) != 1 || s.b.recv[0].Bytes != 100 || s.b.q.Resp.Posted() != 1 {
		t.Fatalf("receives %v, %d posted", s.b.recv, s.b.q.Resp.Posted())
	}
}

func TestTC09LostReadResponse(t *testing.T) {
	s := newCase(t)
	s.fault = drops(resp(101, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:4096*, RF 100, RM 101!, RM 102, RL 103, READ_REQ 101+1024:3072*(dup), RF 101, RM 102, RL 103")
	s.wantCounters("rq.implied_nak_seq_err=1 rs.duplicate_request=1 rs.rx_read_requests=2")
	s.wantDone("success")
	if s.a.done[0].Bytes != 4096 {
		t.Fatalf("byte_len %d", s.a.done[0].Bytes)
	}
}

func TestTC09Rxe(t *testing.T) {
	c := caseConfig()
	c.ReadGapTimeout = true
	s := newSim(t, c, c, 100)
	s.fault = drops(resp(101, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:4096*, RF 100, RM 101!, RM 102, RL 103, T, READ_REQ 101+1024:3072*(dup), RF 101, RM 102, RL 103")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.duplicate_request=1")
}

func TestTC09WholeReread(t *testing.T) {
	c := caseConfig()
	c.PartialRead = false
	s := newSim(t, c, c, 100)
	s.fault = drops(resp(101, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:4096*, RF 100, RM 101!, RM 102, RL 103, READ_REQ 100+0:4096*(dup), RF 100, RM 101, RM 102, RL 103")
	s.wantDone("success")
}

func TestTC10LostFirstReadResponse(t *testing.T) {
	s := newCase(t)
	s.fault = drops(resp(100, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:4096*, RF 100!, RM 101, RM 102, RL 103, READ_REQ 100+0:4096*(dup), RF 100, RM 101, RM 102, RL 103")
	s.wantCounters("rq.implied_nak_seq_err=1 rs.duplicate_request=1")
}

func TestTC11LostLastReadResponse(t *testing.T) {
	s := newCase(t)
	s.fault = drops(resp(103, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:4096*, RF 100, RM 101, RM 102, RL 103!, T, READ_REQ 103+3072:1024*(dup), RO 103")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.duplicate_request=1")
	s.wantDone("success")
}

func TestTC12LostReadRequest(t *testing.T) {
	s := newCase(t)
	s.fault = drops(req(100, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.post(qp.WR{Verb: qp.Write, Len: 100})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:4096*!, WRITE_O 104*(oos), NAK 100/0, READ_REQ 100+0:4096*, WRITE_O 104*, RF 100, RM 101, RM 102, RL 103, ACK 104/2")
	s.wantCounters("rq.packet_seq_err=1 rs.out_of_sequence=1")
	s.wantDone("success success")
}

func TestTC13ImpliedNak(t *testing.T) {
	s := newCase(t)
	s.fault = drops(resp(100, 1), resp(101, 1), resp(102, 1), resp(103, 1))
	s.post(qp.WR{ID: 1, Verb: qp.Read, Len: 4096})
	s.post(qp.WR{ID: 2, Verb: qp.Write, Len: 100})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:4096*, WRITE_O 104*, RF 100!, RM 101!, RM 102!, RL 103!, ACK 104/2, " +
		"READ_REQ 100+0:4096*(dup), WRITE_O 104*(dup), RF 100, RM 101, RM 102, RL 103, ACK 104/2")
	s.wantCounters("rq.implied_nak_seq_err=1 rs.duplicate_request=2")
	s.wantDone("success success")
}

func TestTC15SilenceIsTimeout(t *testing.T) {
	s := newCase(t)
	s.fault = drops(resp(100, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 1024})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:1024*, RO 100!, T, READ_REQ 100+0:1024*(dup), RO 100")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.duplicate_request=1")
}

func TestTC16AtomicOnce(t *testing.T) {
	s := newCase(t)
	s.b.mem.SetWord(64, 10)
	s.fault = drops(resp(100, 1))
	s.post(qp.WR{Verb: qp.FetchAdd, VA: 64, Swap: 5})
	s.run(clock.Never)
	s.wantWire("FETCH_ADD 100*, ATOMIC_ACK 100=10!, T, FETCH_ADD 100*(dup), ATOMIC_ACK 100=10")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.duplicate_request=1")
	if s.b.mem.Word(64) != 15 || s.a.done[0].Orig != 10 {
		t.Fatalf("memory %d, original %d", s.b.mem.Word(64), s.a.done[0].Orig)
	}
}

func TestTC16CompareSwap(t *testing.T) {
	s := newCase(t)
	s.b.mem.SetWord(8, 3)
	s.post(qp.WR{Verb: qp.CmpSwap, VA: 8, Compare: 4, Swap: 9})
	s.post(qp.WR{Verb: qp.CmpSwap, VA: 8, Compare: 3, Swap: 7})
	s.run(clock.Never)
	s.wantDone("success success")
	if s.b.mem.Word(8) != 7 || s.a.done[0].Orig != 3 || s.a.done[1].Orig != 3 {
		t.Fatalf("memory %d, originals %d %d", s.b.mem.Word(8), s.a.done[0].Orig, s.a.done[1].Orig)
	}
}

// rnrPair is a responder without receives until the application posts some.
func rnrPair(t *testing.T, change func(a, b *qp.Config)) *sim {
	a, b := caseConfig(), caseConfig()
	b.RecvQueue, b.RecvRepost = 0, clock.Duration(clock.Never)
	if change != nil {
		change(&a, &b)
	}
	return newSim(t, a, b, 100)
}

func TestTC18RNR(t *testing.T) {
	s := rnrPair(t, nil)
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.at(clock.Time(500*us), func() { s.b.q.Resp.PostRecv(1) })
	s.run(clock.Never)
	s.wantWire("SEND_O 100*, RNR 100/12, SEND_O 100*, ACK 100/1")
	s.wantCounters("rq.rnr_nak_retry_err=1 rs.out_of_buffer=1")
	if w := s.times[2].Sub(s.times[1].Add(s.delay)); w != 640*us {
		t.Fatalf("waited %v, want 640us", w)
	}
}

func TestTC19RNRWithPacketsBehind(t *testing.T) {
	s := rnrPair(t, func(a, b *qp.Config) { b.RecvQueue = 1 })
	for range 3 {
		s.post(qp.WR{Verb: qp.Send, Len: 100})
	}
	s.at(clock.Time(500*us), func() { s.b.q.Resp.PostRecv(2) })
	s.run(clock.Never)
	s.wantWire("SEND_O 100*, SEND_O 101*, SEND_O 102*(oos), ACK 100/1, RNR 101/12, SEND_O 101*, SEND_O 102*, ACK 101/2, ACK 102/3")
	s.wantCounters("rq.rnr_nak_retry_err=1 rs.out_of_buffer=1")
	s.wantDone("success success success")
}

func TestTC19Rxe(t *testing.T) {
	s := rnrPair(t, func(a, b *qp.Config) { b.RecvQueue, b.OOSBehindRNR = 1, true })
	for range 3 {
		s.post(qp.WR{Verb: qp.Send, Len: 100})
	}
	s.at(clock.Time(500*us), func() { s.b.q.Resp.PostRecv(2) })
	s.run(clock.Never)
	s.wantWire("SEND_O 100*, SEND_O 101*, SEND_O 102*(oos), ACK 100/1, RNR 101/12, NAK 101/1, SEND_O 101*, SEND_O 102*, ACK 101/2, ACK 102/3")
	s.wantCounters("rq.rnr_nak_retry_err=1 rq.packet_seq_err=1 rs.out_of_buffer=1 rs.out_of_sequence=1")
	if w := s.times[6].Sub(s.times[4].Add(s.delay)); w != 640*us {
		t.Fatalf("the NAK cut the RNR wait to %v", w)
	}
}

func TestTC20EarlyResend(t *testing.T) {
	for _, c := range []struct {
		policy qp.RNREarly
		posted clock.Time
		wire   string
		count  string
	}{
		{
			qp.RNREarlyDrop, clock.Time(100 * us), "SEND_O 100*, RNR 100/12, SEND_O 100*, T, SEND_O 100*, ACK 100/1",
			"rq.local_ack_timeout_err=1 rq.rnr_nak_retry_err=1 rs.out_of_buffer=1",
		},
		{
			qp.RNREarlyRenak, clock.Time(100 * us), "SEND_O 100*, RNR 100/12, SEND_O 100*, RNR 100/12, SEND_O 100*, ACK 100/1",
			"rq.rnr_nak_retry_err=2 rs.out_of_buffer=2",
		},
		{
			qp.RNREarlyExecute, clock.Time(100 * us), "SEND_O 100*, RNR 100/12, SEND_O 100*, ACK 100/1",
			"rq.rnr_nak_retry_err=1 rs.out_of_buffer=1",
		},
		{
			qp.RNREarlyExecute, clock.Time(300 * us), "SEND_O 100*, RNR 100/12, SEND_O 100*, RNR 100/12, SEND_O 100*, ACK 100/1",
			"rq.rnr_nak_retry_err=2 rs.out_of_buffer=2",
		},
	} {
		s := rnrPair(t, func(a, b *qp.Config) { b.RNREarly = c.policy })
		s.a.q.Req.SetEarlyRNR(200 * us)
		s.post(qp.WR{Verb: qp.Send, Len: 100})
		s.at(c.posted, func() { s.b.q.Resp.PostRecv(1) })
		s.at(clock.Time(250*us), func() { s.a.q.Req.SetEarlyRNR(-1) })
		s.run(clock.Never)
		s.wantWire(c.wire)
		s.wantCounters(c.count)
	}
}

func TestTC22RNRLost(t *testing.T) {
	s := rnrPair(t, nil)
	s.fault = drops(rnr(1))
	s.post(qp.WR{Verb: qp.Send, Len: 100})
	s.at(clock.Time(500*us), func() { s.b.q.Resp.PostRecv(1) })
	s.run(clock.Never)
	s.wantWire("SEND_O 100*, RNR 100/12!, T, SEND_O 100*, ACK 100/1")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.out_of_buffer=1")
	if got := s.times[2]; got != clock.Time(qp.AckTimeout(14)) {
		t.Fatalf("resend at %v", got)
	}
}

// A WRITE with immediate takes its receive at the last packet: the RNR carries
// that PSN and what came before is placed (transport §2.4).
func TestWriteImmRNRAtLast(t *testing.T) {
	s := rnrPair(t, nil)
	s.post(qp.WR{Verb: qp.WriteImm, Len: 3000, Imm: 0xCAFE})
	s.at(clock.Time(500*us), func() { s.b.q.Resp.PostRecv(1) })
	s.run(clock.Never)
	s.wantWire("WRITE_F 100, WRITE_M 101, WRITE_LI 102*, RNR 102/12, WRITE_LI 102*, ACK 102/1")
	if len(s.b.recv) != 1 || !s.b.recv[0].HasImm || s.b.recv[0].Imm != 0xCAFE || !s.b.recv[0].CQE || s.b.recv[0].Bytes != 3000 {
		t.Fatalf("receive %+v", s.b.recv)
	}
}
