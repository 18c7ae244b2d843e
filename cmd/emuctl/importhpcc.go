package main

import (
	"context"
	"fmt"
	"os"

	"github.com/rocemu/rocemu/topology/hpcc"
	"github.com/spf13/cobra"
)

type hpccFlags struct {
	Topology string `flag:"topology" help:"topology file of the ns-3 HPCC simulator"`
	Flows    string `flag:"flows" help:"flow file"`
	Config   string `flag:"config" help:"configuration file"`
	Lenient  bool   `flag:"lenient" help:"take what is consistent and list what was skipped"`
	Out      string `flag:"out,o" help:"fabric file to write; standard output when absent"`
}

func (a *app) importHPCC() *cobra.Command {
	var f hpccFlags
	return a.command(verb{
		use: "hpcc --topology F --flows F [--config F] [--lenient] [--out FILE]", short: "Make a fabric file from an ns-3 HPCC topology and flow file",
		long:    "Files that contradict themselves or one another are refused with every reason and\nline; --lenient takes what is consistent. What was changed, skipped or ignored goes\nto standard error, with --json into the object.",
		example: "  emuctl import hpcc --topology topology.txt --flows flow.txt --config config.txt --out fabric.yaml\n  emuctl run fabric.yaml",
		args:    cobra.NoArgs, flags: &f,
		run: func(context.Context, []string) error { return a.runImportHPCC(&f) },
	})
}

func (a *app) runImportHPCC(f *hpccFlags) error {
	if f.Topology == "" || f.Flows == "" {
		return fmt.Errorf("import hpcc: --topology and --flows are needed")
	}
	o := hpcc.Options{Lenient: f.Lenient}
	if err := inputs([]string{f.Topology, f.Flows, f.Config}, &o.Topology, &o.Flows, &o.Config); err != nil {
		return err
	}
	r, err := hpcc.Import(o)
	if err != nil {
		return err
	}
	return a.imported(r.YAML, r.Notes, f.Out)
}

// inputs reads the files that have a name.
func inputs(names []string, into ...*hpcc.File) error {
	for i, name := range names {
		if name == "" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		*into[i] = hpcc.File{Name: name, Text: text}
	}
	return nil
}
