//go:build ignore

// Window checks the window clock with idle skipping, grants and live faults
// (rules W0 to W6) by visiting every state of a small world: two executors that
// apply the ledger as late as they like, two faults, windows of 2.
//
//	go run docs/model/window.go             # the rules hold
//	go run docs/model/window.go -break skip # a known mistake must be found
//
// Checked: both executors run the same windows, no fault is learnt after its
// instant has been executed, no event is left behind by a window's start.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sort"
)

const (
	width = 2
	delay = 2 // of messages between the executors; at least the width
	last  = 14
	far   = 1 << 30
)

var broken = flag.String("break", "", "make a mistake: skip (the window start ignores faults), eff (a fault before the grant's end), trunc (windows cut at the grant's end)")

type entry struct {
	fault bool
	at    int
}

type batch struct {
	next int
	msgs []int
}

type executor struct {
	applied int
	end     int // of the last window
	pending []int
	starts  [][2]int
	sent    []batch
}

type world struct {
	ledger []entry
	grant  int
	faults int
	ex     [2]executor
}

func clone(w world) world {
	w.ledger = slices.Clone(w.ledger)
	for i := range w.ex {
		e := &w.ex[i]
		e.pending, e.starts, e.sent = slices.Clone(e.pending), slices.Clone(e.starts), slices.Clone(e.sent)
	}
	return w
}

func main() {
	flag.Parse()
	w := world{}
	w.ex[0].pending, w.ex[1].pending = []int{0, 7}, []int{1, 11}
	seen := map[string]struct{}{fmt.Sprint(w): {}}
	stack := []world{w}
	for len(stack) > 0 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, next := range moves(w) {
			k := fmt.Sprint(next)
			if _, ok := seen[k]; !ok {
				seen[k] = struct{}{}
				stack = append(stack, next)
			}
		}
	}
	fmt.Printf("%d states, no violation\n", len(seen))
}

func fail(format string, a ...any) {
	fmt.Println("violation:", fmt.Sprintf(format, a...))
	os.Exit(1)
}

func moves(w world) (out []world) {
	if w.grant < last {
		for _, d := range []int{2, 5} {
			x := clone(w)
			x.grant = min(last, x.grant+d)
			x.ledger = append(x.ledger, entry{false, x.grant})
			out = append(out, x)
		}
		if w.faults < 2 && w.grant > 0 {
			x := clone(w)
			at := x.grant
			if *broken == "eff" {
				at--
			}
			x.faults++
			x.ledger = append(x.ledger, entry{true, at})
			out = append(out, x)
		}
	}
	for i := range w.ex {
		if w.ex[i].applied < len(w.ledger) {
			out = append(out, learn(clone(w), i))
		}
		if x, ok := run(clone(w), i); ok {
			out = append(out, x)
		}
	}
	return out
}

// learn applies the next ledger entry; a fault becomes an event.
func learn(w world, i int) world {
	e := &w.ex[i]
	a := w.ledger[e.applied]
	e.applied++
	if a.fault {
		if a.at < e.end {
			fail("executor %d learns at %d of a fault at %d", i, e.end, a.at)
		}
		e.pending = append(e.pending, a.at)
		sort.Ints(e.pending)
	}
	return w
}

// run executes a window when the rules allow it.
func run(w world, i int) (world, bool) {
	e, o := &w.ex[i], &w.ex[1-i]
	n, start := len(e.sent), 0
	if n > 0 {
		if len(o.sent) < n {
			return w, false // W5
		}
		start = min(e.sent[n-1].next, o.sent[n-1].next)
	}
	grant, f := 0, far
	for _, a := range w.ledger[:e.applied] {
		if a.fault && a.at >= e.end {
			f = min(f, a.at)
		} else if !a.fault {
			grant = a.at
		}
	}
	if *broken != "skip" {
		start = min(start, f) // W0
	}
	end := start + width
	if *broken == "trunc" {
		end = min(end, grant)
	}
	if start >= far || end > grant || end <= start { // W1
		return w, false
	}
	events := slices.Clone(e.pending)
	if n > 0 {
		events = append(events, o.sent[n-1].msgs...)
	}
	sort.Ints(events)
	if len(events) > 0 && events[0] < start {
		fail("executor %d starts window %d at %d and leaves an event at %d behind", i, n, start, events[0])
	}
	b := batch{next: far}
	var rest []int
	for _, t := range events {
		if t >= end {
			rest = append(rest, t)
			continue
		}
		if t+delay < last && t%3 != 2 {
			b.msgs = append(b.msgs, t+delay)
		}
	}
	for _, t := range append(slices.Clone(rest), b.msgs...) {
		b.next = min(b.next, t) // W3
	}
	if len(o.starts) > n && o.starts[n] != [2]int{start, end} {
		fail("window %d is %v at one executor and [%d %d] at the other", n, o.starts[n], start, end)
	}
	e.pending, e.end = rest, end
	e.starts = append(e.starts, [2]int{start, end})
	e.sent = append(e.sent, b)
	return w, true
}
