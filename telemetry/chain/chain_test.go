package chain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/wire"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

// The test fabric: rnic1 and rnic2 on leaf1, queue pair 17 → 18, one flow.
const (
	devLeaf = iota
	devA
	devB
)

func testPlan() *topology.Plan {
	return &topology.Plan{
		Name: "t", Seed: 42,
		Devices: []topology.Device{
			{ID: 0, Kind: topology.Leaf, Name: "leaf1"},
			{ID: 1, Kind: topology.RNIC, Name: "rnic1"},
			{ID: 2, Kind: topology.RNIC, Name: "rnic2"},
		},
		RNICs:  []int32{devA, devB},
		QPs:    []topology.QP{{ID: 0, A: 1, B: 2, AQPN: 17, BQPN: 18, Flows: []int32{0}}},
		Flows:  []topology.Flow{{ID: 0, From: 1, To: 2, Size: 100000, Count: 2}},
		Lines:  []topology.Line{{Name: "bulk", Flows: []int32{0}}},
		Faults: []topology.Fault{{Name: "lose", Kind: "drop"}},
	}
}

// script builds records of the test queue pair.
type script struct {
	recs []record.Record
	seq  [3]uint32
}

func (s *script) at(us int64, dev int32, k record.Kind, psn uint32, mod ...func(*record.Record)) *script {
	r := record.Record{At: clock.Time(us * int64(clock.Microsecond)), Dev: dev, Kind: k, PSN: psn, Src: 1, Dst: 2, QPN: 18}
	if dev == devB {
		r.Src, r.Dst, r.QPN = 2, 1, 17 // what the responder sends
	}
	s.seq[dev]++
	r.Seq = s.seq[dev]
	for _, m := range mod {
		m(&r)
	}
	s.recs = append(s.recs, r)
	return s
}

func x(v int64) func(*record.Record) { return func(r *record.Record) { r.X = v } }
func y(v int64) func(*record.Record) { return func(r *record.Record) { r.Y = v } }
func reason(v record.Reason) func(*record.Record) {
	return func(r *record.Record) { r.Reason, r.Fault, r.Op, r.Iter = uint8(v), 1, uint8(wire.WriteMiddle), 1 }
}
func ack(r *record.Record) { r.Src, r.Dst, r.QPN, r.Op = 2, 1, 17, uint8(wire.Acknowledge) }

// lossAt is the plain story: PSN p lost, NAK, back, three packets again, done.
func (s *script) lossAt(us int64, p uint32) *script {
	s.at(us, devLeaf, record.Drop, p, reason(record.Fault))
	s.at(us+1, devB, record.OutOfSeq, p, x(int64(p)+1)).at(us+1, devB, record.NakSent, p)
	s.at(us+3, devA, record.NakRecv, p).at(us+3, devA, record.Rewind, p, x(int64(p)+3))
	for i := uint32(0); i < 3; i++ {
		s.at(us+4+int64(i), devA, record.Retransmit, p+i, func(r *record.Record) { r.Iter, r.Op = 2, uint8(wire.WriteMiddle) })
	}
	return s
}

func run(recs []record.Record, end int64) ([]*Chain, *Assembler) {
	var out []*Chain
	a := New(NewDirectory(testPlan()), func(c *Chain) { out = append(out, c) })
	a.Add(recs)
	a.Finish(clock.Time(end * int64(clock.Microsecond)))
	return out, a
}

// tell writes a chain as one word a step, with the index of its cause.
func tell(c *Chain) string {
	var b strings.Builder
	for i := range c.Steps {
		fmt.Fprintf(&b, "%s/%d<%d ", c.Steps[i].Name(), c.Steps[i].PSN, c.Steps[i].Cause)
	}
	return strings.TrimSpace(b.String())
}

func balance(t *testing.T, a *Assembler) {
	t.Helper()
	if n := a.Accounts(); n.Made != n.Emitted+n.Dropped {
		t.Errorf("accounts do not add up: %+v", n)
	}
}

func TestLossToCompletion(t *testing.T) {
	s := new(script).at(0, devA, record.ReqPosted, 0, x(1)).lossAt(10, 5).at(20, devA, record.ReqDone, 9, x(1))
	got, a := run(s.recs, 30)
	balance(t, a)
	if len(got) != 1 {
		t.Fatalf("%d chains, want 1", len(got))
	}
	c := got[0]
	want := "loss/5<-1 gap/5<0 nak sent/5<1 nak/5<2 go back/5<3 retransmit/5<4 retransmit/6<4 retransmit/7<4 recovery/9<7"
	if tell(c) != want {
		t.Errorf("steps\n got %s\nwant %s", tell(c), want)
	}
	if c.Posted != 0 || c.End != clock.Time(20*clock.Microsecond) || !c.Recover || c.Rounds != 1 || c.Resends != 3 || c.Request != 1 {
		t.Errorf("chain %+v", c)
	}
	e := c.Entry(a.dir)
	if e.Flow != "bulk" || e.QP != 18 || e.PSN != 5 || e.Cause != "fault" || e.Retries != 1 || !e.Recovered || len(e.SpanIDs) != 10 {
		t.Errorf("entry %+v", e)
	}
	if nak := c.Steps[3]; nak.Until.Sub(nak.Since) != 2*clock.Microsecond {
		t.Errorf("NAK travelled %v, want 2us", nak.Until.Sub(nak.Since))
	}
}

func TestTailLossEndsByTimeout(t *testing.T) {
	s := new(script).at(10, devLeaf, record.Drop, 9, reason(record.CRC))
	s.at(77, devA, record.Timeout, 5, x(6), y(int64(67*clock.Microsecond))).at(77, devA, record.Rewind, 5, x(10))
	s.at(78, devA, record.Retransmit, 5).at(90, devA, record.ReqDone, 9)
	got, a := run(s.recs, 100)
	balance(t, a)
	want := "loss/9<-1 timeout/5<0 go back/5<1 retransmit/5<2 recovery/9<3"
	if len(got) != 1 || tell(got[0]) != want || got[0].Cause() != "crc" {
		t.Fatalf("got %d chains: %v", len(got), got)
	}
	if w := got[0].Steps[1]; w.Until.Sub(w.Since) != 67*clock.Microsecond {
		t.Errorf("timer ran %v, want 67us", w.Until.Sub(w.Since))
	}
}

func TestLossWithoutConsequence(t *testing.T) {
	s := new(script).at(10, devLeaf, record.Drop, 3, ack).at(11, devLeaf, record.Drop, 4, ack)
	s.lossAt(20, 50).at(40, devA, record.ReqDone, 60)
	got, a := run(s.recs, 50)
	balance(t, a)
	if len(got) != 1 || got[0].Steps[0].PSN != 50 || a.Accounts().Unclaimed != 2 {
		t.Errorf("%d chains, accounts %+v", len(got), a.Accounts())
	}
}

func TestResendLostAgain(t *testing.T) {
	s := new(script).lossAt(10, 5)
	s.at(15, devLeaf, record.Drop, 5, reason(record.BufferShared))
	s.at(90, devA, record.Timeout, 5, x(6)).at(90, devA, record.Rewind, 5, x(8)).at(90, devA, record.Retransmit, 5)
	s.at(99, devA, record.ReqDone, 7)
	got, _ := run(s.recs, 100)
	if len(got) != 1 || got[0].Rounds != 2 {
		t.Fatalf("%d chains, want one with two rounds", len(got))
	}
	for i := range got[0].Steps {
		st := &got[0].Steps[i]
		if st.Kind == record.Drop && i > 0 && got[0].Steps[max(st.Cause, 0)].Kind != record.Retransmit {
			t.Errorf("second loss is caused by step %d, want the resend of PSN 5: %s", st.Cause, tell(got[0]))
		}
	}
}

func TestTwoLossesInOneRequest(t *testing.T) {
	s := new(script).at(1, devA, record.ReqPosted, 0, x(1)).lossAt(10, 5).lossAt(30, 40).at(60, devA, record.ReqDone, 90, x(1))
	got, a := run(s.recs, 100)
	balance(t, a)
	if len(got) != 2 || !got[0].Recover || !got[1].Recover || got[0].Request != 1 || got[1].Request != 1 {
		t.Fatalf("%d chains, want 2 of request 1", len(got))
	}
	if got[0].PSN != 5 || got[1].PSN != 40 || got[0].Trace == got[1].Trace {
		t.Errorf("PSNs %d and %d, traces %x %x", got[0].PSN, got[1].PSN, got[0].Trace, got[1].Trace)
	}
	if w := int(new(script).lossAt(0, 0).seq[devA]) + 3; len(got[0].Steps) != w+1 {
		t.Errorf("first chain has %d steps, want %d: %s", len(got[0].Steps), w+1, tell(got[0]))
	}
}

func TestRNRAndError(t *testing.T) {
	s := new(script)
	for i := range int64(2) {
		s.at(10+50*i, devB, record.RnrSent, 0, x(12)).at(12+50*i, devA, record.RnrRecv, 0, x(int64(40*clock.Microsecond)))
		s.at(52+50*i, devA, record.Rewind, 0, x(1)).at(52+50*i, devA, record.Retransmit, 0)
	}
	s.at(200, devA, record.QPError, 0, func(r *record.Record) { r.Reason = 13 })
	got, a := run(s.recs, 300)
	balance(t, a)
	if len(got) != 1 {
		t.Fatalf("%d chains", len(got))
	}
	c := got[0]
	if c.Cause() != "rnr" || c.Outcome() != "rnr_retry_exc_err" || c.Recover || c.Rounds != 2 {
		t.Errorf("cause %s outcome %s rounds %d", c.Cause(), c.Outcome(), c.Rounds)
	}
	if c.Steps[1].Until.Sub(c.Steps[1].At) != 40*clock.Microsecond {
		t.Errorf("RNR wait %v", c.Steps[1].Until.Sub(c.Steps[1].At))
	}
}

func TestUnfinishedIsWholeToo(t *testing.T) {
	got, a := run(new(script).lossAt(10, 5).recs, 30)
	balance(t, a)
	if len(got) != 1 || got[0].Outcome() != "unfinished" || got[0].End != clock.Time(30*clock.Microsecond) {
		t.Fatalf("%v", got)
	}
}

// The way records are batched, and replaying some of them, must not show.
func TestBatchesAndReplay(t *testing.T) {
	s := new(script).at(1, devA, record.ReqPosted, 0, x(1)).lossAt(10, 5).lossAt(30, 40).at(60, devA, record.ReqDone, 90, x(1))
	want, a := run(s.recs, 100)
	for cut := 1; cut < len(s.recs); cut++ {
		var got []*Chain
		b := New(NewDirectory(testPlan()), func(c *Chain) { got = append(got, c) })
		b.Add(s.recs[:cut])
		b.Add(s.recs[max(0, cut-4):]) // the last four come twice
		b.Finish(clock.Time(100 * clock.Microsecond))
		lines := func(cs []*Chain) (out []Line) {
			for _, c := range cs {
				out = append(out, c.Line(a.dir))
			}
			return out
		}
		if d := cmp.Diff(lines(want), lines(got)); d != "" {
			t.Fatalf("cut at %d: %s", cut, d)
		}
		if n := b.Accounts(); n.Replayed != uint64(min(cut, 4)) || n.Missing != 0 {
			t.Errorf("cut at %d: %+v", cut, n)
		}
	}
}

func TestFilesRoundTrip(t *testing.T) {
	got, a := run(new(script).lossAt(10, 5).at(20, devA, record.ReqDone, 9).recs, 30)
	path := t.TempDir() + "/" + report.ChainsFile
	if err := WriteFile(path, a.dir, got); err != nil {
		t.Fatal(err)
	}
	lines, err := report.ReadLines[report.ChainLine](path)
	if err != nil || len(lines) != 1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if d := cmp.Diff(got[0].Line(a.dir), lines[0]); d != "" {
		t.Error(d)
	}
	if l := lines[0]; l.Steps[0].Fault != "lose" || !strings.Contains(l.Steps[0].Text, "write-middle PSN 5 lost: fault lose (drop)") {
		t.Errorf("loss %+v", l.Steps[0])
	}
}

// Queue pairs of one requester that lose the same packet have traces of their
// own, also when their peers number them alike.
func TestTraceIDsOfOneRequester(t *testing.T) {
	p := testPlan()
	p.Devices = append(p.Devices, topology.Device{ID: 3, Kind: topology.RNIC, Name: "rnic3"})
	p.RNICs = append(p.RNICs, 3)
	p.QPs = append(p.QPs, topology.QP{ID: 1, A: 1, B: 3, AQPN: 18, BQPN: 18, Flows: []int32{0}}, topology.QP{ID: 2, A: 1, B: 2, AQPN: 19, BQPN: 19, Flows: []int32{0}})
	seen := map[[16]byte]int32{}
	for conn := range int32(3) {
		id := traceID(NewDirectory(p), &Chain{Conn: conn, PSN: 5})
		if other, twice := seen[id]; twice {
			t.Errorf("queue pairs %d and %d have the same trace %x", other, conn, id)
		}
		seen[id] = conn
	}
}
