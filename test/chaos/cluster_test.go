package chaos

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/pki"
)

// machines is a cluster as it is on several machines: a NATS server and emud
// processes that know nothing but its address.
type machines struct {
	local
	t      testing.TB
	dir    string
	ports  []int
	routes []int                      // ports between NATS servers, when there are several
	keys   string                     // directory of keys, "" = anybody connects
	with   []string                   // flags of every emud
	bare   bool                       // servers without JetStream
	hosts  []string                   // addresses of the machines, in order; none = all on loopback
	inside func(machine int) []string // command that starts a program on a machine
	near   bool                       // each emud is told of its machine's server only
	procs  map[string]*exec.Cmd
}

// host is the address of the machine that runs server i or coordinator i.
func (m *machines) host(i int) string {
	if len(m.hosts) == 0 {
		return "127.0.0.1"
	}
	return m.hosts[i%len(m.hosts)]
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func newMachines(t testing.TB, coordinators, others int) *machines {
	t.Helper()
	return startMachines(t, 1, coordinators, others, nil)
}

// startMachines starts servers and processes; several servers form a cluster
// that only admits holders of keys.
func startMachines(t testing.TB, servers, coordinators, others int, edit func(*machines)) *machines {
	t.Helper()
	m := &machines{t: t, dir: t.TempDir(), procs: map[string]*exec.Cmd{}}
	t.Cleanup(func() {
		for n := range m.procs {
			m.kill(n, syscall.SIGCONT)
			m.kill(n, syscall.SIGKILL)
		}
		if t.Failed() {
			m.logs()
		}
	})
	for range servers {
		m.ports, m.routes = append(m.ports, freePort(t)), append(m.routes, freePort(t))
	}
	if servers > 1 {
		m.keys = filepath.Join(m.dir, "keys")
		m.with = append(m.with, "--object-replicas", "3")
	}
	if edit != nil {
		edit(m)
	}
	if m.keys != "" {
		hosts := m.hosts
		if len(hosts) == 0 {
			hosts = []string{m.host(0)}
		}
		if _, err := pki.Init(pki.Options{Dir: m.keys, Hosts: hosts}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range servers {
		m.nats(i)
	}
	for i := range coordinators {
		m.emud(i, fmt.Sprint("c", i+1), "--coordinator", "--bootstrap-expect", fmt.Sprint(coordinators), "--raft-listen", m.host(i)+":0")
	}
	for i := range others {
		m.emud(i, fmt.Sprint("e", i+1))
	}
	c := m.dial()
	m.local = local{nil, c, t}
	m.until("all are up", func(s *coord.Status) bool { return s.Quorum && len(s.Nodes) == coordinators+others })
	return m
}

func (m *machines) dial() *client.Client {
	m.t.Helper()
	d := natsbus.Dialer{URL: m.url(), Name: "test", Wait: 20 * time.Second}
	if m.keys != "" {
		d.Seed = filepath.Join(m.keys, pki.UserSeed)
		var err error
		if d.TLS, err = pki.Load(m.key(pki.CAFile), m.key(pki.CertFile(m.host(0))), m.key(pki.KeyFile(m.host(0)))); err != nil {
			m.t.Fatal(err)
		}
	}
	c, err := client.Dial(d)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(c.Close)
	return c
}

func (m *machines) key(name string) string { return filepath.Join(m.keys, name) }

// logs shows the end of every process's log.
func (m *machines) logs() {
	l, _ := filepath.Glob(filepath.Join(m.dir, "*.log"))
	for _, f := range l {
		b, _ := os.ReadFile(f)
		m.t.Logf("%s: …%s", filepath.Base(f), b[max(0, len(b)-2000):])
	}
}

func (m *machines) url() string {
	scheme := "nats"
	if m.keys != "" {
		scheme = "tls"
	}
	var l []string
	for i, p := range m.ports {
		l = append(l, fmt.Sprintf("%s://%s:%d", scheme, m.host(i), p))
	}
	return strings.Join(l, ",")
}

// urlFrom is what an emud on a machine is told.
func (m *machines) urlFrom(machine int) string {
	if !m.near {
		return m.url()
	}
	return strings.Split(m.url(), ",")[machine%len(m.ports)]
}

// tls are the flags that name a machine's keys.
func (m *machines) tls(machine int) []string {
	if m.keys == "" {
		return nil
	}
	return []string{"--tls-ca", m.key(pki.CAFile), "--tls-cert", m.key(pki.CertFile(m.host(machine))), "--tls-key", m.key(pki.KeyFile(m.host(machine)))}
}

func (m *machines) spawn(machine int, name string, args ...string) {
	m.t.Helper()
	line := append([]string{emud(m.t)}, args...)
	if m.inside != nil {
		line = append(m.inside(machine), line...)
	}
	c := exec.Command(line[0], line[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	f, err := os.OpenFile(filepath.Join(m.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	c.Stderr = f
	if err := c.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.procs[name] = c
}

func natsName(i int) string { return fmt.Sprint("nats", i+1) }

func (m *machines) nats(i int) {
	name := natsName(i)
	args := append([]string{"nats-server", "--name", name, "--host", m.host(i), "--port", fmt.Sprint(m.ports[i])}, m.tls(i)...)
	if !m.bare {
		args = append(args, "--store", filepath.Join(m.dir, "js"+name))
	}
	if m.keys != "" {
		args = append(args, "--members", m.key(pki.MemberSeed), "--people", m.key(pki.UserSeed))
	}
	if len(m.ports) > 1 {
		args = append(args, "--cluster", "chaos", "--cluster-port", fmt.Sprint(m.routes[i]))
		for k, r := range m.routes {
			if k != i {
				args = append(args, "--route", fmt.Sprintf("nats://%s:%d", m.host(k), r))
			}
		}
	}
	m.spawn(i, name, args...)
}

func (m *machines) emud(machine int, name string, args ...string) {
	all := append([]string{"--name", name, "--nats", m.urlFrom(machine), "--data", filepath.Join(m.dir, name)}, m.tls(machine)...)
	if m.keys != "" {
		all = append(all, "--creds", m.key(pki.MemberSeed))
	}
	m.spawn(machine, name, append(append(all, m.with...), args...)...)
}

// kill sends a signal; SIGKILL and SIGTERM also wait for the end.
func (m *machines) kill(name string, sig syscall.Signal) {
	c := m.procs[name]
	_ = c.Process.Signal(sig)
	if sig == syscall.SIGKILL || sig == syscall.SIGTERM {
		_ = c.Wait()
		delete(m.procs, name)
	}
}

func (m *machines) until(what string, ok func(*coord.Status) bool) *coord.Status {
	m.t.Helper()
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s, err := m.c.Status(within(m.t, 3*time.Second))
		if err == nil && ok(s) {
			return s
		}
		if time.Now().After(end) {
			m.t.Fatalf("never: %s: %+v %v", what, s, err)
		}
	}
}

// during waits for a condition on the run under way.
func (m *machines) during(what string, ok func(*coord.RunStatus) bool) *coord.RunStatus {
	m.t.Helper()
	return m.until(what, func(s *coord.Status) bool { return s.Run != nil && ok(s.Run) }).Run
}

// The Raft leader, then the only NATS server, then a member by SIGTERM: the
// result is that of one process.
func TestLosses(t *testing.T) {
	dear(t)
	want := alone(t, long.plan(t))
	m := newMachines(t, 3, 1)
	id := m.submit(long.plan(t), 4, func(s *coord.RunSpec) { s.Batch, s.CkptMS = true, 400 })
	m.progressed(id, 500)
	leader := m.until("a leader", func(s *coord.Status) bool { return s.Leader != "" }).Leader
	m.kill(leader, syscall.SIGKILL)
	t0 := time.Now()
	m.until("another leader", func(s *coord.Status) bool { return s.Leader != "" && s.Leader != leader })
	t.Logf("another leader after %v", time.Since(t0))
	t.Logf("windows advance again after %v", m.recovered(id))
	m.kill(natsName(0), syscall.SIGKILL)
	time.Sleep(100 * time.Millisecond)
	m.nats(0)
	t.Logf("after the loss of NATS windows advance again after %v", m.recovered(id))
	m.kill("e1", syscall.SIGTERM)
	got, run, _ := m.result(id, nil)
	same(t, got, want)
	t.Logf("%d moves, %d checkpoints", run.Moves, len(run.Ckpts))
}

// stands waits until what is granted is used up and no window runs for a while.
func (m *machines) stands(while time.Duration) {
	m.t.Helper()
	last, since := uint64(0), time.Now()
	m.until("windows stand", func(s *coord.Status) bool {
		if s.Run.Windows != last {
			last, since = s.Run.Windows, time.Now()
		}
		return time.Since(since) > while
	})
}

// Two of three voters are gone: virtual time stands, the status says so, a
// command ends by its deadline; one comes back and everything goes on.
func TestQuorumLost(t *testing.T) {
	dear(t)
	want := alone(t, long.plan(t))
	m := newMachines(t, 3, 1)
	id := m.submit(long.plan(t), 4, func(s *coord.RunSpec) { s.Batch = false })
	m.progressed(id, 300)
	m.kill("c2", syscall.SIGSTOP)
	m.kill("c3", syscall.SIGSTOP)
	s := m.until("the loss of quorum is told", func(s *coord.Status) bool { return !s.Quorum })
	if !strings.Contains(s.Run.State, "no quorum") {
		t.Errorf("state %q", s.Run.State)
	}
	t0 := time.Now()
	if _, err := m.c.Pause(within(t, time.Second)); err == nil || time.Since(t0) > 3*time.Second {
		t.Errorf("a command without quorum: %v after %v", err, time.Since(t0))
	}
	m.stands(500 * time.Millisecond)
	if s, err := m.dial().Status(within(t, 15*time.Second)); err != nil || s.Quorum || s.Run == nil || s.Run.ID != id {
		t.Errorf("who asks for the first time is answered %+v, %v", s, err)
	}
	m.kill("c2", syscall.SIGCONT)
	m.kill("c3", syscall.SIGCONT)
	m.until("quorum", func(s *coord.Status) bool { return s.Quorum })
	if err := m.c.Resume(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
	got, _, _ := m.result(id, nil)
	same(t, got, want)
}
