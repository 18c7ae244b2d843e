package coord_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/rocemu/rocemu/actors"
	"github.com/rocemu/rocemu/actors/actortest"
	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
)

// relays binds the synthetic fabric to the control plane. The run's one file is
// a JSON actortest.Spec and whether the fabric is live.
type relays struct {
	slow time.Duration // wall time of a window, to make runs last
}

type relayFile struct {
	actortest.Spec
	Live bool
}

func parse(s *coord.RunSpec) (f relayFile, err error) {
	if err = json.Unmarshal([]byte(s.Files[0].Text), &f); err == nil && f.Relays < 2 {
		err = fmt.Errorf("relays is %d, at least 2", f.Relays)
	}
	return f, err
}

func (m relays) Layout(s *coord.RunSpec) (*coord.Layout, error) {
	f, err := parse(s)
	if err != nil {
		return nil, err
	}
	fab := actortest.New(f.Spec)
	l := &coord.Layout{Hash: coord.SumOf([]byte(s.Files[0].Text)), Names: fab.Config.Names, Window: fab.Window}
	for d := range l.Names {
		l.Groups = append(l.Groups, coord.Group{Devices: []int32{int32(d)}, Weight: int64(len(fab.Config.Cables[d]))})
	}
	return l, nil
}

func (m relays) Build(s *coord.RunSpec, hosted func(int32) bool, workers int) (coord.Fabric, error) {
	f, err := parse(s)
	if err != nil {
		return nil, err
	}
	fab := actortest.New(f.Spec)
	fab.Config.Live = f.Live
	e, err := fab.Engine(workers, hosted)
	if err != nil {
		return nil, err
	}
	if m.slow > 0 {
		fab.Relays[e.Local()[0]].Delay = m.slow
	}
	return &relayFabric{fab, e}, nil
}

func (relays) CheckFaults(_ *coord.RunSpec, _, come []coord.Fault) error {
	for i := range come {
		if f := &come[i]; !f.Clear {
			if _, err := parseFault(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseFault reads "disturb RELAY ID".
func parseFault(f *coord.Fault) (x struct{ Dev, ID uint64 }, err error) {
	_, err = fmt.Sscanf(f.Text, "disturb %d %d", &x.Dev, &x.ID)
	return x, err
}

type relayFabric struct {
	f *actortest.Fabric
	e *actors.Engine
}

func (r *relayFabric) Engine() *actors.Engine { return r.e }
func (r *relayFabric) Schedule(f *coord.Fault) error {
	x, err := parseFault(f)
	if err != nil {
		return err
	}
	if r.e.Hosts(int32(x.Dev)) {
		r.f.Relays[x.Dev].Disturb(f.Eff, x.ID)
		r.e.Wake(int32(x.Dev), f.Eff)
	}
	return nil
}

func (r *relayFabric) Parts(clock.Time, clock.Time) ([]byte, error) {
	return []byte(r.e.Digest().String()), nil
}

// cluster is nodes and a server in this process.
type cluster struct {
	t     *testing.T
	srv   *server.Server
	dir   string
	model relays
	nodes map[string]*running
	cl    *client.Client
}

type running struct {
	n    *coord.Node
	stop context.CancelFunc
	done chan struct{}
}

func newCluster(t *testing.T, model relays, jet bool) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), model: model, nodes: map[string]*running{}}
	o := natsbus.ServerOptions{}
	if jet {
		o.StoreDir = filepath.Join(c.dir, "js")
	}
	var err error
	if c.srv, err = natsbus.StartServer(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	if c.cl, err = client.Dial(natsbus.Dialer{URL: c.srv.ClientURL(), Name: "test", Wait: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) start(name string, coordinator bool, expect int, edit func(*coord.Config)) {
	c.t.Helper()
	cfg := coord.Config{
		Name: name, Data: filepath.Join(c.dir, name), Coordinator: coordinator, Expect: expect, Model: c.model, Build: "test",
		Dialer: natsbus.Dialer{URL: c.srv.ClientURL(), Wait: 5 * time.Second}, Silence: time.Second, GiveUp: 20 * time.Second,
		Fatal: func(err error) { c.t.Errorf("%s: fatal: %v", name, err) },
	}
	if os.Getenv("EMU_TEST_LOG") != "" {
		cfg.Log = hclog.New(&hclog.LoggerOptions{Name: name, Level: hclog.Debug})
	}
	if edit != nil {
		edit(&cfg)
	}
	n, err := coord.NewNode(context.Background(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{n, stop, make(chan struct{})}
	c.nodes[name] = r
	go func() { defer close(r.done); _ = n.Run(ctx) }()
}

// kill drops a node without any goodbye.
func (c *cluster) kill(name string) {
	r := c.nodes[name]
	delete(c.nodes, name)
	r.n.Kill()
	r.stop()
	<-r.done
}

func (c *cluster) close() {
	if c.cl != nil {
		c.cl.Close()
	}
	for name := range c.nodes {
		c.kill(name)
	}
	c.srv.Shutdown()
}

// deadline ends what hangs; on a machine that others use too, a window between
// processes may take tens of milliseconds.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (c *cluster) submit(f relayFile, edit func(*coord.RunSpec)) string {
	c.t.Helper()
	text, _ := json.Marshal(f)
	s := coord.RunSpec{Files: []coord.File{{Name: "relays.json", Text: string(text)}}}
	if edit != nil {
		edit(&s)
	}
	id, err := c.cl.Submit(deadline(c.t), s)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

func (c *cluster) wait(id string) *coord.Run {
	c.t.Helper()
	r, err := c.cl.Wait(deadline(c.t), id, nil)
	if err != nil {
		s, _ := c.cl.Status(deadline(c.t))
		b, _ := json.MarshalIndent(s, "", " ")
		c.t.Fatalf("%v\n%s", err, b)
	}
	if r.Phase != coord.Ended {
		c.t.Fatalf("run is %s: %s", r.Phase, r.Why)
	}
	return r
}

// until waits for a condition on the status.
func (c *cluster) until(what string, ok func(*coord.Status) bool) *coord.Status {
	c.t.Helper()
	ctx := deadline(c.t)
	for {
		s, err := c.cl.Status(ctx)
		if err == nil && ok(s) {
			return s
		}
		if ctx.Err() != nil {
			b, _ := json.MarshalIndent(s, "", " ")
			c.t.Fatalf("never: %s\n%s", what, b)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func oracle(f relayFile) string {
	g, _ := actortest.New(f.Spec).Oracle()
	return g.String()
}
