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
refused with the list of what can. Several settings change at one instant, all of
them or none: --at, or as soon as the cluster allows. It prints that virtual time
and the name every change got: with --for the old value comes back by itself,
with emuctl revert NAME at once.`,
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
	return a.ending(verb{
		use: "revert NAME... [--at T]", short: "Undo changes made by set",
		long: `What would be there without the change is back: the value of another change that
is still active, or the fabric file's. NAME is what emuctl set printed; emuctl
fault list has it, too. Several are undone at one instant, all of them or none; a
change that another one needs is not.`,
		example: "  emuctl set switches.leaf.ecn.kmin=50KB      # prints set-1f00aa at …\n  emuctl revert set-1f00aa",
	})
}
