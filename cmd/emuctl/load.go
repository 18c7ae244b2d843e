package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// fileFlags are the flags of every verb that reads a fabric file.
type fileFlags struct {
	File []string `flag:"file,f" help:"fabric file; later ones overlay earlier ones (repeatable)"`
	Set  []string `flag:"set" help:"override one value: path=value, as in switches.all.pfc.alpha=1/16 (repeatable)"`
	Seed *uint64  `flag:"seed" help:"override the file's seed"`
}

// loaded is a fabric file, resolved, with its compiled expectations.
type loaded struct {
	plan   *topology.Plan
	warns  []topology.Warning
	expect *report.Expect
	drawn  []topology.Fault // by --chaos
}

// load reads, resolves and checks everything that can be checked before a run.
func load(files, sets []string, seed *uint64) (*loaded, error) {
	if len(files) == 0 {
		return nil, fmt.Errorf("no fabric file; `emuctl init` writes one to start from")
	}
	plan, warns, err := topology.Load(topology.LoadOptions{Files: files, Sets: sets, Seed: seed})
	if err != nil {
		return nil, err
	}
	return compile(plan, warns)
}

// compile checks the plan's expectations against what its result will hold.
func compile(plan *topology.Plan, warns []topology.Warning) (*loaded, error) {
	if err := sim.CheckFaults(plan); err != nil {
		return nil, err
	}
	x, err := sim.Expectations(plan)
	if err != nil {
		return nil, err
	}
	return &loaded{plan: plan, warns: warns, expect: x}, nil
}

// warn adds what is odd about the file to a result's findings.
func warn(res *report.Result, lists ...[]topology.Warning) {
	for _, w := range slices.Concat(lists...) {
		res.Findings = append(res.Findings, report.Finding{Code: w.Code, Where: w.Where, Text: w.Text})
	}
	report.SortFindings(res.Findings)
}

// captures reads --pcap DEVICE:PORT=FILE.
func captures(plan *topology.Plan, args []string) ([]topology.Capture, error) {
	var out []topology.Capture
	for _, s := range args {
		where, file, ok := strings.Cut(s, "=")
		dev, num, ok2 := devicePort(where)
		if !ok || !ok2 || file == "" {
			return nil, fmt.Errorf("--pcap %q: want DEVICE:PORT=FILE, as in leaf1:1=leaf1-1.pcapng", s)
		}
		c, err := capture(plan, dev, num)
		if err != nil {
			return nil, fmt.Errorf("--pcap %q: %w", s, err)
		}
		c.File = file
		out = append(out, c)
	}
	return out, nil
}

// devicePort takes DEVICE:PORT apart.
func devicePort(where string) (dev string, port int, ok bool) {
	dev, num, ok := strings.Cut(where, ":")
	port, err := strconv.Atoi(num)
	return dev, port, ok && err == nil
}

func capture(plan *topology.Plan, dev string, num int) (topology.Capture, error) {
	for i := range plan.Devices {
		d := &plan.Devices[i]
		if d.Name != dev {
			continue
		}
		for p := range d.Ports {
			if d.Ports[p].Num == num {
				return topology.Capture{Dev: d.ID, Port: num}, nil
			}
		}
		return topology.Capture{}, fmt.Errorf("%s has ports 1..%d, not %d", dev, len(d.Ports), num)
	}
	return topology.Capture{}, fmt.Errorf("no device is named %q", dev)
}
