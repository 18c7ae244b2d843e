//go:build ignore

// Recovery checks the protocol of grants, live faults, checkpoints and replay by
// visiting every state of a small world: two shards, three windows, one crash or
// zombie, one fault, two checkpoints, executors that lag behind the ledger.
//
//	go run docs/model/recovery.go            # about 10 million states
//	go run docs/model/recovery.go -break gc  # a known mistake must be found
//
// An executor is one incarnation of one shard. Window k of a shard computes a
// value from its last value, the other shard's window k-1 and whether the fault
// is in force; made remembers the first value ever made for (shard, window), and
// every other incarnation must make the same. That is why repeated batches and
// zombies are harmless. When nothing can move any more, every living current
// executor must have reached the last window: no one starves.
package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"unsafe"
)

const (
	windows = 3
	shards  = 2
	execs   = 3 // the two first incarnations and one successor
	logMax  = windows + 3
)

// Ledger entries.
const (
	grant = 1 + iota
	fault
	commit
)

type entry struct{ kind, arg uint8 }

// Lives of an executor.
const (
	unborn = iota
	alive
	zombie // superseded, and does not know it
	dead
)

type executor struct {
	life, shard  uint8
	k, value     uint8 // windows executed, state after them
	applied      uint8 // ledger entries known
	grant, fault uint8 // as applied; fault is its window + 1
	input        uint8 // the other shard's window k-1, + 1
	kept         [windows]uint8
	reported     [windows]bool // its checkpoint at this boundary is stored
	pad          uint8
}

type world struct {
	log          [logMax]entry
	n            uint8
	grant, fault uint8
	committed    uint8 // boundary of the last committed checkpoint
	born, killed uint8
	current      [shards]uint8
	made         [shards][windows]uint8
	blobValue    [shards][windows]uint8
	blobInput    [shards][windows]uint8
	ex           [execs]executor
}

var broken = flag.String("break", "", "make a mistake: eff, lease, gc, cut, fence, fresh")

type violation string

func main() {
	flag.Parse()
	defer func() {
		if v, ok := recover().(violation); ok {
			fmt.Println("violation:", v)
			os.Exit(1)
		}
	}()
	var w world
	for s := range uint8(shards) {
		w.ex[s] = executor{life: alive, shard: s}
		w.current[s] = s
	}
	w.born = shards
	seen := map[uint64]struct{}{key(&w): {}}
	stack := []world{w}
	for len(stack) > 0 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		moved := false
		moves(&w, func(next world) {
			moved = true
			k := key(&next)
			if _, ok := seen[k]; !ok {
				seen[k] = struct{}{}
				stack = append(stack, next)
			}
		})
		if !moved {
			complete(&w)
		}
		if len(seen)%1_000_000 == 0 {
			fmt.Fprintf(os.Stderr, "%d states\r", len(seen))
		}
	}
	fmt.Printf("%d states, no violation\n", len(seen))
}

func key(w *world) uint64 {
	h := fnv.New64a()
	h.Write((*[unsafe.Sizeof(world{})]byte)(unsafe.Pointer(w))[:])
	return h.Sum64()
}

// complete checks a state in which nothing can move.
func complete(w *world) {
	for i := range w.ex {
		e := &w.ex[i]
		if e.life == alive && e.k != windows {
			panic(violation(fmt.Sprintf("deadlock: executor %d of shard %d waits at window %d for ever: %+v", i, e.shard, e.k, *w)))
		}
	}
}

// moves calls to with every successor of w.
func moves(w *world, to func(world)) {
	ledger(w, to)
	if w.killed == 0 {
		for i := range uint8(shards) {
			crash(w, i, dead, to)
			crash(w, i, zombie, to)
		}
	}
	for i := range w.ex {
		if l := w.ex[i].life; l == alive || l == zombie {
			learn(w, i, to)
			run(w, i, to)
			receive(w, i, to)
			checkpoint(w, i, to)
		}
	}
}

// ledger appends an entry: a grant of one or two windows, the fault, a commit.
func ledger(w *world, to func(world)) {
	put := func(x world, kind, arg uint8) {
		x.log[x.n] = entry{kind, arg}
		x.n++
		to(x)
	}
	for d := uint8(1); d <= 2; d++ {
		if w.grant+d <= windows {
			x := *w
			x.grant += d
			put(x, grant, x.grant)
		}
	}
	if w.fault == 0 && w.grant > 0 && w.grant < windows {
		x := *w
		x.fault = w.grant + 1 // in force from the granted end on
		if *broken == "eff" {
			x.fault = w.grant
		}
		put(x, fault, x.fault)
	}
	for b := w.committed + 1; b < windows; b++ {
		all := true
		for s := range w.current {
			ok := w.ex[w.current[s]].reported[b]
			if *broken == "fence" {
				ok = w.blobValue[s][b] != 0
			}
			all = all && ok
		}
		if all {
			x := *w
			x.committed = b
			put(x, commit, b)
		}
	}
}

// crash ends an executor, or leaves it running unaware, and starts a successor
// from the last committed checkpoint.
func crash(w *world, i, life uint8, to func(world)) {
	x := *w
	x.killed = 1
	old := &x.ex[i]
	old.life = life
	if life == dead {
		old.kept = [windows]uint8{}
	}
	n := executor{life: alive, shard: old.shard, k: x.committed, applied: x.n, grant: x.grant, fault: x.fault}
	if *broken == "fresh" { // starts before it has applied the ledger's faults
		n.fault = 0
	}
	if b := x.committed; b > 0 {
		n.value = x.blobValue[n.shard][b] - 1
		n.input = x.blobInput[n.shard][b]
	}
	x.ex[x.born] = n
	x.current[n.shard] = x.born
	x.born++
	to(x)
}

// learn applies the next ledger entry.
func learn(w *world, i int, to func(world)) {
	if w.ex[i].applied == w.n {
		return
	}
	x := *w
	e := &x.ex[i]
	switch a := x.log[e.applied]; a.kind {
	case grant:
		e.grant = a.arg
	case fault:
		e.fault = a.arg
	case commit: // batches before the cut are collected
		for k := range a.arg {
			e.kept[k] = 0
		}
	}
	e.applied++
	to(x)
}

// run executes a window.
func run(w *world, i int, to func(world)) {
	x := *w
	e := &x.ex[i]
	limit := e.grant
	if *broken == "lease" {
		limit++
	}
	if e.k == windows || e.k >= limit || e.k > 0 && e.input == 0 {
		return
	}
	v := e.value + 1 + e.shard
	if e.fault != 0 && e.fault-1 <= e.k {
		v += 3
	}
	if e.input != 0 {
		v += 2 * (e.input - 1)
	}
	v %= 8
	if m := &x.made[e.shard][e.k]; *m == 0 {
		*m = v + 1
	} else if *m != v+1 {
		panic(violation(fmt.Sprintf("shard %d made window %d twice, differently: %d and %d", e.shard, e.k, *m-1, v)))
	}
	e.value, e.kept[e.k], e.input = v, v+1, 0
	e.k++
	to(x)
}

// receive takes the other shard's last window from whoever still keeps it.
func receive(w *world, i int, to func(world)) {
	e := &w.ex[i]
	if e.k == 0 || e.k == windows || e.input != 0 {
		return
	}
	for j := range w.ex {
		o := &w.ex[j]
		if (o.life == alive || o.life == zombie) && o.shard != e.shard && o.kept[e.k-1] != 0 {
			x := *w
			x.ex[i].input = o.kept[e.k-1]
			to(x)
			return // all copies are equal, or run has found out
		}
	}
}

// checkpoint stores the state before window k, with the input already taken.
func checkpoint(w *world, i int, to func(world)) {
	e := &w.ex[i]
	if e.k == 0 || e.k == windows || e.input == 0 || e.reported[e.k] {
		return
	}
	x := *w
	n := &x.ex[i]
	if b := x.blobValue[n.shard][n.k]; b != 0 && b != n.value+1 {
		panic(violation(fmt.Sprintf("two states of shard %d before window %d differ", n.shard, n.k)))
	}
	n.reported[n.k] = true
	x.blobValue[n.shard][n.k] = n.value + 1
	x.blobInput[n.shard][n.k] = n.input
	if *broken == "cut" { // forgets what was in flight
		x.blobInput[n.shard][n.k] = 1
	}
	if *broken == "gc" { // collects at its own blob, not at the commit
		for k := range n.k {
			n.kept[k] = 0
		}
	}
	to(x)
}
