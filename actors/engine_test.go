package actors_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/wire"
)

func spec(seed uint64) actortest.Spec {
	return actortest.Spec{Seed: seed, Relays: 24, Cables: 30, Burst: 40}
}

func run(t *testing.T, e *actors.Engine) actors.Result {
	t.Helper()
	r, err := e.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	return r
}

func engine(t *testing.T, f *actortest.Fabric, workers int) *actors.Engine {
	t.Helper()
	e, err := f.Engine(workers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// One digest for the oracle, for every window and every number of workers.
func TestDigestEqualsOracle(t *testing.T) {
	for seed := range uint64(4) {
		want, events := actortest.New(spec(seed)).Oracle()
		if events < 5000 {
			t.Fatalf("seed %d: only %d events, the test is too thin", seed, events)
		}
		for _, cut := range []clock.Duration{1, 2, 3, 7} {
			for _, workers := range []int{1, 2, 8} {
				s := spec(seed)
				s.Window = actortest.New(s).Window / cut
				e := engine(t, actortest.New(s), workers)
				r := run(t, e)
				if g := e.Digest(); g != want || e.Totals().Events != events || r.End != actors.Idle {
					t.Errorf("seed %d W/%d workers %d: digest %x, %d events, end %v; oracle %x, %d", seed, cut, workers, g, e.Totals().Events, r.End, want, events)
				}
			}
		}
	}
}

// A tie order that differs must show in the digest: the checker has teeth.
func TestDigestSeesSeed(t *testing.T) {
	a, _ := actortest.New(spec(1)).Oracle()
	f := actortest.New(spec(1))
	f.Config.Seed ^= 1 << 40 // other tie-breaks, same relays
	e := engine(t, f, 1)
	run(t, e)
	if e.Digest() == a {
		t.Error("other tie-breaks gave the same digest")
	}
}

func TestSaveRestoreGoesOn(t *testing.T) {
	for seed := range uint64(6) {
		whole := engine(t, actortest.New(spec(seed)), 1)
		run(t, whole)
		first := engine(t, actortest.New(spec(seed)), 1)
		cut := 1 + clock.Mix(seed, 1, 2)%whole.Windows()
		var blobs [][]byte
		var now clock.Time
		var merged actors.Summary
		wide := 0
		first.Observe = func(start clock.Time, n uint64) {
			if n != cut {
				return
			}
			now = first.Now()
			merged, wide = first.Merged()
			for _, d := range first.Local() {
				var w snap.Writer
				first.SnapshotDevice(d, &w)
				blobs = append(blobs, w.B)
			}
		}
		run(t, first)
		second := engine(t, actortest.New(spec(seed)), 2)
		for _, d := range second.Local() {
			if err := second.RestoreDevice(d, &snap.Reader{B: blobs[d]}); err != nil {
				t.Fatal(err)
			}
			var w snap.Writer
			second.SnapshotDevice(d, &w)
			if !bytes.Equal(w.B, blobs[d]) {
				t.Fatalf("seed %d: device %d is not canonical after restore", seed, d)
			}
		}
		second.Resume(now, cut, merged, wide)
		run(t, second)
		if second.Digest() != whole.Digest() || second.Windows() != whole.Windows() {
			t.Errorf("seed %d cut at window %d: digest %x after %d windows, uninterrupted %x after %d",
				seed, cut, second.Digest(), second.Windows(), whole.Digest(), whole.Windows())
		}
	}
}

// mesh is an ideal carrier: all processes meet before every window.
type mesh struct {
	mu   sync.Mutex
	cond *sync.Cond
	n    int
	in   int
	gen  int
	sum  actors.Summary
	last actors.Summary
	mail map[int32][]actors.Remote
	prev map[int32][]actors.Remote
}

func newMesh(n int) *mesh {
	m := &mesh{n: n, mail: map[int32][]actors.Remote{}}
	m.cond = sync.NewCond(&m.mu)
	return m
}

func (m *mesh) Exchange(_ context.Context, e *actors.Engine, _ uint64, mine actors.Summary) (actors.Summary, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.TakeRemote(func(r actors.Remote) {
		r.Frames = append([]wire.Frame(nil), r.Frames...)
		r.Late = append([]wire.Frame(nil), r.Late...)
		m.mail[r.Dst] = append(m.mail[r.Dst], r)
	})
	if m.in == 0 {
		m.sum = mine
	} else {
		m.sum.Merge(mine)
	}
	m.in++
	gen := m.gen
	if m.in == m.n {
		m.in, m.gen, m.last = 0, m.gen+1, m.sum
		m.prev, m.mail = m.mail, map[int32][]actors.Remote{}
		m.cond.Broadcast()
	}
	for gen == m.gen {
		m.cond.Wait()
	}
	for _, d := range e.Local() {
		for _, r := range m.prev[d] {
			if err := e.Deliver(r); err != nil {
				return m.last, err
			}
		}
	}
	return m.last, nil
}

func TestDigestOverProcesses(t *testing.T) {
	want, _ := actortest.New(spec(9)).Oracle()
	for _, procs := range []int{2, 3, 5} {
		m := newMesh(procs)
		var wg sync.WaitGroup
		sums := make([]actors.Digest, procs)
		wins := make([]uint64, procs)
		for p := range procs {
			e, err := actortest.New(spec(9)).Engine(1, func(d int32) bool { return int(clock.Mix(3, uint64(d), 5)%uint64(procs)) == p })
			if err != nil {
				t.Fatal(err)
			}
			e.Carrier = m
			wg.Add(1)
			go func() {
				defer wg.Done()
				if _, err := e.Run(context.Background()); err != nil {
					t.Error(err)
				}
				sums[p], wins[p] = e.Digest(), e.Windows()
			}()
		}
		wg.Wait()
		var got actors.Digest
		for p := range sums {
			got = got.Plus(sums[p])
			if wins[p] != wins[0] {
				t.Errorf("process %d ran %d windows, process 0 %d", p, wins[p], wins[0])
			}
		}
		if got != want {
			t.Errorf("%d processes: digest %x, oracle %x", procs, got, want)
		}
	}
}

// sender sends one frame with a wrong time.
type sender struct {
	actors.Actor
	at   clock.Time
	late bool
}

func (s *sender) Advance(end clock.Time, in *actors.Inbox, out *actors.Outbox, st *actors.Status) {
	f := wire.Frame{At: s.at}
	if s.late {
		out.SendLate(1, &f)
	} else {
		out.Send(1, &f)
	}
}

func TestSendIntoWindowPanics(t *testing.T) {
	for _, late := range []bool{false, true} {
		f := actortest.New(actortest.Spec{Seed: 1, Relays: 2, Burst: 1})
		hosted := []actors.Actor{&sender{Actor: f.Relays[0], at: clock.Time(f.Window) - 1, late: late}, f.Relays[1]}
		e, err := actors.New(f.Config, hosted, 1)
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "sends into the running window") {
					t.Errorf("late=%v: want a panic about the running window, got %v", late, r)
				}
			}()
			e.Step(context.Background())
		}()
	}
}

func TestDeliverRefuses(t *testing.T) {
	f := actortest.New(actortest.Spec{Seed: 1, Relays: 4, Burst: 1})
	e, err := f.Engine(1, func(d int32) bool { return d == 0 })
	if err != nil {
		t.Fatal(err)
	}
	e.SetClock(1000, 3)
	c := f.Config.Cables[0][0]
	good := actors.Remote{Src: c.Peer, SrcPort: uint16(c.PeerPort), Dst: 0, DstPort: 1, Frames: []wire.Frame{{At: 1000}, {At: 1500}}}
	bad := map[string]func(*actors.Remote){
		"not hosted":         func(r *actors.Remote) { r.Dst = 1 },
		"hosted here":        func(r *actors.Remote) { r.Dst = -1 },
		"does not exist":     func(r *actors.Remote) { r.DstPort = 9 },
		"which does":         func(r *actors.Remote) { r.DstPort = 0 },
		"wrong device":       func(r *actors.Remote) { r.Src = 2 },
		"from the wrong":     func(r *actors.Remote) { r.SrcPort = 7 },
		"arrives at 999":     func(r *actors.Remote) { r.Frames = []wire.Frame{{At: 999}} },
		"before 1.5ns":       func(r *actors.Remote) { r.Frames = []wire.Frame{{At: 1500}, {At: 1400}} },
		"late frame":         func(r *actors.Remote) { r.Late = []wire.Frame{{At: 5}} },
		"arrives at 0s, bef": func(r *actors.Remote) { r.Frames = []wire.Frame{{At: 0}} },
	}
	for want, f := range bad {
		r := good
		f(&r)
		if err := e.Deliver(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	if err := e.Deliver(good); err != nil {
		t.Error(err)
	}
}

func FuzzRestore(f *testing.F) {
	fab := actortest.New(actortest.Spec{Seed: 5, Relays: 4, Burst: 4})
	e, err := fab.Engine(1, nil)
	if err != nil {
		f.Fatal(err)
	}
	for range 6 {
		if _, err := e.Step(context.Background()); err != nil {
			f.Fatal(err)
		}
	}
	var w snap.Writer
	e.SnapshotDevice(2, &w)
	f.Add(w.B)
	f.Add(w.B[:len(w.B)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := actortest.New(actortest.Spec{Seed: 5, Relays: 4, Burst: 4}).Engine(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &snap.Reader{B: b}
		if err := e.RestoreDevice(2, r); err != nil {
			return
		}
		var w snap.Writer
		e.SnapshotDevice(2, &w)
		if !bytes.Equal(w.B, b[:len(b)-len(r.B)]) {
			t.Errorf("accepted bytes do not come back")
		}
	})
}
