package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/coord/pki"
)

// Context names a cluster: where its NATS is and with what to show up there.
type Context struct {
	NATS  string `json:"nats"`
	Creds string `json:"creds,omitempty"` // file with an NKey seed
	CA    string `json:"ca,omitempty"`
	Cert  string `json:"cert,omitempty"`
	Key   string `json:"key,omitempty"`
	PID   int    `json:"pid,omitempty"` // of the `emuctl run` that wrote it; gone with it
}

// Contexts is the user's file of named clusters.
type Contexts struct {
	Current string             `json:"current,omitempty"`
	Named   map[string]Context `json:"contexts"`
	path    string
}

// ContextFile is where contexts are kept: ROCEMU_CONTEXTS, else the user's
// configuration directory.
func ContextFile() (string, error) {
	if p := os.Getenv("ROCEMU_CONTEXTS"); p != "" {
		return p, nil
	}
	d, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no place for contexts: %w; name a file in ROCEMU_CONTEXTS", err)
	}
	return filepath.Join(d, "rocemu", "contexts.json"), nil
}

// LoadContexts reads the file; a missing one is empty. Contexts of runs that
// have ended are left out.
func LoadContexts() (*Contexts, error) {
	path, err := ContextFile()
	if err != nil {
		return nil, err
	}
	c := &Contexts{Named: map[string]Context{}, path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(b, c)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Named == nil {
		c.Named = map[string]Context{}
	}
	for n, x := range c.Named {
		if x.PID != 0 && !running(x.PID) {
			delete(c.Named, n)
			if c.Current == n {
				c.Current = ""
			}
		}
	}
	return c, nil
}

func running(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// Save writes the file in one step.
func (c *Contexts) Save() error {
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), ".contexts-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Names lists the contexts.
func (c *Contexts) Names() []string {
	l := make([]string, 0, len(c.Named))
	for n := range c.Named {
		l = append(l, n)
	}
	sort.Strings(l)
	return l
}

// Pick returns the named context, the current one for "", or the only one.
func (c *Contexts) Pick(name string) (Context, error) {
	if name == "" {
		name = c.Current
	}
	if name == "" && len(c.Named) == 1 {
		name = c.Names()[0]
	}
	x, ok := c.Named[name]
	if !ok && name == "" {
		return x, fmt.Errorf("no cluster is named: give --nats URL, or choose one with `emuctl context use` (there are %v)", c.Names())
	}
	if !ok {
		return x, fmt.Errorf("no context %q: there are %v", name, c.Names())
	}
	return x, nil
}

// Dialer makes a connection's settings.
func (x Context) Dialer(name string, wait time.Duration) (natsbus.Dialer, error) {
	d := natsbus.Dialer{URL: x.NATS, Name: name, Seed: x.Creds, Wait: wait}
	if x.CA != "" {
		t, err := pki.Load(x.CA, x.Cert, x.Key)
		if err != nil {
			return d, err
		}
		d.TLS = t
	}
	return d, nil
}
