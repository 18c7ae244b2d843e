package qp_test

import (
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
)

// A response of a later READ proves that an earlier one's were lost; each is
// asked for again and answered once.
func TestImpliedNakByLaterRead(t *testing.T) {
	s := newCase(t)
	s.fault = drops(resp(100, 1), resp(101, 1))
	s.post(qp.WR{Verb: qp.Read, Len: 2048})
	s.post(qp.WR{Verb: qp.Read, Len: 2048})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:2048*, READ_REQ 102+0:2048*, RF 100!, RL 101!, RF 102, RL 103, " +
		"READ_REQ 100+0:2048*(dup), READ_REQ 102+0:2048*(dup), RF 100, RL 101, RF 102, RL 103")
	s.wantCounters("rq.implied_nak_seq_err=1 rs.duplicate_request=2 rs.rx_read_requests=4")
	s.wantDone("success success")
}

// A lost atomic answer in a row of atomics: what follows is replayed, nothing
// executed twice.
func TestAtomicsReplayInOrder(t *testing.T) {
	s := newCase(t)
	s.fault = drops(resp(101, 1))
	for range 3 {
		s.post(qp.WR{Verb: qp.FetchAdd, Swap: 1})
	}
	s.run(clock.Never)
	s.wantWire("FETCH_ADD 100*, FETCH_ADD 101*, FETCH_ADD 102*, ATOMIC_ACK 100=0, ATOMIC_ACK 101=1!, ATOMIC_ACK 102=2, " +
		"FETCH_ADD 101*(dup), FETCH_ADD 102*(dup), ATOMIC_ACK 101=1, ATOMIC_ACK 102=2")
	s.wantCounters("rq.implied_nak_seq_err=1 rs.duplicate_request=2")
	if s.b.mem.Word(0) != 3 {
		t.Fatalf("word %d", s.b.mem.Word(0))
	}
}

// A second loss inside the restarted READ is left to the timer: one implied
// NAK an episode.
func TestOneImpliedNakAnEpisode(t *testing.T) {
	s := newCase(t)
	s.fault = drops(resp(101, 1), resp(101, 2))
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.run(clock.Never)
	s.wantWire("READ_REQ 100+0:4096*, RF 100, RM 101!, RM 102, RL 103, READ_REQ 101+1024:3072*(dup), RF 101!, RM 102, RL 103, " +
		"T, READ_REQ 101+1024:3072*(dup), RF 101, RM 102, RL 103")
	s.wantCounters("rq.implied_nak_seq_err=1 rq.local_ack_timeout_err=1 rs.duplicate_request=2")
}

// A replay is refused in silence when its range is not the tail of the
// original (error class D).
func TestReplayOutsideOriginal(t *testing.T) {
	s := newCase(t)
	s.post(qp.WR{Verb: qp.Read, Len: 4096, VA: 64})
	s.run(clock.Never)
	n := len(s.lines)
	for _, c := range []struct{ va, length uint64 }{{64, 4096}, {1088, 3072}, {64, 2048}, {0, 4096}, {1088, 4096}} {
		f := readRequest(s, 101, c.va, c.length)
		s.strict = false
		s.send(s.a, f)
		s.run(clock.Never)
		replayed := len(s.lines) > n+1
		if want := c.va == 1088 && c.length == 3072; replayed != want {
			t.Errorf("replay of %d+%d: %v", c.va, c.length, s.lines[n:])
		}
		n = len(s.lines)
	}
	if s.b.q.State() != qp.StateRTS {
		t.Fatal("a bad duplicate ended the QP")
	}
}

// Duplicates by the network: re-acked by policy, never executed.
func TestDuplicateByTheNetwork(t *testing.T) {
	for _, all := range []bool{false, true} {
		c := caseConfig()
		c.DupAckAll = all
		s := newSim(t, c, c, 100)
		s.fault = func(from, n int, f *frame) verdict { return verdict{dup: from == 0 && n == 1} }
		s.post(qp.WR{Verb: qp.Send, Len: 2048})
		s.run(clock.Never)
		want := "SEND_F 100(dup), SEND_L 101*(dup), ACK 101/1, ACK 101/1"
		if all {
			want = "SEND_F 100(dup), SEND_L 101*(dup), ACK 100/0, ACK 101/1" // the last two coalesce behind a busy port
		}
		s.wantWire(want)
		s.wantCounters("rs.duplicate_request=2")
		if len(s.b.recv) != 1 {
			t.Fatalf("%d receives", len(s.b.recv))
		}
	}
}

// More READs in flight than the responder has resources: invalid request.
func TestTooManyResources(t *testing.T) {
	a, b := caseConfig(), caseConfig()
	b.MaxDestRdAtomic = 1
	s := newSim(t, a, b, 100)
	s.gap = 10 * ns
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.post(qp.WR{Verb: qp.Read, Len: 4096})
	s.run(clock.Never)
	if s.b.q.State() != qp.StateErr || s.b.cnt.RespRemoteInvalid != 1 {
		t.Fatalf("responder %v, %v", s.b.q.State(), s.lines)
	}
}

// A requester may ask for more while answers are still being repeated to it that
// it has had: the duplicate was on its way when they came. The new request takes
// the place of the oldest, which is answered no further.
func TestNewRequestEndsOldReplay(t *testing.T) {
	c := caseConfig()
	c.MaxRdAtomic, c.MaxDestRdAtomic = 2, 2
	s := newSim(t, c, c, 100)
	s.strict = false
	for range 3 {
		s.post(qp.WR{Verb: qp.Read, Len: 8192})
	}
	// The first answer reaches the requester from 40 us on, and the third READ the
	// responder right after a duplicate of the first.
	s.at(clock.Time(40_500*clock.Nanosecond), func() { s.send(s.a, readRequest(s, 100, 0, 8192)) })
	s.run(clock.Never)
	s.wantDone("success success success")
	s.wantCounters("rs.duplicate_request=1 rs.rx_read_requests=4 rs.retransmitted_packets=2")
	if s.b.q.State() != qp.StateRTS {
		t.Fatalf("responder %v, %v", s.b.q.State(), s.lines)
	}
}

// retry_cnt reloads on progress: many single losses never add up.
func TestRetriesReloadOnProgress(t *testing.T) {
	c := caseConfig()
	c.RetryCnt = 1
	s := newSim(t, c, c, 100)
	s.fault = func(from, n int, f *frame) verdict {
		p := int(f.PSN()) - 100
		return verdict{drop: from == 0 && p%4 == 0 && n == p/4+1}
	}
	s.noLog = true
	s.post(qp.WR{Verb: qp.Write, Len: 20 * 1024})
	s.run(clock.Never)
	s.wantDone("success")
	if s.a.cnt.PacketSeqErr != 5 || s.a.cnt.LocalAckTimeoutErr != 0 {
		t.Fatalf("%d NAKs, %d timeouts", s.a.cnt.PacketSeqErr, s.a.cnt.LocalAckTimeoutErr)
	}
}

// A NAK that finds no retry left is told before the end that it brings: whoever
// looks for the cause must not think that no answer came.
func TestLastNakIsTold(t *testing.T) {
	for _, verb := range []qp.Verb{qp.Write, qp.Read} {
		c := caseConfig()
		c.RetryCnt = 0
		s := newSim(t, c, c, 100)
		s.fault = drops(req(100, 1))
		if verb == qp.Read {
			s.fault = drops(resp(100, 1))
		}
		s.post(qp.WR{Verb: verb, Len: 3000})
		s.run(clock.Never)
		s.wantDone("retry_exc_err")
		var told, ended int
		for i, n := range s.a.note {
			switch n.Kind {
			case qp.NoteNakRecv, qp.NoteImpliedNak:
				told = i + 1
			case qp.NoteQPError:
				ended = i + 1
			}
		}
		if told == 0 || told >= ended {
			t.Errorf("%v: notes %+v", verb, s.a.note)
		}
	}
}
