package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

// maxPerfRequests bounds a test; maxPeakRequests is up to where the peak is
// computed (it looks at every pair of requests).
const (
	maxPerfRequests = 10_000_000
	maxPeakRequests = 20_000
)

type perfFlags struct {
	fileFlags
	Size    string `flag:"size,s" help:"size of a message, with its unit"`
	QPs     int    `flag:"qp,q" help:"queue pairs"`
	Iters   int    `flag:"iters,n" help:"messages a queue pair; default 1000"`
	TxDepth int    `flag:"tx-depth,t" help:"outstanding messages a queue pair; 128, for read 16"`
	Lat     bool   `flag:"lat" help:"latency instead of bandwidth: ping-pong, half a round trip; read: the whole round trip"`
	Gbits   bool   `flag:"report_gbits" help:"bandwidth in Gb/s instead of MiB/s"`
}

// perfOut is what `emuctl perf --json` prints; lat or bw is set.
type perfOut struct {
	Test       string    `json:"test"`
	From       string    `json:"from"`
	To         string    `json:"to"`
	Bytes      int64     `json:"bytes"`
	QPs        int       `json:"qps"`
	TxDepth    int       `json:"tx_depth"`
	Iterations int64     `json:"iterations"` // over all queue pairs
	Failed     int64     `json:"failed"`
	Status     string    `json:"status"`
	BW         *perfBW   `json:"bw,omitempty"`
	Lat        *perfLat  `json:"lat,omitempty"`
	VirtualNS  report.NS `json:"virtual_ns"`
	Digest     string    `json:"digest"`
}

type perfBW struct {
	PeakBPS    float64 `json:"peak_bps"` // 0 = not computed (more than 20,000 messages)
	AverageBPS float64 `json:"average_bps"`
	MsgRate    float64 `json:"messages_per_s"`
}

// perfLat has the columns of perftest's latency tests, in nanoseconds.
type perfLat struct {
	Min     report.NS `json:"t_min_ns"`
	Max     report.NS `json:"t_max_ns"`
	Typical report.NS `json:"t_typical_ns"` // the median
	Avg     float64   `json:"t_avg_ns"`
	Stdev   float64   `json:"t_stdev_ns"`
	P99     report.NS `json:"p99_ns"`
	P999    report.NS `json:"p999_ns"`
}

func (a *app) perf() *cobra.Command {
	f := perfFlags{Size: "64KB", QPs: 1}
	return a.command(verb{
		use: "perf write|read|send FROM TO [-s SIZE] [-q N] [--lat] [-f FILE]", short: "A quick bandwidth or latency test, in perftest's columns",
		long: `Runs one stream, alone, between two RNICs of the file (its workload, faults and
expectations are left out) or of a small default fabric: two racks of four.

Bandwidth: messages back to back, tx-depth outstanding on each queue pair.
Latency: write and send play ping-pong and show half a round trip; read shows the
time of the request.`,
		example: "  emuctl perf write rnic1 rnic5 -s 64KB -q 4\n  emuctl perf send rnic1 rnic5 -s 64B --lat -f examples/two-racks.yaml",
		args:    cobra.ExactArgs(3), flags: &f,
		run: func(ctx context.Context, args []string) error { return a.runPerf(ctx, args, &f) },
	})
}

func (f *perfFlags) check(verb string) error {
	if !slices.Contains([]string{"write", "read", "send"}, verb) {
		return fmt.Errorf("%q: allowed write, read, send", verb)
	}
	if f.Iters == 0 {
		f.Iters = 1000
	}
	if f.TxDepth == 0 {
		if f.TxDepth = 128; verb == "read" {
			f.TxDepth = 16
		}
	}
	for _, x := range []struct {
		name string
		v    int
	}{{"qp", f.QPs}, {"iters", f.Iters}, {"tx-depth", f.TxDepth}} {
		if x.v < 1 || x.v > maxPerfRequests {
			return fmt.Errorf("--%s %d: allowed 1..%d", x.name, x.v, maxPerfRequests)
		}
	}
	if f.Lat && f.QPs != 1 {
		return fmt.Errorf("--lat uses one queue pair, not %d", f.QPs)
	}
	if f.QPs*f.Iters > maxPerfRequests {
		return fmt.Errorf("--qp %d with --iters %d: more than %d messages", f.QPs, f.Iters, maxPerfRequests)
	}
	return nil
}

// plan lays the test over the fabric.
func (f *perfFlags) plan(verb, from, to string) (*topology.Plan, error) {
	line := func(name, from, to string, window int) string {
		return fmt.Sprintf("{name: %s, from: %s, to: %s, verb: %s, size: %s, count: %d, qps: %d, window: %d}", name, from, to, verb, f.Size, f.Iters, f.QPs, window)
	}
	work := line("perf", from, to, f.TxDepth)
	switch {
	case f.Lat && verb == "read":
		work = line("perf", from, to, 1)
	case f.Lat:
		work = line("perf", from, to, 16) + ", " + line("pong", to, from, 16)
	}
	sets := append([]string{"faults=[]", "expect=[]", "capture=[]", "workload=[" + work + "]"}, f.Set...)
	plan, err := loadLab(f.File, sets, f.Seed)
	if err != nil {
		return nil, err
	}
	if _, _, err := twoRNICs(plan, from, to); err != nil {
		return nil, err
	}
	if f.Lat && verb != "read" { // message n+1 of one side waits for message n of the other
		ping, pong := &plan.Flows[0], &plan.Flows[1]
		ping.Gate, ping.GateLag = pong.ID, 0
		pong.Gate, pong.GateLag = ping.ID, 1
	}
	return plan, nil
}

func (a *app) runPerf(ctx context.Context, args []string, f *perfFlags) error {
	verb, from, to := args[0], args[1], args[2]
	if err := f.check(verb); err != nil {
		return err
	}
	plan, err := f.plan(verb, from, to)
	if err != nil {
		return err
	}
	plan.Run.ListAll = true
	var fabric *sim.Fabric
	res, err := sim.Run(ctx, plan, sim.Options{OnBuild: func(x *sim.Fabric) error { fabric = x; return nil }})
	if err != nil {
		return exitError{report.ExitFailed, err}
	}
	l := res.Flows["perf"]
	o := &perfOut{
		Test: verb + "_bw", From: from, To: to, Bytes: plan.Flows[0].Size, QPs: f.QPs, TxDepth: f.TxDepth, Iterations: l.Completed,
		Failed: l.Failed, Status: l.Status, VirtualNS: res.VirtualNS, Digest: res.Digest,
	}
	samples := slices.DeleteFunc(fabric.Samples(clock.Time(res.VirtualNS)), func(s sim.Sample) bool {
		return s.Status != report.Success || plan.Flows[s.Flow].Line != 0
	})
	if f.Lat {
		o.Test, o.TxDepth = verb+"_lat", 1
		o.Lat = latencyOf(samples, verb == "read")
	} else {
		o.BW = bandwidthOf(samples, o.Bytes)
	}
	if err := a.showPerf(o, f.Gbits); err != nil {
		return err
	}
	if res.Exit != report.ExitOK {
		return exitError{res.Exit, fmt.Errorf("%s: %s", res.Verdict, res.VerdictReason)}
	}
	return nil
}

// bandwidthOf follows perftest: the average runs from the first post to the
// last completion, the peak is the best rate of any run of messages from the
// post of its first to the completion of its last.
func bandwidthOf(s []sim.Sample, size int64) *perfBW {
	if len(s) == 0 {
		return &perfBW{}
	}
	posts := make([]clock.Time, len(s))
	for i := range s {
		posts[i] = s[i].Start
	}
	slices.Sort(posts)
	span := float64(s[len(s)-1].End.Sub(posts[0])) / 1e12
	o := &perfBW{MsgRate: float64(len(s)) / span}
	o.AverageBPS = o.MsgRate * float64(size) * 8
	if len(s) > maxPeakRequests {
		return o
	}
	best := math.Inf(1)
	for i := range posts {
		for j := i; j < len(s); j++ {
			if t := float64(s[j].End.Sub(posts[i])) / float64(j-i+1); t > 0 && t < best {
				best = t
			}
		}
	}
	o.PeakBPS = float64(size) * 8 / (best / 1e12)
	return o
}

// latencyOf makes the columns: of reads the time of each request, else half
// the time between the posts of two pings.
func latencyOf(s []sim.Sample, read bool) *perfLat {
	var d []clock.Duration
	slices.SortStableFunc(s, func(a, b sim.Sample) int { return int(max(-1, min(1, a.Start.Sub(b.Start)))) })
	for i := range s {
		if read {
			d = append(d, s[i].End.Sub(s[i].Start))
		} else if i > 0 {
			d = append(d, s[i].Start.Sub(s[i-1].Start)/2)
		}
	}
	if len(d) == 0 {
		return &perfLat{}
	}
	slices.Sort(d)
	rank := func(permille int) report.NS { // nearest rank
		return report.NS(d[max((len(d)*permille+999)/1000, 1)-1])
	}
	o := &perfLat{Min: rank(0), Max: rank(1000), Typical: rank(500), P99: rank(990), P999: rank(999)}
	sum := 0.0
	for _, x := range d {
		sum += x.Float()
	}
	o.Avg = sum / float64(len(d))
	sq := 0.0
	for _, x := range d {
		sq += (x.Float() - o.Avg) * (x.Float() - o.Avg)
	}
	o.Stdev = math.Sqrt(sq / float64(len(d)))
	return o
}

func (a *app) showPerf(o *perfOut, gbits bool) error {
	if a.json {
		return a.printJSON(o)
	}
	head := fmt.Sprintf("%s: %s to %s, %d QP, tx depth %d", o.Test, o.From, o.To, o.QPs, o.TxDepth)
	if o.Failed > 0 {
		head += fmt.Sprintf("; %d failed: %s", o.Failed, o.Status)
	}
	if o.Lat != nil {
		us := func(n report.NS) float64 { return clock.Duration(n).Float() / 1000 }
		l := o.Lat
		return a.printf("%s\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   99.9%% percentile[usec]\n %-7d %d          %-7.3f        %-7.3f      %-7.3f       \t     %-7.3f     \t%-7.3f\t\t%-7.3f \t\t%-7.3f\n",
			head, o.Bytes, o.Iterations, us(l.Min), us(l.Max), us(l.Typical), l.Avg/1000, l.Stdev/1000, us(l.P99), us(l.P999))
	}
	unit, div := "MiB/sec", 8*1048576.0
	if gbits {
		unit, div = "Gb/sec", 1e9
	}
	return a.printf("%s\n #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]\n %-7d    %-10d       %-7.2f            %-7.2f\t\t     %-7.6f\n",
		head, unit, unit, o.Bytes, o.Iterations, o.BW.PeakBPS/div, o.BW.AverageBPS/div, o.BW.MsgRate/1e6)
}
