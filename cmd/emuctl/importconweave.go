package main

import (
	"context"
	"fmt"

	"github.com/rocemu/rocemu/topology/hpcc"
	"github.com/spf13/cobra"
)

type conweaveFlags struct {
	Topology string   `flag:"topology" help:"topology file of the ns-3 ConWeave simulator"`
	Flows    []string `flag:"flows" help:"flow file; may be given several times"`
	Config   string   `flag:"config" help:"configuration file"`
	Lenient  bool     `flag:"lenient" help:"take what is consistent and list what was skipped"`
	Out      string   `flag:"out,o" help:"fabric file to write; standard output when absent"`
}

func (a *app) importConWeave() *cobra.Command {
	var f conweaveFlags
	return a.command(verb{
		use: "conweave --topology F --flows F... [--config F] [--lenient] [--out FILE]", short: "Make a fabric file from ns-3 ConWeave files",
		long:    "The topology is HPCC's; a flow row is src dst priority bytes start(s). What was\nchanged, skipped or ignored goes to standard error, with --json into the object.",
		example: "  emuctl import conweave --topology leaf_spine_128_100G_OS2.txt --flows flows.txt --out fabric.yaml\n  emuctl run fabric.yaml",
		args:    cobra.NoArgs, flags: &f,
		run: func(context.Context, []string) error { return a.runImportConWeave(&f) },
	})
}

func (a *app) runImportConWeave(f *conweaveFlags) error {
	if f.Topology == "" || len(f.Flows) == 0 {
		return fmt.Errorf("import conweave: --topology and --flows are needed")
	}
	o := hpcc.Options{Tool: hpcc.ConWeave, Lenient: f.Lenient, More: make([]hpcc.File, len(f.Flows)-1)}
	into := []*hpcc.File{&o.Topology, &o.Config, &o.Flows}
	names := append([]string{f.Topology, f.Config}, f.Flows...)
	for i := range o.More {
		into = append(into, &o.More[i])
	}
	if err := inputs(names, into...); err != nil {
		return err
	}
	r, err := hpcc.Import(o)
	if err != nil {
		return err
	}
	return a.imported(r.YAML, r.Notes, f.Out)
}
