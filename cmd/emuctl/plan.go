package main

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

// exchange is the real time that one window's exchange of batches takes over
// NATS on one machine, by number of processes: all-to-all, measured at 12,084,
// 4,169, 3,438 and 1,785 windows a second for 2, 3, 4 and 8.
var exchange = map[int]float64{1: 0, 2: 1 / 12084.0, 3: 1 / 4169.0, 4: 1 / 3438.0, 8: 1 / 1785.0}

// Rules of thumb of distribution, in events a window and process: below the
// first it costs more than it gives, from the second on about 90 % of every
// process works on the model. A worker thread needs about the third.
const (
	eventsPays   = 250
	eventsGood   = 2000
	eventsWorker = 400
	defaultRate  = 8e6  // events a second of one core, when nothing was probed
	crossing     = 1e-7 // seconds to code, carry and decode one frame between processes
)

type planFlags struct {
	fileFlags
	Budget string `flag:"budget" help:"memory that the run may take; default: 80 % of what is free here"`
	Probe  string `flag:"probe" help:"real time to run the start of the fabric for, to measure this machine; 0s: estimate only"`
}

// planOut is what `emuctl plan --json` prints.
type planOut struct {
	Name       string      `json:"name"`
	Devices    int         `json:"devices"`
	RNICs      int         `json:"rnics"`
	QPs        int         `json:"qps"`
	Flows      int         `json:"flows"`
	MemoryB    int64       `json:"memory_bytes"`
	BudgetB    int64       `json:"budget_bytes"`
	Hops       float64     `json:"frame_hops"`
	Events     float64     `json:"events"`
	SpanNS     report.NS   `json:"virtual_ns"` // with traffic, at least
	Bottleneck string      `json:"bottleneck,omitempty"`
	WindowNS   report.NS   `json:"window_ns"`
	Windows    float64     `json:"windows"`
	PerWindow  float64     `json:"events_per_window"`
	Rate       float64     `json:"events_per_cpu_s"`
	Measured   bool        `json:"measured"` // rate and events per window come from a probe
	Cores      int         `json:"cores"`
	Workers    int         `json:"workers"`
	Choices    []planShare `json:"choices"`
	Processes  int         `json:"processes"`
	Advice     string      `json:"advice"`
}

// planShare is a run on so many processes of one worker each.
type planShare struct {
	Processes  int     `json:"processes"`
	PerWindow  float64 `json:"events_per_window_and_process"`
	ComputeUS  float64 `json:"compute_us_per_window"`
	ExchangeUS float64 `json:"exchange_us_per_window"`
	WallS      float64 `json:"wall_s"`
}

func (a *app) plan() *cobra.Command {
	f := planFlags{Probe: "500ms"}
	return a.command(verb{
		use: "plan FILE [--budget 8GiB] [--probe 500ms]", short: "What a run will take, and how many workers and processes pay",
		long: `Estimates memory, frame hops and windows from the file, measures this machine by
running the start of the fabric for a moment, and compares what a window computes
with what exchanging it costs. Refuses, with the estimate, what does not fit the
budget. Processes exchange a batch each window: they pay when a window holds much
work, and in memory and failure domains always.`,
		example: "  emuctl plan examples/pod-3072.yaml\n  emuctl plan bench/w1.yaml --budget 1GiB --probe 0s",
		flags:   &f,
		run: func(ctx context.Context, args []string) error {
			return a.runPlan(ctx, append(f.File, args...), &f)
		},
	})
}

func (a *app) runPlan(ctx context.Context, files []string, f *planFlags) error {
	budget, err := budgetOf(f.Budget)
	if err != nil {
		return err
	}
	probe, err := time.ParseDuration(f.Probe)
	if err != nil || probe < 0 || probe > time.Minute {
		return fmt.Errorf("--probe %q: a real time from 0s to 1m", f.Probe)
	}
	l, err := load(files, f.Set, f.Seed)
	if err != nil {
		return err
	}
	e := sim.Foresee(l.plan)
	o := &planOut{
		Name: l.plan.Name, Devices: len(l.plan.Devices), RNICs: len(l.plan.RNICs), QPs: e.QPs, Flows: e.Flows, MemoryB: e.Memory, BudgetB: budget,
		Hops: e.Hops, Events: e.Events, SpanNS: report.NS(e.Span), WindowNS: report.NS(l.plan.Window), Windows: e.Windows,
		PerWindow: e.Events / max(e.Windows, 1), Rate: defaultRate, Cores: runtime.NumCPU(),
	}
	if e.BottleneckDev >= 0 {
		o.Bottleneck = l.plan.PortName(e.BottleneckDev, e.BottleneckPort)
	}
	if e.Memory > budget {
		return fmt.Errorf("%s needs about %s of memory (%d RNICs, %d QPs, %s requests), the budget is %s; spread it over processes (`emuctl run --processes N`), make it smaller, or raise --budget",
			files[0], report.Bytes(e.Memory), o.RNICs, o.QPs, big.NewFloat(e.Requests).Text('g', 4), report.Bytes(budget))
	}
	if probe > 0 {
		if err := o.measure(ctx, l.plan, probe); err != nil {
			return exitError{report.ExitFailed, err}
		}
	}
	o.choose(l.plan)
	return a.showPlan(o)
}

// measure runs the fabric for a moment, once it stands, and takes over its rate.
func (o *planOut) measure(ctx context.Context, plan *topology.Plan, probe time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, hops := 0.0, uint64(0) // memory is touched for the first time before
	res, err := sim.Run(ctx, plan, sim.Options{
		Workers: 1,
		OnBuild: func(*sim.Fabric) error { // to build a large fabric takes longer than the probe
			from = sim.CPUSeconds()
			time.AfterFunc(probe, cancel)
			return nil
		},
		Progress: func(p sim.Progress) {
			if hops == 0 {
				from, hops = sim.CPUSeconds(), p.Hops
			}
		},
	})
	if err != nil {
		return err
	}
	e, cpu := &res.Engine, sim.CPUSeconds()-from
	if e.Events == 0 || e.Windows == 0 || e.FrameHops <= hops || cpu <= 0 {
		return nil
	}
	o.Measured = true
	o.Rate = float64(e.Events) * float64(e.FrameHops-hops) / float64(e.FrameHops) / cpu
	o.PerWindow = float64(e.Events) / float64(e.Windows)
	o.Events = o.Hops * float64(e.Events) / float64(max(e.FrameHops, 1))
	o.Windows = o.Events / o.PerWindow
	return nil
}

// choose compares numbers of processes and of workers.
func (o *planOut) choose(plan *topology.Plan) {
	groups := 0 // what can be placed apart: racks and single switches
	for i := range plan.Devices {
		if plan.Devices[i].Kind != topology.RNIC {
			groups++
		}
	}
	best := 0
	for _, n := range []int{1, 2, 3, 4, 8} {
		if n > max(groups, 1) {
			break
		}
		c := planShare{Processes: n, PerWindow: o.PerWindow / float64(n), ComputeUS: 1e6 * o.PerWindow / float64(n) / o.Rate, ExchangeUS: 1e6 * exchange[n]}
		if n > 1 { // of a process's hops, those to the n-1 others
			hops := o.PerWindow * o.Hops / max(o.Events, 1) / float64(n)
			c.ExchangeUS += 1e6 * crossing * hops * float64(n-1) / float64(n)
		}
		c.WallS = o.Windows * (c.ComputeUS + c.ExchangeUS) / 1e6
		o.Choices = append(o.Choices, c)
		if c.WallS < 0.9*o.Choices[best].WallS { // a tenth is not worth a process
			best = len(o.Choices) - 1
		}
	}
	o.Processes = o.Choices[best].Processes
	o.Workers = max(1, min(o.Cores, sim.Workers(plan, 0, o.Cores), int(o.PerWindow/eventsWorker)))
	one := o.Choices[0]
	switch {
	case o.Processes == 1 && o.PerWindow < 2*eventsPays:
		o.Advice = fmt.Sprintf("one process: a window holds %.0f events, below %d for each of two processes exchange costs more than it gives", o.PerWindow, eventsPays)
	case o.Processes == 1:
		o.Advice = fmt.Sprintf("one process is fastest: %.0f us of work a window against %.0f us of exchange", one.ComputeUS, 1e6*exchange[2])
	default:
		o.Advice = fmt.Sprintf("%d processes, each on a core of its own: %.1f s instead of %.1f s", o.Processes, o.Choices[best].WallS, one.WallS)
		if o.Choices[best].PerWindow >= eventsGood {
			o.Advice += fmt.Sprintf(", %.0f events a window and process leave exchange small", o.Choices[best].PerWindow)
		}
		if o.Processes > o.Cores {
			o.Advice += fmt.Sprintf("; this machine has %d cores, so on several hosts", o.Cores)
		}
	}
}

// budgetOf reads --budget, or takes 80 % of the memory that is free.
func budgetOf(s string) (int64, error) {
	if s == "" {
		text, err := os.ReadFile("/proc/meminfo")
		if err == nil {
			for line := range strings.Lines(string(text)) {
				if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
					kb, _ := strconv.ParseInt(f[1], 10, 64)
					return kb * 1024 / 10 * 8, nil
				}
			}
		}
		return 8 << 30, nil
	}
	for _, u := range []struct {
		name string
		n    int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}} {
		if num, ok := strings.CutSuffix(s, u.name); ok {
			r, ok := new(big.Rat).SetString(num)
			if !ok || r.Sign() <= 0 {
				break
			}
			v, _ := r.Mul(r, new(big.Rat).SetInt64(u.n)).Float64()
			return int64(v), nil
		}
	}
	return 0, fmt.Errorf("--budget %q: want a size with its unit, such as 8GiB", s)
}

func (a *app) showPlan(o *planOut) error {
	if a.json {
		return a.printJSON(o)
	}
	how := "estimated"
	if o.Measured {
		how = "measured here"
	}
	bottleneck := ""
	if o.Bottleneck != "" {
		bottleneck = ", longest on " + o.Bottleneck
	}
	t := report.NewTable("processes", "events/window each", "compute", "exchange", "wall time")
	for _, c := range o.Choices {
		t.AppendRow([]any{c.Processes, fmt.Sprintf("%.0f", c.PerWindow), fmt.Sprintf("%.1f us", c.ComputeUS), fmt.Sprintf("%.1f us", c.ExchangeUS), fmt.Sprintf("%.2f s", c.WallS)})
	}
	return a.printf(`%s: %d devices, %d RNICs, %d QPs, %d flows
memory      up to about %s (budget %s)
hops        about %.3g, %.3g events
traffic     at least %v of virtual time%s
windows     about %.3g of %v, %.0f events each
rate        %.3g events per CPU second (%s)
%s
workers     %d of %d cores pay in one process
processes   %s
`, o.Name, o.Devices, o.RNICs, o.QPs, o.Flows, report.Bytes(o.MemoryB), report.Bytes(o.BudgetB), o.Hops, o.Events, o.SpanNS, bottleneck,
		o.Windows, o.WindowNS, o.PerWindow, o.Rate, how, t.Render(), o.Workers, o.Cores, o.Advice)
}
