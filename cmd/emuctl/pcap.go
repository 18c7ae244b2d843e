package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/topology"
)

type pcapFlags struct {
	Write string   `flag:"write,w" help:"pcapng file to write, - for standard output, as in | wireshark -k -i -"`
	File  []string `flag:"file,f" help:"fabric file to run (repeatable, later ones overlay)"`
	Set   []string `flag:"set" help:"override one value: path=value (repeatable)"`
	Seed  *uint64  `flag:"seed" help:"override the file's seed"`
	Count int      `flag:"count,c" help:"of a running fabric: end after so many frames, 0 = with the run"`
	clusterFlags
}

func (a *app) pcap() *cobra.Command {
	f := pcapFlags{Write: "-"}
	return a.command(verb{
		use: "pcap DEVICE:PORT [-f FILE] [-w FILE|-] [--nats URL --creds FILE]", short: "Capture a port as pcapng",
		long: `Runs the fabric of -f and writes every frame that passes the port, both
directions, with the instant its last bit passes, exact to the picosecond (epoch 0
is the run's start). Comments say what the device dropped and what a PFC frame
pauses. Without -f it captures a port of a cluster's current run until that ends or
an interrupt; frames that come too fast are counted and left out. Wireshark and tshark read the file; deploy/wireshark/cnp.lua teaches them CNPs.`,
		example: "  emuctl pcap leaf2:4 -f examples/incast.yaml -w leaf2-4.pcapng\n  emuctl pcap rnic1:1 -f examples/two-racks.yaml | tshark -r -",
		args:    cobra.ExactArgs(1), flags: &f,
		run: func(ctx context.Context, args []string) error { return a.runPcap(ctx, args[0], &f) },
	})
}

func (a *app) runPcap(ctx context.Context, port string, f *pcapFlags) error {
	if f.Write == "-" && a.outTTY {
		return fmt.Errorf("a capture is no text for a terminal; write it with -w FILE, or pipe it, as in | tshark -r -")
	}
	dev, num, ok := devicePort(port)
	if !ok {
		return fmt.Errorf("%q: want DEVICE:PORT, as in leaf1:1", port)
	}
	if len(f.File) == 0 {
		return a.livePcap(ctx, f, port)
	}
	l, err := load(f.File, f.Set, f.Seed)
	if err != nil {
		return err
	}
	c, err := capture(l.plan, dev, num)
	if err != nil {
		return fmt.Errorf("%s: %w", port, err)
	}
	c.File = f.Write
	l.plan.Capture = []topology.Capture{c}
	res, _, err := a.execRun(ctx, l, &runFlags{}, false)
	if err != nil {
		return exitError{report.ExitFailed, err}
	}
	fmt.Fprintf(a.err, "%s: %s at %s virtual\n", res.Name, res.Verdict, report.Span(res.VirtualNS))
	return nil
}
