package main

import (
	"context"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildInfo is what `emuctl version --json` prints.
type buildInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified"`
	Platform string `json:"platform"`
}

func readBuildInfo() buildInfo {
	out := buildInfo{Version: "(devel)"}
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	out.Go = bi.GoVersion
	if bi.Main.Version != "" {
		out.Version = bi.Main.Version
	}
	goos, arch := "", ""
	for _, s := range bi.Settings {
		switch s.Key {
		case "vcs.revision":
			out.Revision = s.Value
		case "vcs.time":
			out.Time = s.Value
		case "vcs.modified":
			out.Modified = s.Value == "true"
		case "GOOS":
			goos = s.Value
		case "GOARCH":
			arch = s.Value
		}
	}
	out.Platform = goos + "/" + arch
	return out
}

func (a *app) version() *cobra.Command {
	return a.command(verb{
		use: "version", short: "Print version, revision and Go version", example: "  emuctl version --json", args: cobra.NoArgs,
		run: func(context.Context, []string) error {
			b := readBuildInfo()
			if a.json {
				return a.printJSON(b)
			}
			rev := ""
			if b.Revision != "" {
				rev = " (" + b.Revision
				if b.Modified {
					rev += ", modified"
				}
				rev += ")"
			}
			return a.printf("emuctl %s%s %s %s\n", b.Version, rev, b.Go, b.Platform)
		},
	})
}
