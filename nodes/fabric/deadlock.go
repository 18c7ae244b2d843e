package fabric

import (
	"fmt"
	"sort"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
)

// Node is a paused egress queue: a vertex of the wait-for graph.
type Node struct {
	Dev        int32
	Port, Prio uint8
}

// WaitGraph joins the edges of all devices. It lives outside the actors, in an
// observer between windows.
type WaitGraph struct {
	plan *topology.Plan
	next map[Node][]Node
}

// NewWaitGraph returns an empty graph over a plan's devices.
func NewWaitGraph(plan *topology.Plan) *WaitGraph {
	return &WaitGraph{plan: plan, next: map[Node][]Node{}}
}

// Add adds what device dev reported by WaitEdges: the peer's queue that InPort
// has paused waits for the device's own paused queue.
func (g *WaitGraph) Add(dev int32, edges []WaitEdge) {
	for _, e := range edges {
		in := &g.plan.Devices[dev].Ports[e.InPort-1]
		from := Node{in.Peer, uint8(in.PeerPort), e.InPrio}
		g.next[from] = append(g.next[from], Node{dev, e.Port, e.Prio})
	}
}

func (n Node) less(m Node) bool {
	if n.Dev != m.Dev {
		return n.Dev < m.Dev
	}
	if n.Port != m.Port {
		return n.Port < m.Port
	}
	return n.Prio < m.Prio
}

// Cycles returns the cycles of the graph, one for each knot that a walk in
// order of device, port and priority meets; each starts at its least node.
func (g *WaitGraph) Cycles() [][]Node {
	starts := make([]Node, 0, len(g.next))
	for n := range g.next {
		starts = append(starts, n)
	}
	sort.Slice(starts, func(i, j int) bool { return starts[i].less(starts[j]) })
	w := walk{g: g, state: map[Node]uint8{}}
	for _, n := range starts {
		w.visit(n)
	}
	return w.found
}

type walk struct {
	g     *WaitGraph
	state map[Node]uint8 // 1 = on the path, 2 = done
	path  []Node
	found [][]Node
}

func (w *walk) visit(n Node) {
	switch w.state[n] {
	case 1:
		w.close(n)
		return
	case 2:
		return
	}
	w.state[n] = 1
	w.path = append(w.path, n)
	next := w.g.next[n]
	sort.Slice(next, func(i, j int) bool { return next[i].less(next[j]) })
	for _, m := range next {
		w.visit(m)
	}
	w.path = w.path[:len(w.path)-1]
	w.state[n] = 2
}

func (w *walk) close(n Node) {
	i := len(w.path) - 1
	for w.path[i] != n {
		i--
	}
	c := append([]Node(nil), w.path[i:]...)
	least := 0
	for k := range c {
		if c[k].less(c[least]) {
			least = k
		}
	}
	w.found = append(w.found, append(c[least:len(c):len(c)], c[:least]...))
}

// Names prints a cycle as "sw1:2/3" items: device, egress port, priority.
func (g *WaitGraph) Names(cycle []Node) []string {
	var out []string
	for _, n := range cycle {
		out = append(out, fmt.Sprintf("%s:%d/%d", g.plan.Devices[n.Dev].Name, n.Port, n.Prio))
	}
	return out
}

// DeadlockWatch looks for deadlocks between windows. It asks the devices only
// when an edge may have changed, and reports each cycle once while it lasts.
type DeadlockWatch struct {
	plan  *topology.Plan
	sws   []*Switch
	gen   uint64
	open  map[string]bool
	edges []WaitEdge
}

// NewDeadlockWatch watches the switches that this process hosts.
func NewDeadlockWatch(plan *topology.Plan, sws []*Switch) *DeadlockWatch {
	return &DeadlockWatch{plan: plan, sws: sws, open: map[string]bool{}}
}

// Look returns the cycles that closed since the last look, in the form of
// [WaitGraph.Names]. now is the window's start: every event before it is done.
func (w *DeadlockWatch) Look(now clock.Time) [][]string {
	var gen uint64
	for _, s := range w.sws {
		gen += s.WaitGen()
	}
	if gen == w.gen {
		return nil
	}
	w.gen = gen
	g := NewWaitGraph(w.plan)
	for _, s := range w.sws {
		w.edges = s.WaitEdges(now, w.edges[:0])
		g.Add(s.ID(), w.edges)
	}
	return w.fresh(g)
}

func (w *DeadlockWatch) fresh(g *WaitGraph) (out [][]string) {
	open := map[string]bool{}
	for _, c := range g.Cycles() {
		names := g.Names(c)
		key := strings.Join(names, " ")
		if open[key] = true; !w.open[key] {
			out = append(out, names)
		}
	}
	w.open = open
	return out
}
