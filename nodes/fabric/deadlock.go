package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

// Node is a paused egress queue: a vertex of the wait-for graph.
type Node struct {
	Dev  int32
	Port uint16
	Prio uint8
}

func (n Node) compare(m Node) int {
	return cmp.Or(cmp.Compare(n.Dev, m.Dev), cmp.Compare(n.Port, m.Port), cmp.Compare(n.Prio, m.Prio))
}

// Deadlock is a cycle of paused queues none of which can ever send again
// unless frames are dropped. It starts at its least node; At is the instant
// the last of its waits began.
type Deadlock struct {
	At    clock.Time
	Cycle []Node
}

// Names prints the cycle as "sw1:2/3" items: device, egress port, priority.
func (d *Deadlock) Names(plan *topology.Plan) []string {
	var out []string
	for _, n := range d.Cycle {
		out = append(out, fmt.Sprintf("%s:%d/%d", plan.Devices[n.Dev].Name, n.Port, n.Prio))
	}
	return out
}

// group is a stopped PG in the joint graph.
type group struct {
	*StoppedGroup
	dev   int32
	stuck bool
}

// waitGraph joins the states of all devices. A queue waits for the PG at the
// far end of its cable; a PG waits for the queues that hold its frames.
type waitGraph struct {
	plan  *topology.Plan
	nodes []Node // of stuck, sorted
	since map[Node]clock.Time
	waits map[Node]*group // queue → the PG that paused it, when a switch did
	stuck map[Node]bool
	all   []*group
}

func newWaitGraph(plan *topology.Plan, ws []WaitState) *waitGraph {
	g := &waitGraph{plan: plan, since: map[Node]clock.Time{}, waits: map[Node]*group{}, stuck: map[Node]bool{}}
	for i := range ws {
		for _, q := range ws[i].Queues {
			g.since[Node{ws[i].Dev, q.Port, q.Prio}] = q.Since
		}
	}
	for i := range ws {
		for k := range ws[i].Groups {
			x := &group{StoppedGroup: &ws[i].Groups[k], dev: ws[i].Dev}
			g.all = append(g.all, x)
			p := &plan.Devices[x.dev].Ports[x.Port-1]
			for m := x.Prios; m != 0; m &= m - 1 {
				n := Node{p.Peer, uint16(p.PeerPort), uint8(firstBit(m))}
				// A pause older than the XOFF belongs to an XOFF before it: a resume
				// is on the way.
				if at, ok := g.since[n]; ok && at >= x.Since {
					g.waits[n], g.stuck[n] = x, true
				}
			}
		}
	}
	g.settle()
	for n := range g.stuck {
		g.nodes = append(g.nodes, n)
	}
	slices.SortFunc(g.nodes, Node.compare)
	return g
}

// settle keeps the queues that can never send again: the greatest set in which
// each is paused by a PG all of whose frames wait in queues of the set, and
// which would stay in XOFF even when everything else in its memory has gone.
func (g *waitGraph) settle() {
	for {
		g.mark()
		var free []Node
		for n := range g.stuck {
			if !g.waits[n].stuck {
				free = append(free, n)
			}
		}
		if len(free) == 0 {
			return
		}
		for _, n := range free {
			delete(g.stuck, n)
		}
	}
}

// mark finds the PGs that keep their XOFF given the stuck queues.
func (g *waitGraph) mark() {
	type memory struct {
		dev   int32
		slice uint16
	}
	held := map[memory]int64{}
	for _, x := range g.all {
		x.stuck = true
		for _, h := range x.Held {
			x.stuck = x.stuck && g.stuck[Node{x.dev, h.Port, h.Prio}]
		}
		if x.stuck {
			held[memory{x.dev, x.Slice}] += x.Shared
		}
	}
	for _, x := range g.all {
		if x.stuck && held[memory{x.dev, x.Slice}] <= x.ResumeAt {
			x.stuck = false
		}
	}
}

// next lists the queues that a queue waits for, in order, with the instant
// each wait began.
func (g *waitGraph) next(n Node) (to []Node, since []clock.Time) {
	x := g.waits[n]
	for _, h := range x.Held {
		m := Node{x.dev, h.Port, h.Prio}
		to = append(to, m)
		since = append(since, max(g.since[n], x.Since, h.Since, g.since[m]))
	}
	return to, since
}

// Deadlocks returns the deadlocks in the joint state of devices, one for each
// cycle that a walk in order of device, port and priority closes.
func Deadlocks(plan *topology.Plan, ws []WaitState) []Deadlock {
	g := newWaitGraph(plan, ws)
	w := walk{g: g, state: map[Node]uint8{}}
	for _, n := range g.nodes {
		w.visit(n)
	}
	return w.found
}

type walk struct {
	g     *waitGraph
	state map[Node]uint8 // 1 = on the path, 2 = done
	path  []Node
	since []clock.Time // of the wait that led to path[i]
	found []Deadlock
}

func (w *walk) visit(n Node) {
	w.state[n] = 1
	w.path = append(w.path, n)
	to, since := w.g.next(n)
	for i, m := range to {
		w.since = append(w.since, since[i])
		switch w.state[m] {
		case 0:
			w.visit(m)
		case 1:
			w.close(m)
		}
		w.since = w.since[:len(w.since)-1]
	}
	w.path = w.path[:len(w.path)-1]
	w.state[n] = 2
}

func (w *walk) close(n Node) {
	i := slices.Index(w.path, n)
	c := slices.Clone(w.path[i:])
	at := slices.Max(w.since[i:])
	least := 0
	for k := range c {
		if c[k].compare(c[least]) < 0 {
			least = k
		}
	}
	w.found = append(w.found, Deadlock{at, append(c[least:len(c):len(c)], c[:least]...)})
}

// Waiting tells what switches wait for, each change once.
type Waiting struct {
	plan *topology.Plan
	sws  []*Switch
	last []WaitState // by sws
	anew bool        // what was told last is not known
}

// NewWaiting is for switches that wait for nothing yet, in order of device.
func NewWaiting(plan *topology.Plan, sws []*Switch) *Waiting {
	return &Waiting{plan: plan, sws: sws, last: make([]WaitState, len(sws))}
}

// Changed returns the states at now that differ from those at the last call.
// Every event before now is done and none after it.
func (w *Waiting) Changed(now clock.Time) (out []WaitState) {
	for i, s := range w.sws {
		if x := s.Waits(w.plan, now); w.anew || !x.equal(&w.last[i]) {
			w.last[i] = x
			out = append(out, x)
		}
	}
	w.anew = false
	return out
}

// Forget makes the next call return every switch.
func (w *Waiting) Forget() { w.anew = true }

// DeadlockWatch looks for deadlocks now and then and reports each once. It
// works on what switches tell of their waits, whichever processes they run in.
// What it reports hardly depends on when it looks: a deadlock stays until
// frames are dropped, a watchdog takes 100 ms for that at least, and the instant
// it closed is read from the devices' state.
type DeadlockWatch struct {
	plan  *topology.Plan
	waits []WaitState // of who waits, in order of device
	seen  map[string]bool
}

// NewDeadlockWatch begins with nobody waiting.
func NewDeadlockWatch(plan *topology.Plan) *DeadlockWatch {
	return &DeadlockWatch{plan: plan, seen: map[string]bool{}}
}

// Set takes what a device waits for now.
func (w *DeadlockWatch) Set(s WaitState) {
	i, known := slices.BinarySearchFunc(w.waits, s.Dev, func(x WaitState, dev int32) int { return cmp.Compare(x.Dev, dev) })
	switch {
	case known && len(s.Groups) == 0:
		w.waits = slices.Delete(w.waits, i, i+1)
	case known:
		w.waits[i] = s
	case len(s.Groups) > 0:
		w.waits = slices.Insert(w.waits, i, s)
	}
}

// Look returns deadlocks that were not returned before.
func (w *DeadlockWatch) Look() (fresh []Deadlock) {
	if len(w.waits) < 2 {
		return nil
	}
	for _, d := range Deadlocks(w.plan, w.waits) {
		if key := w.key(&d); !w.seen[key] {
			w.seen[key] = true
			fresh = append(fresh, d)
		}
	}
	return fresh
}

// Known are deadlocks that were returned before.
func (w *DeadlockWatch) Known(ds []Deadlock) {
	for i := range ds {
		w.seen[w.key(&ds[i])] = true
	}
}

func (w *DeadlockWatch) key(d *Deadlock) string {
	return fmt.Sprint(d.At, strings.Join(d.Names(w.plan), " "))
}
