package qp_test

import (
	"bytes"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
	"pgregory.net/rapid"
)

// drawConfig picks a NIC: any recovery scheme and personality switch.
func drawConfig(rt *rapid.T, rec qp.Recovery) qp.Config {
	c := qp.Generic()
	b := func(n string) bool { return rapid.Bool().Draw(rt, n) }
	c.MTU = rapid.SampledFrom([]int{256, 1024}).Draw(rt, "mtu")
	c.Recovery = rec
	c.Timeout = qp.AckTimeout(10)
	c.RetryCnt = uint8(rapid.IntRange(0, 7).Draw(rt, "retry"))
	c.MinRNRTimer = 1
	c.MaxRdAtomic = rapid.IntRange(1, 4).Draw(rt, "rd")
	c.MaxDestRdAtomic = 4
	c.AckEvery, c.DupAckAll, c.PartialRead, c.ProbeOne = b("every"), b("dupall"), b("partial"), b("probe")
	c.ReadGapTimeout, c.OOSBehindRNR, c.NakReload, c.WindowT4 = b("gap"), b("oosrnr"), b("reload"), b("t4")
	c.AckFreqLog = uint8(rapid.IntRange(0, 3).Draw(rt, "freq"))
	c.Credits = b("credits")
	c.RecvQueue = rapid.IntRange(1, 8).Draw(rt, "rq")
	c.RecvRepost = rapid.SampledFrom([]clock.Duration{0, 5 * us, 200 * us}).Draw(rt, "repost")
	if b("latency") {
		c.NakLatency, c.ReactLatency, c.ReadNakLatency = 3*us, 2*us, 4*us
	}
	return c
}

func drawWork(rt *rapid.T) []qp.WR {
	n := rapid.IntRange(1, 12).Draw(rt, "requests")
	w := make([]qp.WR, n)
	for i := range w {
		v := qp.Verb(rapid.IntRange(0, int(qp.FetchAdd)).Draw(rt, "verb"))
		w[i] = qp.WR{
			ID: uint64(i), Verb: v, Len: rapid.Int64Range(0, 6000).Draw(rt, "len"), VA: 64, Swap: 1,
			Fence: rapid.Bool().Draw(rt, "fence"), Unsignalled: rapid.Bool().Draw(rt, "quiet"),
		}
		if v == qp.SendInv {
			w[i].Imm = 0x107 // the responder's region, re-registered at once
		}
	}
	return w
}

// drawFaults makes a finite pattern: the k-th frame in a direction is lost,
// doubled, delayed or damaged.
func drawFaults(rt *rapid.T) faultFunc {
	type key struct{ from, n int }
	m := map[key]verdict{}
	for range rapid.IntRange(0, 25).Draw(rt, "faults") {
		k := key{rapid.IntRange(0, 1).Draw(rt, "from"), rapid.IntRange(1, 80).Draw(rt, "n")}
		m[k] = rapid.SampledFrom([]verdict{{drop: true}, {drop: true}, {dup: true}, {icrc: true}, {delay: 30 * us}, {delay: 150 * ns}}).Draw(rt, "what")
	}
	var sent [2]int
	return func(from, _ int, _ *wire.Frame) verdict {
		sent[from]++
		return m[key{from, sent[from]}]
	}
}

const ns = clock.Nanosecond

// Any finite pattern of loss, duplication, reordering and damage on any mix of
// verbs: every request ends exactly once, in order, in success or one error
// (then flushes), in bounded virtual time; nothing is executed twice and every
// byte is where it belongs.
func TestEveryRequestEndsOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rec := rapid.SampledFrom([]qp.Recovery{qp.GoBackN, qp.GoBackN, qp.SelectiveRepeat, qp.GoBack0}).Draw(rt, "recovery")
		c := drawConfig(rt, rec)
		s := newSim(t, c, c, wire.PSN(rapid.SampledFrom([]uint32{0, 100, 0xFFFFF0}).Draw(rt, "psn")))
		s.strict, s.delay, s.noLog = false, 5*us, true
		s.fault = drawFaults(rt)
		work := drawWork(rt)
		adds := uint64(0)
		for _, w := range work {
			w.RKey = s.b.key
			s.post(w)
		}
		s.run(clock.Time(2 * clock.Second))
		if len(s.a.done) != len(work) {
			rt.Fatalf("%d of %d requests ended; outstanding %d, deadline %v, una %d next %d max %d, ePSN %d",
				len(s.a.done), len(work), s.a.q.Req.Outstanding(), s.a.q.Req.Deadline(), s.a.q.Req.Una(), s.a.q.Req.Next(), s.a.q.Req.Max(), s.b.q.Resp.EPSN())
		}
		failed := false
		for i, d := range s.a.done {
			switch {
			case d.ID != uint64(i):
				rt.Fatalf("completion %d is of request %d", i, d.ID)
			case failed && d.Status != qp.WRFlushErr:
				rt.Fatalf("request %d: %v after a failure", i, d.Status)
			case !failed && d.Status != qp.Success:
				failed = true
				if d.Status != qp.RetryExcErr {
					rt.Fatalf("request %d: %v", i, d.Status)
				}
			}
		}
		for _, r := range s.b.recv {
			if r.Status == qp.Success && r.Verb == qp.FetchAdd {
				adds++
			}
		}
		if !failed && len(s.b.recv) != len(work) {
			rt.Fatalf("%d messages executed of %d", len(s.b.recv), len(work))
		}
		if s.b.mem.Word(64) > uint64(len(work))+adds {
			rt.Fatalf("word %d", s.b.mem.Word(64))
		}
		if s.a.cnt.IntegrityErrors+s.b.cnt.IntegrityErrors != 0 {
			rt.Fatalf("integrity: %+v %+v", s.a.note, s.b.note)
		}
	})
}

// Without faults on a FIFO wire NAKs, gaps and sequence errors agree (transport
// §6, relations that hold on real NICs); with losses only they still do for QPs
// that survived.
func TestCounterRelations(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := qp.Generic()
		c.Timeout = qp.AckTimeout(10)
		s := newSim(t, c, c, 0)
		s.delay = 5 * us
		lost := map[int]bool{}
		for range rapid.IntRange(0, 12).Draw(rt, "losses") {
			lost[rapid.IntRange(1, 60).Draw(rt, "n")] = true
		}
		n, naks := 0, uint64(0)
		s.fault = func(from, _ int, f *wire.Frame) verdict {
			if from == 1 && f.Syndrome() == wire.SynNAKSequence && f.Op() == wire.Acknowledge {
				naks++
			}
			if from == 0 { // data only: a lost NAK is a gap the requester never hears of
				n++
				return verdict{drop: lost[n]}
			}
			return verdict{}
		}
		for i := range rapid.IntRange(1, 6).Draw(rt, "requests") {
			s.post(qp.WR{ID: uint64(i), Verb: qp.Write, Len: rapid.Int64Range(0, 20_000).Draw(rt, "len")})
		}
		s.run(clock.Never)
		if s.a.q.State() == qp.StateErr {
			return
		}
		if s.b.cnt.OutOfSequence != naks || s.a.cnt.PacketSeqErr != naks {
			rt.Fatalf("out_of_sequence %d, NAKs %d, packet_seq_err %d", s.b.cnt.OutOfSequence, naks, s.a.cnt.PacketSeqErr)
		}
	})
}

// READ: duplicate_request at the responder = gaps + timeouts at the requester.
func TestReadCounterRelation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := qp.Generic()
		c.Timeout = qp.AckTimeout(10)
		s := newSim(t, c, c, 0)
		s.delay = 5 * us
		lost := map[int]bool{}
		for range rapid.IntRange(0, 8).Draw(rt, "losses") {
			lost[rapid.IntRange(1, 60).Draw(rt, "n")] = true
		}
		n := 0
		s.fault = func(from, _ int, f *wire.Frame) verdict {
			if from == 1 {
				n++
				return verdict{drop: lost[n]}
			}
			return verdict{}
		}
		s.post(qp.WR{Verb: qp.Read, Len: rapid.Int64Range(1, 50_000).Draw(rt, "len")})
		s.run(clock.Never)
		s.wantDone("success")
		if got, want := s.b.cnt.DuplicateRequest, s.a.cnt.ImpliedNakSeqErr+s.a.cnt.LocalAckTimeoutErr; got != want {
			rt.Fatalf("duplicate_request %d, gaps %d + timeouts %d", got, s.a.cnt.ImpliedNakSeqErr, s.a.cnt.LocalAckTimeoutErr)
		}
	})
}

// A snapshot at any instant restores to the same bytes and the same future.
func TestSnapshotAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawConfig(rt, rapid.SampledFrom([]qp.Recovery{qp.GoBackN, qp.SelectiveRepeat}).Draw(rt, "recovery"))
		s := newSim(t, c, c, 5)
		s.strict, s.delay = false, 5*us
		s.fault = drawFaults(rt)
		for _, w := range drawWork(rt) {
			s.post(w)
		}
		s.run(clock.Time(rapid.Int64Range(0, int64(20*ms)).Draw(rt, "cut")))
		for _, x := range []*side{s.a, s.b} {
			state := x.q.AppendState(nil)
			p := qp.Params{
				Cfg: &c, Counters: &x.cnt, Memory: &x.mem, QPN: 0x11, PeerQPN: 0x22, Src: 1, Dst: 2, TOS: 26<<2 | wire.ECT0,
				SPort: 0xC000, SQPSN: 5, RQPSN: 5,
			}
			if x == s.b {
				p.QPN, p.PeerQPN, p.Src, p.Dst = 0x22, 0x11, 2, 1
			}
			x.q.Init(p)
			rest, err := x.q.ReadState(state)
			if err != nil || len(rest) != 0 {
				rt.Fatalf("%v, %d bytes left", err, len(rest))
			}
			if again := x.q.AppendState(nil); !bytes.Equal(state, again) {
				rt.Fatal("restored state has other bytes")
			}
			for n := range len(state) {
				if n%97 == 0 {
					var q qp.QP
					q.Init(p)
					if _, err := q.ReadState(state[:n]); err == nil {
						rt.Fatalf("a snapshot cut to %d of %d bytes was taken", n, len(state))
					}
				}
			}
		}
		s.run(clock.Time(2 * clock.Second))
		if s.a.q.Req.Outstanding() != 0 {
			rt.Fatal("work left after a restore")
		}
	})
}

func FuzzReadState(f *testing.F) {
	c := qp.Generic()
	var q qp.QP
	q.Init(qp.Params{Cfg: &c, QPN: 1, PeerQPN: 2, Src: 1, Dst: 2})
	var fx qp.Effects
	q.Req.Post(0, &qp.WR{Verb: qp.Read, Len: 5000}, &fx)
	f.Add(q.AppendState(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var q qp.QP
		q.Init(qp.Params{Cfg: &c, QPN: 1, PeerQPN: 2, Src: 1, Dst: 2})
		if _, err := q.ReadState(b); err != nil {
			return
		}
		var fx qp.Effects
		var fr wire.Frame
		for range 8 {
			q.Req.NextPacket(1<<40, &fr)
			q.Resp.NextResponse(1<<40, &fr)
		}
		q.Req.OnTimeout(1<<41, &fx)
	})
}
