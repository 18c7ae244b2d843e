package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"syscall"
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
	PID   int    `json:"pid,omitempty"`   // of the `emuctl run` that wrote it; gone with it
	Prior string `json:"prior,omitempty"` // what was current before that run
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
	for _, n := range c.Names() {
		if pid := c.Named[n].PID; pid != 0 && !running(pid) {
			c.Remove(n)
		}
	}
	if _, ok := c.Named[c.Current]; !ok { // an older emuctl left it
		c.Current = ""
	}
	return c, nil
}

// EditContexts changes the file; of several processes one does so at a time.
func EditContexts(edit func(c *Contexts) error) error {
	path, err := ContextFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	l, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // unlocks
	if err := syscall.Flock(int(l.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	c, err := LoadContexts()
	if err != nil {
		return err
	}
	if err := edit(c); err != nil {
		return err
	}
	return c.Save()
}

// Enter names the cluster of a run that lasts as long as its process and makes
// it the current one. Where the name is taken it gets a number.
func (c *Contexts) Enter(name string, x Context) string {
	for i, base := 2, name; ; i++ {
		if _, taken := c.Named[name]; !taken {
			break
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
	x.Prior = c.Current
	c.Named[name], c.Current = x, name
	return name
}

// Remove forgets a name; what was current before it is so again.
func (c *Contexts) Remove(name string) {
	prior := c.Named[name].Prior
	delete(c.Named, name)
	for n, x := range c.Named {
		if x.Prior == name {
			x.Prior = prior
			c.Named[n] = x
		}
	}
	if c.Current == name {
		c.Current = prior
	}
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

// ErrNothing: no cluster is named, and no run of this machine has named itself.
var ErrNothing = errors.New("no fabric is running here and no cluster is named: start one with `emuctl run FILE --interactive` or `emuctl submit FILE --nats URL`, or name a result with -f DIR where a command takes one")

// Pick returns the named context, the current one for "", or the only one.
func (c *Contexts) Pick(name string) (Context, error) {
	if name == "" {
		name = c.Current
	}
	if name == "" && len(c.Named) == 1 {
		name = c.Names()[0]
	}
	x, ok := c.Named[name]
	if !ok && name == "" && len(c.Named) == 0 {
		return x, ErrNothing
	}
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
