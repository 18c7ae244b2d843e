package coord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/rocemu/rocemu/clock"
)

// Status is what emuctl status shows.
type Status struct {
	Leader   string       `json:"leader,omitempty"`
	Quorum   bool         `json:"quorum"`
	Seq      uint64       `json:"seq"`
	Run      *RunStatus   `json:"run,omitempty"`
	Past     []RunStatus  `json:"past,omitempty"`
	Nodes    []NodeStatus `json:"nodes"`
	Voters   []string     `json:"voters"`
	Answerer string       `json:"answerer"`
}

// RunStatus is a run as seen from outside.
type RunStatus struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	Phase   Phase          `json:"phase"`
	State   string         `json:"state"` // running, paused, waiting for a grant, no quorum, placing: why
	Why     string         `json:"why,omitempty"`
	Virtual clock.Time     `json:"virtual_ps"`
	Grant   clock.Time     `json:"grant_ps"`
	Windows uint64         `json:"windows"`
	Pace    Pace           `json:"pace"`
	Lag     clock.Duration `json:"lag_ps"`
	StopAt  clock.Time     `json:"stop_ps"`
	Faults  []Fault        `json:"faults,omitempty"`
	Ckpt    clock.Time     `json:"checkpoint_ps"` // last committed
	Moves   int            `json:"moves"`
	Slots   []SlotStatus   `json:"slots,omitempty"`
	Digest  string         `json:"digest,omitempty"`
	Work    *Work          `json:"work,omitempty"` // of all slots, once all have told
}

// SlotStatus is one slot: who runs it and how far it is.
type SlotStatus struct {
	Slot    int       `json:"slot"`
	Owner   string    `json:"owner"`
	Next    string    `json:"next,omitempty"` // owner from the next checkpoint on
	Inc     uint64    `json:"incarnation"`
	Devices int       `json:"devices"`
	Report  SlotState `json:"report"`
	Done    bool      `json:"done"`
}

// NodeStatus is one emud.
type NodeStatus struct {
	Member
	Seen  float64 `json:"seen_s"` // since its last heartbeat
	Seq   uint64  `json:"seq"`
	Voter bool    `json:"voter"`
	Leads bool    `json:"leads"`
	Slots []int   `json:"slots"`
	CPU   int64   `json:"cpu_ns"`
	RSS   int64   `json:"rss"`

	Routines int `json:"goroutines"`
}

// fromClients are the entries that emuctl may propose, by verb.
var fromClients = map[string]Kind{
	"submit": KindSubmit, "pause": KindPause, "resume": KindResume, "step": KindStep, "pace": KindPace, "stop": KindStop,
	"fault": KindFault, "save": KindCkptPlan, "cancel": KindFail, "move": KindWish,
}

// serve registers the control services; the ordinary nats tool lists them.
func (n *Node) serve() error {
	s, err := micro.AddService(n.nats.NATS(), micro.Config{
		Name: "emu-coordinator", Version: "1.0.0", Description: "control plane of the RoCEv2 fabric emulator",
		QueueGroup: queueAny, Metadata: map[string]string{"node": n.cfg.Name, "build": n.cfg.Build},
	})
	if err != nil {
		return err
	}
	var errs []error
	for verb, kind := range fromClients {
		errs = append(errs, s.AddEndpoint(verb, micro.HandlerFunc(func(q micro.Request) { go n.command(q, kind) }), micro.WithEndpointSubject(ctlPrefix+verb)))
	}
	for verb, h := range map[string]func([]byte) (any, error){"status": n.onStatus, "run": n.onRun, "blob": n.onBlob, "snapshots": n.onSnapshots, "put": n.onUpload} {
		errs = append(errs, s.AddEndpoint(verb, micro.HandlerFunc(func(q micro.Request) { go n.answer(q, h) }), micro.WithEndpointSubject(ctlPrefix+verb)))
	}
	return errors.Join(errs...)
}

func (n *Node) admit(b []byte, kind Kind) (Result, error) {
	e, past, err := n.decode(b, kind)
	if err != nil || e == nil {
		return past, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 800*time.Millisecond)
	defer cancel()
	r, err := n.propose(ctx, e)
	if err != nil {
		return Result{Err: NoLeader}, nil
	}
	return r, nil
}

// decode reads and checks a command of a kind; nil = it was answered before, and
// so it is now.
func (n *Node) decode(b []byte, kind Kind) (*Entry, Result, error) {
	e, err := DecodeEntry(b)
	switch {
	case err != nil:
		return nil, Result{}, err
	case e.Kind != kind:
		return nil, Result{}, fmt.Errorf("an entry %q on the service for %q", e.Kind, kind)
	case e.Cmd == "":
		return nil, Result{}, fmt.Errorf("a command needs an id")
	}
	if r, ok := n.past(e.Cmd); ok {
		return nil, r, nil
	}
	return e, Result{}, n.check(e)
}

func (n *Node) past(cmd string) (r Result, ok bool) {
	n.rep.View(func(s *State) { r, ok = s.Results[cmd] })
	return r, ok
}

// check refuses what the model cannot take, before it reaches the ledger.
func (n *Node) check(e *Entry) error {
	switch e.Kind {
	case KindSubmit:
		if e.Spec == nil {
			return fmt.Errorf("a submission needs a run")
		}
		e.Spec.Build = n.cfg.Build
		if e.Spec.Restore != "" {
			return nil
		}
		_, err := n.cfg.Model.Layout(e.Spec)
		return err
	case KindFault:
		if e.Fault == nil {
			return fmt.Errorf("a fault needs its text")
		}
		var spec *RunSpec
		var live []Fault
		come := e.faults()
		n.rep.View(func(s *State) {
			if r := s.Run; r != nil {
				c := r.Spec
				spec, live = &c, append(live, r.Faults...)
				for i := range come {
					come[i].Eff = max(come[i].Want, r.Grant)
				}
			}
		})
		if spec == nil {
			return fmt.Errorf("no run is on the cluster")
		}
		return n.cfg.Model.CheckFaults(spec, live, come)
	case KindFail:
		e.Why = "cancelled: " + e.Why
	}
	return nil
}

func (n *Node) onStatus([]byte) (any, error) {
	s := Status{Answerer: n.cfg.Name, Leader: n.cons.leader()}
	s.Quorum = s.Leader != ""
	for v := range n.cons.voters() {
		s.Voters = append(s.Voters, v)
	}
	sort.Strings(s.Voters)
	l := n.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	n.rep.View(func(st *State) {
		s.Seq = st.Seq
		if st.Run != nil {
			r := l.runStatus(st.Run)
			if !s.Quorum && r.Phase == Running {
				r.State = "no quorum: virtual time stands once the grant is used up"
			}
			s.Run = &r
		}
		for _, p := range st.Past {
			s.Past = append(s.Past, l.runStatus(p))
		}
		for _, m := range st.Members {
			s.Nodes = append(s.Nodes, l.nodeStatus(st, m, s.Leader, s.Voters))
		}
	})
	sort.Slice(s.Nodes, func(i, j int) bool { return s.Nodes[i].Name < s.Nodes[j].Name })
	return s, nil
}

// runStatus describes a run; both locks are held.
func (l *leader) runStatus(r *Run) RunStatus {
	x := RunStatus{
		ID: r.Spec.ID, Name: r.Spec.Files[0].Name, Phase: r.Phase, State: string(r.Phase), Why: r.Why, Grant: r.Grant, Pace: r.Pace, StopAt: r.StopAt,
		Faults: append([]Fault(nil), r.Faults...), Moves: r.Moves,
	}
	if k := len(r.Ckpts); k > 0 {
		x.Ckpt = r.Ckpts[k-1].B
	}
	devices := make([]int, len(r.Slots))
	for _, o := range r.Owner {
		if int(o) < len(devices) {
			devices[o]++
		}
	}
	waits := len(r.Slots) > 0
	for i, s := range r.Slots {
		y := SlotStatus{Slot: i, Owner: s.Owner, Next: s.Next, Inc: s.Inc, Devices: devices[i], Done: s.Done != nil}
		if b := l.beats[s.Owner]; b != nil {
			for _, p := range b.Slots {
				if p.Run == r.Spec.ID && p.Slot == i && p.Inc == s.Inc {
					y.Report = p
				}
			}
		}
		waits = waits && y.Report.Want > r.Grant
		x.Virtual, x.Windows = max(x.Virtual, y.Report.M), max(x.Windows, y.Report.N)
		x.Slots = append(x.Slots, y)
	}
	x.Work = workOf(x.Slots)
	switch {
	case r.Phase == Placing:
		x.State = "waits for processes"
	case r.Phase == Running && r.Paused:
		x.State = "paused"
	case r.Phase == Running && waits:
		x.State = "waits for a grant"
	}
	if r.Phase == Running {
		x.Lag = l.grants.lag(r, x.Virtual)
	}
	if r.Phase == Ended {
		x.Virtual, x.Digest = r.Slots[0].Done.At, r.Digest()
	}
	return x
}

// workOf sums what slots have told; nil when one has not.
func workOf(slots []SlotStatus) *Work {
	sum := new(Work)
	for i := range slots {
		w := slots[i].Report.Work
		if w == nil {
			return nil
		}
		sum.Hops, sum.Events, sum.Outstanding = sum.Hops+w.Hops, sum.Events+w.Events, sum.Outstanding+w.Outstanding
	}
	if len(slots) == 0 {
		return nil
	}
	return sum
}

func (l *leader) nodeStatus(s *State, m *Member, leader string, voters []string) NodeStatus {
	x := NodeStatus{Member: *m, Leads: m.Name == leader}
	for _, v := range voters {
		x.Voter = x.Voter || v == m.Name
	}
	if b := l.beats[m.Name]; b != nil {
		x.Seen, x.Seq, x.CPU, x.RSS, x.Routines = time.Since(b.at).Seconds(), b.Seq, b.CPU, b.RSS, b.Routines
	}
	if s.Run != nil {
		for i := range s.Run.Slots {
			if s.Run.Slots[i].Owner == m.Name {
				x.Slots = append(x.Slots, i)
			}
		}
	}
	return x
}

type runRequest struct {
	ID     string `json:"id"` // "" = the current one
	Offset int    `json:"offset"`
}

// onRun answers with a piece of a run's ledger record.
func (n *Node) onRun(b []byte) (any, error) {
	var q runRequest
	if err := json.Unmarshal(b, &q); err != nil {
		return nil, err
	}
	var out []byte
	var err error
	var seq uint64
	n.rep.View(func(s *State) {
		seq = s.Seq
		r := s.Run
		for _, p := range s.Past {
			if p.Spec.ID == q.ID {
				r = p
			}
		}
		if r == nil || q.ID != "" && r.Spec.ID != q.ID {
			err = fmt.Errorf("no run %q", q.ID)
			return
		}
		out, err = json.Marshal(r)
	})
	a := piece(out, q.Offset, seq)
	a.Sum = SumOf(out)
	return a, err
}

func piece(b []byte, off int, seq uint64) syncAnswer {
	a := syncAnswer{Seq: seq, Offset: off, Total: len(b)}
	if off >= 0 && off < len(b) {
		a.Piece = b[off:min(len(b), off+syncPiece)]
	}
	return a
}

type blobRequest struct {
	Sum    string `json:"sum"`
	Offset int    `json:"offset"`
}

// onBlob answers with a piece of a blob.
func (n *Node) onBlob(b []byte) (any, error) {
	var q blobRequest
	if err := json.Unmarshal(b, &q); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if l, ok := n.blobs.(layered); ok && q.Offset > 0 && validSum(q.Sum) { // checked at its first piece, and by who asks
		if p, total, err := l.local.piece(q.Sum, q.Offset); err == nil {
			return syncAnswer{Offset: q.Offset, Total: total, Piece: p}, nil
		}
	}
	x, err := n.blobs.Get(ctx, q.Sum)
	if err != nil {
		return nil, err
	}
	return piece(x, q.Offset, 0), nil
}

// Snapshot is a saved state as listed.
type Snapshot struct {
	Name  string     `json:"name"`
	Run   string     `json:"run"`
	At    clock.Time `json:"at_ps"`
	Bytes int64      `json:"bytes"`
	Slots int        `json:"slots"`
}

func (n *Node) onSnapshots([]byte) (any, error) {
	out := []Snapshot{}
	n.rep.View(func(s *State) {
		for _, v := range s.Saved {
			x := Snapshot{Name: v.Name, Run: v.Run, At: v.Ckpt.B, Slots: len(v.Ckpt.Blobs)}
			for _, b := range v.Ckpt.Blobs {
				x.Bytes += b.Size
			}
			out = append(out, x)
		}
	})
	return out, nil
}
