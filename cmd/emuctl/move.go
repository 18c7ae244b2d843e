package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/rocemu/rocemu/coord/client"
	"github.com/spf13/cobra"
)

func (a *app) move() *cobra.Command {
	var f clusterFlags
	return a.command(verb{
		use: "move SLOT NODE", short: "Move a share of the fabric to another process at the next checkpoint",
		long:    "emuctl status lists slots, emuctl nodes the processes. The result does not change.\nA slot also moves by itself when one process was over 1.3 times as busy as the mean for a minute.",
		example: "  emuctl move 2 node3", args: cobra.ExactArgs(2), flags: &f,
		run: func(ctx context.Context, args []string) error {
			slot, err := strconv.Atoi(args[0])
			if err != nil {
				return fmt.Errorf("slot %q: must be a number; emuctl status lists them", args[0])
			}
			return a.onCluster(ctx, &f, func(ctx context.Context, c *client.Client) error {
				at, err := c.Move(ctx, slot, args[1])
				if err != nil {
					return err
				}
				return a.instantSoon(ctx, c, "moves at the checkpoint at", at)
			})
		},
	})
}
