package emu_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/telemetry"
	"github.com/rocemu/rocemu/telemetry/split"
	"github.com/rocemu/rocemu/topology"
)

const lossy = `schema: 1
name: lossy
seed: 7
topology: {spines: 1, leaves: 3, servers: 2}
workload:
  - {name: ring, pattern: permutation, shift: 2, verb: write, size: 40KB, count: 40}
faults:
  - {name: dirt, kind: loss, target: "leaf1:1", at: 0us, probability: 2e-3}
`

// watched is what somebody saw of a run.
type watched struct {
	batches [][]record.Record
	samples []counters.Snapshot
	end     counters.Snapshot // of the end
	res     *report.Result
	split   *split.Watcher
	splits  []split.Split
}

func (w *watched) records(b []record.Record) {
	w.batches = append(w.batches, slices.Clone(b))
	w.split.Records(b)
}

func (w *watched) sample(s *counters.Snapshot) {
	w.samples = append(w.samples, counters.Snapshot{At: s.At, Devices: s.Devices, Points: slices.Clone(s.Points)})
}

func (w *watched) same(t *testing.T, o *watched) {
	t.Helper()
	if len(w.res.Traces) < 3 || !reflect.DeepEqual(w.res.Traces, o.res.Traces) || w.res.Telemetry.ChainsMade != o.res.Telemetry.ChainsMade || w.res.Telemetry.MissingRecords != 0 {
		t.Errorf("traces differ: %d and %d; %+v and %+v", len(w.res.Traces), len(o.res.Traces), w.res.Telemetry, o.res.Telemetry)
	}
	if w.res.Digest != o.res.Digest {
		t.Errorf("digests %s and %s", w.res.Digest, o.res.Digest)
	}
	if g, h := slices.Concat(w.batches...), slices.Concat(o.batches...); !slices.Equal(g, h) {
		t.Errorf("records differ: %d and %d", len(g), len(h))
	}
	if w.end.At != clock.Time(w.res.VirtualNS) || !reflect.DeepEqual(w.end, o.end) {
		t.Errorf("the samples of the end differ: at %v and %v, the run ends at %v", w.end.At, o.end.At, clock.Time(w.res.VirtualNS))
	}
	if len(w.splits) != 6 || !slices.Equal(w.splits, o.splits) {
		t.Errorf("splits differ: %+v and %+v", w.splits, o.splits)
	}
	if len(w.samples) < 5 || !reflect.DeepEqual(w.samples, o.samples) {
		t.Errorf("samples differ: %d and %d", len(w.samples), len(o.samples))
	}
}

func plan(t *testing.T) *topology.Plan {
	t.Helper()
	p, _, err := topology.LoadBytes("lossy.yaml", []byte(lossy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// alone watches the run in one process without a cluster.
func alone(t *testing.T) *watched {
	p := plan(t)
	w := &watched{split: split.New(p)}
	s, err := telemetry.NewSession(p, telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	when := sim.NewSampler(p)
	o := sim.Options{Workers: 1, Sampler: when, Records: func(b []record.Record) { w.records(b); s.Records(b) }}
	o.Sample = func(at clock.Time, f *sim.Fabric) {
		var n counters.Snapshot
		f.Snapshot(at, &n)
		w.sample(&n)
	}
	var fab *sim.Fabric
	var taps *split.Taps
	o.OnBuild = func(f *sim.Fabric) error { fab, taps = f, w.split.Tap(f); return nil }
	o.Between = func(clock.Time, uint64) { taps.Note() }
	if w.res, err = sim.Run(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	fab.Snapshot(clock.Time(w.res.VirtualNS), &w.end)
	taps.Note()
	w.splits = w.split.Finish(fab.Samples(clock.Time(w.res.VirtualNS)))
	s.Finish(w.res)
	return w
}

// cluster is nodes in this process.
type cluster struct {
	*testing.T
	url   string
	cl    *client.Client
	nodes map[string]func() // kills one
}

func start(t *testing.T, names ...string) *cluster { return startWith(t, nil, names...) }

// apart has the coordinator run nothing: whoever runs a slot, also after a busy
// machine kept one silent for too long, can be killed.
func apart(cfg *coord.Config) { cfg.NoSlots = cfg.Coordinator }

func startWith(t *testing.T, edit func(*coord.Config), names ...string) *cluster {
	t.Helper()
	dir := t.TempDir()
	srv, err := natsbus.StartServer(natsbus.ServerOptions{StoreDir: filepath.Join(dir, "js")})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, url: srv.ClientURL(), nodes: map[string]func(){}}
	for i, name := range names {
		cfg := coord.Config{
			Name: name, Data: filepath.Join(dir, name), Coordinator: i == 0, Expect: 1, Model: new(emu.Model), Build: "test",
			Dialer: natsbus.Dialer{URL: c.url, Wait: 5 * time.Second}, Silence: time.Second, GiveUp: 20 * time.Second, Fatal: func(err error) { t.Error(err) },
		}
		if edit != nil {
			edit(&cfg)
		}
		n, err := coord.NewNode(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = n.Run(ctx) }()
		c.nodes[name] = func() { delete(c.nodes, name); n.Kill(); stop(); <-done }
	}
	if c.cl, err = client.Dial(natsbus.Dialer{URL: c.url, Name: "test", Wait: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.cl.Close()
		for _, kill := range c.nodes {
			kill()
		}
		srv.Shutdown()
	})
	return c
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) submit(members int, edit func(*coord.RunSpec)) (id string) {
	s := coord.RunSpec{Files: []coord.File{{Name: "lossy.yaml", Text: lossy}}, Members: members, Series: true, Splits: true}
	if edit != nil {
		edit(&s)
	}
	id, err := c.cl.Submit(c.Context(), s)
	c.must(err)
	return id
}

// await polls the status until a condition holds.
func (c *cluster) await(what string, ok func(*coord.RunStatus) bool) *coord.RunStatus {
	c.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		s, err := c.cl.Status(c.Context())
		c.must(err)
		if s.Run != nil && ok(s.Run) {
			return s.Run
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.Fatalf("never: %s", what)
	return nil
}

// beyondCheckpoint brings a run that was submitted paused 30 us beyond a
// committed checkpoint and leaves it running. Virtual time goes on by steps,
// which end where they end however late that is seen; then so slowly that the
// run outlasts what a busy machine takes to kill a process.
func (c *cluster) beyondCheckpoint(look func()) *coord.RunStatus {
	c.Helper()
	c.await("slots", func(r *coord.RunStatus) bool {
		return len(r.Slots) == 2 && r.Slots[0].Report.State == "running" && r.Slots[1].Report.State == "running"
	})
	step := func(d clock.Duration) clock.Time {
		to, err := c.cl.Step(c.Context(), d)
		c.must(err)
		c.await("a step's end", func(r *coord.RunStatus) bool {
			look()
			return r.Virtual > to.Add(-10*clock.Microsecond)
		})
		return to
	}
	step(100 * clock.Microsecond)
	kept, err := c.cl.Save(c.Context(), coord.Entry{Name: "before"})
	c.must(err)
	b := kept.At
	step(50 * clock.Microsecond)
	c.await("a checkpoint", func(r *coord.RunStatus) bool { look(); return r.Ckpt >= b })
	at := step(40 * clock.Microsecond)
	if at < b.Add(30*clock.Microsecond) {
		c.Fatalf("the checkpoint is at %v, the run at %v", b, at)
	}
	c.must(c.cl.Pace(c.Context(), coord.Pace{Num: 1, Den: 80000}))
	c.must(c.cl.Resume(c.Context()))
	return c.await("progress", func(r *coord.RunStatus) bool { look(); return r.Virtual > at.Add(clock.Microsecond) })
}

func (c *cluster) fetch(sum string) ([]byte, error) { return c.cl.Blob(c.Context(), sum) }

// finish waits for the run's end and takes what its notes say beyond m, nil =
// all.
func (c *cluster) finish(id string, w *watched, m *emu.Notes) *coord.Run {
	run, err := c.cl.Wait(c.Context(), id, nil)
	c.must(err)
	if run.Phase != coord.Ended {
		c.Fatal(run.Why)
	}
	p := plan(c.T)
	if m == nil {
		m = w.notes(p, len(run.Slots))
	}
	c.must(m.Collect(run, c.fetch))
	parts, err := emu.Parts(run, c.fetch)
	c.must(err)
	w.splits, err = m.Splits(sim.SamplesOf(parts))
	c.must(err)
	w.res, _, _, err = emu.ResultOf(p, run, m, parts)
	c.must(err)
	s, err := telemetry.NewSession(p, telemetry.Options{})
	c.must(err)
	for _, b := range w.batches {
		s.Records(b)
	}
	s.Finish(w.res)
	return run
}

func (w *watched) notes(p *topology.Plan, shares int) *emu.Notes {
	m := emu.NewNotes(p, shares)
	w.split = split.New(p)
	m.Records, m.Split = w.records, w.split
	m.Sample = func(s *counters.Snapshot, last bool) {
		if last {
			w.end = counters.Snapshot{At: s.At, Devices: s.Devices, Points: slices.Clone(s.Points)}
		} else {
			w.sample(s)
		}
	}
	return m
}

// Whatever the number of processes: the same records, the same
// samples, the same chains as in one process without a cluster.
func TestNotesEqualOneProcess(t *testing.T) {
	want := alone(t)
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := start(t, []string{"a", "b", "c"}[:n]...)
			got := &watched{}
			if run := c.finish(c.submit(n, nil), got, nil); len(run.Slots) != n {
				t.Errorf("%d slots", len(run.Slots))
			}
			got.same(t, want)
		})
	}
}

// The same after a process is killed beyond a checkpoint, for who followed the
// run live as for who comes at its end.
func TestNotesAfterCrash(t *testing.T) {
	want := alone(t)
	c := startWith(t, apart, "a", "b", "c", "d")
	id := c.submit(2, func(s *coord.RunSpec) { s.Pause, s.CkptMS = true, 100 })
	late, live := &watched{}, &watched{}
	m := live.notes(plan(t), 2)
	look := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if seen, err := c.cl.Look(ctx, 2, m.Ask(id)); err == nil {
			c.must(m.Take(seen, c.fetch))
		}
	}
	s := c.beyondCheckpoint(look)
	c.await("samples", func(*coord.RunStatus) bool { look(); return len(live.samples) > 0 })
	c.nodes[s.Slots[1].Owner]()
	c.must(c.cl.Pace(c.Context(), coord.Pace{Den: 1}))
	c.await("a move", func(r *coord.RunStatus) bool { look(); return r.Moves > 0 })
	run := c.finish(id, late, nil)
	c.finish(id, live, m)
	late.same(t, want)
	live.same(t, want)
	if run.Moves == 0 || len(run.Ckpts) == 0 {
		t.Errorf("%d moves, %d checkpoints", run.Moves, len(run.Ckpts))
	}
}

// Two looks at a paused run are at one window and equal; the counters of all
// processes are there.
func TestLookAtCounters(t *testing.T) {
	c := start(t, "a", "b")
	id := c.submit(2, func(s *coord.RunSpec) { s.Pause = true })
	c.await("slots", func(r *coord.RunStatus) bool {
		return len(r.Slots) == 2 && r.Slots[0].Report.State == "running" && r.Slots[1].Report.State == "running"
	})
	_, err := c.cl.Step(c.Context(), 200*clock.Microsecond)
	c.must(err)
	c.await("the step's end", func(r *coord.RunStatus) bool { return r.Virtual > clock.Time(190*clock.Microsecond) })
	var snaps [2]*counters.Snapshot
	for i := range snaps {
		seen, err := c.cl.LookTogether(c.Context(), 2, coord.Look{Run: id, What: emu.AskCounters})
		c.must(err)
		if !client.Together(seen) {
			t.Fatalf("windows %d and %d of a paused run", seen[0].N, seen[1].N)
		}
		snaps[i], err = emu.Counters(plan(t), seen)
		c.must(err)
	}
	var sent, devices int64
	last := int32(-1)
	for _, p := range snaps[0].Points {
		if p.ID == counters.TxFrames {
			sent += p.Value
		}
		if p.Dev != last {
			devices, last = devices+1, p.Dev
		}
	}
	if !reflect.DeepEqual(snaps[0], snaps[1]) || sent == 0 || devices != 10 {
		t.Errorf("%d frames sent, %d devices of 10; equal: %v", sent, devices, reflect.DeepEqual(snaps[0], snaps[1]))
	}
	if _, err := c.cl.Look(c.Context(), 2, coord.Look{Run: id, What: "nothing there"}); err == nil || bytes.Contains([]byte(err.Error()), []byte("did")) {
		t.Errorf("an unknown question: %v", err)
	}
	c.must(c.cl.Cancel(c.Context(), "enough seen"))
}

const probe = "does anybody hear?"

// probe publishes on a subject until a listener is heard of.
func (c *cluster) probe(subject string, heard <-chan struct{}) {
	c.Helper()
	conn, err := natsbus.Dialer{URL: c.url, Name: "probe", Wait: 5 * time.Second}.Dial()
	c.must(err)
	defer conn.Close()
	for range 1000 {
		c.must(conn.Publish(subject, []byte(probe)))
		select {
		case <-heard:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	c.Fatalf("nobody listens to %s", subject)
}

// A paused run that is told to stop ends where it was granted to, without being
// let go on first.
func TestStopWhilePaused(t *testing.T) {
	c := start(t, "a", "b")
	id := c.submit(2, func(s *coord.RunSpec) { s.Pause = true })
	c.await("slots", func(r *coord.RunStatus) bool { return len(r.Slots) == 2 })
	granted, err := c.cl.Step(c.Context(), 200*clock.Microsecond)
	c.must(err)
	c.await("the step's end", func(r *coord.RunStatus) bool { return r.Virtual > clock.Time(190*clock.Microsecond) })
	at, err := c.cl.Stop(c.Context(), 0)
	c.must(err)
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Minute)
	defer cancel()
	run, err := c.cl.Wait(ctx, id, nil)
	c.must(err)
	if at != granted || run.Phase != coord.Ended {
		t.Fatalf("stop at %v, granted %v; %s: %s", at, granted, run.Phase, run.Why)
	}
	res, _, _, err := emu.Result(run, c.fetch)
	c.must(err)
	if clock.Time(res.VirtualNS) != at {
		t.Errorf("ended at %v, want %v", clock.Time(res.VirtualNS), at)
	}
}

// A tap on a port whose ends are in different processes publishes every frame of
// both directions.
func TestTap(t *testing.T) {
	c := start(t, "a", "b")
	id := c.submit(2, func(s *coord.RunSpec) { s.Pause = true })
	c.await("slots", func(r *coord.RunStatus) bool {
		return len(r.Slots) == 2 && r.Slots[0].Report.State == "running" && r.Slots[1].Report.State == "running"
	})
	arg := emu.TapArg{Device: "leaf2", Port: 3} // the uplink
	q := coord.Look{Run: id, What: emu.AskTap, Arg: emu.Arg(arg)}
	frames, missed := map[string]int{}, 0
	done := make(chan error, 1)
	heard := make(chan struct{}, 1)
	go func() {
		done <- c.cl.Listen(t.Context(), 2, q, emu.TapSubject(arg), func(m *nats.Msg) {
			if string(m.Data) == probe {
				select {
				case heard <- struct{}{}:
				default:
				}
				return
			}
			frames[m.Header.Get(emu.TapDir)]++
			if len(m.Data) < 64 || m.Header.Get(emu.TapTime) == "" || m.Header.Get(emu.TapMissed) != "" {
				missed++
			}
		}, func(n int) { missed += n })
	}()
	c.probe(emu.TapSubject(arg), heard)
	_, err := c.cl.Look(c.Context(), 2, q) // both processes tap
	c.must(err)
	c.must(c.cl.Pace(c.Context(), coord.Pace{Num: 1, Den: 1000}))
	c.must(c.cl.Resume(c.Context()))
	w := &watched{}
	c.finish(id, w, nil)
	c.must(<-done)
	p := w.res.Switches["leaf2"].Ports["3"]
	if missed != 0 || frames["out"] != int(p.TxFrames) || frames["in"] != int(p.RxFrames) || frames["in"] == 0 {
		t.Errorf("%d frames in, %d out, %d wrong; the port counted %d and %d", frames["in"], frames["out"], missed, p.RxFrames, p.TxFrames)
	}
}
