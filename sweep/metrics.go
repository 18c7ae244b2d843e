package sweep

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

// invalid begins the verdict of values that make no fabric; the reason follows.
const invalid = "invalid: "

// Metrics are the figures of one run.
type Metrics struct {
	Verdict   string    `json:"verdict"`
	GoodputBP int64     `json:"goodput_bps"` // payload of completed requests over the run's virtual time
	P50       report.NS `json:"fct_p50_ns"`  // over all successful requests
	P99       report.NS `json:"fct_p99_ns"`
	// Completion is the longest span from the first start of a workload line to
	// its last end: of a collective, from its first step to its last.
	Completion report.NS `json:"completion_ns"`
	// PauseShare is the time that senders stood paused, over (sending ends ×
	// virtual time): ends are the RNICs and the switch ports of lossless
	// classes.
	PauseShare float64   `json:"pause_share"`
	Pauses     uint64    `json:"pfc_pause_frames"`
	Marks      uint64    `json:"ecn_marked_frames"`
	Drops      uint64    `json:"dropped_frames"`
	Resent     uint64    `json:"retransmitted_packets"`
	Failed     int64     `json:"failed_flows"` // single flows that did not complete
	Headroom   int64     `json:"headroom_watermark_bytes"`
	Margin     int64     `json:"headroom_margin_bytes"`  // least headroom that a lossless priority group had left
	Shared     int64     `json:"shared_watermark_bytes"` // of the fullest pool
	Queue      int64     `json:"queue_watermark_bytes"`
	VirtualNS  report.NS `json:"virtual_ns"`
	Digest     string    `json:"digest"`
}

// Clean says that the run delivered everything and lost nothing.
func (m *Metrics) Clean() bool { return m.OK() && m.Drops == 0 }

// OK says that the run came to its end and every flow completed.
func (m *Metrics) OK() bool { return m.Verdict == report.Complete && m.Failed == 0 }

// Simulate runs a plan on one worker and measures it. Expectations of the file
// are not judged: a grid leaves their ground on purpose.
func Simulate(ctx context.Context, plan *topology.Plan) (Metrics, error) {
	var f *sim.Fabric
	res, err := sim.Run(ctx, plan, sim.Options{Workers: 1, OnBuild: func(x *sim.Fabric) error { f = x; return nil }})
	if err != nil {
		return Metrics{}, err
	}
	if err := ctx.Err(); err != nil {
		return Metrics{}, err // stopped half way: not a result
	}
	m := Metrics{
		Verdict: res.Verdict, Drops: res.Totals.DroppedFrames, Resent: res.Totals.Retransmitted, Pauses: res.Totals.PauseFrames,
		Marks: res.Totals.ECNMarked, Failed: res.Totals.Flows - res.Totals.Completed, VirtualNS: res.VirtualNS, Digest: res.Digest,
	}
	if s := clock.Duration(res.VirtualNS); s > 0 {
		m.GoodputBP = int64(float64(res.Totals.Bytes) * 8e12 / float64(s))
	}
	m.fct(plan, f.Samples(clock.Time(res.VirtualNS)))
	m.completion(plan, res)
	m.switches(res)
	m.margin(plan, res)
	return m, nil
}

// fct takes nearest-rank percentiles over requests.
func (m *Metrics) fct(plan *topology.Plan, s []sim.Sample) {
	var d []clock.Duration
	for i := range s {
		if s[i].Status == report.Success && s[i].Start >= clock.Time(plan.Run.Warmup) && plan.Flows[s[i].Flow].Transport == topology.RC {
			d = append(d, s[i].End.Sub(s[i].Start))
		}
	}
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	m.P50, m.P99 = report.NS(d[(len(d)*50+99)/100-1]), report.NS(d[(len(d)*99+99)/100-1])
}

// Ends says whether a workload line has an end: a run of a plan without any has
// no [Metrics.Completion].
func Ends(plan *topology.Plan) bool {
	for i := range plan.Lines {
		if ends(plan, &plan.Lines[i]) {
			return true
		}
	}
	return false
}

func ends(plan *topology.Plan, l *topology.Line) bool {
	return len(l.Flows) > 0 && !slices.ContainsFunc(l.Flows, func(id int32) bool { return plan.Flows[id].Count < 0 })
}

// completion finds the line that took longest. Those that go on for ever have no
// span; one that did not come to its end took the whole run at least, so that a
// setting is not the better for it.
func (m *Metrics) completion(plan *topology.Plan, res *report.Result) {
	for i := range plan.Lines {
		if !ends(plan, &plan.Lines[i]) {
			continue
		}
		l := res.Flows[plan.Lines[i].Name]
		end := res.VirtualNS
		if l.Completed+l.Failed == l.Requests {
			end = l.LastEndNS
		}
		m.Completion = max(m.Completion, end-l.FirstStartNS)
	}
}

// switches adds up pauses and finds the watermarks.
func (m *Metrics) switches(res *report.Result) {
	var paused report.NS
	ends := 0
	for _, n := range res.RNICs {
		ends++
		for _, t := range n.RxPauseNS {
			paused += t
		}
	}
	for _, s := range res.Switches {
		for _, p := range s.Ports {
			if len(p.PFC) > 0 {
				ends++
			}
			for _, c := range p.PFC {
				paused += c.RxPauseNS
			}
			for _, g := range p.PG {
				m.Headroom = max(m.Headroom, g.HeadroomWatermark)
			}
			for _, q := range p.Queue {
				m.Queue = max(m.Queue, q.Watermark)
			}
		}
		for name, p := range s.Pools {
			if name != "headroom" {
				m.Shared = max(m.Shared, p.Watermark)
			}
		}
	}
	if ends > 0 && res.VirtualNS > 0 {
		m.PauseShare = float64(paused) / float64(ends) / float64(res.VirtualNS)
	}
}

// margin compares every lossless group's headroom with its watermark.
func (m *Metrics) margin(plan *topology.Plan, res *report.Result) {
	first := true
	for i := range plan.Devices {
		d := &plan.Devices[i]
		if d.Switch == nil {
			continue
		}
		for p := range d.Ports {
			port := res.Switches[d.Name].Ports[strconv.Itoa(d.Ports[p].Num)]
			for pg, lossless := range d.Ports[p].PFC.Lossless {
				if !lossless {
					continue
				}
				left := d.Ports[p].Headroom[pg] * d.Switch.Cell
				if g := port.PG[strconv.Itoa(pg)]; g != nil {
					left -= g.HeadroomWatermark
				}
				if first || left < m.Margin {
					m.Margin, first = left, false
				}
			}
		}
	}
}

// Spread is a figure over the seeds of one point.
type Spread struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// Half is half the distance between the extremes.
func (s Spread) Half() float64 { return (s.Max - s.Min) / 2 }

func spread(runs []Run, of func(*Metrics) float64) Spread {
	s := Spread{}
	for i := range runs {
		x := of(&runs[i].Metrics)
		if i == 0 {
			s.Min, s.Max = x, x
		}
		s.Min, s.Max = min(s.Min, x), max(s.Max, x)
		s.Mean += x / float64(len(runs))
	}
	return s
}

// summarise folds the seeds of a point.
func (p *Point) summarise() {
	p.Goodput = spread(p.Runs, func(m *Metrics) float64 { return float64(m.GoodputBP) })
	p.P50 = spread(p.Runs, func(m *Metrics) float64 { return float64(m.P50) })
	p.P99 = spread(p.Runs, func(m *Metrics) float64 { return float64(m.P99) })
	p.Completion = spread(p.Runs, func(m *Metrics) float64 { return float64(m.Completion) })
	p.Pause = spread(p.Runs, func(m *Metrics) float64 { return m.PauseShare })
	p.OK = len(p.Runs) > 0
	for i := range p.Runs {
		m := &p.Runs[i].Metrics
		if why, bad := strings.CutPrefix(m.Verdict, invalid); bad {
			p.Invalid = why
		}
		p.Marks += m.Marks
		p.Drops += m.Drops
		p.Resent += m.Resent
		p.Headroom = max(p.Headroom, m.Headroom)
		p.Queue = max(p.Queue, m.Queue)
		p.OK = p.OK && m.OK()
		if !m.OK() && p.Note == "" {
			p.Note = cmp.Or(map[bool]string{true: "flows did not complete"}[m.Verdict == report.Complete], m.Verdict)
		}
	}
}
