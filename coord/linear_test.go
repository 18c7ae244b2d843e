package coord_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
)

// What the control API promises, as a sequential object: a paused run's step is
// a fetch-and-add of virtual time, and a fault's name can be taken once.
type apiIn struct {
	step clock.Duration // 0 = a fault
	name string
}

type apiOut struct {
	at      clock.Time
	ok      bool
	unknown bool // no answer by the deadline: it may or may not have happened
}

type apiState struct {
	to    clock.Time
	names string // sorted by time of taking
}

var apiModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{apiState{}} },
	Step: func(s, in, out any) []any {
		st, i, o := s.(apiState), in.(apiIn), out.(apiOut)
		next := st
		fits := true
		if i.step > 0 {
			next.to = st.to.Add(i.step)
			fits = o.at == next.to
		} else if o.at < 0 {
			return nil
		} else if taken := strings.Contains(st.names, i.name+" "); taken {
			fits = !o.ok
		} else {
			next.names += i.name + " "
			fits = o.ok
		}
		switch {
		case o.unknown:
			return []any{st, next}
		case fits:
			return []any{next}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// Concurrent clients, the leader killed and started again twice: the answers
// have a sequential explanation, and no retried command counts twice.
func TestCommandsAreLinearizable(t *testing.T) {
	t.Parallel()
	c := newCluster(t, relays{}, true)
	for i := 1; i <= 3; i++ {
		c.start(fmt.Sprint("c", i), true, 3, nil)
	}
	id := c.submit(small, func(s *coord.RunSpec) { s.Members, s.Pause = 3, true })
	c.until("placed", func(s *coord.Status) bool { return s.Run != nil && s.Run.ID == id && s.Run.Phase == coord.Running })
	var mu sync.Mutex
	var ops []porcupine.Operation
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(k), 7))
			for range 20 {
				time.Sleep(time.Duration(r.IntN(80)) * time.Millisecond)
				op := command(c.cl, k, r)
				mu.Lock()
				ops = append(ops, op)
				mu.Unlock()
			}
		}()
	}
	ended := func() int { mu.Lock(); defer mu.Unlock(); return len(ops) }
	for n := range 2 {
		for ended() < 25*(n+1) { // operations go on under each leader
			time.Sleep(5 * time.Millisecond)
		}
		if s := c.until("a leader", func(s *coord.Status) bool { return s.Leader != "" && c.nodes[s.Leader] != nil }); s != nil {
			c.kill(s.Leader)
			c.start(s.Leader, true, 3, nil)
		}
	}
	wg.Wait()
	unknown := 0
	end := time.Now().UnixNano()
	for i := range ops {
		if ops[i].Output.(apiOut).unknown {
			unknown++
			ops[i].Return = end
		}
	}
	if unknown > len(ops)/3 {
		t.Errorf("%d of %d commands had no answer", unknown, len(ops))
	}
	if r := porcupine.CheckOperationsTimeout(apiModel, ops, 10*time.Second); r != porcupine.Ok {
		t.Errorf("the history of %d commands is %s", len(ops), r)
	}
}

// command runs one command, sent twice at once as by an impatient user, and
// returns it with its times.
func command(cl *client.Client, k int, r *rand.Rand) porcupine.Operation {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
	defer cancel()
	var in apiIn
	e := coord.Entry{Cmd: client.NewID(), Kind: coord.KindStep}
	verb := "step"
	if r.IntN(2) == 0 {
		in.step = clock.Duration(1 + r.IntN(5))
		e.At = clock.Time(in.step)
	} else {
		in.name, verb = fmt.Sprint("f", r.IntN(6)), "fault"
		e.Kind, e.Fault = coord.KindFault, &coord.Fault{Name: in.name, Text: "disturb 1 1", Want: clock.Time(clock.Second)}
	}
	t0 := time.Now().UnixNano()
	answers := make(chan apiOut, 2)
	for range 2 {
		e := e
		go func() {
			res, err := cl.Do(ctx, verb, &e)
			answers <- apiOut{at: res.At, ok: err == nil, unknown: errors.Is(err, client.ErrUnreachable)}
		}()
	}
	out, other := <-answers, <-answers
	if out.unknown {
		out = other
	}
	if !other.unknown && other != out {
		out.at = -1 // fits nothing: one command, two answers
	}
	if in.step == 0 {
		out.at = min(out.at, 0)
	}
	return porcupine.Operation{ClientId: k, Input: in, Call: t0, Output: out, Return: time.Now().UnixNano()}
}
