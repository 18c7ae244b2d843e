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

// DeadlockWatch looks for deadlocks between windows, now and then, and only
// when one may have come; it reports each once. What it reports does not depend
// on when it looks: a deadlock stays until frames are dropped, a watchdog takes
// 100 ms for that at least, and the instant it closed is read from the devices'
// state.
type DeadlockWatch struct {
	plan *topology.Plan
	sws  []*Switch
	gen  uint64
	seen map[string]bool
}

// NewDeadlockWatch watches switches; all of a fabric, or the answer is only
// about the cycles within them.
func NewDeadlockWatch(plan *topology.Plan, sws []*Switch) *DeadlockWatch {
	return &DeadlockWatch{plan: plan, sws: sws, seen: map[string]bool{}}
}

// Look returns deadlocks that were not returned before. Every event before now
// is done and none after it. Most calls do nothing.
func (w *DeadlockWatch) Look(now clock.Time) (fresh []Deadlock) {
	var gen uint64
	for _, s := range w.sws {
		gen += s.wait.gen
	}
	if gen == w.gen {
		return nil
	}
	w.gen = gen
	if !w.suspect(now) {
		return nil
	}
	var ws []WaitState
	for _, s := range w.sws {
		if x := s.Waits(now); len(x.Groups) > 0 {
			ws = append(ws, x)
		}
	}
	for _, d := range Deadlocks(w.plan, ws) {
		key := fmt.Sprint(d.At, strings.Join(d.Names(w.plan), " "))
		if !w.seen[key] {
			w.seen[key] = true
			fresh = append(fresh, d)
		}
	}
	return fresh
}

// suspect is the cheap question before: does a set of queues wait for itself,
// memory apart? Only PGs between switches matter for that.
func (w *DeadlockWatch) suspect(now clock.Time) bool {
	var ws []WaitState
	for _, s := range w.sws {
		if !s.waiting(now) {
			continue
		}
		ports := s.plan.Ports
		ws = append(ws, s.waits(now, func(n int) bool { return w.plan.Devices[ports[n-1].Peer].Switch != nil }))
	}
	if len(ws) < 2 {
		return false
	}
	for i := range ws {
		for k := range ws[i].Groups {
			ws[i].Groups[k].ResumeAt = -1
		}
	}
	return len(newWaitGraph(w.plan, ws).nodes) > 0
}
