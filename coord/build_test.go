package coord

import (
	"os"
	"path/filepath"
	"testing"
)

// A build is named by what the linker says of it, anything else by its bytes.
func TestBuildOf(t *testing.T) {
	own, err := ownBuild()
	if err != nil || len(own) != 16 {
		t.Fatal(own, err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if id := linkedID(exe); len(id) < 40 {
		t.Errorf("the test program's build id has %d bytes", len(id))
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		data []byte
		same bool
	}{"copy": {b, true}, "cut": {b[:len(b)/2], false}, "text": {[]byte("#!/bin/sh\n"), false}} {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, c.data, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := buildOf(p); err != nil || len(got) != 16 || (got == own) != c.same {
			t.Errorf("%s: %q, %v; the program itself %q", name, got, err, own)
		}
	}
	if _, err := buildOf(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there has a build")
	}
}
