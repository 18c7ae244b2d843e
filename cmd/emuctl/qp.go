package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
	"github.com/spf13/cobra"
)

type qpFlags struct {
	fileFlags
	Dir string `flag:"dir,d" help:"output directory of a run; its resolved file is run again, which gives the same story"`
	Max int    `flag:"max,n" help:"lines of the story, 0 = all"`
	clusterFlags
}

// qpOut is what `emuctl qp --json` prints.
type qpOut struct {
	Device   string       `json:"device"`
	QPN      uint32       `json:"qpn"`
	Context  qpContext    `json:"context"`
	Requests []qpRequest  `json:"requests"`
	Counts   qpCounts     `json:"counts"`
	Story    []storyLine  `json:"story"`
	Left     int          `json:"story_left_off,omitempty"`
	Survive  []qpSurvival `json:"survival,omitempty"`
	Digest   string       `json:"digest"`
}

// qpContext is the pair's attributes and state at the end of the run.
type qpContext struct {
	Peer        string    `json:"peer"`
	PeerQPN     uint32    `json:"peer_qpn"`
	Role        string    `json:"role"` // requester | responder
	State       string    `json:"state"`
	Connect     string    `json:"connect"`
	Mode        string    `json:"timeout_mode"`
	ProposedNS  report.NS `json:"timeout_proposed_ns"`
	NegotNS     report.NS `json:"timeout_negotiated_ns"`
	FloorNS     report.NS `json:"timeout_floor_ns"`
	EffectiveNS report.NS `json:"timeout_effective_ns"` // 0 = off
	Clamped     bool      `json:"timeout_clamped"`
	RNRWaitNS   report.NS `json:"rnr_wait_ns"`
	RetryCnt    uint8     `json:"retry_cnt"`
	RetryLeft   uint8     `json:"retries_left"`
	RNRRetry    uint8     `json:"rnr_retry"` // 7 = for ever
	RNRLeft     uint8     `json:"rnr_retries_left"`
	Una         uint32    `json:"una_psn"`
	Next        uint32    `json:"next_psn"`
	MaxPSN      uint32    `json:"max_psn"`
	EPSN        uint32    `json:"expected_psn"`
	MSN         uint32    `json:"msn"`
	Outstanding int       `json:"outstanding"`
	Receives    int       `json:"receives_posted"`
	MTU         int       `json:"mtu"`
	SPort       uint16    `json:"sport"`
	DSCP        uint8     `json:"dscp"`
	Path        string    `json:"path"`
	Migration   string    `json:"migration"`
	Hops        []string  `json:"hops"`
}

// qpRequest is one finished or waiting request.
type qpRequest struct {
	Flow     string    `json:"flow"`
	Number   int64     `json:"number"` // in its flow, from 1
	PostedNS report.NS `json:"posted_ns"`
	EndNS    report.NS `json:"end_ns"`
	Status   string    `json:"status"`
}

// qpCounts counts what the story holds.
type qpCounts struct {
	Sent     int `json:"packets_sent"`
	Again    int `json:"packets_sent_again"`
	Timeouts int `json:"timeouts"`
	NAKs     int `json:"sequence_naks"`
	RNRs     int `json:"rnr_naks"`
	Implied  int `json:"implied_naks"`
	Losses   int `json:"losses"`
}

func (a *app) qp() *cobra.Command {
	f := qpFlags{Max: 200}
	return a.command(verb{
		use: "qp DEVICE [QPN] [-f FILE|-d DIR] [--nats URL --creds FILE]", short: "The story of a queue pair and its context",
		long: `Runs the fabric and tells what one queue pair of DEVICE went through: each
transmission with its virtual time and cause, retries left and how long they last,
what overlapped (faults on the way, pauses, RNR waits), and, when it failed, which
timeout would have survived, found by running again with others. Then its context:
timers proposed, negotiated and in force, counters, PSNs, path. Without QPN it
lists the queue pairs of the device. A run's directory is run again: same story.
Without -f and -d it shows the context in a cluster's current run, as it stands.`,
		example: "  emuctl qp rnic1 -f examples/two-racks.yaml\n  emuctl qp rnic1 0x11 -f examples/two-racks.yaml --set 'faults=[{name: cut, kind: link-down, target: \"rnic1:1\", at: 100us}]'",
		args:    cobra.RangeArgs(1, 2), flags: &f,
		run: func(ctx context.Context, args []string) error { return a.runQP(ctx, args, &f) },
	})
}

// files are the fabric files of -f, or the resolved one of a directory.
func (f *qpFlags) files() ([]string, error) {
	switch {
	case f.Dir != "" && len(f.File) > 0:
		return nil, fmt.Errorf("either -f FILE or -d DIR")
	case f.Dir != "":
		p := filepath.Join(f.Dir, "fabric.resolved.yaml")
		if _, err := os.Stat(p); err != nil {
			return nil, fmt.Errorf("-d %s: is no output directory of a run: %w; a fabric file is given with -f", f.Dir, err)
		}
		return []string{p}, nil
	case len(f.File) == 0:
		return nil, fmt.Errorf("which run? -f FILE runs a fabric, -d DIR one that was run with --out DIR; no cluster is named or current")
	}
	for _, name := range f.File {
		if isDir(name) {
			return nil, fmt.Errorf("-f %s: is a directory; -d %s takes the output directory of a run, -f a fabric file", name, name)
		}
	}
	return f.File, nil
}

func (a *app) runQP(ctx context.Context, args []string, f *qpFlags) error {
	if _, err := f.target(); err == nil && f.Dir == "" && len(f.File) == 0 {
		return a.liveQP(ctx, &f.clusterFlags, args[0], slices.Concat(args[1:], []string{""})[0])
	}
	files, err := f.files()
	if err != nil {
		return err
	}
	l, err := load(files, f.Set, f.Seed)
	if err != nil {
		return err
	}
	k, err := rnicNamed(l.plan, args[0])
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return a.listQPs(ctx, l.plan, k)
	}
	qpn, err := parseQPN(args[1])
	if err != nil {
		return err
	}
	q := qpOf(l.plan, k, qpn)
	if q == nil {
		return fmt.Errorf("%s has no QP 0x%x; `emuctl qp %s` lists them", args[0], qpn, args[0])
	}
	o, err := a.tell(ctx, l.plan, q, k)
	if err != nil {
		return exitError{report.ExitFailed, err}
	}
	if s := failure(o.Requests); s != "" && q.A == k {
		again := func() (*topology.Plan, error) {
			p, _, err := topology.Load(topology.LoadOptions{Files: files, Sets: f.Set, Seed: f.Seed})
			return p, err
		}
		if o.Survive, err = survival(ctx, again, q, s); err != nil {
			return exitError{report.ExitFailed, err}
		}
	}
	if n := len(o.Story); f.Max > 0 && n > f.Max {
		o.Story, o.Left = o.Story[:f.Max], n-f.Max
	}
	return a.showQP(o)
}

func parseQPN(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 0, 24)
	if err != nil {
		return 0, fmt.Errorf("QPN %q: a number of 24 bits, such as 17 or 0x11", s)
	}
	return uint32(n), nil
}

// qpOf finds a queue pair by one of its ends.
func qpOf(plan *topology.Plan, k, qpn uint32) *topology.QP {
	for i := range plan.QPs {
		q := &plan.QPs[i]
		if q.A == k && q.AQPN == qpn || q.B == k && q.BQPN == qpn {
			return q
		}
	}
	return nil
}

// failure is the first error of the requests that is not a flush, "" if none.
func failure(reqs []qpRequest) string {
	for _, r := range reqs {
		if r.Status != report.Success.String() && r.Status != report.WRFlushErr.String() && r.Status != "unfinished" {
			return r.Status
		}
	}
	return ""
}

// tell runs the fabric and makes the story.
func (a *app) tell(ctx context.Context, plan *topology.Plan, q *topology.QP, k uint32) (*qpOut, error) {
	s := sim.NewStory(plan, q, k)
	var fabric *sim.Fabric
	opt := sim.Options{OnBuild: func(f *sim.Fabric) error { fabric = f; return nil }}
	s.Watch(&opt)
	plan.Run.ListAll = true
	res, err := sim.Run(ctx, plan, opt)
	if err != nil {
		return nil, err
	}
	s.Finish()
	o := &qpOut{Device: plan.RNIC(k).Name, QPN: q.AQPN, Digest: res.Digest}
	if q.A != k {
		o.QPN = q.BQPN
	}
	node, _ := fabric.Nodes[plan.RNICs[k-1]].(*rnic.RNIC)
	c, _ := node.QPContext(o.QPN)
	o.Context = contextOf(plan, &c, k)
	o.Requests = requestsOf(plan, q, fabric.Samples(clock.Time(res.VirtualNS)))
	w := storyWriter{plan: plan, story: s, timer: c.Timers.Effective, retries: int64(c.RetryCnt)}
	for i := range s.Events {
		w.line(&s.Events[i])
	}
	o.Story, o.Counts = w.lines, w.counts
	return o, nil
}

func contextOf(plan *topology.Plan, c *rnic.QPContext, k uint32) qpContext {
	o := qpContext{
		Peer: plan.RNIC(c.Peer).Name, PeerQPN: c.PeerQPN, Role: "responder", State: c.State, Connect: c.Connect, Mode: c.Timers.Mode,
		ProposedNS: report.NS(c.Timers.Proposed), NegotNS: report.NS(c.Timers.Negotiated), FloorNS: report.NS(c.Timers.Floor), EffectiveNS: report.NS(c.Timers.Effective),
		Clamped: c.Timers.Clamped, RNRWaitNS: report.NS(c.RNRWait), RetryCnt: c.RetryCnt, RetryLeft: c.RetryLeft, RNRRetry: c.RNRRetry, RNRLeft: c.RNRLeft,
		Una: c.Una, Next: c.Next, MaxPSN: c.Max, EPSN: c.EPSN, MSN: c.MSN, Outstanding: c.Outstanding, Receives: c.Receives,
		MTU: c.MTU, SPort: c.SPort, DSCP: c.DSCP, Path: c.Path, Migration: c.Migration,
	}
	if c.Requests {
		o.Role = "requester"
	}
	stops, _ := sim.Walk(plan, sim.Probe{From: k, To: c.Peer, SPort: c.SPort, DSCP: c.DSCP, Len: 64})
	for i := range stops {
		o.Hops = append(o.Hops, plan.PortName(stops[i].Dev, stops[i].Out))
	}
	return o
}

// requestsOf lists the pair's requests in order of completion, then what did
// not finish.
func requestsOf(plan *topology.Plan, q *topology.QP, samples []sim.Sample) []qpRequest {
	out := []qpRequest{}
	done := map[int32]int64{}
	for _, s := range samples {
		if slices.Contains(q.Flows, s.Flow) {
			done[s.Flow]++
			out = append(out, qpRequest{plan.FlowName(&plan.Flows[s.Flow]), done[s.Flow], report.NS(s.Start), report.NS(s.End), s.Status.String()})
		}
	}
	for _, id := range q.Flows {
		if f := &plan.Flows[id]; f.Count > done[id] {
			out = append(out, qpRequest{plan.FlowName(f), done[id] + 1, report.NS(f.Start), 0, "unfinished"})
		}
	}
	return out
}

// listQPs shows every queue pair of a device after the run.
func (a *app) listQPs(ctx context.Context, plan *topology.Plan, k uint32) error {
	var fabric *sim.Fabric
	if _, err := sim.Run(ctx, plan, sim.Options{OnBuild: func(f *sim.Fabric) error { fabric = f; return nil }}); err != nil {
		return exitError{report.ExitFailed, err}
	}
	node, _ := fabric.Nodes[plan.RNICs[k-1]].(*rnic.RNIC)
	var cs []rnic.QPContext
	for _, n := range node.QPNs() {
		if c, ok := node.QPContext(n); ok {
			cs = append(cs, c)
		}
	}
	return a.showQPs(qpRows(plan, cs, k))
}

// qpRow is a queue pair of a list.
type qpRow struct {
	QPN     string    `json:"qpn"`
	Flows   []string  `json:"flows"`
	Context qpContext `json:"context"`
	Resent  uint64    `json:"retransmitted_packets"`
}

// qpRows describes queue pairs of RNIC number k.
func qpRows(plan *topology.Plan, cs []rnic.QPContext, k uint32) []qpRow {
	rows := []qpRow{}
	for i := range cs {
		c := &cs[i]
		r := qpRow{QPN: fmt.Sprintf("0x%x", c.QPN), Context: contextOf(plan, c, k), Resent: c.Retransmitted}
		for _, id := range plan.QPs[c.QP].Flows {
			r.Flows = append(r.Flows, plan.FlowName(&plan.Flows[id]))
		}
		rows = append(rows, r)
	}
	return rows
}

func (a *app) showQPs(rows []qpRow) error {
	if a.json {
		return a.printJSON(rows)
	}
	t := report.NewTable("QPN", "role", "peer", "state", "timeout", "retries left", "una", "next", "sent again", "path", "flows")
	for _, r := range rows {
		c := &r.Context
		t.AppendRow([]any{r.QPN, c.Role, fmt.Sprintf("%s 0x%x", c.Peer, c.PeerQPN), c.State, c.EffectiveNS, fmt.Sprintf("%d of %d", c.RetryLeft, c.RetryCnt), c.Una, c.Next, r.Resent, c.Path, strings.Join(r.Flows, " ")})
	}
	return a.printf("%s\n", t.Render())
}
