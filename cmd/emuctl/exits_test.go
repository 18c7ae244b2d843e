package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"

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
	c.Env = append(os.Environ(), "HOME="+c.Dir)
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
