package coord

import (
	"container/heap"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/rocemu/rocemu/clock"
)

// The simulated cluster: real nodes (agents, leaders, gates, carriers, slots)
// in one bubble of fake time, over a bus, a ledger and stores of the driver's.
// Everything that reaches a node is an event, and the driver delivers one event
// at a time, when all goroutines are blocked: between two events only what the
// first one woke runs. What nodes leave behind (messages, proposals, notes) is
// taken up in sorted order after each event, and only then are random numbers
// drawn, by the driver alone. So equal seeds give equal executions, which the
// trace's hash shows. hashicorp/raft, whose goroutines race by design, is not
// in it: simLedger stands for it, with changes of leader, proposals whose
// outcome is unknown, lagging copies, a hung disk and spans without a quorum. Nor
// are NATS, the services for emuctl and the files of DirBlobs: test/chaos has
// them. Start at [simWorld.drive]; what a seed decides is in [simPlan].

// simEvent is something that the driver may do, not before due.
type simEvent struct {
	due  time.Duration
	seq  int
	to   *simLife // dropped when it is dead, held back while it is paused
	what string
	do   func()
}

type simEvents []*simEvent

func (h simEvents) Len() int { return len(h) }
func (h simEvents) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].seq < h[j].seq
}
func (h simEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *simEvents) Push(x any)   { *h = append(*h, x.(*simEvent)) }
func (h *simEvents) Pop() any {
	o := *h
	x := o[len(o)-1]
	*h = o[:len(o)-1]
	return x
}

// simWorld is one seed's execution.
type simWorld struct {
	seed   uint64
	rng    *rand.Rand
	plan   simPlan
	t0     time.Time
	procs  []*simProc
	led    simLedger
	net    simWeather
	storms int
	events simEvents
	seq    int
	steps  int
	poked  chan struct{}
	trace  simTrace
	client simClient
	saves  simSaves
	harms  map[string]int
	calm   time.Duration // instant of the last harm's end
	bad    []string      // broken invariants
	ckpts  int

	running, began bool // the run is placed; harm to it is planned
	tenders        int

	mu      sync.Mutex // guards what nodes leave for the driver
	out     []simMsg
	props   []*simProposal
	notes   []string
	answers []simAnswer
	fatal   []*simLife
	shared  map[string][]byte
	away    bool // the shared store
	windows map[simStep]simWindow
	batches map[simBatch]uint64
	states  map[simState]string
}

// simTrace is the ordered list of all that happened, as a hash; its last lines
// are kept for reports.
type simTrace struct {
	sum  uint64
	n    int
	tail []string
	to   io.Writer
}

const simTail = 60

func (t *simTrace) add(at time.Duration, s string) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %d ", t.sum, at)
	io.WriteString(h, s)
	t.sum = h.Sum64()
	t.n++
	line := fmt.Sprintf("%12.6f %s", at.Seconds(), s)
	if t.to != nil {
		fmt.Fprintln(t.to, line)
	}
	if len(t.tail) == 2*simTail {
		t.tail = append(t.tail[:0], t.tail[simTail:]...)
	}
	t.tail = append(t.tail, line)
}

func (t *simTrace) String() string {
	return strings.Join(t.tail[max(0, len(t.tail)-simTail):], "\n")
}

func (w *simWorld) now() time.Duration { return time.Since(w.t0) }

// note is a line for the trace from inside a node.
func (w *simWorld) note(format string, a ...any) {
	w.mu.Lock()
	w.notes = append(w.notes, fmt.Sprintf(format, a...))
	w.mu.Unlock()
	w.poke()
}

// violate notes a broken invariant.
func (w *simWorld) violate(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := fmt.Sprintf(format, a...)
	w.bad = append(w.bad, s)
	w.notes = append(w.notes, "VIOLATION "+s)
}

func (w *simWorld) poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// at plans an event of the world itself.
func (w *simWorld) at(in time.Duration, what string, do func()) { w.send(nil, in, what, do) }

// send plans an event for a node.
func (w *simWorld) send(to *simLife, in time.Duration, what string, do func()) {
	w.seq++
	heap.Push(&w.events, &simEvent{w.now() + max(in, 1), w.seq, to, what, do})
}

// draw is a random duration, mostly near lo and seldom near hi.
func (w *simWorld) draw(lo, hi time.Duration) time.Duration {
	x := w.rng.Float64()
	return lo + time.Duration(x*x*float64(hi-lo))
}

func (w *simWorld) chance(p float64) bool { return w.rng.Float64() < p }

// drive runs events until the run is over or a bound is hit; it says why it
// stopped when that is not the run's end.
func (w *simWorld) drive() string {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		synctest.Wait()
		w.collect()
		switch {
		case len(w.bad) > 0:
			return "an invariant broke"
		case w.over():
			return ""
		case w.now() > w.calm+w.plan.patience:
			return fmt.Sprintf("no end %v after the last harm", w.plan.patience)
		case w.steps > simSteps:
			return fmt.Sprintf("no end after %d events", w.steps)
		}
		e := w.events[0] // the client's is always there
		if d := e.due - w.now(); d > 0 {
			timer.Reset(d)
			select {
			case <-timer.C:
			case <-w.poked:
			}
			continue
		}
		heap.Pop(&w.events)
		w.steps++
		switch l := e.to; {
		case l != nil && l.isDead():
			w.trace.add(w.now(), "to nobody: "+e.what)
		case l != nil && l.pause != nil:
			l.held = append(l.held, e)
		default:
			if e.what != "" {
				w.trace.add(w.now(), e.what)
			}
			e.do()
		}
	}
}

const simSteps = 400_000

// collect takes up what nodes did since the last event. Its order is that of
// contents, not of goroutines.
func (w *simWorld) collect() {
	select {
	case <-w.poked:
	default:
	}
	w.mu.Lock()
	out, props, notes, answers, fatal := w.out, w.props, w.notes, w.answers, w.fatal
	w.out, w.props, w.notes, w.answers, w.fatal = nil, nil, nil, nil, nil
	w.mu.Unlock()
	sort.Strings(notes)
	for _, s := range notes {
		w.trace.add(w.now(), s)
	}
	for _, l := range fatal {
		w.kill(l, "fatal")
		w.restart(l.proc, w.draw(50*time.Millisecond, 2*time.Second), false)
	}
	w.route(out)
	sort.SliceStable(props, func(i, j int) bool { return props[i].before(props[j]) })
	for _, p := range props {
		w.proposed(p)
	}
	sort.Slice(answers, func(i, j int) bool { return answers[i].String() < answers[j].String() })
	for _, a := range answers {
		w.answered(a)
	}
}

// over reports whether the ledger has the end of the last run.
func (w *simWorld) over() (end bool) {
	w.led.truth.View(func(s *State) {
		end = s.Run != nil && (s.Run.Phase == Ended && w.saves.next == "" || s.Run.Phase == Failed)
	})
	return end
}

// simProc is a process across its restarts; simLife is one of its lives.
type simProc struct {
	w     *simWorld
	name  string
	index int
	votes bool
	lives int
	life  *simLife // nil while it is down
	files map[string]simFile
	full  bool // writes fail
	gone  bool // it never comes back
}

type simFile struct {
	b  []byte
	at time.Time
}

type simLife struct {
	proc     *simProc
	w        *simWorld
	id       string
	node     *Node
	stop     context.CancelFunc
	done     chan struct{}
	dead     chan struct{}
	once     sync.Once
	pause    chan struct{} // not nil while it is stopped; changed by the driver
	cut      [2]simCut     // of the connection for control and of that for batches
	up       chan struct{} // closed when its connection is renewed
	held     []*simEvent
	subs     []*simSub
	inbox    map[string]chan []byte
	asks     map[string]int
	ops      map[string]int
	leads    bool
	applied  int
	applying bool
	waits    map[int]*simProposal // by the number of their entry
}

func (l *simLife) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

func (l *simLife) die() { l.once.Do(func() { close(l.dead) }) }

// hold stands where a node touches the world: a stopped process stops there.
func (l *simLife) hold() error {
	for {
		l.w.mu.Lock()
		ch := l.pause
		l.w.mu.Unlock()
		if l.isDead() {
			return errSimDead
		}
		if ch == nil {
			return nil
		}
		select {
		case <-ch:
		case <-l.dead:
		}
	}
}

var errSimDead = fmt.Errorf("sim: the process is dead")

// start begins a life of a process.
func (w *simWorld) start(p *simProc) {
	p.lives++
	l := &simLife{
		proc: p, w: w, id: fmt.Sprintf("%s#%d", p.name, p.lives), done: make(chan struct{}), dead: make(chan struct{}), up: make(chan struct{}),
		inbox: map[string]chan []byte{}, asks: map[string]int{}, ops: map[string]int{}, waits: map[int]*simProposal{},
	}
	cfg := Config{
		Name: p.name, Build: "b", Coordinator: p.votes, Cores: 1, Workers: 1, Silence: 2 * time.Second, GiveUp: w.plan.giveUp,
		Retain: w.plan.retain, Data: os.TempDir(), // retained batches lie there, in files without a name
		Model: &simModel{w, l}, Log: simLog, NoSlots: p.votes && w.plan.pure,
		Fatal: func(error) {
			l.die()
			w.mu.Lock()
			w.fatal = append(w.fatal, l)
			w.mu.Unlock()
			w.poke()
		},
	}
	n := newNode(cfg, l.id)
	n.usage = func() usage {
		return usage{cpu: int64(clock.Mix(w.seed, uint64(p.index), 5) % 1000 * uint64(w.now()/1000)), rss: 1}
	}
	n.bus, n.ctl = simData{l}, simControl{l}
	b := layered{local: simDisk{l}, peers: peerBlobs{n.ctl}}
	if w.plan.store {
		b.shared = append(b.shared, jsBlobs{simObjects{l: l}})
	}
	n.blobs = b
	if p.votes {
		n.vote(simVoter{l})
	}
	l.node, p.life = n, l
	if err := n.listen(); err != nil {
		w.violate("%s does not start: %v", l.id, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	go func() { defer close(l.done); _ = n.Run(ctx) }()
	if p.votes {
		w.pump(l)
	}
}

// kill ends a life the way kill -9 does.
func (w *simWorld) kill(l *simLife, why string) {
	w.trace.add(w.now(), fmt.Sprintf("kill %s: %s", l.id, why))
	l.die()
	w.mu.Lock()
	l.pause = nil
	w.mu.Unlock()
	l.node.Kill()
	l.stop()
	synctest.Wait() // its goroutines end before anything else happens
	if l.proc.life == l {
		l.proc.life = nil
	}
	if w.led.leader == l {
		w.lose("its process ended")
	}
}

func (w *simWorld) restart(p *simProc, in time.Duration, wiped bool) {
	what := "start " + p.name
	if wiped {
		what += " with an empty disk"
	}
	w.at(in, what, func() {
		if p.life != nil || p.gone {
			return
		}
		if wiped {
			w.mu.Lock()
			p.files = map[string]simFile{}
			w.mu.Unlock()
		}
		w.start(p)
	})
	w.calm = max(w.calm, w.now()+in)
}
