package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/coord/emu"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

func (a *app) fault() *cobra.Command {
	c := a.command(verb{use: "fault", short: "Inject, list and end faults of a running fabric", example: "  emuctl fault inject link-down leaf1:uplink1 --for 500us"})
	c.AddCommand(a.faultInject(), a.faultList(), a.faultClear())
	return c
}

type injectFlags struct {
	clusterFlags
	At  string `flag:"at" help:"virtual time it begins; default as soon as the cluster allows"`
	For string `flag:"for" help:"how long it lasts; default for ever, or until its count is used up"`
}

func (a *app) faultInject() *cobra.Command {
	var f injectFlags
	return a.command(verb{
		use: "inject TEXT... [--at T] [--for D]", short: "Inject faults, in the text form of a fabric file",
		long: `The words of one fault may be given as they are, or each fault as one quoted
argument. It prints the virtual time every fault got: the asked one, or the end
of what the cluster has already been allowed to run. Several faults get the same
one, all of them or none, unless the text of one has an at= of its own.`,
		example: "  emuctl fault inject drop rnic1:1 dir=out psn_index=3 count=1\n  emuctl fault inject 'link-down leaf1:uplink1' 'loss leaf2:1 probability=1e-3' --for 1ms",
		args:    cobra.MinimumNArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error {
			faults, err := liveFaults(args, f.At, f.For)
			if err != nil {
				return err
			}
			return a.onCluster(ctx, &f.clusterFlags, func(ctx context.Context, c *client.Client) error { return a.inject(ctx, c, faults) })
		},
	})
}

// liveSpan is what --at and --for say of every change.
func liveSpan(at, dur string) (coord.Fault, error) {
	want, err := parseAt(at)
	if err != nil {
		return coord.Fault{}, fmt.Errorf("--at: %w", err)
	}
	span, err := parseAt(dur)
	if err != nil {
		return coord.Fault{}, fmt.Errorf("--for: %w", err)
	}
	if dur != "" && span <= 0 {
		return coord.Fault{}, fmt.Errorf("--for: value %q: must be more than 0; without it what is injected lasts", dur)
	}
	return coord.Fault{Want: want, Firm: at != "", For: clock.Duration(span)}, nil
}

// liveFaults parses the arguments of inject.
func liveFaults(args []string, at, dur string) ([]coord.Fault, error) {
	texts := args
	if !strings.Contains(args[0], " ") {
		texts = []string{strings.Join(args, " ")}
	}
	base, err := liveSpan(at, dur)
	if err != nil {
		return nil, err
	}
	var out []coord.Fault
	for _, t := range texts {
		x, err := topology.ParseFault(t)
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", t, err)
		}
		f := base
		f.Name, f.Text, f.Want, f.Firm = x.Name, t, max(f.Want, x.At), f.Firm || !x.NoAt
		if x.For > 0 { // as its own at
			f.For = x.For
		}
		if f.Name == "" || f.Name == x.Kind {
			f.Name = x.Kind + "-" + client.NewID()[:6]
		}
		out = append(out, f)
	}
	return out, nil
}

type injected struct {
	Name string     `json:"name"`
	Text string     `json:"text"`
	At   clock.Time `json:"at_ps"`
	Wall float64    `json:"expected_s,omitempty"` // real time until it takes effect, as the run goes now
}

// inject gives faults that want the same instant the same one, all of them or
// none; others are asked for one after the other.
func (a *app) inject(ctx context.Context, c *client.Client, faults []coord.Fault) error {
	out := []injected{}
	for _, l := range atOnce(faults) {
		at, err := c.Fault(ctx, l[0], l[1:]...)
		if n := len(out); err != nil && n > 0 {
			err = fmt.Errorf("%w (%d before it: in force)", err, n)
		}
		if err != nil && len(l) == 1 {
			return fmt.Errorf("fault %q: %w", l[0].Text, err)
		}
		if err != nil {
			return fmt.Errorf("none of the %d takes effect: %w", len(l), err)
		}
		wall := untilWall(ctx, c, at)
		for _, f := range l {
			x := injected{Name: f.Name, Text: f.Text, At: at, Wall: wall}
			out = append(out, x)
			if a.json {
				continue
			}
			if err := a.printf("%s at %v%s: %s\n", f.Name, at, soon(x.Wall), f.Text); err != nil {
				return err
			}
		}
	}
	if a.json {
		return a.printJSON(out)
	}
	return nil
}

// atOnce puts faults together when all want the same.
func atOnce(faults []coord.Fault) [][]coord.Fault {
	first := faults[0]
	if !slices.ContainsFunc(faults, func(f coord.Fault) bool { return f.Want != first.Want || f.Firm != first.Firm }) {
		return [][]coord.Fault{faults}
	}
	return slices.Collect(slices.Chunk(faults, 1))
}

// untilWall estimates the real time until a run reaches at, in seconds, from two
// heartbeats of its processes; 0 when it stands, is past it, or says nothing in
// a second.
func untilWall(ctx context.Context, c *client.Client, at clock.Time) float64 {
	var first, last *coord.RunStatus
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s, err := c.Status(ctx)
		if err != nil || s.Run == nil || s.Run.Phase != coord.Running || s.Run.Virtual >= at || s.Run.State == statePaused {
			return 0
		}
		switch {
		case last == nil || s.Run.Windows > last.Windows && first == nil:
			first, last = last, s.Run // begin where a heartbeat has just come
		case first != nil && s.Run.Windows > last.Windows:
			return estimate(last, s.Run, at)
		}
	}
	return 0
}

// estimate goes by the processes' own clocks: how long a heartbeat took to come
// does not matter.
func estimate(a, b *coord.RunStatus, at clock.Time) float64 {
	for i := range min(len(a.Slots), len(b.Slots)) {
		x, y := &a.Slots[i].Report, &b.Slots[i].Report
		if x.Inc == y.Inc && y.M > x.M && y.WallNS > x.WallNS {
			return float64(at-y.M) / float64(y.M-x.M) * float64(y.WallNS-x.WallNS) / 1e9
		}
	}
	return 0
}

// soon puts an estimate into words.
func soon(s float64) string {
	if s <= 0 {
		return ""
	}
	return fmt.Sprintf(" (in about %.2g s of real time)", s)
}

func (a *app) faultList() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "list", short: "List the planned and live faults of the current run", example: "  emuctl fault list --json", args: cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error {
			return a.onCluster(ctx, &f, func(ctx context.Context, c *client.Client) error {
				run, err := c.Run(ctx, "")
				if err != nil {
					return err
				}
				return a.listFaults(run)
			})
		},
	})
}

// faultRow is one line of fault list.
type faultRow struct {
	Name   string     `json:"name"`
	Text   string     `json:"text"`
	At     clock.Time `json:"at_ps"`
	Live   bool       `json:"live"`
	EndsAt clock.Time `json:"ends_ps,omitempty"` // cleared, or by its `for`
}

func (a *app) listFaults(run *coord.Run) error {
	plan, err := new(emu.Model).Plan(&run.Spec)
	if err != nil {
		return err
	}
	rows := []faultRow{}
	for i := range plan.Faults {
		x := &plan.Faults[i]
		r := faultRow{Name: x.Name, Text: x.Kind + " " + x.Target, At: x.At}
		if x.For > 0 {
			r.EndsAt = x.At.Add(x.For)
		}
		rows = append(rows, r)
	}
	for _, x := range run.Faults {
		if !x.Clear {
			r := faultRow{Name: x.Name, Text: x.Text, At: x.Eff, Live: true}
			if span := liveFor(&x); span > 0 {
				r.EndsAt = x.Eff.Add(span)
			}
			rows = append(rows, r)
			continue
		}
		for i := range rows {
			if rows[i].Live && rows[i].Name == x.Name && (rows[i].EndsAt == 0 || x.Eff < rows[i].EndsAt) {
				rows[i].EndsAt = x.Eff
			}
		}
	}
	if a.json {
		return a.printJSON(rows)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tFROM\tUNTIL\tORIGIN\tTEXT")
	for _, r := range rows {
		end, origin := "-", "file"
		if r.EndsAt > 0 {
			end = r.EndsAt.String()
		}
		if r.Live {
			origin = "live"
		}
		fmt.Fprintf(w, "%s\t%v\t%s\t%s\t%s\n", r.Name, r.At, end, origin, r.Text)
	}
	return w.Flush()
}

// liveFor is how long a live fault lasts: as --for says, or its text; 0 without
// an end.
func liveFor(f *coord.Fault) clock.Duration {
	if f.For > 0 {
		return f.For
	}
	x, err := topology.ParseFault(f.Text)
	if err != nil {
		return 0
	}
	return x.For
}

type clearFlags struct {
	clusterFlags
	At string `flag:"at" help:"virtual time it ends, exactly; default as soon as the cluster allows"`
}

func (a *app) faultClear() *cobra.Command {
	return a.ending(verb{
		use: "clear NAME... [--at T]", short: "End live faults",
		long: "Several end at one instant.", example: "  emuctl fault clear link-down-1f00aa",
	})
}

// ending is a verb that ends live faults and changes by their names.
func (a *app) ending(v verb) *cobra.Command {
	var f clearFlags
	v.args, v.flags = cobra.MinimumNArgs(1), &f
	v.run = func(ctx context.Context, args []string) error {
		end, err := liveSpan(f.At, "")
		if err != nil {
			return err
		}
		var ends []coord.Fault
		for _, n := range args {
			end.Name, end.Clear = n, true
			ends = append(ends, end)
		}
		return a.onCluster(ctx, &f.clusterFlags, func(ctx context.Context, c *client.Client) error {
			at, err := c.Fault(ctx, ends[0], ends[1:]...)
			if err != nil {
				return err
			}
			if a.json {
				return a.instant("", at)
			}
			for _, n := range args {
				if err := a.instant(n+" ends at", at); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return a.command(v)
}
