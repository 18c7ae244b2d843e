package qp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
)

// The RC part of the public problem reports, R-C01 to R-C12 and R-C14: what a
// pair of QPs shows of them.

// reportConfig is timeout 14, retry_cnt 7, rnr_retry 7, min_rnr_timer 12.
func reportConfig() qp.Config {
	c := qp.Generic()
	c.MTU = 4096
	return c
}

func TestRC01FlapLongerThanBudget(t *testing.T) {
	for _, c := range []struct {
		n    uint8
		down clock.Duration
		fail string
	}{{14, 600 * ms, "536.870912ms"}, {18, 9 * clock.Second, "8.589934592s"}, {20, 35 * clock.Second, "34.359738368s"}, {22, 140 * clock.Second, "137.438953472s"}} {
		cfg := reportConfig()
		cfg.Timeout = qp.AckTimeout(c.n)
		s := newSim(t, cfg, cfg, 0)
		t0 := clock.Time(ms)
		s.noLog = true
		s.dead = func(at clock.Time, _ bool) bool { return at < clock.Time(c.down) }
		s.at(t0, func() {
			for i := range 4 {
				s.post(qp.WR{ID: uint64(i), Verb: qp.Write, Len: 1 << 20})
			}
		})
		s.run(clock.Never)
		s.wantDone("retry_exc_err wr_flush_err wr_flush_err wr_flush_err")
		if got := s.now.Sub(t0).String(); got != c.fail {
			t.Fatalf("timeout %d: error after %s, want %s", c.n, got, c.fail)
		}
		if s.a.cnt.LocalAckTimeoutErr != 7 || s.a.cnt.TransportRetriesExc != 1 {
			t.Fatalf("timeouts %d, exceeded %d", s.a.cnt.LocalAckTimeoutErr, s.a.cnt.TransportRetriesExc)
		}
	}
	// Down 468 ms survives, 472 ms dies: the last resend leaves at 469.76 ms.
	for down, want := range map[clock.Duration]string{468 * ms: "success", 472 * ms: "retry_exc_err"} {
		s := newSim(t, reportConfig(), reportConfig(), 0)
		s.dead = func(at clock.Time, _ bool) bool { return at < clock.Time(down) }
		s.post(qp.WR{Verb: qp.Write, Len: 1000})
		s.run(clock.Never)
		s.wantDone(want)
	}
}

func TestRC03OneLostAck(t *testing.T) {
	s := newSim(t, reportConfig(), reportConfig(), 0)
	s.fault = drops(ack(1))
	s.post(qp.WR{Verb: qp.Send, Len: 4096})
	s.run(clock.Never)
	s.wantWire("SEND_O 0*, ACK 0/1!, T, SEND_O 0*(dup), ACK 0/1")
	s.wantCounters("rq.local_ack_timeout_err=1 rs.duplicate_request=1")
	if got := s.times[2].String(); got != "67.108864ms" || len(s.b.recv) != 1 {
		t.Fatalf("resend at %s, %d receives", got, len(s.b.recv))
	}
}

func TestRC05RNRRunsOut(t *testing.T) {
	for _, more := range []bool{false, true} {
		a, b := reportConfig(), reportConfig()
		a.RNRRetry, b.MinRNRTimer, b.RecvQueue, b.RecvRepost = 3, 14, 4, clock.Duration(clock.Never)
		s := newSim(t, a, b, 0)
		for range 5 {
			s.post(qp.WR{Verb: qp.Send, Len: 100})
		}
		if more {
			s.at(clock.Time(2*ms), func() { s.b.q.Resp.PostRecv(1) })
		}
		s.run(clock.Never)
		first := s.firstNote(s.a, qp.NoteRnrRecv)
		if more {
			s.wantDone("success success success success success")
			s.wantCounters("rq.rnr_nak_retry_err=2 rs.out_of_buffer=2")
			continue
		}
		s.wantDone("success success success success rnr_retry_exc_err")
		s.wantCounters("rq.rnr_nak_retry_err=3 rq.req_rnr_retries_exceeded=1 rs.out_of_buffer=4")
		if d := s.now.Sub(first); d < 3840*us || d > 3840*us+4*40*us {
			t.Fatalf("failed %v after the first RNR, want 3.84ms and three round trips", d)
		}
	}
}

func TestRC06The655msCliff(t *testing.T) {
	lost := map[uint8]clock.Duration{}
	for _, code := range []uint8{0, 13} {
		a, b := reportConfig(), reportConfig()
		b.MinRNRTimer, b.RecvQueue, b.RecvBatch, b.RecvRepost = code, 256, 256, 2*us
		s := newSim(t, a, b, 0)
		s.noLog, s.gap, s.delay = true, 335*ns, us
		for range 512 {
			s.post(qp.WR{Verb: qp.Send, Len: 65536})
		}
		s.run(clock.Never)
		if len(s.a.done) != 512 || s.a.cnt.RnrNakRetryErr != 1 || s.b.cnt.OutOfBuffer != 1 || s.a.q.State() != qp.StateRTS {
			t.Fatalf("code %d: %d done, %d RNR", code, len(s.a.done), s.a.cnt.RnrNakRetryErr)
		}
		for _, n := range s.a.note {
			if n.Kind == qp.NoteRnrRecv {
				lost[code] += clock.Duration(n.X)
			}
		}
	}
	if lost[0] != 655_360*us || lost[13] != 960*us {
		t.Fatalf("waits %v and %v", lost[0], lost[13])
	}
}

func TestRC07FieldsOutOfRange(t *testing.T) {
	c := reportConfig()
	c.RetryCnt, c.RNRRetry, c.MinRNRTimer = 15, 9, 32
	err := c.Validate()
	for _, want := range []string{"retry_cnt 15: allowed 0..7", "rnr_retry 9: allowed 0..7", "min_rnr_timer 32: allowed 0..31"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
	if _, err := qp.VendorTimeout(qp.VendorIBTA, 32); err == nil {
		t.Error("timeout 32 accepted")
	}
}

func TestRC09ErrorRates(t *testing.T) {
	timer, nakked := 0, 0
	for seed := range uint64(100) {
		c := reportConfig()
		s := newSim(t, c, c, 0)
		s.noLog = true
		n := uint64(0)
		lost := uint64(0)
		s.fault = func(from, _ int, f *wire.Frame) verdict {
			n++
			v := verdict{drop: clock.Mix(seed, n, 7)%1000 == 0}
			if v.drop && from == 0 {
				lost++
			}
			return v
		}
		s.post(qp.WR{Verb: qp.Write, Len: 10_000_000})
		s.run(clock.Never)
		s.wantDone("success")
		if s.a.cnt.RetransmittedPackets < lost {
			t.Fatalf("seed %d: %d lost, %d sent again", seed, lost, s.a.cnt.RetransmittedPackets)
		}
		timer += int(s.a.cnt.LocalAckTimeoutErr)
		nakked += int(s.a.cnt.PacketSeqErr)
	}
	if timer == 0 || nakked == 0 {
		t.Fatalf("recoveries by timer %d, by NAK %d: want both", timer, nakked)
	}
}

// R-C10 is T-C33 on another message: TestTC33RecoverySchemes.

func TestRC11WrapWithLossOnTheEdge(t *testing.T) {
	for _, drop := range []wire.PSN{0, 0xFFFFFF} {
		c := caseConfig()
		s := newSim(t, c, c, 0xFFFFF8)
		s.noLog = true
		s.fault = drops(req(drop, 1))
		s.post(qp.WR{Verb: qp.Send, Len: 64 * 1024})
		s.run(clock.Never)
		s.wantDone("success")
		s.wantCounters("rq.packet_seq_err=1 rs.out_of_sequence=1")
		for _, n := range s.b.note {
			if n.Kind == qp.NoteNakSent && wire.PSN(n.PSN) != drop {
				t.Fatalf("NAK names %06x, lost %06x", n.PSN, drop)
			}
		}
		s.strict, s.noLog = false, false
		s.send(s.a, *stray(0xFFFFF8))
		s.run(clock.Never)
		if got := strings.Join(s.lines, ", "); got != "SEND_O 16777208*(dup), ACK 55/1" {
			t.Fatal(got)
		}
	}
}

func TestRC12OneCompletionEach(t *testing.T) {
	c := reportConfig()
	s := newSim(t, c, c, 0)
	s.noLog = true
	s.dead = func(at clock.Time, _ bool) bool { return at >= clock.Time(100*us) }
	for i := range 128 {
		s.post(qp.WR{ID: uint64(i), Verb: qp.Write, Len: 65536})
	}
	s.run(clock.Never)
	checkFlushed(t, s, qp.RetryExcErr)
	s = newSim(t, c, c, 0) // the QP is destroyed at 200 us
	s.noLog = true
	for i := range 128 {
		s.post(qp.WR{ID: uint64(i), Verb: qp.Write, Len: 65536})
	}
	s.at(clock.Time(200*us), func() { s.a.q.SetState(s.now, qp.StateErr, &s.fx) })
	s.run(clock.Never)
	checkFlushed(t, s, qp.WRFlushErr)
}

// checkFlushed wants k successes, one first error, then flushes, in order.
func checkFlushed(t *testing.T, s *sim, first qp.Status) {
	t.Helper()
	if len(s.a.done) != 128 {
		t.Fatalf("%d completions of 128", len(s.a.done))
	}
	k := 0
	for ; s.a.done[k].Status == qp.Success; k++ {
	}
	if k == 0 || s.a.done[k].Status != first {
		t.Fatalf("%d successes, then %v", k, s.a.done[k].Status)
	}
	for i, d := range s.a.done {
		if d.ID != uint64(i) || i > k && d.Status != qp.WRFlushErr {
			t.Fatalf("completion %d: request %d %v", i, d.ID, d.Status)
		}
	}
}

func TestRC14MTUMismatch(t *testing.T) {
	a, b := reportConfig(), reportConfig()
	b.MTU = 1024
	s := newSim(t, a, b, 0)
	s.post(qp.WR{Verb: qp.Send, Len: 1000})
	s.post(qp.WR{Verb: qp.Send, Len: 8192})
	s.run(clock.Never)
	s.wantDone("success rem_inv_req_err")
	if s.b.cnt.RespRemoteInvalid != 1 || s.a.cnt.LocalAckTimeoutErr != 0 {
		t.Fatal("a length error must not look like a timeout")
	}
	_, err := qp.Negotiate(qp.CMOffer{MTU: 4096}, qp.CMOffer{MTU: 1024}, true)
	if err == nil || !strings.Contains(err.Error(), "path mtu 4096 of REQ against 1024 of REP") {
		t.Fatalf("connect: %v", err)
	}
}

func TestRC15NoRoute(t *testing.T) {
	s := newSim(t, reportConfig(), reportConfig(), 0)
	s.dead = blackHole
	s.post(qp.WR{Verb: qp.Send, Len: 10})
	s.run(clock.Never)
	s.wantDone("retry_exc_err")
	if s.now.String() != "536.870912ms" || len(s.times) != 8 {
		t.Fatalf("error at %v after %d transmissions", s.now, len(s.times))
	}
}

func TestLadder(t *testing.T) {
	std, art, err := qp.Ladder(qp.LadderParams{Timeout: 14, Retry: 7, RNR: 12, RNRRetry: 3, PacketLife: 18, AckDelay: 15, ArticleFloor: 16384 * ns})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(std.T, std.LastChance, std.Failure, len(std.Rungs), std.Rungs[7].At, std.RNRWait, std.RNRFailure)
	if want := "67.108864ms 469.762048ms 536.870912ms 8 469.762048ms 640us 1.92ms"; got != want {
		t.Errorf("standard: %s, want %s", got, want)
	}
	got = fmt.Sprint(art.T, art.LastChance, art.Failure, art.RNRWait, art.Clamped)
	if want := "208.896us 1.462272ms 1.671168ms 49.152us false"; got != want {
		t.Errorf("article: %s, want %s", got, want)
	}
	_, art, _ = qp.Ladder(qp.LadderParams{Timeout: 1, Retry: 7, ArticleFloor: 16384 * ns})
	if !art.Clamped || art.T != 16384*ns || art.Asked != 8192*ns {
		t.Errorf("article's floor: %+v", art)
	}
	std, _, _ = qp.Ladder(qp.LadderParams{Timeout: 0, Retry: 7})
	if std.Failure != clock.Never || len(std.Rungs) != 0 {
		t.Errorf("timeout 0: %+v", std)
	}
	for _, p := range []qp.LadderParams{{Timeout: 32}, {Retry: 8}, {RNR: 32}, {RNRRetry: 8}} {
		if _, _, err := qp.Ladder(p); err == nil {
			t.Errorf("%+v accepted", p)
		}
	}
}

func TestNegotiate(t *testing.T) {
	req := qp.CMOffer{MTU: 4096, InitiatorDepth: 16, ResponderDepth: 8, AckDelay: 16, PacketLife: 18}
	rep := qp.CMOffer{MTU: 1024, InitiatorDepth: 4, ResponderDepth: 6, AckDelay: 15, PacketLife: 18}
	r, err := qp.Negotiate(req, rep, false)
	if err != nil || r.MTU != 1024 || r.MaxRdAtomic != 6 || r.MaxDestRdAtomic != 8 || r.PeerRdAtomic != 4 || r.LinuxExponent != 19 {
		t.Fatalf("%+v %v", r, err)
	}
	if r.Linux.String() != "2.147483648s" || r.Exact.String() != "2.281701376s" || r.Article.String() != "208.896us" {
		t.Fatalf("timeouts %v %v %v", r.Linux, r.Exact, r.Article)
	}
	rep.ResponderDepth, rep.RetryCnt, rep.AltPath = 0, 9, true
	_, err = qp.Negotiate(req, rep, false)
	for _, want := range []string{"REP retry_cnt 9: allowed 0..7", "responder depth 0 of REP", "alternate path offered by one side"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("refusal %v lacks %q", err, want)
		}
	}
}
