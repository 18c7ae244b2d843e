package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/spf13/cobra"
)

func (a *app) snapshot() *cobra.Command {
	c := a.command(verb{use: "snapshot", short: "Save, list and restore the whole fabric at a virtual time", example: "  emuctl snapshot save before-the-cut\n  emuctl snapshot restore before-the-cut"})
	c.AddCommand(a.snapshotSave(), a.snapshotList(), a.snapshotRestore())
	return c
}

type saveFlags struct {
	clusterFlags
	At    string `flag:"at" help:"virtual time of the snapshot; default as soon as the cluster allows"`
	Force bool   `flag:"force" help:"replace a snapshot of the same name"`
}

func (a *app) snapshotSave() *cobra.Command {
	var f saveFlags
	return a.command(verb{
		use: "save NAME [--at T] [--force]", short: "Save the running fabric under a name",
		long: `The snapshot is taken at the first window that starts at or after the instant,
without stopping the run; a paused one has to go on. An instant that may have
been run is refused, and so is a name that there is, of this run or an earlier
one: with --force the new snapshot takes its place. The command returns when it
is stored.`,
		example: "  emuctl snapshot save half-way --at 5ms", args: cobra.ExactArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error {
			at, err := parseAt(f.At)
			if err != nil {
				return fmt.Errorf("--at: %w", err)
			}
			e := coord.Entry{Name: args[0], At: at, Firm: f.At != "", New: !f.Force}
			return a.connected(ctx, &f.clusterFlags, func(c *client.Client) error { return a.save(ctx, c, &f, e) })
		},
	})
}

func (a *app) save(ctx context.Context, c *client.Client, f *saveFlags, e coord.Entry) error {
	wait, err := f.patience(10 * time.Second)
	if err != nil {
		return err
	}
	sctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	asked, err := c.Save(sctx, e)
	if err != nil {
		return err
	}
	told := false
	for {
		s, kept, err := saved(ctx, c, e.Name, &asked)
		if err != nil {
			return fmt.Errorf("the snapshot at %v was asked for; whether it is stored cannot be told: %w", asked.At, err)
		}
		if kept != nil {
			return a.showSaved(e.Name, kept.At, &asked)
		}
		if r := s.Run; r == nil || r.ID != asked.Run || r.Phase == coord.Ended || r.Phase == coord.Failed {
			return fmt.Errorf("run %s ended before the snapshot at %v was stored", asked.Run, asked.At)
		}
		if s.Run.State == statePaused && !told {
			told = true
			fmt.Fprintf(a.err, "emuctl: the fabric is paused at %v; the snapshot is taken when it comes to a window at or after %v: let it go on with emuctl resume or emuctl step\n", s.Run.Virtual, asked.At)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// showSaved tells where a snapshot was taken, and whose place it took.
func (a *app) showSaved(name string, at clock.Time, asked *coord.Result) error {
	type replaced struct {
		Run string     `json:"run"`
		At  clock.Time `json:"at_ps"`
	}
	out := struct {
		At       clock.Time `json:"at_ps"`
		Replaced *replaced  `json:"replaced,omitempty"`
	}{At: at}
	said := ""
	if asked.OldRun != "" {
		out.Replaced = &replaced{asked.OldRun, asked.OldAt}
		said = fmt.Sprintf(", in place of that of run %s at %v", asked.OldRun, asked.OldAt)
	}
	if a.json {
		return a.printJSON(out)
	}
	return a.printf("saved %s at %v%s\n", name, at, said)
}

// saveSilence is how long the coordinators may be silent while a snapshot is
// waited for: a leader is elected meanwhile.
const saveSilence = 30 * time.Second

// saved looks for a snapshot that was asked for; nil = it is not stored, and was
// not when s was told. A run's snapshots of one name follow one another, so a
// later one is one that was taken later than asked, or over it.
func saved(ctx context.Context, c *client.Client, name string, asked *coord.Result) (s *coord.Status, kept *coord.Snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, saveSilence)
	defer cancel()
	if s, err = c.Status(ctx); err != nil {
		return nil, nil, err
	}
	l, err := c.Snapshots(ctx)
	for i := range l {
		if x := &l[i]; x.Name == name && x.Run == asked.Run && x.At >= asked.At {
			kept = x
		}
	}
	return s, kept, err
}

func (a *app) snapshotList() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "list", short: "List saved snapshots", example: "  emuctl snapshot list", args: cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error {
			return a.onCluster(ctx, &f, func(ctx context.Context, c *client.Client) error {
				l, err := c.Snapshots(ctx)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(l)
				}
				w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tAT\tRUN\tSLOTS\tBYTES")
				for _, s := range l {
					fmt.Fprintf(w, "%s\t%v\t%s\t%d\t%d\n", s.Name, s.At, s.Run, s.Slots, s.Bytes)
				}
				return w.Flush()
			})
		},
	})
}

type restoreFlags struct {
	clusterFlags
	Pause bool `flag:"pause" help:"start paused, to inject faults first"`
}

func (a *app) snapshotRestore() *cobra.Command {
	var f restoreFlags
	return a.command(verb{
		use: "restore NAME [--pause]", short: "Start a new run from a snapshot: what if, from a point in time",
		long:    "The current run must be over. With --pause faults can be injected before time goes on.",
		example: "  emuctl snapshot restore half-way --pause\n  emuctl fault inject link-down leaf1:uplink1\n  emuctl resume", args: cobra.ExactArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error {
			return a.onCluster(ctx, &f.clusterFlags, func(ctx context.Context, c *client.Client) error {
				id, err := c.Submit(ctx, coord.RunSpec{Restore: args[0], Pause: f.Pause, Files: []coord.File{{Name: args[0]}}})
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]string{"run": id})
				}
				return a.printf("run %s\n", id)
			})
		},
	})
}
