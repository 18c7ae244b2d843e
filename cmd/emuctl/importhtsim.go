package main

import (
	"context"
	"fmt"

	"github.com/rocemu/rocemu/topology/htsim"
	"github.com/spf13/cobra"
)

type htsimFlags struct {
	Topology string `flag:"topology" help:"fat-tree topology of htsim (.topo)"`
	Matrix   string `flag:"matrix" help:"connection matrix (.cm)"`
	Unit     string `flag:"unit" help:"what start values count: us or ps; needed when one of them is not 0"`
	Lenient  bool   `flag:"lenient" help:"leave out what has no meaning here, with a note"`
	Out      string `flag:"out,o" help:"fabric file to write; standard output when absent"`
}

func (a *app) importHTSim() *cobra.Command {
	var f htsimFlags
	return a.command(verb{
		use: "htsim --topology F.topo --matrix F.cm --unit us|ps [--lenient] [--out FILE]", short: "Make a fabric file from htsim's topology and connection matrix",
		long:    "Readers of the matrix disagree on the unit of start values, so --unit must say it\nas soon as one of them is not 0. What was changed or ignored goes to standard error.",
		example: "  emuctl import htsim --topology leaf_spine_tiny.topo --matrix incast.cm --unit us --out fabric.yaml\n  emuctl run fabric.yaml",
		args:    cobra.NoArgs, flags: &f,
		run: func(context.Context, []string) error { return a.runImportHTSim(&f) },
	})
}

func (a *app) runImportHTSim(f *htsimFlags) error {
	if f.Topology == "" || f.Matrix == "" {
		return fmt.Errorf("import htsim: --topology and --matrix are needed")
	}
	o := htsim.Options{Unit: f.Unit, Lenient: f.Lenient}
	if err := inputs([]string{f.Topology, f.Matrix}, &o.Topology, &o.Matrix); err != nil {
		return err
	}
	r, err := htsim.Import(o)
	if err != nil {
		return err
	}
	return a.imported(r.YAML, r.Notes, f.Out)
}
