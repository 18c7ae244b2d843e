package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rocemu/rocemu/deploy/compose/composer"
	"github.com/spf13/cobra"
)

type composeFlags struct {
	fileFlags
	Per   string `flag:"per" help:"device: a container for each RNIC, leaf and spine; rack: a leaf with its RNICs. Default by the fabric's size"`
	Out   string `flag:"out,o" help:"directory to write compose.yaml, ha.env and, unless it is there, fabric.yaml to; default: the compose file on standard output"`
	NATS  int    `flag:"nats" help:"NATS servers, and as many coordinators, that always run: 1, 3 or 5; default 1, on three machines or more 3"`
	Hosts int    `flag:"hosts" help:"machines: one compose file each, and hosts.env that says what to do"`
}

func (a *app) compose() *cobra.Command {
	f := composeFlags{Hosts: 1}
	return a.command(verb{
		use: "compose FILE... [--per device|rack] [--nats N] [--hosts N] [--out DIR]", short: "Docker Compose files for a fabric",
		long: `Writes what "docker compose up" needs to run the fabric in containers: one for
each device or rack, NATS, a coordinator (three of each under ha.env), keys and
certificates made by a one-shot service, and the submission of the fabric.

Near the source of this program (around --out or the working directory) the file
also builds the image and has profile observe; elsewhere the image must be there.`,
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
	dir := f.Out
	if dir == "" {
		dir = "."
	}
	o := composer.Options{Per: composer.Unit(f.Per), NATS: f.NATS, Hosts: f.Hosts, Fabric: "fabric.yaml"}
	same := len(files) == 1 && len(f.Set) == 0 && f.Seed == nil && sameDir(filepath.Dir(files[0]), dir)
	if same {
		o.Fabric = filepath.Base(files[0])
	}
	o.Source, o.Observe = repository(dir)
	out, err := composer.Generate(l.plan, o)
	if err != nil {
		return err
	}
	if !same {
		out = append(out, composer.File{Name: o.Fabric, Text: string(l.plan.Resolved())})
	}
	if f.Out == "" {
		if a.json {
			return a.printJSON(out)
		}
		return a.printf("%s", out[0].Text)
	}
	return a.writeFiles(dir, out)
}

func (a *app) writeFiles(dir string, files []composer.File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, x := range files {
		if err := os.WriteFile(filepath.Join(dir, x.Name), []byte(x.Text), 0o644); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if err := a.printf("%s\n", filepath.Join(dir, x.Name)); err != nil {
			return err
		}
	}
	return nil
}

func sameDir(a, b string) bool {
	x, err1 := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && x == y
}

// repository returns the paths from dir to this program's source, around dir or
// the working directory, and to the configuration of profile observe; "" when
// there is none.
func repository(dir string) (source, observe string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", ""
	}
	wd, _ := os.Getwd()
	for _, at := range []string{abs, wd} {
		for ; at != "" && at != filepath.Dir(at); at = filepath.Dir(at) {
			if _, err := os.Stat(filepath.Join(at, "deploy", "compose", "Dockerfile")); err != nil {
				continue
			}
			source, err1 := filepath.Rel(abs, at)
			observe, err2 := filepath.Rel(abs, filepath.Join(at, "deploy", "compose", "observe"))
			if err1 != nil || err2 != nil {
				return at, filepath.Join(at, "deploy", "compose", "observe")
			}
			if !strings.HasPrefix(observe, ".") {
				observe = "./" + observe
			}
			return filepath.ToSlash(source), filepath.ToSlash(observe)
		}
	}
	return "", ""
}
