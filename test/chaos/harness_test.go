// Package chaos runs whole clusters of real processes and harms them: kill -9,
// SIGSTOP, a lost NATS server, a wiped disk. The measure is always the same: the
// result must equal that of one process that was left alone. The emud program
// is built from this tree. CHAOS=1 runs the long ones.
package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

var build struct {
	once sync.Once
	path string
	err  error
}

// emud builds the program once for all tests.
func emud(t testing.TB) string {
	t.Helper()
	build.once.Do(func() {
		if p := os.Getenv("EMUD_PROGRAM"); p != "" {
			build.path = p
			return
		}
		dir, err := os.MkdirTemp("", "rocemu-chaos-")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "emud")
		build.err = compile(build.path, "emud")
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}

// compile builds a command of this module.
func compile(to, command string) error {
	if out, err := exec.Command("go", "build", "-o", to, "github.com/rocemu/rocemu/cmd/"+command).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// dear tests take tens of seconds.
func dear(t testing.TB) {
	t.Helper()
	if os.Getenv("CHAOS") == "" {
		t.Skip("takes long; CHAOS=1 runs it")
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv("EMUD_PROGRAM") == "" && build.path != "" {
		os.RemoveAll(filepath.Dir(build.path))
	}
	os.Exit(code)
}

// fabric is a fabric file with settings laid over it.
type fabric struct {
	file string
	sets []string
}

func (f fabric) plan(t testing.TB) *topology.Plan {
	t.Helper()
	p, _, err := topology.Load(topology.LoadOptions{Files: []string{filepath.Join("..", "..", "examples", f.file)}, Sets: f.sets})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// alone runs the plan in this process.
func alone(t testing.TB, p *topology.Plan) *report.Result {
	t.Helper()
	r, err := sim.Run(context.Background(), p, sim.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type local struct {
	*coord.Local
	c *client.Client
	t testing.TB
}

// cluster starts emud processes with a server and a coordinator in this one.
func cluster(t testing.TB, n int, edit func(*coord.LocalOptions)) *local {
	t.Helper()
	o := coord.LocalOptions{Processes: n, Emud: emud(t), Model: new(emu.Model), Log: hclog.NewNullLogger()}
	if os.Getenv("EMU_TEST_LOG") != "" {
		o.Log, o.Stderr = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug}), os.Stderr
	}
	if edit != nil {
		edit(&o)
	}
	l, err := coord.StartLocal(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	c, err := client.Dial(natsbus.Dialer{URL: l.URL, Name: "test", Wait: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &local{l, c, t}
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// submit starts a run of the plan on n processes.
func (l *local) submit(p *topology.Plan, n int, edit func(*coord.RunSpec)) string {
	l.t.Helper()
	s := coord.RunSpec{Files: []coord.File{{Name: p.Name + ".yaml", Text: string(p.Resolved())}}, Members: n, Batch: true}
	if edit != nil {
		edit(&s)
	}
	id, err := l.c.Submit(within(l.t, 20*time.Second), s)
	if err != nil {
		l.t.Fatal(err)
	}
	return id
}

// result waits for the end of a run and merges its parts.
func (l *local) result(id string, tick func(*coord.Status)) (*report.Result, *coord.Run, emu.Cost) {
	l.t.Helper()
	ctx := within(l.t, 3*time.Minute)
	run, err := l.c.Wait(ctx, id, tick)
	if err != nil {
		s, _ := l.c.Status(within(l.t, 5*time.Second))
		b, _ := json.MarshalIndent(s, "", " ")
		l.t.Fatalf("%v\n%s", err, b)
	}
	if run.Phase != coord.Ended {
		l.t.Fatalf("run is %s: %s", run.Phase, run.Why)
	}
	r, _, cost, err := emu.Result(run, func(sum string) ([]byte, error) { return l.c.Blob(ctx, sum) })
	if err != nil {
		l.t.Fatal(err)
	}
	return r, run, cost
}

// same compares two results, the engine's own figures apart.
func same(t testing.TB, got, want *report.Result) {
	t.Helper()
	g, w := *got, *want
	// Windows are how it was run: one process runs them as rounds.
	g.Engine = report.Engine{FrameHops: g.Engine.FrameHops, Events: g.Engine.Events}
	w.Engine = report.Engine{FrameHops: w.Engine.FrameHops, Events: w.Engine.Events}
	a, _ := json.MarshalIndent(&g, "", " ")
	b, _ := json.MarshalIndent(&w, "", " ")
	if string(a) == string(b) {
		return
	}
	t.Errorf("digest %s, alone %s; verdict %s (%s), alone %s (%s)", g.Digest, w.Digest, g.Verdict, g.VerdictReason, w.Verdict, w.VerdictReason)
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			t.Errorf("first difference: …%s…\nalone: …%s…", a[max(0, i-200):min(len(a), i+200)], b[max(0, i-200):min(len(b), i+200)])
			return
		}
	}
}
