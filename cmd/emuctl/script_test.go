package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rocemu/rocemu/report"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"emuctl": func() { os.Exit(emuctl(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts drives the commands as a user does: testdata/script/*.txtar.
// $EXAMPLES is the directory of the example fabrics; `exits N` checks the exit
// code of the command that follows.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", examples)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "same": same, "equal": equal, "eventually": eventually},
	})
}

// same compares the digests of two result files.
func same(ts *testscript.TestScript, neg bool, args []string) {
	var r [2]report.Result
	for i := range r {
		if err := json.Unmarshal([]byte(ts.ReadFile(args[i])), &r[i]); err != nil {
			ts.Fatalf("%s: %v", args[i], err)
		}
	}
	if (r[0].Digest == r[1].Digest) == neg || r[0].Digest == "" {
		ts.Fatalf("digests %q and %q", r[0].Digest, r[1].Digest)
	}
}
