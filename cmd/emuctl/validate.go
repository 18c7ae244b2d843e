package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

// remark is one line of `emuctl validate --json`.
type remark struct {
	Severity string `json:"severity"` // error or warning
	Code     string `json:"code,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Where    string `json:"where,omitempty"`
	Value    string `json:"value,omitempty"`
	Text     string `json:"text"`
	Hint     string `json:"hint,omitempty"`
}

func (a *app) validate() *cobra.Command {
	var f fileFlags
	return a.command(verb{
		use: "validate FILE... [--set path=value]...", short: "Check a fabric file without running it",
		long:    "Prints every error with its line, then what would run but probably not as meant:\nheadroom too small by N bytes, Kmin above the XOFF point, RoCE in a lossy queue …\nExits with 2 when there is an error.",
		example: "  emuctl validate fabric.yaml\n  emuctl validate base.yaml site.yaml --json",
		flags:   &f,
		run:     func(_ context.Context, args []string) error { return a.runValidate(append(args, f.File...), &f) },
	})
}

func (a *app) runValidate(files []string, f *fileFlags) error {
	l, err := load(files, f.Set, f.Seed)
	if err != nil {
		if a.json {
			if perr := a.printJSON(map[string]any{"valid": false, "remarks": errorRemarks(err)}); perr != nil {
				return perr
			}
			return exitError{code: report.ExitUsage}
		}
		return err
	}
	finds := append(l.warns, topology.Lint(l.plan)...)
	remarks := []remark{}
	for _, w := range finds {
		r := remark{Severity: "warning", Code: w.Code, Where: w.Where, Text: w.Text}
		r.File, r.Line, r.Column = splitPos(w.Pos)
		remarks = append(remarks, r)
		if !a.json {
			if err := a.printf("warning: %s\n", w); err != nil {
				return err
			}
		}
	}
	if a.json {
		return a.printJSON(map[string]any{"valid": true, "remarks": remarks})
	}
	p := l.plan
	return a.printf("%s: valid; %d devices, %d cables, %d queue pairs, %d flows, %d warning(s)\n",
		p.Name, len(p.Devices), len(p.Cables), len(p.QPs), len(p.Flows), len(finds))
}

// errorRemarks takes a joined error apart.
func errorRemarks(err error) []remark {
	var es topology.Errors
	if errors.As(err, &es) {
		out := make([]remark, 0, len(es))
		for _, e := range es {
			out = append(out, remark{Severity: "error", File: e.File, Line: e.Line, Column: e.Col, Where: e.Field, Value: e.Value, Text: e.Msg, Hint: e.Hint})
		}
		return out
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var out []remark
		for _, e := range j.Unwrap() {
			out = append(out, errorRemarks(e)...)
		}
		return out
	}
	return []remark{{Severity: "error", Text: err.Error()}}
}

// splitPos takes file:line:column apart.
func splitPos(pos string) (file string, line, col int) {
	for i := len(pos) - 1; i >= 0; i-- {
		if pos[i] != ':' {
			continue
		}
		rest := pos[:i]
		for j := len(rest) - 1; j >= 0; j-- {
			if rest[j] == ':' {
				if n, _ := fmt.Sscanf(pos[j:], ":%d:%d", &line, &col); n == 2 {
					return rest[:j], line, col
				}
			}
		}
		break
	}
	return pos, 0, 0
}
