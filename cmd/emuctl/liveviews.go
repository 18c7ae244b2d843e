package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/nodes/rnic"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/chain"
	"github.com/rocemu/rocemu/topology"
)

// viewFlags say what a view is of: the output directory of a run, or the
// current run of a cluster.
type viewFlags struct {
	Dir string `flag:"dir,f" help:"output directory of a run; default the current run of the cluster that is named or current, else this directory"`
	clusterFlags
}

// inDir says that the view is of a directory, which then is in Dir: one that is
// named, or this one where no cluster is.
func (f *viewFlags) inDir() bool {
	if f.Dir != "" {
		return true
	}
	if _, err := f.target(); err == nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(".", "result.json")); err != nil {
		return false // the error about the cluster says more
	}
	f.Dir = "."
	return true
}

// liveRun is a run of a cluster under view.
type liveRun struct {
	c    *client.Client
	st   *coord.RunStatus
	plan *topology.Plan
	run  *coord.Run
}

// onRun calls do with the current run of a cluster.
func (a *app) onRun(ctx context.Context, f *clusterFlags, do func(ctx context.Context, r *liveRun) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return a.connected(ctx, f, func(c *client.Client) error {
		r := &liveRun{c: c}
		qctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := r.refresh(qctx); err != nil {
			return err
		}
		var err error
		if r.run, err = c.Run(qctx, r.st.ID); err != nil {
			return err
		}
		known, err := new(emu.Model).Plan(&r.run.Spec)
		if err != nil {
			return err
		}
		if r.plan, err = emu.WithFaults(known, r.run.Faults); err != nil {
			return err
		}
		return do(ctx, r)
	})
}

// refresh asks how far the run is.
func (r *liveRun) refresh(ctx context.Context) error {
	s, err := r.c.Status(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.Run == nil:
		return errors.New("no run is on the cluster; emuctl submit starts one")
	case s.Run.Phase == coord.Placing:
		return errors.New("the run waits for processes; there is nothing to see yet")
	case s.Run.Phase == coord.Failed:
		return fmt.Errorf("the run failed: %s", s.Run.Why)
	}
	r.st = s.Run
	return nil
}

func (r *liveRun) ended() bool { return r.st.Phase == coord.Ended }

// counters reads the run's counters now, or of its end. Slots that moved while
// they were asked are asked again.
func (r *liveRun) counters(ctx context.Context) (s *counters.Snapshot, apart bool, err error) {
	for try := 0; ; try++ {
		qctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		if err = r.refresh(qctx); err == nil && r.ended() {
			cancel()
			s, err = r.final(ctx)
			return s, false, err
		}
		if err == nil {
			s, apart, err = lookCounters(qctx, r.c, r.plan, r.st)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, client.ErrIncomplete) && !errors.Is(err, client.ErrOver) {
			again := r.refresh(qctx)
			if errors.Is(again, client.ErrOver) { // it ended in between
				cancel()
				return nil, false, again
			}
		}
		cancel()
		if !errors.Is(err, client.ErrIncomplete) || try == 2 {
			return s, apart, err
		}
	}
}

// final makes the counters of an ended run.
func (r *liveRun) final(ctx context.Context) (*counters.Snapshot, error) {
	run, err := r.c.Run(ctx, r.st.ID)
	if err != nil {
		return nil, err
	}
	parts, err := emu.Parts(run, func(sum string) ([]byte, error) { return r.c.Blob(ctx, sum) })
	if err != nil {
		return nil, err
	}
	none := emu.NewNotes(r.plan, len(run.Slots)) // counters are not in them
	res, _, _, err := emu.ResultOf(r.plan, run, none, parts)
	if err != nil {
		return nil, err
	}
	return counters.FromResult(res), nil
}

// head says what a view is of.
func (a *app) head(r *liveRun, at clock.Time, apart bool) error {
	if a.json {
		return nil
	}
	note := ""
	if apart {
		note = "; its processes did not meet at one window"
	}
	state := r.st.State
	if r.ended() {
		state = "ended"
	}
	return a.printf("%s at %v virtual, %s%s\n", r.plan.Name, at, state, note)
}

// liveCounters is `counters` of a running fabric.
func (a *app) liveCounters(ctx context.Context, f *counterFlags, where string) error {
	return a.onRun(ctx, &f.clusterFlags, func(ctx context.Context, r *liveRun) error {
		s, apart, err := r.counters(ctx)
		if err != nil {
			return err
		}
		if f.Watch {
			return a.watchCounters(ctx, r, s, f, where)
		}
		vals, err := a.values(s, where, func(p counters.Point) bool { return f.Zero || p.Value != 0 })
		if err == nil {
			err = a.head(r, s.At, apart)
		}
		if err != nil {
			return err
		}
		return a.showValues(vals)
	})
}

// liveShow is `show` of a running fabric.
func (a *app) liveShow(ctx context.Context, f *clusterFlags, what, where string, zero bool) error {
	return a.onRun(ctx, f, func(ctx context.Context, r *liveRun) error {
		s, apart, err := r.counters(ctx)
		if err == nil {
			err = a.head(r, s.At, apart)
		}
		if err != nil {
			return err
		}
		drops := map[string]uint64{}
		for _, p := range s.Points {
			if p.ID == counters.Drops {
				drops[p.IndexName()] += uint64(p.Value)
			}
		}
		return a.runShow(s, drops, what, where, zero)
	})
}

// liveTrace tells the chains of a running fabric as far as they have come.
func (a *app) liveTrace(ctx context.Context, f *clusterFlags, flow string, most int, each bool) error {
	return a.onRun(ctx, f, func(ctx context.Context, r *liveRun) error {
		dir := chain.NewDirectory(r.plan)
		var chains []*chain.Chain
		asm := chain.New(dir, func(c *chain.Chain) { chains = append(chains, c) })
		if err := r.records(ctx, func(b []record.Record) { asm.Add(b) }); err != nil {
			return err
		}
		asm.Finish(r.st.Virtual)
		all := make([]chain.Line, len(chains))
		for i, c := range chains {
			all[i] = c.Line(dir)
		}
		known := false
		for i := range r.plan.Flows {
			n := dir.FlowName(int32(i))
			known = known || n == flow || dir.Line(int32(i)) == flow
		}
		if flow != "" && !known {
			return noFlow(flow, r.plan.Name, lineNames(r.plan))
		}
		if err := a.head(r, r.st.Virtual, false); err != nil {
			return err
		}
		return a.tellChains(ofFlow(all, flow), most, each)
	})
}

// lineNames are the names of the workload's lines.
func lineNames(p *topology.Plan) (names []string) {
	for i := range p.Lines {
		names = append(names, p.Lines[i].Name)
	}
	return names
}

// records hands over all records of a run so far.
func (r *liveRun) records(ctx context.Context, take func([]record.Record)) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	notes := emu.NewNotes(r.plan, len(r.st.Slots))
	notes.Records = take
	fetch := func(sum string) ([]byte, error) { return r.c.Blob(ctx, sum) }
	if r.ended() {
		run, err := r.c.Run(ctx, r.st.ID)
		if err != nil {
			return err
		}
		return notes.Collect(run, fetch)
	}
	for {
		was := notes.Cursor(0)
		seen, err := r.c.Look(ctx, len(r.st.Slots), notes.Ask(r.st.ID))
		if err == nil {
			err = notes.Take(seen, fetch)
		}
		// Long logs come in several answers; the last one reaches the present.
		if err != nil || notes.Cursor(0)+2*64 > seen[0].N || notes.Cursor(0) == was {
			return err
		}
	}
}

// liveQP shows the queue pairs of an RNIC, or one, as they stand.
func (a *app) liveQP(ctx context.Context, f *clusterFlags, device, qpn string) error {
	return a.onRun(ctx, f, func(ctx context.Context, r *liveRun) error {
		k, err := rnicNamed(r.plan, device)
		if err != nil {
			return err
		}
		if r.ended() {
			return errors.New("the run has ended: emuctl result --out DIR, then emuctl qp -d DIR")
		}
		cs, err := r.queuePairs(ctx, device)
		if err != nil {
			return err
		}
		if qpn == "" {
			return a.showQPs(qpRows(r.plan, cs, k))
		}
		n, err := parseQPN(qpn)
		if err != nil {
			return err
		}
		for i := range cs {
			if cs[i].QPN != n {
				continue
			}
			c := contextOf(r.plan, &cs[i], k)
			if a.json {
				return a.printJSON(c)
			}
			return a.printf("%s QP 0x%x, %s, to %s QP 0x%x\n%s\n", device, n, c.Role, c.Peer, c.PeerQPN, contextText(&c))
		}
		return fmt.Errorf("%s has no QP 0x%x; `emuctl qp %s` lists them", device, n, device)
	})
}

func (r *liveRun) queuePairs(ctx context.Context, device string) ([]rnic.QPContext, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	seen, err := r.c.Look(ctx, len(r.st.Slots), coord.Look{Run: r.st.ID, What: emu.AskQPs, Arg: emu.Arg(device)})
	if err != nil {
		return nil, err
	}
	return emu.QueuePairs(seen)
}
