package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// exits runs a program and wants an exact exit code: exits 4 emuctl run f.yaml.
// Its output goes to the files out and err of the work directory.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	c := exec.Command(path, args[2:]...)
	c.Dir = ts.Getenv("WORK")
	c.Env = append(os.Environ(), "HOME="+c.Dir, "ROCEMU_CONTEXTS="+ts.Getenv("ROCEMU_CONTEXTS"))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	runErr := c.Run()
	if _, ok := runErr.(*exec.ExitError); runErr != nil && !ok {
		ts.Check(runErr)
	}
	ts.Check(os.WriteFile(ts.MkAbs("out"), out.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("err"), errs.Bytes(), 0o600))
	if got := c.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got, want, out.String(), errs.String())
	}
}

// eventually runs a program again and again until it succeeds and its output
// matches: eventually PATTERN PROGRAM ARG...
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN PROGRAM ARG...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ts.Exec(args[1], args[2:]...) == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("never %q:\n%s%s", args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
}

// equal compares two results in all but what they cost: equal A.json B.json.
func equal(ts *testscript.TestScript, neg bool, args []string) {
	var r [2]map[string]any
	for i := range r {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[i])), &r[i]))
		delete(r[i], "engine")
	}
	if d := cmp.Diff(r[0], r[1]); (d == "") == neg {
		ts.Fatalf("%s and %s:\n%s", args[0], args[1], d)
	}
}
