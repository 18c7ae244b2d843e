package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/telemetry/chain"
)

func (a *app) trace() *cobra.Command {
	f := struct {
		viewFlags
		Max int  `flag:"max,n" help:"chains to show, 0 = all"`
		All bool `flag:"all" help:"each step by itself; without it runs of packets are one line"`
	}{Max: 20}
	return a.command(verb{
		use: "trace [FLOW] [-f DIR] [--nats URL --creds FILE]", short: "Tell the retransmit chains of a flow",
		long: `FLOW is a workload line, or a single flow as flows.csv names it; without it all
chains are told. Each line is a step: time, time since the step before, device,
what happened; the arrow names the step that caused it. Packets that went again or
were lost one after another are one line; --all tells each. Without -f the chains
are those of a cluster's current run so far.`,
		example: "  emuctl run examples/incast.yaml --set switches.all.pfc.headroom=0B --out out\n  emuctl trace burst -f out",
		args:    cobra.MaximumNArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error {
			flow := ""
			if len(args) > 0 {
				flow = args[0]
			}
			if !f.inDir() {
				return a.liveTrace(ctx, &f.clusterFlags, flow, f.Max, f.All)
			}
			return a.runTrace(f.Dir, flow, f.Max, f.All)
		},
	})
}

func (a *app) runTrace(dir, flow string, most int, all bool) error {
	if !isDir(dir) {
		if _, err := report.ReadResult(dir); err != nil {
			return err
		}
		return fmt.Errorf("%s: is a file; chains are in the output directory of `emuctl run FILE --out DIR`", dir)
	}
	chains, err := report.ReadLines[report.ChainLine](filepath.Join(dir, report.ChainsFile))
	if err != nil {
		return err
	}
	lines := ofFlow(chains, flow)
	if len(lines) == 0 {
		if err := knownFlow(dir, flow); err != nil {
			return err
		}
	}
	return a.tellChains(lines, most, all)
}

// ofFlow picks the chains of a flow or a workload line; "" is all.
func ofFlow(all []chain.Line, flow string) (lines []chain.Line) {
	for _, l := range all {
		if flow == "" || l.Flow == flow || l.Line == flow {
			lines = append(lines, l)
		}
	}
	return lines
}

// tellChains prints chains, most of them at most, with each step by itself or
// folded.
func (a *app) tellChains(lines []chain.Line, most int, each bool) error {
	if a.json {
		return a.printJSON(lines)
	}
	if len(lines) == 0 {
		return a.printf("nothing was sent again\n")
	}
	for i := range lines {
		if most > 0 && i == most {
			return a.printf("and %d more chains (-n 0 shows all)\n", len(lines)-most)
		}
		if err := a.tellChain(&lines[i], each); err != nil {
			return err
		}
	}
	return nil
}

// knownFlow refuses a name that the result does not have.
func knownFlow(dir, flow string) error {
	r, err := report.ReadResult(dir)
	if err != nil || flow == "" {
		return err
	}
	line := flow
	for i := range flow {
		if flow[i] == '[' {
			line = flow[:i]
			break
		}
	}
	if r.Flows[line] == nil {
		return noFlow(flow, dir, slices.Sorted(maps.Keys(r.Flows)))
	}
	return nil
}

// noFlow refuses the name of a flow; the first lines of the workload help.
func noFlow(flow, in string, lines []string) error {
	const most = 12
	more := ""
	if len(lines) > most {
		lines, more = lines[:most], fmt.Sprintf(" and %d more", len(lines)-most)
	}
	return fmt.Errorf("no flow %q in %s; its workload is %s%s", flow, in, strings.Join(lines, ", "), more)
}

// tellChain prints one chain, runs of packets folded unless all steps are wanted.
func (a *app) tellChain(l *chain.Line, all bool) error {
	request := fmt.Sprintf("request %d", l.Request)
	if l.Request < 0 { // the number comes with the completion
		request = "a request that did not complete"
	}
	err := a.printf("%s  %s, QP %d, PSN %d: %s -> %s after %v, %d rounds, %d packets again  trace %s\n", l.Flow, request, l.QP, l.PSN,
		l.Cause, l.Outcome, clock.Duration(l.EndNS-l.BeginNS), l.Retries, l.Resends, l.Trace)
	last := l.BeginNS
	for i, r := range foldSteps(l.Steps, all) {
		because := ""
		if r.cause > 0 {
			because = fmt.Sprintf("  <- %d", r.cause)
		}
		if err == nil {
			at := r.first.AtNS
			err = a.printf("%5d  %16v  %16s  %-10s %s%s\n", i+1, clock.Time(at), "+"+clock.Duration(at-last).String(), r.first.Device, r.text(), because)
		}
		last = r.first.AtNS
	}
	if l.Folded > 0 && err == nil {
		err = a.printf("       %d more steps are counted above and not listed\n", l.Folded)
	}
	return err
}
