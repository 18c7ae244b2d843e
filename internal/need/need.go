// Package need lets a test say which tool of the machine it cannot do without.
// A missing tool skips the test with one line that names the package to
// install; under CI=true it fails, so that nothing is left out unseen.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// Tool returns the path of a program, or skips. pkg is the Debian package that
// holds it.
func Tool(t testing.TB, program, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		Missing(t, program+" is not installed: apt-get install "+pkg)
	}
	return path
}

// Missing skips the test because of what the machine lacks; under CI it fails.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s (a skip is a failure when CI=true)", what)
	}
	t.Skip(what)
}
