package main

import (
	"context"

	"github.com/rocemu/rocemu/coord"
	"github.com/rocemu/rocemu/coord/client"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

// setLive changes settings of a running fabric: a live fault of kind set.
func (a *app) setLive() *cobra.Command {
	var f injectFlags
	return a.command(verb{
		use: "set PATH=VALUE... [--at T] [--for D]", short: "Change switch and NIC settings of a running fabric",
		long: `A path is that of the fabric file, such as switches.leaf.ecn.kmin or
rnics.devices.rnic3.qp.timeout; what cannot change while the fabric runs is
refused with the list of what can. It prints the virtual time and the name every
change got: with --for the old value comes back by itself, with
emuctl revert NAME at once. Each setting is a change of its own that comes as
soon as it can, and has to fit what is in force then; --at T gives several one
instant.`,
		example: "  emuctl set switches.leaf.ecn.kmin=50KB --at 1ms --for 2ms\n  emuctl set rnics.all.dcqcn.rpg_ai_rate=200Mbps",
		args:    cobra.MinimumNArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error {
			changes, err := liveChanges(args, f.At, f.For)
			if err != nil {
				return err
			}
			return a.onCluster(ctx, &f.clusterFlags, func(ctx context.Context, c *client.Client) error { return a.inject(ctx, c, changes) })
		},
	})
}

// liveChanges parses the arguments of set.
func liveChanges(args []string, at, dur string) ([]coord.Fault, error) {
	base, err := liveSpan(at, dur)
	if err != nil {
		return nil, err
	}
	var out []coord.Fault
	for _, s := range args {
		x, err := topology.ParseSet(s)
		if err != nil {
			return nil, err
		}
		f := base
		f.Name, f.Text = "set-"+client.NewID()[:6], x.String()
		out = append(out, f)
	}
	return out, nil
}

// revert ends live changes: what was there before is back.
func (a *app) revert() *cobra.Command {
	c := a.faultClear()
	c.Use, c.Short, c.Example = "revert NAME... [--at T]", "Undo changes made by set", "  emuctl revert set-1f00aa"
	c.Long = "What would be there without the change is in force again: the value of another\nchange that lasts, or the file's. Refused where other changes need this one."
	return c
}
