package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rocemu/rocemu/report/html"
)

func (a *app) report() *cobra.Command {
	var f struct {
		Out string `flag:"out,o" help:"file to write, - for standard output; default report.html in DIR"`
	}
	return a.command(verb{
		use: "report DIR [-o FILE]", short: "Make one HTML page of a run",
		long: `DIR is an output directory of ` + "`emuctl run --out`" + `. The page needs no network and no
other file: fabric drawing, completion times, queues, pauses and marks over time,
retransmit chains, and the problems in words.`,
		example: "  emuctl run examples/incast.yaml --out out\n  emuctl report out",
		args:    cobra.ExactArgs(1), flags: &f,
		run: func(_ context.Context, args []string) error { return a.runReport(args[0], f.Out) },
	})
}

func (a *app) runReport(dir, out string) error {
	in, err := html.Read(dir)
	if err != nil {
		return err
	}
	if out == "-" {
		return html.Write(a.out, in)
	}
	if out == "" {
		out = filepath.Join(dir, "report.html")
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(file, 1<<16)
	if err := errors.Join(html.Write(b, in), b.Flush(), file.Close()); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"report": out})
	}
	return a.printf("%s\n", out)
}
