package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

//go:embed starter.yaml
var starter []byte

func (a *app) initFile() *cobra.Command {
	var f struct {
		Force bool `flag:"force,f" help:"overwrite an existing file"`
	}
	return a.command(verb{
		use: "init [FILE]", short: "Write a commented fabric file to start from",
		long:    "FILE is fabric.yaml by default; - writes to standard output.",
		example: "  emuctl init lab.yaml\n  emuctl run lab.yaml",
		args:    cobra.MaximumNArgs(1), flags: &f,
		run: func(_ context.Context, args []string) error {
			path := "fabric.yaml"
			if len(args) > 0 {
				path = args[0]
			}
			return a.writeStarter(path, f.Force)
		},
	})
}

func (a *app) writeStarter(path string, force bool) error {
	if path == "-" {
		return a.printf("%s", starter)
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	w, err := os.OpenFile(path, mode, 0o644)
	if err != nil {
		return fmt.Errorf("init: %w (--force overwrites)", err)
	}
	if _, err := w.Write(starter); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"file": path})
	}
	return a.printf("wrote %s; try: emuctl validate %s, emuctl run %s\n", path, path, path)
}
