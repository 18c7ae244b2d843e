package coord

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rocemu/rocemu/actors/natsbus"
	"github.com/rocemu/rocemu/clock"
)

// Config describes one process of a cluster.
type Config struct {
	Name        string
	Data        string // directory: Raft's log, states, retained batches
	Dialer      natsbus.Dialer
	Coordinator bool
	Expect      int    // coordinators that found the cluster
	RaftAddr    string // listen address of a coordinator
	RaftName    string // address others reach it at; "" = the listen address
	NoSlots     bool   // coordinate only
	RaftTLS     *tls.Config
	Timing      Timing // zero = DefaultTiming
	Devices     []string
	Workers     int
	Cores       int // 0 = GOMAXPROCS
	Model       Model
	Build       string // id of this program; "" = hash of the executable
	Log         hclog.Logger
	GiveUp      time.Duration // a batch may stay missing that long
	Retain      int           // bytes of sent batches kept in memory
	Silence     time.Duration // without a heartbeat for that long a process is lost; 0 = 2 s
	JetReplicas int
	// Shared is a directory that all processes of the cluster have: states and
	// results go there instead of to an object store. "" = the object store.
	Shared string
	// Fleeting: nobody needs the ledger once this process has ended; nothing is
	// synced to the disk for it.
	Fleeting bool
	// Fatal is called when the process must end at once (a hung disk).
	Fatal func(error)
}

// Node is one emud: an agent that runs slots, and on a coordinator a voter.
type Node struct {
	cfg     Config
	boot    string
	conn    *natsbus.Conn // batches
	nats    *natsbus.Conn // control and bulk
	bus     natsbus.Bus   // over conn
	ctl     control       // over nats
	rep     *Replica
	cons    voter // nil unless a coordinator
	lead    *leader
	uploads uploads
	blobs   Blobs
	log     hclog.Logger
	usage   func() usage

	mu      sync.Mutex
	runs    map[int]*runner // by slot
	leaving atomic.Bool
	ready   atomic.Bool
	kick    chan struct{}
	lastFed atomic.Int64 // wall time of the leader's last word, Unix ns
	leadBy  atomic.Pointer[string]
	beaten  atomic.Int64 // wall time of the last heartbeat, Unix ns
}

// NewNode connects and starts what listens; Run does the rest.
func NewNode(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Silence <= 0 {
		cfg.Silence = 2 * time.Second
	}
	if cfg.Timing == (Timing{}) {
		cfg.Timing = DefaultTiming
	}
	if cfg.Log == nil {
		cfg.Log = hclog.NewNullLogger()
	}
	if cfg.Fatal == nil {
		cfg.Fatal = func(err error) { cfg.Log.Error("fatal", "err", err); os.Exit(1) }
	}
	if cfg.Build == "" {
		b, err := ownBuild()
		if err != nil {
			return nil, err
		}
		cfg.Build = b
	}
	n := newNode(cfg, nonce())
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, err
	}
	if err := n.connect(ctx); err != nil {
		n.Close()
		return nil, err
	}
	if cfg.Coordinator {
		if err := n.coordinate(); err != nil {
			n.Close()
			return nil, err
		}
	}
	err := n.listen()
	if err == nil && cfg.Coordinator {
		err = n.serve()
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// newNode is a node that is connected to nothing yet.
func newNode(cfg Config, boot string) *Node {
	return &Node{cfg: cfg, boot: boot, rep: NewReplica(), log: cfg.Log, usage: used, runs: map[int]*runner{}, kick: make(chan struct{}, 1)}
}

func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// key folds what must agree between processes into the word every batch and
// state carries.
func (n *Node) key(run, plan string) uint64 {
	return clock.HashString(clock.HashString(clock.HashString(1, n.cfg.Build), plan), run)
}

// connect opens one connection for batches and one for everything else, so
// that bulk never stands in a batch's way.
func (n *Node) connect(ctx context.Context) (err error) {
	d := n.cfg.Dialer
	if d.Note == nil {
		d.Note = func(what string, err error) { n.log.Warn("nats", "event", what, "err", err) }
	}
	d.Name = n.cfg.Name + "-batches"
	if n.conn, err = d.Dial(); err != nil {
		return err
	}
	d.Name = n.cfg.Name + "-control"
	if n.nats, err = d.Dial(); err != nil {
		return err
	}
	n.bus, n.ctl = n.conn, natsControl{n.nats}
	l := layered{local: DirBlobs(filepath.Join(n.cfg.Data, "blobs")), peers: peerBlobs{n.ctl}}
	defer func() { n.blobs = l }()
	if n.cfg.Shared != "" {
		l.shared = append(l.shared, DirBlobs(n.cfg.Shared))
		return nil
	}
	js, err := jetstream.New(n.nats.NATS())
	if err != nil {
		return err
	}
	o, err := awaitObjects(ctx, js, n.cfg.JetReplicas, max(5*time.Second, n.cfg.Dialer.Wait))
	if err != nil {
		return err
	}
	if o != nil {
		l.shared = append(l.shared, o)
	} else {
		n.log.Warn("no JetStream: states are kept on local disks only")
	}
	return nil
}

func (n *Node) coordinate() error {
	addr := n.cfg.RaftAddr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	c, err := openRaft(raftConfig{name: n.cfg.Name, dir: filepath.Join(n.cfg.Data, "raft"), addr: addr, told: n.cfg.RaftName, tls: n.cfg.RaftTLS, timing: n.cfg.Timing, fleeting: n.cfg.Fleeting, log: n.log, fatal: n.cfg.Fatal}, n.rep)
	if err != nil {
		return err
	}
	n.vote(c)
	c.onTurn(n.lead.poke)
	return nil
}

// vote makes the node a coordinator.
func (n *Node) vote(v voter) {
	n.cons = v
	n.lead = newLeader(n)
	n.rep.mu.Lock()
	n.rep.onApply = n.feedOut
	n.rep.mu.Unlock()
}

// Heartbeats come often until the ledger has the process, for a second at most.
const (
	beatEvery = 200 * time.Millisecond
	eagerBeat = 10 * time.Millisecond
	eagerFor  = 100
)

// joined says whether the ledger has this process as a member.
func (n *Node) joined() (in bool) {
	n.rep.View(func(s *State) {
		m := s.Members[n.cfg.Name]
		in = m != nil && m.Up && m.Boot == n.boot
	})
	return in
}

// Run works until ctx ends. On the way out it hands its slots over.
func (n *Node) Run(ctx context.Context) error {
	beats := time.NewTicker(eagerBeat)
	defer beats.Stop()
	eager := eagerFor
	sweeps := time.NewTicker(30 * time.Second)
	defer sweeps.Stop()
	if n.lead != nil {
		lctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		go func() { defer close(done); n.lead.run(lctx) }()
		defer func() { stop(); <-done }()
	}
	defer n.stopAll()
	out := ctx.Done()
	var until <-chan time.Time
	for {
		ch := n.rep.Changed()
		n.reconcile()
		if n.leaving.Load() && (n.idle() || until == nil) {
			return nil
		}
		select {
		case <-ch:
		case <-beats.C:
			n.sendBeat()
			if eager--; eager == 0 || eager > 0 && n.joined() {
				eager = 0
				beats.Reset(beatEvery)
			}
		case <-n.kick:
			n.sendBeat()
		case <-sweeps.C:
			go n.sweep(false)
		case <-until:
			return nil
		case <-out:
			out = nil
			n.leaving.Store(true)
			until = time.After(8 * time.Second)
			n.sendBeat()
		}
	}
}

func (n *Node) idle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.runs) == 0
}

// Close ends connections and Raft.
func (n *Node) Close() {
	if n.cons != nil {
		n.cons.close()
	}
	if n.conn != nil {
		n.conn.Close()
	}
	if n.ctl != nil {
		n.ctl.Close()
	}
}

// beat asks for a heartbeat soon.
func (n *Node) beat() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

func (n *Node) me() Member {
	m := Member{Name: n.cfg.Name, Boot: n.boot, Build: n.cfg.Build, Cores: n.cfg.Cores, Devices: n.cfg.Devices, NoSlots: n.cfg.NoSlots}
	if m.Cores == 0 {
		m.Cores = runtime.GOMAXPROCS(0)
	}
	if n.cons != nil {
		m.Raft = n.cons.told()
	}
	return m
}

// heartbeat is what the node says of itself now.
func (n *Node) heartbeat() *heartbeat {
	h := &heartbeat{Member: n.me(), Seq: n.rep.Seq(), Leaving: n.leaving.Load()}
	u := n.usage()
	h.CPU, h.RSS, h.Routines = u.cpu, u.rss, u.routines
	n.mu.Lock()
	for _, r := range n.runs {
		h.Slots = append(h.Slots, r.progress())
	}
	n.mu.Unlock()
	sort.Slice(h.Slots, func(i, j int) bool { return h.Slots[i].Slot < h.Slots[j].Slot })
	return h
}

func (n *Node) sendBeat() {
	if n.lead != nil {
		n.lead.runs()
	}
	h := n.heartbeat()
	n.beaten.Store(time.Now().UnixNano())
	b, err := json.Marshal(h)
	if err == nil {
		err = n.ctl.Publish(subjBeat, b)
	}
	if err != nil {
		n.log.Debug("heartbeat", "err", err)
	}
}

func (r *runner) progress() SlotState {
	s := r.stats()
	x := SlotState{
		Run: r.run, Slot: r.slot, Inc: r.inc, State: "starting", N: r.n.Load(), M: clock.Time(r.m.Load()), Want: clock.Time(r.want.Load()),
		Windows: r.windows.Load(), WaitNS: int64(s.Wait), WallNS: int64(time.Since(r.t0)), BytesOut: s.BytesOut, Naks: s.Naks, Resent: s.Resent,
		Repeated: s.Repeated, Refused: s.Refused, Work: r.work.Load(),
	}
	r.asked.Store(true)
	if p := r.phase.Load(); p != nil {
		x.State = *p
	}
	if c := r.carrier.Load(); c != nil {
		x.Pressure = c.Pressure()
	}
	return x
}

func (n *Node) report(k ckptReport) {
	b, err := json.Marshal(&k)
	if err == nil {
		err = n.ctl.Publish(subjReport, b)
	}
	if err != nil {
		n.log.Warn("checkpoint report", "err", err)
	}
}

// propose has the leader commit an entry, asking again (with the same command
// id, which makes that harmless) until ctx ends.
func (n *Node) propose(ctx context.Context, e *Entry) (Result, error) {
	b, err := e.Encode()
	if err != nil {
		return Result{}, err
	}
	var last error
	try := mostTry
	if n.rep.Version() == 0 { // the first leader is being elected: nobody answers yet
		try = leastTry
	}
	for ; ; try = min(2*try, mostTry) {
		tctx, cancel := context.WithTimeout(ctx, try)
		a, err := n.ctl.Request(tctx, subjLead, b)
		cancel()
		if err == nil {
			var r Result
			if err := json.Unmarshal(a, &r); err != nil {
				return r, fmt.Errorf("coord: malformed answer: %w", err)
			}
			if r.Err != NoLeader {
				return r, nil
			}
			err = errors.New(r.Err)
		}
		last = err
		select {
		case <-ctx.Done():
			return Result{}, fmt.Errorf("coord: no quorum: no leader answered: %w", last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// leastTry and mostTry are how long an answer of the leader is waited for: before
// anybody has led, and later, when an attempt that comes late could overtake what
// was asked for after it.
const (
	leastTry = 100 * time.Millisecond
	mostTry  = 2 * time.Second
)

// NoLeader is the text of the answer "ask again".
const NoLeader = "no leader"

// onLead commits an entry for a member; only the leader answers.
func (n *Node) onLead(m *request) {
	if !n.cons.leads() {
		return
	}
	go func() {
		r, err := n.commit(m.Data)
		if err != nil {
			r = Result{Err: NoLeader}
		} else if r.Err == "" {
			n.lead.poke() // it may have something follow
		}
		if b, err := json.Marshal(&r); err == nil {
			m.Answer(b)
		}
	}()
}

// commit proposes on this process, which leads.
func (n *Node) commit(b []byte) (Result, error) {
	if _, err := DecodeEntry(b); err != nil {
		return Result{Err: err.Error()}, nil
	}
	r, err := n.cons.propose(b, 5*time.Second)
	if errors.Is(err, errHung) {
		n.cfg.Fatal(err)
	}
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) {
		n.log.Debug("not committed", "err", err)
	}
	return r, err
}

// Kill ends the node the way a lost process ends: connections drop in the
// middle of everything and nothing is handed over. For tests.
func (n *Node) Kill() {
	n.leaving.Store(true)
	if n.conn != nil {
		n.conn.Close()
	}
	n.ctl.Close()
	n.stopAll()
	if n.cons != nil {
		n.cons.kill()
	}
}

// Healthy reports whether the process is alive enough to be left alone, Ready
// whether it follows a ledger that has a leader.
func (n *Node) Healthy() bool { return time.Since(time.Unix(0, n.beaten.Load())) < 5*time.Second }

// Ready reports whether the ledger is followed.
func (n *Node) Ready() bool {
	if n.cons != nil {
		return n.cons.leader() != ""
	}
	return n.ready.Load() && time.Since(time.Unix(0, n.lastFed.Load())) < 3*time.Second
}
