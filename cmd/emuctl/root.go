package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rocemu/rocemu/report"
	"github.com/spf13/cobra"
)

// app is what every verb needs: where to write, and whether for a machine.
type app struct {
	out, err       io.Writer
	outTTY, errTTY bool
	json           bool
}

// exitError ends the program with a code; Err may be nil when everything has
// been said.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// verb describes a command: cobra's part without the repetition.
type verb struct {
	use, short, long, example string
	args                      cobra.PositionalArgs
	flags                     any // pointer to a struct with flag tags, see bind
	run                       func(ctx context.Context, args []string) error
}

// newRoot builds the command tree.
func (a *app) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "emuctl",
		Short: "Emulate RoCEv2 fabrics: RNICs, leaves, spines and cores in virtual time",
		Long: `emuctl runs a fabric of emulated RNICs and switches from one file, exactly and
reproducibly, and tells what happened to every flow, queue and pause.

Exit codes: 0 success; 1 verdict "failed" or "expectation failed"; 2 bad input
or usage; 3 the cluster cannot be reached; 4 verdict "limit"; 5 "stalled".`,
		Example:       "  emuctl run examples/two-racks.yaml\n  emuctl run examples/incast.yaml --json | jq .totals",
		SilenceErrors: true, SilenceUsage: true,
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write one JSON value on standard output, nothing else there")
	imports := a.command(verb{use: "import", short: "Make a fabric file from another tool's files", example: "  emuctl import hpcc --topology topology.txt --flows flow.txt"})
	for _, c := range a.importers() {
		imports.AddCommand(c)
	}
	root.AddCommand(a.verbs()...)
	root.AddCommand(imports)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	return root
}

// command turns a verb into a cobra command.
func (a *app) command(v verb) *cobra.Command {
	c := &cobra.Command{
		Use: v.use, Short: v.short, Long: strings.TrimSpace(v.short + ".\n\n" + v.long),
		Example: v.example, Args: withUsage(v.args), DisableFlagsInUseLine: true,
	}
	if v.run == nil {
		return c
	}
	if v.flags != nil {
		bind(c.Flags(), v.flags)
	}
	c.RunE = func(c *cobra.Command, args []string) error { return v.run(c.Context(), args) }
	return c
}

// execute runs a command line; errors go to standard error.
func (a *app) execute(args []string) int {
	root := a.newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return report.ExitOK
	}
	code := report.ExitUsage
	var e exitError
	if errors.As(err, &e) {
		code = e.code
		if e.err == nil {
			return code
		}
	}
	fmt.Fprintln(a.err, "emuctl:", err)
	return code
}

// printJSON writes v as the one JSON value of a command.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printf writes to standard output.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}
