// Package collectors shows runs to the programs of others: Jaeger, an
// OpenTelemetry collector, grpcurl and gnmi_cli. What they got must be what the
// run's own files say. COLLECTORS=DIR names the directory with the programs
// (docs/telemetry.md says how to build them); without it everything here is
// skipped, and so is a test whose program is not in it.
package collectors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/telemetry/chain"
)

// program returns the path of a collector's program or skips the test.
func program(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("COLLECTORS")
	if dir == "" {
		t.Skip("COLLECTORS=DIR, with the programs of docs/telemetry.md in it, runs this")
	}
	p, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p); err != nil {
		t.Skipf("no %s in %s: see docs/telemetry.md", name, dir)
	}
	return p
}

// build makes emuctl once for all tests.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "rocemu-collectors-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "emuctl")
	out, err := exec.Command("go", "build", "-o", path, "github.com/rocemu/rocemu/cmd/emuctl").CombinedOutput()
	if err != nil {
		return path, fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv("COLLECTORS") != "" {
		if path, _ := build(); path != "" {
			os.RemoveAll(filepath.Dir(path))
		}
	}
	os.Exit(code)
}

// emuctl returns a command of the program built from this tree.
func emuctl(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(path, args...)
}

// output is what a run left: its directory, its result and its chains.
type output struct {
	dir    string
	res    *report.Result
	chains []chain.Line
}

// run executes a fabric file with an output directory.
func run(t testing.TB, file string, args ...string) output {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	out, err := emuctl(t, append([]string{"run", filepath.Join("..", "..", "examples", file), "--out", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", file, err, out)
	}
	return read(t, dir)
}

// read takes an output directory.
func read(t testing.TB, dir string) output {
	t.Helper()
	res, err := report.ReadResult(dir)
	if err != nil {
		t.Fatal(err)
	}
	chains, err := report.ReadLines[report.ChainLine](filepath.Join(dir, report.ChainsFile))
	if err != nil {
		t.Fatal(err)
	}
	return output{dir, res, chains}
}

// below is where ports begin that the system gives to connections by itself:
// one of those may be gone again before a program listens there.
const below = 32768

// ports finds n neighbouring free ports of the loopback and returns the first.
func ports(t testing.TB, n int) int {
	t.Helper()
	for range 100 {
		first := 12000 + rand.IntN(below-12000-n)
		var held []net.Listener
		for i := range n {
			l, err := net.Listen("tcp", local(first+i))
			if err != nil {
				break
			}
			held = append(held, l)
		}
		for _, l := range held {
			l.Close()
		}
		if len(held) == n {
			return first
		}
	}
	t.Fatalf("no %d neighbouring free ports", n)
	return 0
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// start runs a program until the test ends, or stop is called, and waits for its
// TCP ports.
func start(t testing.TB, cmd *exec.Cmd, listens ...string) (stop func()) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		cmd.Wait()                       //nolint:errcheck // ended by a signal
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("%s:\n%.4000s", filepath.Base(cmd.Path), b)
		}
		log.Close()
	})
	for _, addr := range listens {
		within(t, time.Minute, func() error {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				c.Close()
			}
			return err
		})
	}
	return stop
}

// within repeats f until it succeeds.
func within(t testing.TB, d time.Duration, f func() error) {
	t.Helper()
	end := time.Now().Add(d)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %v", d, err)
		}
		time.Sleep(20 * time.Millisecond) // between two looks at another process
	}
}

// getJSON reads a JSON answer.
func getJSON(url string, v any) error {
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return errors.New(r.Status + ": " + string(b[:min(len(b), 300)]))
	}
	return json.Unmarshal(b, v)
}
