package coord

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Timing of Raft. Grants of seconds hide a change of leader, so the time-outs
// may be generous; they must stay well above the disk's slowest fsync.
type Timing struct{ Heartbeat, Lease, Commit time.Duration }

// DefaultTiming fails over in about 0.6 s.
var DefaultTiming = Timing{300 * time.Millisecond, 150 * time.Millisecond, 10 * time.Millisecond}

// raftConfig is what a coordinator's Raft needs.
type raftConfig struct {
	name   string
	dir    string
	addr   string // listen address; port 0 takes a free one
	told   string // address to tell others; "" = the listen address
	tls    *tls.Config
	timing Timing
	log    hclog.Logger

	fleeting bool        // see Config
	fatal    func(error) // the voter cannot go on; nil = nobody is told
}

// consensus is one Raft voter.
type consensus struct {
	raft  *raft.Raft
	rep   *Replica
	store *store
	trans *raft.NetworkTransport
	addr  string
	book  *addressBook
	turns chan bool // leadership, won or lost: Raft waits until it is taken
	turn  atomic.Pointer[func()]
	since time.Time // start
	over  sync.Once
}

// addressBook is where coordinators say that they listen. A voter that starts
// again may have another port, which only a leader can enter in the
// configuration: without a leader, those who know each other by old addresses
// alone would never elect one.
type addressBook struct{ at sync.Map }

// heard notes a coordinator's own word.
func (c *consensus) heard(name, addr string) {
	if addr != "" {
		c.book.at.Store(raft.ServerID(name), raft.ServerAddress(addr))
	}
}

// ServerAddr implements raft.ServerAddressProvider. A coordinator that was
// heard is called by its name: Raft keeps a pool of idle connections for each
// address that it ever called, which would grow with every start elsewhere.
func (b *addressBook) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	if _, ok := b.at.Load(id); ok {
		return raft.ServerAddress(id), nil
	}
	return "", fmt.Errorf("%s has not been heard yet", id)
}

// find says where a name, or a configured address, is now.
func (b *addressBook) find(a raft.ServerAddress) string {
	if at, ok := b.at.Load(raft.ServerID(a)); ok {
		return string(at.(raft.ServerAddress))
	}
	return string(a)
}

// fsm adapts a Replica to raft.FSM.
type fsm struct{ rep *Replica }

func (f fsm) Apply(l *raft.Log) any { return f.rep.Apply(l.Data) }

func (f fsm) Snapshot() (raft.FSMSnapshot, error) {
	var b []byte
	var err error
	f.rep.View(func(s *State) { b, err = s.Encode() })
	return snapshot(b), err
}

func (f fsm) Restore(r io.ReadCloser) error {
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, 1<<30))
	if err != nil {
		return err
	}
	s, err := DecodeState(b)
	if err != nil {
		return err
	}
	f.rep.Restore(s)
	return nil
}

type snapshot []byte

func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(s); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

func (s snapshot) Release() {}

// openRaft starts a voter on its data directory.
func openRaft(c raftConfig, rep *Replica) (*consensus, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	st, err := openStore(filepath.Join(c.dir, "raft.db"), !c.fleeting)
	if err != nil {
		return nil, err
	}
	st.lost = c.fatal
	logger := c.log.Named("raft")
	snaps, err := raft.NewFileSnapshotStoreWithLogger(c.dir, 2, logger)
	if err != nil {
		st.Close()
		return nil, err
	}
	ln, err := net.Listen("tcp", c.addr)
	if err != nil {
		st.Close()
		return nil, fmt.Errorf("raft: %w", err)
	}
	told := c.told
	if told == "" {
		told = ln.Addr().String()
	}
	book := new(addressBook)
	trans := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: book,
		Stream:                &stream{Listener: ln, tls: c.tls, name: address(told), book: book}, MaxPool: 3, MaxRPCsInFlight: 1, Timeout: 2 * time.Second, Logger: logger,
	})
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(c.name)
	cfg.HeartbeatTimeout, cfg.ElectionTimeout = c.timing.Heartbeat, c.timing.Heartbeat
	cfg.LeaderLeaseTimeout, cfg.CommitTimeout = c.timing.Lease, c.timing.Commit
	cfg.SnapshotThreshold, cfg.TrailingLogs = 4096, 4096
	cfg.Logger = logger
	turns := make(chan bool, 1)
	cfg.NotifyCh = turns
	r, err := raft.NewRaft(cfg, fsm{rep}, st, st, snaps, trans)
	if err != nil {
		trans.Close()
		st.Close()
		return nil, fmt.Errorf("raft: %w", err)
	}
	x := &consensus{raft: r, rep: rep, store: st, trans: trans, addr: told, book: book, turns: turns, since: time.Now()}
	go func() {
		for range turns {
			if f := x.turn.Load(); f != nil {
				(*f)()
			}
		}
	}()
	return x, nil
}

// onTurn has f called whenever this voter wins or loses the lead.
func (c *consensus) onTurn(f func()) { c.turn.Store(&f) }

// bootstrapped reports whether the voter knows a cluster already.
func (c *consensus) bootstrapped() bool {
	f := c.raft.GetConfiguration()
	return f.Error() == nil && len(f.Configuration().Servers) > 0
}

// bootstrap founds the cluster with these voters, by name.
func (c *consensus) bootstrap(voters map[string]string) error {
	var cfg raft.Configuration
	for n, a := range voters {
		cfg.Servers = append(cfg.Servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(n), Address: raft.ServerAddress(a)})
	}
	err := c.raft.BootstrapCluster(cfg).Error()
	if errors.Is(err, raft.ErrCantBootstrap) {
		return nil
	}
	return err
}

// propose commits one entry on the leader. errHung means that this leader can
// no longer write while it still believes to lead.
func (c *consensus) propose(b []byte, wait time.Duration) (Result, error) {
	f := c.raft.Apply(b, wait)
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	switch err, ok := patiently(done, wait); {
	case ok && err != nil:
		return Result{}, err
	case ok:
		return f.Response().(Result), nil
	case c.leads():
		return Result{}, errHung
	}
	return Result{}, raft.ErrLeadershipLost
}

// patiently takes what comes within a wait. That is counted in pieces, of which a
// process that is stopped loses one: what was under way may still be done.
func patiently(done <-chan error, wait time.Duration) (err error, ok bool) {
	const pieces = 20
	for range pieces {
		select {
		case err := <-done:
			return err, true
		case <-time.After(wait / pieces):
		}
	}
	return nil, false
}

// barrier implements voter.
func (c *consensus) barrier(wait time.Duration) error {
	f := c.raft.Barrier(wait)
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	if err, ok := patiently(done, wait); ok {
		return err
	}
	return context.DeadlineExceeded
}

// errHung: hashicorp/raft keeps a leader whose disk hangs in office for ever,
// since its heartbeats go on (raft#503); the process has to go.
var errHung = errors.New("coord: the leader's disk does not answer")

func (c *consensus) told() string { return c.addr }

func (c *consensus) leads() bool { return c.raft.State() == raft.Leader }

func (c *consensus) leader() string {
	_, id := c.raft.LeaderWithID()
	return string(id)
}

// heardOf implements voter.
func (c *consensus) heardOf() time.Duration {
	if c.leads() || c.leader() != "" {
		return 0
	}
	last := c.raft.LastContact()
	if last.Before(c.since) {
		last = c.since
	}
	return time.Since(last)
}

// addVoter lets a coordinator in, or changes its address.
func (c *consensus) addVoter(name, addr string) error {
	return c.raft.AddVoter(raft.ServerID(name), raft.ServerAddress(addr), 0, 2*time.Second).Error()
}

func (c *consensus) voters() map[string]string {
	m := map[string]string{}
	f := c.raft.GetConfiguration()
	if f.Error() == nil {
		for _, s := range f.Configuration().Servers {
			m[string(s.ID)] = string(s.Address)
		}
	}
	return m
}

func (c *consensus) close() {
	if c.leads() {
		_ = c.raft.LeadershipTransfer().Error()
	}
	c.kill()
}

func (c *consensus) kill() {
	_ = c.raft.Shutdown().Error() // after which nobody writes to turns
	c.over.Do(func() { close(c.turns) })
	c.trans.CloseStreams()
	c.trans.Close()
	c.store.Close()
}

// stream is Raft's TCP, with mutual TLS when keys are given.
type stream struct {
	net.Listener
	tls  *tls.Config
	name address
	book *addressBook
}

// address is what a coordinator tells others to dial.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

func (s *stream) Addr() net.Addr { return s.name }

func (s *stream) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil || s.tls == nil {
		return c, err
	}
	return tls.Server(c, s.tls), nil
}

func (s *stream) Dial(a raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	at := s.book.find(a)
	c, err := net.DialTimeout("tcp", at, timeout)
	if err != nil || s.tls == nil {
		return c, err
	}
	host, _, _ := net.SplitHostPort(at)
	cfg := s.tls.Clone()
	cfg.ServerName = host
	return tls.Client(c, cfg), nil
}
