package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rocemu/rocemu/deploy/compose/composer"
	"github.com/spf13/cobra"
)

type composeFlags struct {
	fileFlags
	Per   string `flag:"per" help:"device: a container for each RNIC, leaf and spine; rack: a leaf with its RNICs. Default by the fabric's size"`
	Out   string `flag:"out,o" help:"directory to write compose.yaml, fabric.yaml and ha.env to; default: the compose file on standard output"`
	NATS  int    `flag:"nats" help:"NATS servers that always run: 1, 3 or 5"`
	Hosts int    `flag:"hosts" help:"machines: one compose file each"`
}

func (a *app) compose() *cobra.Command {
	f := composeFlags{NATS: 1, Hosts: 1}
	return a.command(verb{
		use: "compose FILE... [--per device|rack] [--nats N] [--hosts N] [--out DIR]", short: "Docker Compose files for a fabric",
		long: `Writes what "docker compose up" needs to run the fabric in containers: one for
each device or rack, NATS, a coordinator (three of each under ha.env), keys and
certificates made by a one-shot service, and the submission of the fabric.

Set ROCEMU_SOURCE to the repository when the files do not lie in deploy/compose.`,
		example: "  emuctl compose examples/pod.yaml --per rack --out pod && (cd pod && docker compose up --detach)",
		flags:   &f,
		run:     func(_ context.Context, args []string) error { return a.composeFiles(append(args, f.File...), &f) },
	})
}

func (a *app) composeFiles(files []string, f *composeFlags) error {
	l, err := load(files, f.Set, f.Seed)
	if err != nil {
		return err
	}
	out, err := composer.Generate(l.plan, composer.Options{Per: composer.Unit(f.Per), NATS: f.NATS, Hosts: f.Hosts, Fabric: "fabric.yaml"})
	if err != nil {
		return err
	}
	if f.Out == "" {
		if a.json {
			return a.printJSON(out)
		}
		for _, x := range out {
			if err := a.printf("%s", x.Text); err != nil {
				return err
			}
		}
		return nil
	}
	if err := os.MkdirAll(f.Out, 0o755); err != nil {
		return err
	}
	out = append(out, composer.File{Name: "fabric.yaml", Text: string(l.plan.Resolved())}, composer.File{Name: "ha.env", Text: composer.HAEnv})
	for _, x := range out {
		if err := os.WriteFile(filepath.Join(f.Out, x.Name), []byte(x.Text), 0o644); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if err := a.printf("%s\n", filepath.Join(f.Out, x.Name)); err != nil {
			return err
		}
	}
	return nil
}
