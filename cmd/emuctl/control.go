package main

import (
	"context"
	"fmt"
	"math/big"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

// control lists the verbs that steer a running fabric's time.
func (a *app) control() []*cobra.Command {
	return []*cobra.Command{a.pause(), a.resume(), a.step(), a.pace(), a.stop(), a.move()}
}

// instant prints the virtual time a command got.
func (a *app) instant(what string, at clock.Time) error {
	if a.json {
		return a.printJSON(map[string]int64{"at_ps": int64(at)})
	}
	return a.printf("%s %v\n", what, at)
}

// instantSoon is instant for one that the run comes to by itself: it says how
// long that takes, where it is known.
func (a *app) instantSoon(ctx context.Context, c *client.Client, what string, at clock.Time) error {
	wall := untilWall(ctx, c, at)
	if a.json {
		return a.printJSON(struct {
			At   clock.Time `json:"at_ps"`
			Wall float64    `json:"expected_s,omitempty"`
		}{at, wall})
	}
	return a.printf("%s %v%s\n", what, at, soon(wall))
}

// statePaused is what a status says of a paused run.
const statePaused = "paused"

func (a *app) pause() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "pause", short: "Hold virtual time: every process stops at the same window", example: "  emuctl pause", args: cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error {
			return a.onCluster(ctx, &f, func(ctx context.Context, c *client.Client) error {
				at, err := c.Pause(ctx)
				if err != nil {
					return err
				}
				return a.instant("paused; virtual time runs no further than", at)
			})
		},
	})
}

func (a *app) resume() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "resume", short: "Let a paused fabric go on", example: "  emuctl resume", args: cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error {
			return a.onCluster(ctx, &f, func(ctx context.Context, c *client.Client) error { return c.Resume(ctx) })
		},
	})
}

func (a *app) step() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "step DURATION", short: "Let virtual time advance by a span, then hold it", example: "  emuctl step 10us", args: cobra.ExactArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error {
			d, err := topology.ParseDuration(args[0])
			if err != nil {
				return err
			}
			if d <= 0 {
				return fmt.Errorf("step %s: must be more than 0s", args[0])
			}
			return a.onCluster(ctx, &f, func(ctx context.Context, c *client.Client) error {
				at, err := c.Step(ctx, d)
				if err != nil {
					return err
				}
				return a.instant("virtual time goes on to", at)
			})
		},
	})
}

func (a *app) pace() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "pace FACTOR", short: "Tie virtual time to wall time: virtual = FACTOR × wall; 0 = as fast as can be",
		long:    "The factor decides when things happen, never what. `emuctl status` shows how far the fabric lags behind.",
		example: "  emuctl pace 0.001      # a millisecond a second\n  emuctl pace 1/500", args: cobra.ExactArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error {
			p, err := parsePace(args[0])
			if err != nil {
				return err
			}
			return a.onCluster(ctx, &f, func(ctx context.Context, c *client.Client) error { return c.Pace(ctx, p) })
		},
	})
}

// parsePace reads 0.001 or 1/500, exactly.
func parsePace(s string) (coord.Pace, error) {
	r, ok := new(big.Rat).SetString(s)
	if !ok || r.Sign() < 0 || !r.Num().IsInt64() || !r.Denom().IsInt64() || r.Num().Int64() > 1e6 || r.Denom().Int64() > 1e12 {
		return coord.Pace{}, fmt.Errorf("pace %q: must be a number from 0 to 1000000, as in 0.001 or 1/500", s)
	}
	return coord.Pace{Num: r.Num().Int64(), Den: r.Denom().Int64()}, nil
}

type stopFlags struct {
	clusterFlags
	At     string `flag:"at" help:"virtual time to stop at, exactly; default as soon as the cluster allows"`
	Cancel bool   `flag:"cancel" help:"give the run up, without a result"`
}

func (a *app) stop() *cobra.Command {
	var f stopFlags
	return a.command(verb{
		use: "stop [--at T] [--cancel]", short: "End a running fabric at a virtual time; emuctl result shows what there is by then",
		long:    "A run of `emuctl run` prints its result on its own terminal.",
		example: "  emuctl stop --at 20ms\n  emuctl result", args: cobra.NoArgs, flags: &f,
		run: func(ctx context.Context, _ []string) error {
			at, err := parseAt(f.At)
			if err == nil && f.At != "" && at == 0 {
				err = fmt.Errorf("%s: no run stops before it begins; leave --at out to stop as soon as can be", f.At)
			}
			if err != nil {
				return fmt.Errorf("--at: %w", err)
			}
			return a.onCluster(ctx, &f.clusterFlags, func(ctx context.Context, c *client.Client) error {
				if f.Cancel {
					return c.Cancel(ctx, "emuctl stop --cancel")
				}
				got, err := c.Stop(ctx, at)
				if err != nil {
					return err
				}
				if err := a.instantSoon(ctx, c, "stops at", got); err != nil || a.json || !f.local() {
					return err
				}
				return a.printf("%s\n", localResult)
			})
		},
	})
}

// parseAt reads an instant; "" is 0, as soon as can be.
func parseAt(s string) (clock.Time, error) {
	if s == "" {
		return 0, nil
	}
	d, err := topology.ParseDuration(s)
	if err == nil && d < 0 {
		err = fmt.Errorf("%s: must not be negative", s)
	}
	return clock.Time(d), err
}
