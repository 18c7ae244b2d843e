package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/report"
)

const endless = `schema: 1
name: endless
run: {until: 1000s}
topology: {spines: 1, leaves: 2, servers: 2}
workload:
  - {name: bulk, from: rnic1, to: rnic3, verb: write, size: 64KB, count: forever}
`

// shared is a buffer that several goroutines write to.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// live is `emuctl run --interactive` in this process.
type live struct {
	out, errs shared
	interrupt context.CancelFunc
	over      chan error
}

func goLive(t *testing.T, text string, with ...func(*app, *runFlags)) *live {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &live{over: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	l.interrupt = cancel
	a, f := &app{out: &l.out, err: &l.errs}, &runFlags{Interact: true}
	for _, edit := range with {
		edit(a, f)
	}
	go func() { l.over <- a.runFabric(ctx, []string{file}, f) }()
	return l
}

// ended interrupts the run and returns its exit code.
func (l *live) ended(t *testing.T) int {
	t.Helper()
	l.interrupt()
	select {
	case err := <-l.over:
		var e exitError
		if !errors.As(err, &e) {
			t.Fatalf("run: %v", err)
		}
		return e.code
	case <-time.After(time.Minute):
		t.Fatal("the run did not end")
	}
	return 0
}

// says repeats a command until its output has a text.
func says(t *testing.T, want string, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		out.Reset()
		errs.Reset()
		if emuctl(args, &out, &errs); strings.Contains(out.String()+errs.String(), want) {
			return
		}
	}
	t.Fatalf("emuctl %v never says %q: %s%s", args, want, out.String(), errs.String())
}

// An interrupt ends a run with a coordinator as it ends one without: by the
// limit, with the word, and without a judgement. No context is left behind.
func TestInterruptedLiveRun(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	l := goLive(t, endless)
	says(t, "SLOT", "status")
	if code := emuctl([]string{"pace", "1/1000"}, io.Discard, io.Discard); code != 0 { // a slow run reacts as fast
		t.Fatalf("pace: exit code %d", code)
	}
	t0 := time.Now()
	if code := l.ended(t); code != report.ExitLimit {
		t.Errorf("exit code %d, want %d", code, report.ExitLimit)
	}
	if took := time.Since(t0); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if !strings.Contains(l.out.String(), ", interrupted; expectations not judged") {
		t.Errorf("no word of the interrupt:\n%s", l.out.String())
	}
	if !strings.Contains(l.errs.String(), "emuctl: interrupted; the fabric stops at") {
		t.Errorf("no answer to the interrupt:\n%s", l.errs.String())
	}
}

// An interrupt that comes while the run is being submitted ends it like a later
// one: it is no cluster that cannot be reached.
func TestInterruptedSubmission(t *testing.T) {
	for range 5 {
		contexts := filepath.Join(t.TempDir(), "contexts")
		t.Setenv("ROCEMU_CONTEXTS", contexts)
		l := goLive(t, endless)
		for {
			if b, err := os.ReadFile(contexts); err == nil && bytes.Contains(b, []byte("nats://")) {
				break // the cluster is there, the run not yet
			}
			runtime.Gosched()
		}
		if code := l.ended(t); code != report.ExitLimit || !strings.Contains(l.out.String(), ", interrupted; expectations not judged") {
			t.Errorf("exit code %d, want %d: %s%s", code, report.ExitLimit, l.out.String(), l.errs.String())
		}
	}
}

// Two live runs at a time: neither takes the other's context away, and after
// both a command says that nothing is running.
func TestTwoLiveRuns(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	says(t, "no fabric is running here", "status")
	a := goLive(t, endless)
	says(t, "SLOT", "status", "--context", "local")
	b := goLive(t, endless)
	says(t, "SLOT", "status", "--context", "local-2")
	b.ended(t)
	says(t, "SLOT", "status")
	a.ended(t)
	says(t, "no fabric is running here", "status")
}

// A run that cannot start says so and leaves nothing.
func TestLiveRunThatCannotStart(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	dir := filepath.Join(t.TempDir(), "none")
	t.Setenv("TMPDIR", dir)
	if _, err := coord.StartLocal(t.Context(), coord.LocalOptions{Inside: true}); err == nil {
		t.Error("it started without a directory")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := coord.StartLocal(ctx, coord.LocalOptions{Inside: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// A snapshot of a paused fabric waits for the fabric to go on, and says so.
func TestSaveOfPausedRun(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	l := goLive(t, endless)
	says(t, "SLOT", "status")
	says(t, "paused", "pause")
	var out, errs shared
	saved := make(chan int, 1)
	go func() { saved <- emuctl([]string{"snapshot", "save", "here"}, &out, &errs) }()
	for end := time.Now().Add(time.Minute); !strings.Contains(errs.String(), "paused at") && len(saved) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not say that it waits: %s%s", out.String(), errs.String())
		}
	}
	select {
	case code := <-saved:
		t.Errorf("it did not wait: code %d, %s%s", code, out.String(), errs.String())
	case <-time.After(time.Second):
	}
	says(t, "goes on to", "step", "100us")
	select {
	case code := <-saved:
		if code != 0 || !strings.Contains(errs.String(), "paused at") || !strings.Contains(errs.String(), "emuctl step") {
			t.Errorf("code %d: %s%s", code, out.String(), errs.String())
		}
	case <-time.After(time.Minute):
		t.Error("the snapshot never came")
	}
	if code := emuctl([]string{"snapshot", "save", "there", "--at", "1us"}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "1us lies before") {
		t.Errorf("a snapshot of the past: code %d: %s%s", code, out.String(), errs.String())
	}
	says(t, "", "resume")
	says(t, ", in place of that of run ", "snapshot", "save", "--force", "here")
	l.ended(t)
}

// What takes effect beyond what is granted says how long that takes.
func TestStopSaysWhen(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	l := goLive(t, endless)
	says(t, "SLOT", "status")
	var out bytes.Buffer
	for range 20 { // a heartbeat may be late on a busy machine
		out.Reset()
		if emuctl([]string{"stop", "--at", "999s"}, &out, io.Discard); strings.Contains(out.String(), "of real time") {
			break
		}
	}
	if !strings.Contains(out.String(), "stops at 999s (in about ") {
		t.Errorf("stop: %s", out.String())
	}
	l.ended(t)
}

// Nothing is promised that lies beyond the end of the run, and a snapshot that
// the run did not come to is no success.
func TestPromisesBeyondTheEnd(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	l := goLive(t, endless)
	says(t, "SLOT", "status")
	for _, args := range [][]string{{"stop", "--at", "2000s"}, {"snapshot", "save", "late", "--at", "2000s"}} {
		var out, errs bytes.Buffer
		if code := emuctl(args, &out, &errs); code != 2 || !strings.Contains(errs.String(), "the run ends at 1000s") {
			t.Errorf("%v: code %d, %s%s", args, code, out.String(), errs.String())
		}
	}
	var out, errs bytes.Buffer
	saved := make(chan int)
	go func() { saved <- emuctl([]string{"snapshot", "save", "late", "--at", "900s"}, &out, &errs) }()
	l.ended(t)
	if code := <-saved; code == 0 || strings.Contains(out.String(), "saved") || errs.Len() == 0 {
		t.Errorf("code %d: %s%s", code, out.String(), errs.String())
	}
}

// The work of engines in other hands is told by their heartbeats: progress and
// metrics show no zeros.
func TestLiveRunTellsWork(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := port.Addr().String()
	port.Close()
	l := goLive(t, endless, func(a *app, f *runFlags) { a.errTTY, f.Metrics = true, addr })
	says(t, "SLOT", "status")
	var body []byte
	hops := regexp.MustCompile(`rocemu_frame_hops_total [1-9]`)
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && !hops.Match(body); time.Sleep(100 * time.Millisecond) {
		if r, err := http.Get("http://" + addr); err == nil {
			body, _ = io.ReadAll(r.Body)
			r.Body.Close()
		}
		if regexp.MustCompile(`rocemu_(frame_hops|events)_total 0`).Match(body) {
			break
		}
	}
	for _, want := range []string{`rocemu_frame_hops_total [1-9]`, `rocemu_events_total [1-9]`, `rocemu_outstanding_requests 1`} {
		if !regexp.MustCompile(want).Match(body) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	l.ended(t)
	if !strings.Contains(l.errs.String(), " M hops/s, 1 requests outstanding") {
		t.Errorf("progress: %q", l.errs.String())
	}
}

// The result of a run that is not there is refused at once with those that are;
// --timeout bounds the wait for one that goes on. Whoever asks when all is over
// is told where the result is.
func TestResultOfWhat(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	l := goLive(t, endless)
	says(t, "SLOT", "status")
	result := func(code int, want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := emuctl(append([]string{"result"}, args...), &out, &errs); got != code || !strings.Contains(errs.String(), want) {
			t.Errorf("result %v: exit code %d, want %d and %q: %s%s", args, got, code, want, out.String(), errs.String())
		}
	}
	result(report.ExitUsage, `no such run: "wrong"; the cluster knows, oldest first, `, "--run", "wrong", "--timeout", "30s")
	result(report.ExitUsage, "(endless.yaml, running)", "--run", "wrong", "--timeout", "30s")
	result(report.ExitLimit, "not ended within the 2s of --timeout", "--timeout", "2s")
	result(report.ExitUsage, "--timeout: ", "--timeout", "soon")
	says(t, localResult, "stop", "--at", "999s")
	l.ended(t)
	result(report.ExitCluster, localResult)
}

// Live changes are judged by what is in force with them: one that does not fit
// the change before it is refused, and the run goes on.
func TestLiveChangesFitEachOther(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	l := goLive(t, endless)
	says(t, "SLOT", "status")
	var above string // the name of the change that the last one needs
	for _, x := range []struct{ set, says string }{
		{"switches.leaf.ecn.kmin=150KB", ""},
		{"switches.leaf.ecn.kmax=120KB", "must not be below kmin"},
		{"switches.leaf.ecn.kmax=800KB", ""},
		{"switches.leaf.ecn.kmin=500KB", ""},
		{"", "must not be above kmax"},
	} {
		var out, errs bytes.Buffer
		args := []string{"set", x.set}
		if x.set == "" {
			args = []string{"revert", above}
		}
		code := emuctl(args, &out, &errs)
		if strings.Contains(x.set, "800KB") {
			above, _, _ = strings.Cut(out.String(), " ")
		}
		if (code == 0) != (x.says == "") || !strings.Contains(errs.String(), x.says) {
			t.Errorf("%s: exit code %d: %s%s", x.set, code, out.String(), errs.String())
		}
	}
	says(t, "saved here at", "snapshot", "save", "here") // it has come to where all are in force
	if code := l.ended(t); code != report.ExitLimit {
		t.Errorf("exit code %d, want %d: %s", code, report.ExitLimit, l.errs.String())
	}
}
