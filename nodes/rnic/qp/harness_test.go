package qp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/qp"
	"github.com/rocemu/rocemu/nodes/wire"
)

// The harness joins two QPs by a pipe in each direction: a port that takes gap
// for a packet, then a fixed delay. Verdicts of a fault function act on the
// wire. Everything sent becomes a line in the notation of the transport cases:
// "*" AckReq, "!" lost, "(dup)" and "(oos)" as the responder classified it.

const (
	us = clock.Microsecond
	ms = clock.Millisecond
)

type verdict struct {
	drop, dup, icrc, ce bool
	delay               clock.Duration
}

// faultFunc judges the frame that side from sends; n counts transmissions of
// this kind of frame with this PSN, from 1 (the cases' iteration).
type faultFunc func(from, n int, f *wire.Frame) verdict

type flight struct {
	at    clock.Time
	frame wire.Frame
	line  int
	alt   bool
}

type side struct {
	q    qp.QP
	cnt  qp.Counters
	mem  qp.Memory
	free clock.Time
	done []qp.Completion
	recv []qp.Recv
	note []noted
	icrc int
	pipe []flight // toward the peer
	key  uint32   // region of 4 GiB at 0 with all rights
}

type noted struct {
	at clock.Time
	qp.Note
}

type action struct {
	at clock.Time
	do func()
}

type sim struct {
	t      testing.TB
	now    clock.Time
	a, b   *side
	gap    clock.Duration
	delay  clock.Duration
	fault  faultFunc
	dead   func(at clock.Time, alt bool) bool // link down
	lines  []string
	times  []clock.Time
	count  map[string]int
	acts   []action
	fx     qp.Effects
	frames int
	strict bool // check invariants 1, 4, 5 (off when frames are forged)
	onRecv func(s *side, f *wire.Frame)
	noLog  bool
	bytes  map[uint32][2]uint64 // request PSN → opcode, content
	ackPSN int64
	nakPSN int64
}

// caseConfig is the setting of the transport cases: n = 14, retry_cnt 3,
// AckReq on the last packet only.
func caseConfig() qp.Config {
	c := qp.Generic()
	c.RetryCnt, c.AckFreqLog = 3, 0
	return c
}

func newSim(t testing.TB, ca, cb qp.Config, psn wire.PSN) *sim {
	s := &sim{
		t: t, gap: 100 * clock.Nanosecond, delay: 20 * us, count: map[string]int{}, strict: true,
		bytes: map[uint32][2]uint64{}, ackPSN: -1, nakPSN: -1,
	}
	for i, c := range []*qp.Config{&ca, &cb} {
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		x := &side{}
		x.key = x.mem.Register(0, 1<<32, qp.RemoteRead|qp.RemoteWrite|qp.RemoteAtomic, 7, true)
		p := qp.Params{
			Cfg: c, Counters: &x.cnt, Memory: &x.mem, QPN: 0x11, PeerQPN: 0x22, Src: 1, Dst: 2, TOS: 26<<2 | wire.ECT0,
			SPort: 0xC000, SQPSN: psn, RQPSN: psn,
		}
		if i == 1 {
			p.QPN, p.PeerQPN, p.Src, p.Dst = 0x22, 0x11, 2, 1
			s.b = x
		} else {
			s.a = x
		}
		x.q.Init(p)
	}
	return s
}

func newCase(t testing.TB) *sim { return newSim(t, caseConfig(), caseConfig(), 100) }

func (s *sim) post(wr qp.WR) {
	s.t.Helper()
	if wr.RKey == 0 {
		wr.RKey = s.b.key
	}
	if !s.a.q.Req.Post(s.now, &wr, &s.fx) {
		s.t.Fatalf("post of request %d refused in %v", wr.ID, s.a.q.State())
	}
	s.take(s.a)
}

func (s *sim) at(t clock.Time, do func()) { s.acts = append(s.acts, action{t, do}) }

// take moves the effects of a call to the side and checks what must always hold.
func (s *sim) take(x *side) {
	for _, d := range s.fx.Done {
		if n := len(x.done); n > 0 && d.SSN != x.done[n-1].SSN+1 {
			s.t.Fatalf("completion of message %d after %d", d.SSN, x.done[n-1].SSN)
		}
		x.done = append(x.done, d)
	}
	for _, r := range s.fx.Recvs {
		if n := len(x.recv); n > 0 && r.SSN != x.recv[n-1].SSN+1 {
			s.t.Fatalf("message %d executed after %d", r.SSN, x.recv[n-1].SSN)
		}
		x.recv = append(x.recv, r)
	}
	for _, n := range s.fx.Notes {
		x.note = append(x.note, noted{s.now, n})
	}
	s.fx.Reset()
	if d := x.q.Req.Next().Diff(x.q.Req.Una()); d < 0 || x.q.Req.Max().Diff(x.q.Req.Next()) < 0 {
		s.t.Fatalf("una %v next %v max %v", x.q.Req.Una(), x.q.Req.Next(), x.q.Req.Max())
	}
}

// nextTx is when x may put its next frame on the wire.
func (s *sim) nextTx(x *side) clock.Time {
	r := min(x.q.Resp.ResponseReady(), x.q.Req.Ready(s.now))
	if r == clock.Never {
		return r
	}
	return max(r, x.free, s.now)
}

// run goes on until nothing is left to do or until the given instant.
func (s *sim) run(until clock.Time) {
	s.t.Helper()
	for steps := 0; ; steps++ {
		if steps > 5_000_000 {
			s.t.Fatal("the simulation does not end")
		}
		next := clock.Never
		for _, x := range []*side{s.a, s.b} {
			next = min(next, x.q.Req.Deadline(), s.nextTx(x))
			for i := range x.pipe {
				next = min(next, x.pipe[i].at)
			}
		}
		for _, a := range s.acts {
			next = min(next, a.at)
		}
		if next > until || next == clock.Never {
			if until != clock.Never {
				s.now = max(s.now, until)
			}
			return
		}
		if next < s.now {
			s.t.Fatalf("time runs back from %v to %v", s.now, next)
		}
		s.now = next
		s.step()
	}
}

// step processes one instant in class order: action, arrival, timer, sending.
func (s *sim) step() {
	for i := 0; i < len(s.acts); i++ {
		if a := s.acts[i]; a.at <= s.now {
			s.acts = append(s.acts[:i], s.acts[i+1:]...)
			a.do()
			s.take(s.a)
			return
		}
	}
	for _, x := range []*side{s.a, s.b} {
		for i := range x.pipe {
			if x.pipe[i].at <= s.now {
				fl := x.pipe[i]
				x.pipe = append(x.pipe[:i], x.pipe[i+1:]...)
				s.deliver(s.peer(x), fl)
				return
			}
		}
	}
	for _, x := range []*side{s.a, s.b} {
		if x.q.Req.Deadline() <= s.now {
			x.q.Req.OnTimeout(s.now, &s.fx)
			s.take(x)
			return
		}
	}
	for _, x := range []*side{s.a, s.b} {
		if s.nextTx(x) <= s.now {
			s.transmit(x)
		}
	}
}

func (s *sim) peer(x *side) *side {
	if x == s.a {
		return s.b
	}
	return s.a
}

func (s *sim) transmit(x *side) {
	var f wire.Frame
	if !x.q.Resp.NextResponse(s.now, &f) && !x.q.Req.NextPacket(s.now, &f) {
		s.t.Fatalf("ready at %v but nothing came", s.now)
	}
	x.free = s.now.Add(s.gap)
	s.send(x, f)
}

// send puts a frame of x on the wire.
func (s *sim) send(x *side, f wire.Frame) {
	s.frames++
	from := 0
	if x == s.b {
		from = 1
	}
	kind := fmt.Sprint(from, f.Kind, f.Syndrome()>>5*b2u(f.Op() == wire.Acknowledge), f.PSN())
	s.count[kind]++
	var v verdict
	if s.fault != nil {
		v = s.fault(from, s.count[kind], &f)
	}
	alt := x.q.OnAlternate()
	lost := v.drop || s.dead != nil && s.dead(s.now, alt)
	if s.strict {
		s.check(x, &f)
	}
	if !s.noLog {
		s.lines = append(s.lines, name(&f, lost))
		s.times = append(s.times, s.now)
	}
	if lost {
		return
	}
	if v.icrc {
		f.Set(wire.FlagBadICRC)
	}
	if v.ce {
		f.TOS |= wire.CE
	}
	fl := flight{at: s.now.Add(s.delay + v.delay), frame: f, line: len(s.lines) - 1, alt: alt}
	fl.frame.At = fl.at
	x.pipe = append(x.pipe, fl)
	if v.dup {
		fl.at = fl.at.Add(50 * clock.Nanosecond)
		fl.frame.At = fl.at
		x.pipe = append(x.pipe, fl)
	}
}

func b2u(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// check holds the cases' invariants 1, 4 and 5 against a frame as sent.
func (s *sim) check(x *side, f *wire.Frame) {
	op := f.Op()
	if x == s.a && op.IsRequest() && op != wire.ReadRequest {
		w := [2]uint64{uint64(op), f.C}
		if old, ok := s.bytes[uint32(f.PSN())]; ok && old != w {
			s.t.Fatalf("PSN %d carries other bytes than before", f.PSN())
		}
		s.bytes[uint32(f.PSN())] = w
	}
	if x != s.b || op != wire.Acknowledge {
		return
	}
	switch {
	case f.Syndrome()>>5 == 0:
		if s.ackPSN >= 0 && f.PSN().Before(wire.PSN(s.ackPSN)) {
			s.t.Fatalf("ACK %d after ACK %d", f.PSN(), s.ackPSN)
		}
		s.ackPSN = int64(f.PSN())
	case f.Syndrome() == wire.SynNAKSequence:
		if s.nakPSN >= 0 && f.PSN().Diff(wire.PSN(s.nakPSN)) <= 0 {
			s.t.Fatalf("second NAK for %d", f.PSN())
		}
		s.nakPSN = int64(f.PSN())
	}
}

func (s *sim) deliver(x *side, fl flight) {
	f := fl.frame
	if f.Has(wire.FlagBadICRC) {
		x.icrc++
		s.mark(fl.line, "(icrc)")
		return
	}
	if s.onRecv != nil {
		s.onRecv(x, &f)
	}
	dup, oos, e := x.cnt.DuplicateRequest, x.cnt.OutOfSequence, x.q.Resp.EPSN()
	x.q.HandleFrame(s.now, &f, fl.alt, &s.fx)
	if f.Op().IsRequest() && x.q.State() != qp.StateErr {
		switch {
		case x.cnt.DuplicateRequest > dup:
			s.mark(fl.line, "(dup)")
		case x.cnt.OutOfSequence > oos || f.PSN().Diff(e) > 0:
			s.mark(fl.line, "(oos)")
		}
	}
	s.take(x)
}

func (s *sim) mark(line int, what string) {
	if line >= 0 && line < len(s.lines) && !s.noLog {
		s.lines[line] += what
	}
}

var shortNames = map[wire.Opcode]string{
	wire.SendFirst: "SEND_F", wire.SendMiddle: "SEND_M", wire.SendLast: "SEND_L", wire.SendOnly: "SEND_O",
	wire.SendOnlyImm: "SEND_OI", wire.SendLastImm: "SEND_LI", wire.SendOnlyInv: "SEND_OV", wire.SendLastInv: "SEND_LV",
	wire.WriteFirst: "WRITE_F", wire.WriteMiddle: "WRITE_M", wire.WriteLast: "WRITE_L", wire.WriteOnly: "WRITE_O",
	wire.WriteOnlyImm: "WRITE_OI", wire.WriteLastImm: "WRITE_LI",
	wire.ReadRequest: "READ_REQ", wire.CompareSwap: "CMP_SWAP", wire.FetchAdd: "FETCH_ADD",
	wire.ReadRespFirst: "RF", wire.ReadRespMiddle: "RM", wire.ReadRespLast: "RL", wire.ReadRespOnly: "RO",
}

// name writes a frame in the cases' notation.
func name(f *wire.Frame, lost bool) string {
	var s string
	switch op := f.Op(); {
	case op == wire.Acknowledge && f.Syndrome()>>5 == 0:
		s = fmt.Sprintf("ACK %d/%d", f.PSN(), f.MSN())
	case op == wire.Acknowledge && f.Syndrome()>>5 == 1:
		s = fmt.Sprintf("RNR %d/%d", f.PSN(), f.Syndrome()&31)
	case op == wire.Acknowledge && f.Syndrome() == wire.SynNAKSequence:
		s = fmt.Sprintf("NAK %d/%d", f.PSN(), f.MSN())
	case op == wire.Acknowledge:
		s = fmt.Sprintf("NAK%02x %d", f.Syndrome(), f.PSN())
	case op == wire.AtomicAck:
		s = fmt.Sprintf("ATOMIC_ACK %d=%d", f.PSN(), f.B)
	case op == wire.CNP:
		s = "CNP"
	case op == wire.ReadRequest:
		s = fmt.Sprintf("READ_REQ %d+%d:%d", f.PSN(), f.A, uint32(f.B))
	default:
		s = fmt.Sprintf("%s %d", shortNames[op], f.PSN())
	}
	if f.Has(wire.FlagAckReq) {
		s += "*"
	}
	if lost {
		s += "!"
	}
	return s
}

// wantWire compares the wire with a comma-separated sequence; retransmissions
// after a silence of a timeout are introduced by "T".
func (s *sim) wantWire(want string) {
	s.t.Helper()
	var got []string
	for i, l := range s.lines {
		if i > 0 && s.times[i].Sub(s.times[i-1]) > 60*ms {
			got = append(got, "T")
		}
		got = append(got, l)
	}
	w := strings.Split(want, ",")
	for i := range w {
		w[i] = strings.TrimSpace(w[i])
	}
	if g, w := strings.Join(got, ", "), strings.Join(w, ", "); g != w {
		s.t.Fatalf("wire\n got %s\nwant %s", g, w)
	}
}

// wantCounters checks that the counters named have their values and that all
// other error counters are zero ("rq." requester A, "rs." responder B).
func (s *sim) wantCounters(want string) {
	s.t.Helper()
	left := map[string]uint64{}
	for _, w := range strings.Fields(want) {
		var v uint64
		n, val, _ := strings.Cut(w, "=")
		fmt.Sscan(val, &v)
		left[n] = v
	}
	free := map[string]bool{
		"rx_write_requests": true, "rx_read_requests": true, "rx_atomic_requests": true,
		"retransmitted_packets": true, "ignored_responses": true, "req_cqe_error": true, "req_cqe_flush_error": true,
		"resp_cqe_error": true, "resp_cqe_flush_error": true,
	}
	for _, f := range qp.CounterFields {
		for p, x := range map[string]*side{"rq.": s.a, "rs.": s.b} {
			v, named := left[p+f.Name]
			if got := *f.Get(&x.cnt); got != v && (named || !free[f.Name]) {
				s.t.Errorf("%s%s = %d, want %d", p, f.Name, got, v)
			}
			delete(left, p+f.Name)
		}
	}
	for n := range left {
		s.t.Errorf("no counter %s", n)
	}
}

// wantDone checks A's completions, e.g. "success success retry_exc_err".
func (s *sim) wantDone(want string) {
	s.t.Helper()
	var got []string
	for _, d := range s.a.done {
		got = append(got, d.Status.String())
	}
	if g := strings.Join(got, " "); g != want {
		s.t.Fatalf("completions %q, want %q", g, want)
	}
}

func (s *sim) firstNote(x *side, k qp.NoteKind) clock.Time {
	for _, n := range x.note {
		if n.Kind == k {
			return n.at
		}
	}
	return clock.Never
}
