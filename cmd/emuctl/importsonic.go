package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/rocemu/rocemu/topology/clab"
	"github.com/rocemu/rocemu/topology/sonic"
	"github.com/spf13/cobra"
)

type sonicFlags struct {
	Lookup string `flag:"lookup" help:"pg_profile_lookup.ini, for configurations that leave lossless profiles to it"`
	Out    string `flag:"out,o" help:"fabric file to write; standard output when absent"`
}

func (a *app) importSonic() *cobra.Command {
	var f sonicFlags
	return a.command(verb{
		use: "sonic DIR|FILE... [--lookup F] [--out FILE]", short: "Make a fabric file from SONiC configurations",
		long: `Files with DEVICE_METADATA are devices, one each; files without it (rendered
buffers or qos JSON) belong to every device. A directory stands for its .json
files. Ports are numbered in the order of their names, and differences between
ports are kept. What is ignored goes to standard error, with --json into the
object.`,
		example: "  emuctl import sonic config_db.json --lookup pg_profile_lookup.ini --out fabric.yaml\n  emuctl import sonic configs/",
		args:    cobra.MinimumNArgs(1), flags: &f,
		run: func(_ context.Context, args []string) error { return a.runImportSonic(&f, args) },
	})
}

func (a *app) runImportSonic(f *sonicFlags, args []string) error {
	files, err := jsonFiles(args)
	if err != nil {
		return err
	}
	var lookup *sonic.Lookup
	if f.Lookup != "" {
		text, err := os.ReadFile(f.Lookup)
		if err != nil {
			return err
		}
		if lookup, err = sonic.ParseLookup(f.Lookup, text); err != nil {
			return err
		}
	}
	sws, err := sonic.Devices(files, lookup)
	if err != nil {
		return err
	}
	var notes []string
	for _, s := range sws {
		for _, n := range s.Notes {
			notes = append(notes, strings.TrimPrefix(s.Host+": "+n, ": "))
		}
	}
	return a.imported(sonic.Fabric(sws), notes, f.Out)
}

// jsonFiles reads files, and the .json files of directories in name order.
func jsonFiles(args []string) ([]sonic.File, error) {
	var names []string
	for _, arg := range args {
		st, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			names = append(names, arg)
			continue
		}
		in, err := filepath.Glob(filepath.Join(arg, "*.json"))
		if err != nil {
			return nil, err
		}
		if len(in) == 0 {
			return nil, fmt.Errorf("%s: no .json files", arg)
		}
		sort.Strings(in)
		names = append(names, in...)
	}
	var out []sonic.File
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			return nil, err
		}
		out = append(out, sonic.File{Name: n, Text: text})
	}
	return out, nil
}

// imported writes a fabric file and the notes on it.
func (a *app) imported(yaml []byte, notes []string, out string) error {
	if out != "" {
		if err := os.WriteFile(out, yaml, 0o644); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(map[string]any{"fabric": string(yaml), "notes": append([]string{}, notes...)})
	}
	for _, n := range notes {
		fmt.Fprintln(a.err, "note:", n)
	}
	if out == "" {
		return a.printf("%s", yaml)
	}
	return nil
}

type clabFlags struct {
	Out string `flag:"out,o" help:"fabric file to write; standard output when absent"`
}

func (a *app) importClab() *cobra.Command {
	var f clabFlags
	return a.command(verb{
		use: "clab FILE [--out FILE]", short: "Make a fabric file from a containerlab topology",
		long: `Nodes take their role from the label role (leaf, spine, core, rnic), else from
name, kind and place. Links take rate and length from the labels (or vars) speed,
in Mb/s or as 100G, and length, as 100m.`,
		example: "  emuctl import clab pod.clab.yml --out fabric.yaml",
		args:    cobra.ExactArgs(1), flags: &f,
		run: func(_ context.Context, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			r, err := clab.Import(args[0], text)
			if err != nil {
				return err
			}
			return a.imported(r.YAML, r.Notes, f.Out)
		},
	})
}

type exportFlags struct {
	fileFlags
	Device string `flag:"device" help:"switch to export; the only one when absent"`
	Out    string `flag:"out,o" help:"file to write; standard output when absent"`
}

func (a *app) exports() *cobra.Command {
	c := a.command(verb{use: "export", short: "Write settings in another tool's format", example: "  emuctl export sonic fabric.yaml --device leaf1"})
	c.AddCommand(a.exportSonic())
	return c
}

func (a *app) exportSonic() *cobra.Command {
	var f exportFlags
	return a.command(verb{
		use: "sonic FILE... [--device NAME] [--out FILE]", short: "Write a switch's settings as SONiC config_db.json",
		long:    "Buffers, PFC, ECN, maps, scheduling and watchdog of one switch, port by port. What\nconfig_db cannot say is told on standard error. `sonic: FILE` in a fabric file, or\n`emuctl import sonic`, reads it back to the same settings.",
		example: "  emuctl export sonic examples/two-racks.yaml --device leaf1 > config_db.json",
		args:    cobra.MinimumNArgs(1), flags: &f,
		run: func(_ context.Context, args []string) error { return a.runExportSonic(&f, args) },
	})
}

func (a *app) runExportSonic(f *exportFlags, args []string) error {
	l, err := load(append(args, f.File...), f.Set, f.Seed)
	if err != nil {
		return err
	}
	var names []string
	for i := range l.plan.Devices {
		if l.plan.Devices[i].Switch != nil {
			names = append(names, l.plan.Devices[i].Name)
		}
	}
	name := f.Device
	if name == "" {
		if len(names) != 1 {
			return fmt.Errorf("export sonic: --device is needed; there are %s", strings.Join(names[:min(len(names), 20)], ", "))
		}
		name = names[0]
	}
	d := l.plan.Device(name)
	if d == nil {
		return fmt.Errorf("--device %q: no such device; switches: %s", name, strings.Join(names[:min(len(names), 20)], ", "))
	}
	s, err := l.plan.Sonic(d)
	if err != nil {
		return err
	}
	b, err := sonic.Export(s)
	if err != nil {
		return errors.Join(fmt.Errorf("export of %s", name), err)
	}
	for _, n := range s.Notes {
		fmt.Fprintln(a.err, "note:", n)
	}
	if f.Out != "" {
		return os.WriteFile(f.Out, b, 0o644)
	}
	return a.printf("%s", b)
}
