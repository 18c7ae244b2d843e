package qp_test

import (
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
)

// One test a case of the transport cases, T-C41 to T-C48.

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
	table := []string{
		"655.36ms", "10us", "20us", "30us", "40us", "60us", "80us", "120us", "160us", "240us", "320us", "480us", "640us", "960us",
		"1.28ms", "1.92ms", "2.56ms", "3.84ms", "5.12ms", "7.68ms", "10.24ms", "15.36ms", "20.48ms", "30.72ms", "40.96ms", "61.44ms", "81.92ms",
		"122.88ms", "163.84ms", "245.76ms", "327.68ms", "491.52ms",
	}
	for i, w := range table {
		if got := qp.RNRWait(uint8(i), false).String(); got != w {
			t.Errorf("RNR code %d: %s, want %s", i, got, w)
		}
	}
	if got := qp.RNRWait(31, true).String(); got != "126.976us" {
		t.Errorf("article's code 31: %s", got)
	}
}
