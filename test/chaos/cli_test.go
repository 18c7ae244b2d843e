package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rocemu/rocemu/report"
)

var buildCtl struct {
	once sync.Once
	path string
	err  error
}

// emuctl builds the command line once for all tests, beside emud.
func emuctl(t testing.TB) string {
	t.Helper()
	beside := filepath.Dir(emud(t))
	buildCtl.once.Do(func() {
		if os.Getenv("EMUD_PROGRAM") != "" {
			if p := filepath.Join(beside, "emuctl"); exec.Command(p, "version").Run() == nil {
				buildCtl.path = p
				return
			}
		}
		buildCtl.path = filepath.Join(beside, "emuctl")
		buildCtl.err = compile(buildCtl.path, "emuctl")
	})
	if buildCtl.err != nil {
		t.Fatal(buildCtl.err)
	}
	return buildCtl.path
}

// run is `emuctl run` of an example into a directory, on so many processes; 0
// leaves them out. It returns the exit code.
func (f fabric) run(t testing.TB, processes int, dir string, while func(*exec.Cmd)) int {
	t.Helper()
	args := []string{"run", filepath.Join("..", "..", "examples", f.file), "--out", dir}
	for _, s := range f.sets {
		args = append(args, "--set", s)
	}
	if processes > 0 {
		args = append(args, "--processes", fmt.Sprint(processes))
	}
	c := exec.CommandContext(within(t, runLimit), emuctl(t), args...)
	c.Env = append(os.Environ(), "EMUD_PROGRAM="+emud(t), "ROCEMU_CONTEXTS="+filepath.Join(t.TempDir(), "contexts"))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if while != nil {
		while(c)
	}
	err := c.Wait()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Logf("%d processes: exit code %d\n%s", processes, c.ProcessState.ExitCode(), out.String())
	return c.ProcessState.ExitCode()
}

// children are the processes that a process started.
func children(pid int) (out []int) {
	var b []byte
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range tasks {
		more, _ := os.ReadFile(name)
		b = append(append(b, ' '), more...)
	}
	seen := map[int]bool{}
	for _, s := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(s); err == nil && !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// sameDir compares what two runs wrote: every file, the engine's own figures
// apart.
func sameDir(t *testing.T, got, want string) {
	t.Helper()
	same(t, resultIn(t, got), resultIn(t, want))
	list, err := os.ReadDir(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Name() == "result.json" {
			continue
		}
		a, err := os.ReadFile(filepath.Join(got, e.Name()))
		if err != nil {
			t.Error(err)
			continue
		}
		b, err := os.ReadFile(filepath.Join(want, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %d bytes, alone %d", e.Name(), len(a), len(b))
		}
	}
}

func resultIn(t *testing.T, dir string) *report.Result {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Result
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}
