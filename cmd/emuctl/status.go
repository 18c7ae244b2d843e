package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/spf13/cobra"
)

func (a *app) status() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "status [--nats URL --creds FILE]", short: "Show a cluster's run: virtual time, grant, pace, who hosts what",
		example: "  emuctl status\n  emuctl status --json | jq .run.virtual_ps", args: cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error {
			return a.onCluster(ctx, &f, func(ctx context.Context, c *client.Client) error {
				s, err := c.Status(ctx)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(s)
				}
				return a.showStatus(s)
			})
		},
	})
}

func (a *app) showStatus(s *coord.Status) error {
	leader := s.Leader
	if !s.Quorum {
		leader = "none: no quorum, virtual time stands once the grant is used up"
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "leader\t%s\nvoters\t%s\nledger\t%d entries\n", leader, strings.Join(s.Voters, ", "), s.Seq)
	if r := s.Run; r != nil {
		fmt.Fprintf(w, "run\t%s (%s)\nstate\t%s\n", r.ID, r.Name, r.State)
		if r.Why != "" {
			fmt.Fprintf(w, "why\t%s\n", r.Why)
		}
		fmt.Fprintf(w, "virtual\t%v, granted to %v, window %d\n", r.Virtual, r.Grant, r.Windows)
		if r.Pace.Num > 0 {
			fmt.Fprintf(w, "pace\t%g × wall time, %v behind\n", float64(r.Pace.Num)/float64(r.Pace.Den), r.Lag)
		}
		if r.StopAt != clock.Never {
			fmt.Fprintf(w, "stops at\t%v\n", r.StopAt)
		}
		fmt.Fprintf(w, "checkpoint\t%v\nmoves\t%d\n", r.Ckpt, r.Moves)
		if r.Digest != "" {
			fmt.Fprintf(w, "digest\t%s\n", r.Digest)
		}
	} else {
		fmt.Fprintf(w, "run\tnone\n")
	}
	if err := w.Flush(); err != nil || s.Run == nil || len(s.Run.Slots) == 0 {
		return err
	}
	fmt.Fprintf(w, "\nSLOT\tOWNER\tGEN\tDEVICES\tSTATE\tWINDOW\tWINDOWS/S\tWAITING\tB/WINDOW\tRESENT\n")
	for _, x := range s.Run.Slots {
		p := x.Report
		wall := float64(p.WallNS) / 1e9
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%s\t%d\t%.0f\t%.0f%%\t%.0f\t%d\n", x.Slot, x.Owner, x.Inc, x.Devices, slotState(s.Run, &x), p.N,
			ratio(float64(p.Windows), wall), 100*ratio(float64(p.WaitNS)/1e9, wall), ratio(float64(p.BytesOut), float64(p.Windows)), p.Resent)
	}
	return w.Flush()
}

// slotState says what a slot does; nothing moves once the run has ended.
func slotState(run *coord.RunStatus, x *coord.SlotStatus) string {
	state := x.Report.State
	switch {
	case run.Phase == coord.Failed:
		return string(run.Phase)
	case x.Done || run.Phase == coord.Ended:
		return string(coord.Ended)
	case x.Next == "":
		return state
	case state == "":
		return "moves to " + x.Next
	}
	return state + ", moves to " + x.Next
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (a *app) nodes() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "nodes [--nats URL --creds FILE]", short: "List a cluster's processes: role, slots, load, last heartbeat",
		example: "  emuctl nodes --json | jq '.[].name'", args: cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error {
			return a.onCluster(ctx, &f, func(ctx context.Context, c *client.Client) error {
				s, err := c.Status(ctx)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(s.Nodes)
				}
				return a.showNodes(s)
			})
		},
	})
}

func (a *app) showNodes(s *coord.Status) error {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tROLE\tCORES\tSLOTS\tDEVICES\tLEDGER\tSEEN\tCPU\tRSS\tBUILD")
	for _, n := range s.Nodes {
		state, role := "up", "member"
		if !n.Up {
			state = "lost: " + n.Why
		}
		switch {
		case n.Leads:
			role = "leader"
		case n.Voter:
			role = "voter"
		}
		slots := strings.Trim(fmt.Sprint(n.Slots), "[]")
		if n.NoSlots {
			slots = "none"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%.1fs ago\t%v\t%d MiB\t%s\n", n.Name, state, role, n.Cores, slots,
			strings.Join(n.Devices, ","), n.Seq, n.Seen, time.Duration(n.CPU).Round(time.Millisecond), n.RSS>>20, n.Build)
	}
	return w.Flush()
}
