package coord

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rocemu/rocemu/clock"
)

func running(t testing.TB, slots int) *State {
	t.Helper()
	s := NewState()
	ok := func(e *Entry) {
		t.Helper()
		if r := s.Apply(e); r.Err != "" {
			t.Fatal(r.Err)
		}
	}
	ok(&Entry{Kind: KindMember, Member: &Member{Name: "a", Boot: "1"}})
	ok(&Entry{Kind: KindMember, Member: &Member{Name: "b", Boot: "1"}})
	ok(&Entry{Cmd: "s", Kind: KindSubmit, Spec: &RunSpec{ID: "r", Files: []File{{Name: "f"}}}})
	e := &Entry{Kind: KindPlace, Run: "r", Hash: "h"}
	for i := range slots {
		e.Slots = append(e.Slots, Slot{Owner: "a"})
		e.Owner = append(e.Owner, int32(i))
	}
	ok(e)
	return s
}

// I7: the grant never falls, and a fault never lies before the grant at its
// place in the log; a command repeated changes nothing.
func TestFaultsAndGrants(t *testing.T) {
	s := running(t, 2)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		before := s.Run.Grant
		switch r.IntN(3) {
		case 0:
			s.Apply(&Entry{Kind: KindGrant, Run: "r", At: clock.Time(r.Int64N(1e6))})
		case 1:
			want := clock.Time(r.Int64N(1e6))
			e := &Entry{Cmd: fmt.Sprint(i), Kind: KindFault, Run: "r", Fault: &Fault{Name: fmt.Sprint("f", i), Text: "x", Want: want}}
			a := s.Apply(e)
			if a.Err != "" || a.At < before || a.At < want {
				t.Fatalf("fault wanted at %v with grant %v: %+v", want, before, a)
			}
			n := len(s.Run.Faults)
			if b := s.Apply(e); b != a || len(s.Run.Faults) != n {
				t.Fatalf("repeated: %+v, first %+v, %d faults", b, a, len(s.Run.Faults))
			}
		case 2:
			s.Apply(&Entry{Kind: []Kind{KindPause, KindResume, KindStep}[r.IntN(3)], Run: "r", At: clock.Time(r.Int64N(100))})
		}
		if s.Run.Grant < before {
			t.Fatalf("grant fell from %v to %v", before, s.Run.Grant)
		}
	}
}

func TestPausedIsGrantedItsStepOnly(t *testing.T) {
	s := running(t, 1)
	s.Apply(&Entry{Kind: KindGrant, At: 100})
	s.Apply(&Entry{Kind: KindPause})
	s.Apply(&Entry{Kind: KindGrant, At: 500})
	if s.Run.Grant != 100 {
		t.Errorf("a paused run was granted %v", s.Run.Grant)
	}
	s.Apply(&Entry{Kind: KindStep, At: 7})
	s.Apply(&Entry{Kind: KindGrant, At: 500})
	if s.Run.Grant != 107 {
		t.Errorf("a step of 7 was granted to %v", s.Run.Grant)
	}
}

// I6: reports of superseded incarnations complete no checkpoint and end no slot.
func TestStaleReportsAreRefused(t *testing.T) {
	s := running(t, 2)
	s.Apply(&Entry{Kind: KindCkptPlan})
	s.Apply(&Entry{Kind: KindMove, Slot: 1, Inc: 1, To: "b"})
	c := &Ckpt{B: s.Run.Plan.B, N: 5, Blobs: []Blob{{Inc: 1, N: 5}, {Inc: 1, N: 5}}}
	if r := s.Apply(&Entry{Kind: KindCkptCommit, Ckpt: c}); r.Err == "" {
		t.Error("a checkpoint with a superseded incarnation was committed")
	}
	c.Blobs[1].Inc, c.Blobs[1].N = 2, 6
	if r := s.Apply(&Entry{Kind: KindCkptCommit, Ckpt: c}); r.Err == "" {
		t.Error("a checkpoint of two different windows was committed")
	}
	c.Blobs[1].N = 5
	if r := s.Apply(&Entry{Kind: KindCkptCommit, Ckpt: c}); r.Err != "" || len(s.Run.Ckpts) != 1 {
		t.Errorf("a good checkpoint was refused: %s", r.Err)
	}
	if r := s.Apply(&Entry{Kind: KindDone, Slot: 1, Inc: 1, Done: &Done{}}); r.Err == "" {
		t.Error("a superseded incarnation ended a slot")
	}
}

func TestSlotsThatEndDifferentlyDiverge(t *testing.T) {
	s := running(t, 2)
	s.Apply(&Entry{Kind: KindDone, Slot: 0, Inc: 1, Done: &Done{At: 10, Windows: 3}})
	s.Apply(&Entry{Kind: KindDone, Slot: 1, Inc: 1, Done: &Done{At: 10, Windows: 4}})
	if s.Run.Phase != Failed {
		t.Errorf("phase %s", s.Run.Phase)
	}
}

func TestRollback(t *testing.T) {
	s := running(t, 1)
	for i := range 4 {
		s.Apply(&Entry{Kind: KindGrant, At: clock.Time(100 * (i + 1))})
		s.Apply(&Entry{Kind: KindCkptPlan})
		s.Apply(&Entry{Kind: KindCkptCommit, Ckpt: &Ckpt{B: s.Run.Plan.B, N: uint64(i), Blobs: []Blob{{Inc: 1, N: uint64(i), Sum: fmt.Sprint(i)}}}})
	}
	if len(s.Run.Ckpts) != maxCkpts || s.Run.Ckpt().N != 3 {
		t.Fatalf("checkpoints %+v", s.Run.Ckpts)
	}
	if r := s.Apply(&Entry{Kind: KindRollback, At: 300}); r.Err == "" {
		t.Error("rolled back from a checkpoint that is not the last")
	}
	if r := s.Apply(&Entry{Kind: KindRollback, At: 400}); r.Err != "" || s.Run.Ckpt().N != 2 || s.Run.Slots[0].Inc != 2 {
		t.Errorf("%s: checkpoint %+v, slots %+v", r.Err, s.Run.Ckpt(), s.Run.Slots)
	}
	if k := s.blobs(); !k["1"] || !k["2"] || k["3"] || k["0"] {
		t.Errorf("blobs kept: %v", k)
	}
}

// The state is a pure function of its entries, and its bytes come back.
func FuzzApply(f *testing.F) {
	for _, e := range []*Entry{
		{Kind: KindGrant, At: 5},
		{Kind: KindFault, Fault: &Fault{Text: "x"}},
		{Kind: KindMove, Slot: 1, Inc: 1, To: "b"},
		{Kind: KindStop, At: 9},
		{Kind: KindCkptPlan},
		{Kind: KindPlace},
		{Kind: KindSubmit, Spec: &RunSpec{ID: "z"}},
		{Kind: KindDone, Slot: -1},
		{Kind: KindRollback, At: 3},
		{Kind: KindPace, Pace: &Pace{1, 0}},
	} {
		b, _ := e.Encode()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		one, two := running(t, 2), running(t, 2)
		for range 2 {
			e, err := DecodeEntry(b)
			if err != nil {
				return
			}
			one.Apply(e)
			e, _ = DecodeEntry(b)
			two.Apply(e)
		}
		x, err := one.Encode()
		if err != nil {
			t.Fatal(err)
		}
		y, _ := two.Encode()
		if !bytes.Equal(x, y) {
			t.Fatal("two replicas differ")
		}
		z, err := DecodeState(x)
		if err != nil {
			t.Fatal(err)
		}
		w, _ := z.Encode()
		if !bytes.Equal(x, w) {
			t.Fatalf("the state does not come back:\n%s\n%s", x, w)
		}
	})
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	s, err := openStore(path, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 50; i++ {
		if err := s.StoreLog(&raft.Log{Index: i, Term: i / 7, Type: raft.LogCommand, Data: []byte{byte(i)}, Extensions: []byte("x"), AppendedAt: time.Unix(5, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteRange(1, 20); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteRange(41, 50); err != nil {
		t.Fatal(err)
	}
	if err := s.SetUint64([]byte("term"), 9); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if s, err = openStore(path, true); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lo, _ := s.FirstIndex()
	hi, _ := s.LastIndex()
	if lo != 21 || hi != 40 {
		t.Errorf("log holds %d to %d", lo, hi)
	}
	var l raft.Log
	if err := s.GetLog(30, &l); err != nil || l.Term != 4 || l.Data[0] != 30 || string(l.Extensions) != "x" {
		t.Errorf("entry 30: %+v %v", l, err)
	}
	if err := s.GetLog(41, &l); err != raft.ErrLogNotFound {
		t.Errorf("entry 41: %v", err)
	}
	if n, err := s.GetUint64([]byte("term")); err != nil || n != 9 {
		t.Errorf("term %d %v", n, err)
	}
	if _, err := s.Get([]byte("none")); err == nil || err.Error() != "not found" {
		t.Errorf("missing key: %v", err)
	}
}

func TestBlobsAreCheckedAndSwept(t *testing.T) {
	ctx, d := context.Background(), DirBlobs(t.TempDir())
	sum, err := d.Put(ctx, []byte("state"))
	if err != nil {
		t.Fatal(err)
	}
	other, _ := d.Put(ctx, []byte("other"))
	if b, err := d.Get(ctx, sum); err != nil || string(b) != "state" {
		t.Fatalf("%q %v", b, err)
	}
	if err := d.sweep(ctx, map[string]bool{sum: true}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(ctx, other); err == nil {
		t.Error("an unreferenced blob was kept")
	}
	if err := os.WriteFile(filepath.Join(string(d), sum), []byte("stAte"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(ctx, sum); err == nil {
		t.Error("a damaged blob was returned")
	}
	if _, err := d.Get(ctx, "../../etc/passwd"); err == nil {
		t.Error("a path was taken for a blob")
	}
}

func TestPlacement(t *testing.T) {
	l := &Layout{Hash: "h"}
	for i := range 12 {
		l.Names = append(l.Names, fmt.Sprint("d", i))
		l.Groups = append(l.Groups, Group{Devices: []int32{int32(i)}, Weight: int64(1 + i%4)})
	}
	ms := []*Member{{Name: "b", Cores: 2}, {Name: "a", Cores: 2}, {Name: "c", Cores: 4}}
	owner, slots, err := place(l, ms, nil)
	if err != nil || len(slots) != 3 {
		t.Fatal(slots, err)
	}
	if slots[2].Owner != "c" || slots[2].Weight < slots[0].Weight+slots[1].Weight-4 || slots[2].Weight > slots[0].Weight+slots[1].Weight+4 {
		t.Errorf("the member with twice the cores got %d, others %d and %d", slots[2].Weight, slots[0].Weight, slots[1].Weight)
	}
	again, _, _ := place(l, []*Member{ms[2], ms[0], ms[1]}, nil)
	if a, b := fmt.Sprint(owner), fmt.Sprint(again); a != b {
		t.Errorf("placement depends on the order of members: %s, %s", a, b)
	}
	ms[0].Devices = []string{"d3", "d4"}
	owner, slots, err = place(l, ms, nil)
	if err != nil || slots[owner[3]].Owner != ms[0].Name && slots[owner[3]].Owner != "a" {
		t.Errorf("pinned: %v %v %v", owner, slots, err)
	}
	all := []*Member{{Name: "x", Devices: []string{"d1"}}}
	if _, _, err := place(l, all, nil); err == nil {
		t.Error("devices without a host were placed")
	}
	if _, _, err := place(l, []*Member{{Name: "x", Devices: []string{"nope"}}}, nil); err == nil {
		t.Error("an unknown device was pinned")
	}
	if _, _, err := place(l, []*Member{{Name: "x", Devices: []string{"d1"}}, {Name: "y", Devices: []string{"d1"}}, {Name: "z"}}, nil); err == nil {
		t.Error("a device was pinned twice")
	}
}

// Whoever leads knows the length of a run's windows from the ledger.
func TestWindowIsInTheLedger(t *testing.T) {
	for _, w := range []clock.Duration{0, 7 * clock.Nanosecond} {
		s := NewState()
		s.Apply(&Entry{Kind: KindSubmit, Spec: &RunSpec{ID: "r", Files: []File{{Name: "f", Text: "x"}}}})
		s.Apply(&Entry{Kind: KindPlace, Run: "r", Hash: "h", Window: w, Owner: []int32{0}, Slots: []Slot{{Owner: "a"}}})
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var again State
		if err := json.Unmarshal(b, &again); err != nil || again.Run == nil {
			t.Fatalf("%v: %s", err, b)
		}
		want := w
		if w == 0 {
			want = clock.Microsecond // of a build that did not say
		}
		if got := again.Run.window(); got != want {
			t.Errorf("window %v, want %v", got, want)
		}
	}
}

// A stop at an instant that may have been run is refused, not moved.
func TestStopInThePast(t *testing.T) {
	s := running(t, 1)
	stop := func(at clock.Time) Result { return s.Apply(&Entry{Kind: KindStop, At: at}) }
	s.Apply(&Entry{Kind: KindGrant, At: 100})
	if r := stop(99); !strings.Contains(r.Err, "lies before 100ps") || s.Run.StopAt != clock.Never {
		t.Errorf("at 99: %+v, stop at %v", r, s.Run.StopAt)
	}
	for _, x := range []struct{ at, want clock.Time }{{300, 300}, {200, 200}, {100, 100}, {0, 100}} {
		if r := stop(x.at); r.Err != "" || r.At != x.want || s.Run.StopAt != x.want {
			t.Errorf("at %v: %+v, stop at %v", x.at, r, s.Run.StopAt)
		}
	}
	if r := stop(150); !strings.Contains(r.Err, "stops at 100ps already") || s.Run.StopAt != 100 {
		t.Errorf("later than a stop before it: %+v, stop at %v", r, s.Run.StopAt)
	}
}

func TestGranter(t *testing.T) {
	r := &Run{Spec: RunSpec{ID: "r"}, StopAt: clock.Never, Pace: Pace{0, 1}}
	var g granter
	now := time.Now()
	m := clock.Time(0)
	for range 200 { // a fabric that makes 1 ms a second and asks when it must
		want := clock.Time(0)
		if r.Grant <= m {
			want = m + 1000
		}
		r.Grant = max(r.Grant, g.next(now, r, clock.Microsecond, front{m, want, uint64(m) / uint64(clock.Microsecond)}))
		now = now.Add(50 * time.Millisecond)
		m = min(r.Grant, m+clock.Time(50*clock.Microsecond))
	}
	if ahead := r.Grant.Sub(m); m < clock.Time(9*clock.Millisecond) || ahead > 600*clock.Microsecond {
		t.Errorf("after 10 s at 1 ms a second: frontier %v, grant %v ahead", m, ahead)
	}
	r.Pace = Pace{1, 1000}
	v0 := r.Grant
	for range 100 {
		r.Grant = g.next(now, r, clock.Microsecond, front{m: r.Grant})
		now = now.Add(10 * time.Millisecond)
	}
	if got := r.Grant.Sub(v0); got < 980*clock.Microsecond || got > 1000*clock.Microsecond {
		t.Errorf("a second at pace 1/1000 granted %v", got)
	}
}

// The windows of a restored run are counted on from the snapshot's: what was
// executed before it is no speed.
func TestGrantAfterRestore(t *testing.T) {
	const before = 1_000_000
	r := &Run{Spec: RunSpec{ID: "r"}, StopAt: clock.Never, Pace: Pace{0, 1}, Start: &Ckpt{N: before}}
	var g granter
	now, m := time.Now(), clock.Time(0)
	for i := range uint64(60) { // slots start after half a second, and make 1000 windows a second
		f := front{m: m}
		if i >= 10 {
			f.n = before + 50*(i-10)
			m = min(r.Grant, m+clock.Time(50*clock.Microsecond))
		}
		if r.Grant <= m {
			f.want = m + 1000
		}
		r.Grant = max(r.Grant, g.next(now, r, clock.Microsecond, f))
		if ahead := r.Grant.Sub(m); ahead > 600*clock.Microsecond {
			t.Fatalf("%v are granted ahead, 1 ms is a second's", ahead)
		}
		now = now.Add(50 * time.Millisecond)
	}
}

// A fabric of 5000 windows a second that leaps over 100 ms now and then: a leap
// is granted when it is asked for, and what is granted ahead never lasts longer
// than the horizon at the pace of the windows, give or take what one heartbeat
// does not tell.
func TestGrantAfterLeap(t *testing.T) {
	const tick = 10 * time.Millisecond
	for _, h := range []struct {
		batch bool
		ms    int
		limit time.Duration
	}{{false, 0, 350 * time.Millisecond}, {true, 0, 4 * time.Second}, {true, 400, 600 * time.Millisecond}} {
		r := &Run{Spec: RunSpec{ID: "r", Batch: h.batch, Horizon: h.ms}, StopAt: clock.Never, Pace: Pace{0, 1}}
		var g granter
		var seen front
		now, m, n, stood := time.Now(), clock.Time(0), uint64(0), 0
		for i := range 3000 { // 30 s
			begun := n
			for ; n < begun+50 && m.Add(clock.Microsecond) <= r.Grant; n++ {
				if m = m.Add(clock.Microsecond); n%700 < 9 { // sparse traffic, and then none
					m = m.Add(clock.Millisecond)
				} else if n%2000 == 0 {
					m = m.Add(100 * clock.Millisecond)
				}
			}
			seen.want = 0
			if n < begun+50 {
				stood++
				seen = front{m, m.Add(clock.Microsecond), n}
			} else if i%20 == 0 {
				seen = front{m, 0, n}
			}
			now = now.Add(tick)
			r.Grant = max(r.Grant, g.next(now, r, clock.Microsecond, seen))
			ahead := time.Duration(float64(r.Grant.Sub(m)/clock.Microsecond) / 5000 * float64(time.Second))
			if ahead > h.limit {
				t.Fatalf("batch %v: after %d windows %v of full windows are granted ahead", h.batch, n, ahead)
			}
		}
		if n < 75_000 {
			t.Errorf("batch %v: %d windows in 30 s, it stood at %d of 3000 ticks", h.batch, n, stood)
		}
	}
}

func TestDecodeEntryIsStrict(t *testing.T) {
	for _, b := range []string{"", "{}x", `{"kind":"grant","color":1}`, `[]`, `{"kind":3}`} {
		if e, err := DecodeEntry([]byte(b)); err == nil && b != "{}" {
			t.Errorf("%q was accepted as %+v", b, e)
		}
	}
	if _, err := DecodeEntry(bytes.Repeat([]byte(" "), MaxEntry+1)); err == nil {
		t.Error("an entry beyond the limit was accepted")
	}
	var e Entry
	if err := json.Unmarshal([]byte(`{"kind":"pause"}`), &e); err != nil || e.Kind != KindPause {
		t.Error(err)
	}
}

// The failure and the loss that a superseded incarnation reports do not count.
func TestSupersededFailure(t *testing.T) {
	s := running(t, 2)
	if r := s.Apply(&Entry{Kind: KindMove, Run: "r", Slot: 1, Inc: 1, To: "b"}); r.Err != "" {
		t.Fatal(r.Err)
	}
	for _, k := range []Kind{KindFail, KindRollback} {
		if r := s.Apply(&Entry{Kind: k, Run: "r", Slot: 1, Inc: 1, Why: "a gap"}); r.Err == "" || s.Run.Phase != Running {
			t.Errorf("%s of an old incarnation: %+v, run is %s", k, r, s.Run.Phase)
		}
	}
	if s.Apply(&Entry{Kind: KindFail, Run: "r", Slot: 1, Inc: 2, Why: "a gap"}); s.Run.Phase != Failed {
		t.Errorf("run is %s", s.Run.Phase)
	}
}

// A gate counts a pending fault only when every process that passes the same
// end has seen it: by the grant at its place in the ledger.
func TestGateCountsWhatAllKnow(t *testing.T) {
	s := running(t, 1)
	for _, e := range []*Entry{
		{Kind: KindGrant, At: 10},
		{Kind: KindFault, Fault: &Fault{Name: "a", Text: "x", Want: 100}},
		{Kind: KindGrant, At: 40},
		{Kind: KindFault, Fault: &Fault{Name: "b", Text: "x", Want: 50}},
	} {
		if r := s.Apply(e); r.Err != "" {
			t.Fatal(r.Err)
		}
	}
	g := &gate{faults: sortFaults(append([]Fault(nil), s.Run.Faults...))}
	for _, x := range []struct{ end, want clock.Time }{{10, clock.Never}, {11, 100}, {40, 100}, {41, 50}, {clock.Never, 50}} {
		if got := g.next(x.end); got != x.want {
			t.Errorf("passing %v: next fault at %v, want %v", x.end, got, x.want)
		}
	}
}

// A term that cannot be kept ends the process with a reason, not in a panic of
// raft's.
func TestLostTermIsFatal(t *testing.T) {
	s, err := openStore(filepath.Join(t.TempDir(), "raft.db"), false)
	if err != nil {
		t.Fatal(err)
	}
	var why []error
	s.lost = func(err error) { why = append(why, err) }
	if err := s.Set(make([]byte, 1<<16), nil); err == nil || len(why) != 1 || !strings.Contains(why[0].Error(), "raft.db cannot be written") {
		t.Errorf("%v; told %v", err, why)
	}
	s.Close()
	if err := s.SetUint64([]byte("CurrentTerm"), 1); err == nil || len(why) != 1 {
		t.Errorf("a store that was closed: %v; told %v", err, why)
	}
}

// A rollback leaves what is planned; what is kept by name is never dropped for
// another name; nothing is promised beyond the end.
func TestSnapshotsArePromises(t *testing.T) {
	s := running(t, 1)
	commit := func(b clock.Time) {
		t.Helper()
		if r := s.Apply(&Entry{Kind: KindCkptCommit, Ckpt: &Ckpt{B: b, Blobs: []Blob{{Inc: s.Run.Slots[0].Inc}}}}); r.Err != "" {
			t.Fatal(r.Err)
		}
	}
	s.Run.End = 10_000
	s.Apply(&Entry{Kind: KindGrant, At: 100})
	s.Apply(&Entry{Kind: KindCkptPlan})
	commit(100)
	s.Apply(&Entry{Kind: KindCkptPlan, Name: "x", At: 500})
	if r := s.Apply(&Entry{Kind: KindRollback, At: 100}); r.Err != "" || s.Run.Plan == nil || s.Run.Plan.Name != "x" || s.Run.Plan.B != 500 {
		t.Fatalf("%v: planned is %v", r, s.Run.Plan)
	}
	commit(500)
	for i := 1; i < maxSaved; i++ {
		r := s.Apply(&Entry{Kind: KindCkptPlan, Name: fmt.Sprint(i), At: clock.Time(500 + i)})
		if r.Err != "" {
			t.Fatal(r.Err)
		}
		commit(r.At)
	}
	if r := s.Apply(&Entry{Kind: KindCkptPlan, Name: "more", At: 700}); r.Err == "" || s.Run.Plan != nil {
		t.Errorf("more than are kept: %v", r)
	}
	if r := s.Apply(&Entry{Kind: KindCkptPlan, Name: "x", At: 10_000}); !strings.Contains(r.Err, "ends at 10ns") {
		t.Errorf("at the end: %v", r)
	}
	if r := s.Apply(&Entry{Kind: KindStop, At: 10_001}); !strings.Contains(r.Err, "run.limit") {
		t.Errorf("a stop beyond the end: %v", r)
	}
	if r := s.Apply(&Entry{Kind: KindCkptPlan, Name: "x", At: 700}); r.Err != "" {
		t.Errorf("over one of the name: %v", r)
	}
	commit(700)
	if x := s.saved("x"); len(s.Saved) != maxSaved || x.Ckpt.B != 700 {
		t.Errorf("%d are kept, x is %v", len(s.Saved), x)
	}
	s.Apply(&Entry{Kind: KindGrant, At: 20_000})
	if r := s.Apply(&Entry{Kind: KindStop}); r.Err != "" || r.At != 10_000 {
		t.Errorf("a stop of what is granted beyond its end: %v", r)
	}
}

// What a client asks for narrowly is refused, not bent; the same command once
// more is answered as before, also when it would be refused by now.
func TestSnapshotsNarrowly(t *testing.T) {
	s := running(t, 1)
	s.Apply(&Entry{Kind: KindGrant, At: 100})
	ask := &Entry{Cmd: "one", Kind: KindCkptPlan, Name: "x", At: 100, Firm: true, New: true}
	first := s.Apply(ask)
	if first.Err != "" || first.At != 100 || first.OldRun != "" {
		t.Fatalf("%+v", first)
	}
	s.Apply(&Entry{Kind: KindCkptCommit, Ckpt: &Ckpt{B: 100, Blobs: []Blob{{Inc: s.Run.Slots[0].Inc}}}})
	s.Apply(&Entry{Kind: KindGrant, At: 200})
	if again := s.Apply(ask); again != first || s.Run.Plan != nil {
		t.Errorf("once more: %+v, first %+v; planned is %v", again, first, s.Run.Plan)
	}
	for _, x := range []struct {
		e    Entry
		want string
	}{
		{Entry{Name: "x", New: true}, "is there already, of run " + s.Run.Spec.ID + " at 100ps"},
		{Entry{Name: "y", At: 150, Firm: true}, "150ps lies before 200ps"},
		{Entry{Name: "y", Firm: true}, "0s lies before 200ps"},
	} {
		x.e.Kind = KindCkptPlan
		if r := s.Apply(&x.e); !strings.Contains(r.Err, x.want) || s.Run.Plan != nil {
			t.Errorf("%+v: want %q", r, x.want)
		}
	}
	if r := s.Apply(&Entry{Kind: KindCkptPlan, Name: "x"}); r.OldRun != s.Run.Spec.ID || r.OldAt != 100 {
		t.Errorf("it takes the place of one: %+v", r)
	}
}

// The faults of one entry get one instant, or none of them does.
func TestFaultsTogether(t *testing.T) {
	s := running(t, 1)
	s.Apply(&Entry{Kind: KindGrant, At: 100})
	before := s.Run.Grant
	for _, with := range []Fault{{Name: "a", Text: "again"}, {Name: "b"}, {Name: "nosuch", Clear: true}, {Name: "a", Clear: true}} {
		if r := s.Apply(&Entry{Kind: KindFault, Fault: &Fault{Name: "a", Text: "one"}, With: []Fault{with}}); r.Err == "" || len(s.Run.Faults) > 0 {
			t.Errorf("%+v: %+v, taken are %v", with, r, s.Run.Faults)
		}
	}
	r := s.Apply(&Entry{Kind: KindFault, Fault: &Fault{Name: "a", Text: "one", Want: 50}, With: []Fault{{Name: "b", Text: "two", Want: 300, Firm: true}, {Name: "c", Text: "three"}}})
	if r.Err != "" || r.At != before || len(s.Run.Faults) != 3 {
		t.Fatalf("%+v, taken are %v", r, s.Run.Faults)
	}
	for i, f := range s.Run.Faults {
		if f.Eff != before || f.Base != before || f.Index != i {
			t.Errorf("%+v", f)
		}
	}
}

// A fault ends after it has begun, and once: what is answered is what happens.
func TestEndsOfFaults(t *testing.T) {
	s := running(t, 1)
	s.Apply(&Entry{Kind: KindGrant, At: 100})
	s.Apply(&Entry{Kind: KindFault, Fault: &Fault{Name: "x", Text: "t", Want: 500}})
	s.Apply(&Entry{Kind: KindFault, Fault: &Fault{Name: "y", Text: "t", Want: 500, For: 50}})
	for _, c := range []struct {
		name string
		want clock.Time
		bad  string
		at   clock.Time
	}{
		{"x", 0, `"x" begins at 500ps and cannot end at 100ps`, 0},
		{"x", 500, `"x" begins at 500ps and cannot end at 500ps`, 0},
		{"y", 550, `"y" ends at 550ps, before 550ps`, 0},
		{"y", 540, "", 540},
		{"y", 545, `"y" ends at 540ps, before 545ps`, 0},
		{"x", 700, "", 700},
		{"x", 800, `"x" ends at 700ps, before 800ps`, 0},
		{"x", 600, "", 600},
	} {
		had := len(s.Run.Faults)
		r := s.Apply(&Entry{Kind: KindFault, Fault: &Fault{Name: c.name, Clear: true, Want: c.want}})
		if c.bad == "" && (r.Err != "" || r.At != c.at) || c.bad != "" && (!strings.Contains(r.Err, c.bad) || len(s.Run.Faults) != had) {
			t.Errorf("the end of %s at %v: %+v, want %q %v", c.name, c.want, r, c.bad, c.at)
		}
	}
}
