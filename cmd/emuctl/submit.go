package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	flowtime "github.com/rocemu/rocemu/telemetry/split"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

type submitFlags struct {
	fileFlags
	clusterFlags
	Members    int    `flag:"members" help:"processes to wait for and to use; 0 = those that are up"`
	Batch      bool   `flag:"batch" help:"long grants of virtual time: a live fault takes seconds to land, a change of leader is not noticed"`
	Pause      bool   `flag:"pause" help:"start paused"`
	Checkpoint string `flag:"checkpoint" help:"wall time between checkpoints, as in 10s; 0s = none"`
	IfIdle     bool   `flag:"if-idle" help:"do nothing when the cluster has a run already: for a service that starts again"`
	Wait       bool   `flag:"wait" help:"wait for the end and print the result"`
	Out        string `flag:"out,o" help:"with --wait: directory for result.json and the rest"`
}

func (a *app) submit() *cobra.Command {
	var f submitFlags
	return a.command(verb{
		use: "submit FILE... [--members N] [--wait] [--nats URL --creds FILE]", short: "Start a run on a cluster",
		long: `Resolves and checks the files here, then gives the run to the cluster, which
places racks and spines on its processes. The run goes on when this command,
its terminal, or any process of the cluster ends. It prints the run's id.`,
		example: "  emuctl submit examples/pod.yaml --nats nats://10.0.0.1:4222\n  emuctl submit examples/pod.yaml --wait --json",
		args:    cobra.ArbitraryArgs, flags: &f,
		run: func(ctx context.Context, args []string) error { return a.submitRun(ctx, append(args, f.File...), &f) },
	})
}

func (a *app) submitRun(ctx context.Context, files []string, f *submitFlags) error {
	l, err := load(files, f.Set, f.Seed)
	if err != nil {
		return err
	}
	s := specOf(l.plan)
	s.Members, s.Batch, s.Pause, s.Series, s.Splits = f.Members, f.Batch, f.Pause, true, true
	if f.Checkpoint != "" {
		d, err := topology.ParseDuration(f.Checkpoint)
		if err != nil {
			return fmt.Errorf("--checkpoint: %w", err)
		}
		if s.CkptMS = int(time.Duration(d/1000) / time.Millisecond); s.CkptMS == 0 {
			s.CkptMS = -1
		}
	}
	var id string
	err = a.onCluster(ctx, &f.clusterFlags, func(ctx context.Context, c *client.Client) error {
		if f.IfIdle {
			if st, err := c.Status(ctx); err != nil || st.Run != nil {
				if err == nil {
					id = st.Run.ID
				}
				return err
			}
		}
		id, err = c.Submit(ctx, s)
		return err
	})
	if err != nil || !f.Wait {
		if err == nil && a.json {
			return a.printJSON(map[string]string{"run": id})
		}
		if err == nil {
			return a.printf("run %s\n", id)
		}
		return err
	}
	return a.waiting(ctx, &f.clusterFlags, func(ctx context.Context, c *client.Client) error { return a.fetchResult(ctx, c, id, f.Out, true) })
}

// specOf is a resolved plan as it is submitted: one file that names no others.
func specOf(p *topology.Plan) coord.RunSpec {
	name := p.Name
	if name == "" {
		name = "fabric"
	}
	return coord.RunSpec{Files: []coord.File{{Name: name + ".yaml", Text: string(p.Resolved())}}}
}

type resultFlags struct {
	clusterFlags
	Run string `flag:"run" help:"id of the run; default the current or last one"`
	Out string `flag:"out,o" help:"directory for result.json, flows.csv and the rest"`
}

func (a *app) result() *cobra.Command {
	var f resultFlags
	return a.command(verb{
		use: "result [--run ID] [--out DIR]", short: "Wait for the end of a cluster's run and print its result",
		long:    "For a cluster, or a run that lasts. What `emuctl run` began ends with it, and its\nresult is on that command's terminal and in the directory of its --out.",
		example: "  emuctl result --json | jq .totals", args: cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error {
			err := a.waiting(ctx, &f.clusterFlags, func(ctx context.Context, c *client.Client) error {
				id, err := knownRun(ctx, c, f.Run)
				if err != nil {
					return err
				}
				return a.fetchResult(ctx, c, id, f.Out, false)
			})
			if errors.Is(err, client.ErrNothing) || errors.Is(err, client.ErrOver) {
				return exitError{report.ExitCluster, fmt.Errorf("%w\n%s", err, localResult)}
			}
			return err
		},
	})
}

// localResult says where the result of a run is whose cluster ended with it.
const localResult = "the result of `emuctl run` is where that ran: on its terminal and in the directory of its --out, which `emuctl report DIR` shows"

// knownRun is the id of a run that the cluster knows: the current or last one
// for "". A coordinator may lag behind who submitted the run, so no is believed
// when it is said for a second.
func knownRun(ctx context.Context, c *client.Client, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for since := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		s, err := c.Status(ctx)
		if err != nil {
			return "", err
		}
		runs := s.Past
		if s.Run != nil {
			runs = append(runs, *s.Run)
		}
		switch {
		case id == "" && s.Run == nil:
			return "", errors.New("no run is on the cluster; emuctl submit starts one")
		case id == "":
			return s.Run.ID, nil
		case slices.ContainsFunc(runs, func(r coord.RunStatus) bool { return r.ID == id }):
			return id, nil
		}
		if time.Since(since) > time.Second {
			return "", noSuchRun(id, runs)
		}
	}
}

// noSuchRun names the runs that there are.
func noSuchRun(id string, runs []coord.RunStatus) error {
	if len(runs) == 0 {
		return fmt.Errorf("no such run: %q; the cluster has none", id)
	}
	known := make([]string, len(runs))
	for i := range runs {
		known[i] = fmt.Sprintf("%s (%s, %s)", runs[i].ID, runs[i].Name, runs[i].Phase)
	}
	return fmt.Errorf("no such run: %q; the cluster knows, oldest first, %s", id, strings.Join(known, ", "))
}

// fetchResult waits for the run, merges its parts, judges and prints; collector
// says that its chains go to where the file's telemetry.otlp says.
func (a *app) fetchResult(ctx context.Context, c *client.Client, id, out string, collector bool) error {
	var dir *report.Dir
	if out != "" {
		var err error
		if dir, err = report.OpenDir(out); err != nil {
			return exitError{report.ExitFailed, err}
		}
	}
	g := gathering{run: id, events: out != "", collector: collector}
	res, err := a.collect(ctx, c, &g)
	if err != nil {
		return err
	}
	if dir != nil {
		if err := errors.Join(dir.Write(res), g.watch.WriteDir(out)); err != nil {
			return exitError{report.ExitFailed, err}
		}
	}
	return a.showResult(res)
}

// gathering is what collect needs to know, and what it tells beside the result.
type gathering struct {
	run       string
	known     *topology.Plan // nil: resolved from the run's files
	expect    *report.Expect // compiled for known; nil = not yet
	events    bool           // list the events
	collector bool           // export to telemetry.otlp
	tick      func(*coord.Status)
	ended     <-chan struct{} // closed when the run is over; nil = nobody tells

	interrupted func() bool // the user broke it off; nil = never

	follow *follower // where the run is observed live
	watch  *spreadWatch
	cost   emu.Cost
}

// collect waits for a run and makes its result.
func (a *app) collect(ctx context.Context, c *client.Client, g *gathering) (*report.Result, error) {
	run, err := c.WaitOr(ctx, g.run, g.ended, g.tick)
	if err != nil {
		return nil, err
	}
	if g.follow != nil {
		g.watch = g.follow.end()
	}
	if run.Phase != coord.Ended {
		return nil, exitError{report.ExitFailed, fmt.Errorf("run %s failed: %s", g.run, run.Why)}
	}
	if g.known == nil {
		if g.known, err = new(emu.Model).Plan(&run.Spec); err != nil {
			return nil, err
		}
	}
	fetch := func(sum string) ([]byte, error) { return c.Blob(ctx, sum) }
	if g.watch == nil && g.follow != nil { // it ended before anybody looked
		g.watch = watchSpread(g.known, g.follow.w, len(run.Slots), g.events)
	}
	if g.watch == nil {
		var to sinks
		if g.collector {
			to.collector = g.known.Telem.OTLP
		}
		w, err := newWatcher(g.known, epochOf(run), to)
		if err != nil {
			return nil, err
		}
		g.watch = watchSpread(g.known, w, len(run.Slots), g.events)
	}
	res, plan, cost, err := g.watch.complete(run, fetch)
	if err != nil {
		return nil, exitError{report.ExitFailed, err}
	}
	g.cost = cost
	if g.events && g.watch.unsplit != nil {
		fmt.Fprintf(a.err, "warning: no %s: %v\n", flowtime.FileName, g.watch.unsplit)
	}
	res.Detail.Resolved = plan.Resolved()
	warn(res, topology.Lint(plan))
	if g.interrupted != nil && g.interrupted() && cutShort(res) {
		return res, nil
	}
	if g.expect != nil && len(run.Faults) == 0 {
		return res, g.expect.Judge(res)
	}
	return res, sim.Judge(plan, res)
}
