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
	for _, x := range []struct {
		name string
		into *hpcc.File
	}{{f.Topology, &o.Topology}, {f.Flows, &o.Flows}, {f.Config, &o.Config}} {
		if x.name == "" {
			continue
		}
		text, err := os.ReadFile(x.name)
		if err != nil {
			return err
		}
		*x.into = hpcc.File{Name: x.name, Text: text}
	}
	r, err := hpcc.Import(o)
	if err != nil {
		return err
	}
	if f.Out != "" {
		if err := os.WriteFile(f.Out, r.YAML, 0o644); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(map[string]any{"fabric": string(r.YAML), "notes": append([]string{}, r.Notes...)})
	}
	for _, n := range r.Notes {
		fmt.Fprintln(a.err, "note:", n)
	}
	if f.Out == "" {
		return a.printf("%s", r.YAML)
	}
	return nil
}
