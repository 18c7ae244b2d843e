package main

import (
	"context"

	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

func (a *app) schema() *cobra.Command {
	return a.command(verb{
		use: "schema", short: "Print the JSON Schema of fabric files, for editors",
		example: "  emuctl schema > fabric.schema.json\n  # then, as the first line of a fabric file:\n  # yaml-language-server: $schema=./fabric.schema.json",
		args:    cobra.NoArgs,
		run: func(context.Context, []string) error {
			return a.printf("%s\n", topology.Schema())
		},
	})
}
