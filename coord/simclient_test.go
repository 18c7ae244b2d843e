package coord

import (
	"fmt"
	"time"
)

// simClient is emuctl: it submits the run and asks for faults and changes, and
// asks again, with the same command id, until it has an answer.
type simClient struct {
	cmds map[string]*simCommand
}

type simCommand struct {
	cmd   string
	entry Entry
	done  bool
	tries int
	first Result // the answer that all later ones must equal
}

// simAnswer is what a coordinator answered.
type simAnswer struct {
	cmd, by string
	r       Result
	err     error
}

func (a simAnswer) String() string {
	return fmt.Sprintf("client has from %s for %s: %v %v", a.by, a.cmd, a.r, a.err)
}

// command begins to ask for an entry at a moment.
func (w *simWorld) command(in time.Duration, e Entry) {
	c := &simCommand{cmd: fmt.Sprintf("c%02d", len(w.client.cmds)), entry: e}
	c.entry.Cmd = c.cmd
	w.client.cmds[c.cmd] = c
	w.again(in, c)
}

// again asks at a moment, unless it is asked before.
func (w *simWorld) again(in time.Duration, c *simCommand) {
	n := c.tries
	w.at(in, "", func() {
		if n == c.tries && !c.done {
			c.tries++
			w.ask(c)
		}
	})
}

// ask sends a command to a coordinator, sometimes to two.
func (w *simWorld) ask(c *simCommand) {
	var up []*simLife
	for _, p := range w.procs {
		if p.votes && p.life != nil && p.life.pause == nil {
			up = append(up, p.life)
		}
	}
	n := 1
	if w.chance(0.2) {
		n = 2
	}
	for range min(n, len(up)) {
		l := up[w.rng.IntN(len(up))]
		w.trace.add(w.now(), fmt.Sprintf("client asks %s for %s %s", l.id, c.cmd, c.entry.Kind))
		b, _ := c.entry.Encode()
		go func() {
			r, err := l.node.admit(b, c.entry.Kind)
			w.mu.Lock()
			w.answers = append(w.answers, simAnswer{c.cmd, l.id, r, err})
			w.mu.Unlock()
			w.poke()
		}()
	}
	w.again(w.draw(time.Second, 4*time.Second), c)
}

// answered takes an answer: what was in the ledger once stays what it was.
func (w *simWorld) answered(a simAnswer) {
	c := w.client.cmds[a.cmd]
	w.trace.add(w.now(), a.String())
	switch {
	case a.err != nil || a.r.Err == NoLeader:
		if !c.done {
			w.again(100*time.Millisecond, c)
		}
	case !c.done:
		c.done, c.first = true, a.r
		if c.entry.Kind == KindSubmit && a.r.Err != "" {
			w.violate("a run was refused: %s", a.r.Err)
		}
		if k := c.entry.Kind; k == KindPause || k == KindStep { // whatever is asked for, the run must go on at last
			d := w.draw(10*time.Millisecond, 4*time.Second)
			w.command(d, Entry{Kind: KindResume, Run: c.entry.Run})
			w.calm = max(w.calm, w.now()+d)
		}
	case c.first != a.r:
		w.violate("command %s was answered %v and then %v", c.cmd, c.first, a.r)
	}
}

// checkCommands: a fault that was asked for any number of times is there once,
// at the instant that was answered.
func (w *simWorld) checkCommands(r *Run) {
	at := map[string]Fault{}
	for _, f := range r.Faults {
		if old, ok := at[f.Text]; ok {
			w.violate("fault %q is in the ledger at %v and at %v", f.Text, old.Eff, f.Eff)
		}
		at[f.Text] = f
	}
	for _, id := range sums(w.client.cmds) {
		c := w.client.cmds[id]
		if c.entry.Run != r.Spec.ID {
			continue
		}
		if at := c.entry.At; c.entry.Kind == KindStop && c.done && c.first.Err == "" && (at == 1 || at > 0 && c.first.At != at || r.StopAt > c.first.At) {
			w.violate("a stop at %v was answered %v, the run stops at %v", at, c.first, r.StopAt)
		}
		if c.entry.Kind != KindFault || !c.done || c.first.Err != "" {
			continue
		}
		for _, x := range c.entry.faults() {
			if f, ok := at[x.Text]; !ok || f.Eff != c.first.At {
				w.violate("fault %q was answered %v, the ledger has %v", x.Text, c.first, f)
			}
		}
	}
}
