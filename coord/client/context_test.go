package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edited changes the file and reads it back.
func edited(t *testing.T, edit func(c *Contexts)) *Contexts {
	t.Helper()
	if err := EditContexts(func(c *Contexts) error { edit(c); return nil }); err != nil {
		t.Fatal(err)
	}
	c, err := LoadContexts()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Runs of one machine get names of their own, and whichever ends first, the
// current context is that of one that goes on, in the end the user's.
func TestContextsOfRuns(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "sub", "contexts"))
	me := os.Getpid()
	var one, two, three string
	c := edited(t, func(c *Contexts) {
		c.Named["lab"], c.Current = Context{NATS: "lab"}, "lab"
		one = c.Enter("local", Context{NATS: "1", PID: me})
		two = c.Enter("local", Context{NATS: "2", PID: me})
		three = c.Enter("local", Context{NATS: "3", PID: me})
	})
	if len(c.Named) != 4 || c.Current != three || one != "local" {
		t.Fatalf("current %q of %v", c.Current, c.Names())
	}
	for _, s := range [][2]string{{two, three}, {three, one}, {one, "lab"}, {"lab", ""}} {
		if c = edited(t, func(c *Contexts) { c.Remove(s[0]) }); c.Current != s[1] {
			t.Errorf("without %s: current %q, want %q", s[0], c.Current, s[1])
		}
	}
	if _, err := c.Pick(""); err == nil || !strings.Contains(err.Error(), "no fabric is running here") {
		t.Errorf("with no context: %v", err)
	}
}

// A run that was killed leaves its context behind; it counts for nothing.
func TestContextOfDeadRun(t *testing.T) {
	t.Setenv("ROCEMU_CONTEXTS", filepath.Join(t.TempDir(), "contexts"))
	c := edited(t, func(c *Contexts) {
		c.Named["lab"], c.Current = Context{NATS: "lab"}, "lab"
		c.Enter("local", Context{NATS: "1", PID: 1 << 30})
	})
	if x, err := c.Pick(""); err != nil || x.NATS != "lab" {
		t.Errorf("%v %v", x, err)
	}
	c = edited(t, func(c *Contexts) { c.Named, c.Current = map[string]Context{}, "local" }) // as it was written once
	if _, err := c.Pick(""); err == nil || strings.Contains(err.Error(), `"local"`) {
		t.Errorf("a name that nobody gave: %v", err)
	}
}
