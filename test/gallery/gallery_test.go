// Package gallery runs the example files that carry expectations: the transport
// cases (examples/transport, named T-Cnn) and the gallery of known disasters
// (examples/disasters). Each must end with its expectations met, twice with the
// same digest. What is compared is what `emuctl run` prints.
package gallery

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

const examples = "../../examples"

// run executes a fabric file and judges its expectations.
func run(t *testing.T, file string, workers int, sets ...string) *report.Result {
	t.Helper()
	plan, _, err := topology.Load(topology.LoadOptions{Files: []string{file}, Sets: sets})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	res, err := sim.Run(context.Background(), plan, sim.Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Judge(plan, res); err != nil {
		t.Fatal(err)
	}
	if res.Verdict == report.Failed {
		t.Errorf("%s: %s", file, res.VerdictReason)
	}
	return res
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(examples, dir, "*.yaml"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	return list
}

// testDir runs every file of a directory: exit code 0 means that all its
// expectations held, those about the verdict included.
func testDir(t *testing.T, dir string) {
	for _, file := range files(t, dir) {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(read(t, file), "expect:") {
				t.Fatal("has no expectations")
			}
			res := run(t, file, 1)
			if res.Exit != report.ExitOK {
				t.Errorf("verdict %q: %s", res.Verdict, res.VerdictReason)
			}
		})
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTransport runs the cases of the RC transport, T-C01 to T-C47, one file
// each.
func TestTransport(t *testing.T) { testDir(t, "transport") }

// TestDisasters runs the gallery.
func TestDisasters(t *testing.T) { testDir(t, "disasters") }

// TestKernelAgainstRDMA runs the article's first picture.
func TestKernelAgainstRDMA(t *testing.T) {
	res := run(t, filepath.Join(examples, "claims", "kernel-vs-rdma.yaml"), 1)
	if res.Exit != report.ExitOK {
		t.Errorf("verdict %q: %s", res.Verdict, res.VerdictReason)
	}
}
