// Package telemetry watches a run: it assembles retransmit chains from the
// records of all devices, exports them, keeps series of counters and serves
// them. Nothing here acts on the fabric, and nothing waits for a reader or a
// collector. Start at [Session]; chains are in package chain, spans in otlp,
// names of counters in report/counters, metrics in metrics, gNMI in gnmi.
package telemetry

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/record"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/report/counters"
	"github.com/rocemu/rocemu/telemetry/chain"
	"github.com/rocemu/rocemu/telemetry/otlp"
	"github.com/rocemu/rocemu/topology"
)

// MaxListed bounds the chains in a result and its chains.jsonl; the rest is
// counted. Exports have no such bound.
const MaxListed = 10_000

// Options of a [Session].
type Options struct {
	// Endpoints receive the chains as spans; see otlp.Dial. The plan's
	// telemetry.otlp is not among them by itself.
	Endpoints []string
	Epoch     time.Time // of exported times: the run's start
	Scale     int64     // 0 = the plan's, or 1000
	Sample    int       // one queue pair in this many is exported, 0 = all
	Drain     time.Duration
}

// Session watches one run. Its methods are called from one goroutine.
type Session struct {
	dir     *chain.Directory
	asm     *chain.Assembler
	exports []export
	kept    []*chain.Chain

	series counters.Series
}

type export struct {
	endpoint string
	*otlp.Exporter
}

// NewSession starts watching a run of plan.
func NewSession(plan *topology.Plan, o Options) (*Session, error) {
	s := &Session{dir: chain.NewDirectory(plan)}
	s.asm = chain.New(s.dir, s.take)
	if o.Scale == 0 {
		o.Scale = plan.Telem.Scale
	}
	for _, ep := range o.Endpoints {
		dest, err := otlp.Dial(ep)
		if err != nil {
			s.stop()
			return nil, err
		}
		s.exports = append(s.exports, export{ep, otlp.New(s.dir, dest, otlp.Options{
			Time: otlp.TimeMap{Epoch: o.Epoch, Scale: o.Scale}, SampleEvery: o.Sample, Drain: o.Drain,
		})})
	}
	return s, nil
}

// Records takes a batch of records.
func (s *Session) Records(batch []record.Record) { s.asm.Add(batch) }

// Snapshot takes a sample of the counters into the series.
func (s *Session) Snapshot(n *counters.Snapshot) { s.series.Add(n) }

// SetFaults names the faults that records speak of, live ones included.
func (s *Session) SetFaults(list []topology.Fault) { s.dir.SetFaults(list) }

// take is called for each whole chain.
func (s *Session) take(c *chain.Chain) {
	if len(s.kept) < MaxListed {
		s.kept = append(s.kept, c)
	}
	for _, e := range s.exports {
		e.Offer(c)
	}
}

// Close ends a session whose run has no result; what waits is delivered.
func (s *Session) Close() { s.stop() }

func (s *Session) stop() {
	for _, e := range s.exports {
		e.Close()
	}
}

// Finish ends the session with the run: it lists the chains in the result,
// delivers what waits for export, and accounts for all.
func (s *Session) Finish(r *report.Result) {
	s.asm.Finish(clock.Time(r.VirtualNS))
	slices.SortStableFunc(s.kept, func(a, b *chain.Chain) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Conn, b.Conn), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	r.Traces = make([]report.Trace, 0, len(s.kept))
	for _, c := range s.kept {
		r.Traces = append(r.Traces, c.Entry(s.dir))
	}
	n := s.asm.Accounts()
	r.Telemetry = &report.Telemetry{
		ChainsMade: n.Made, ChainsListed: uint64(len(s.kept)), ChainsUnlisted: n.Made - uint64(len(s.kept)), MissingRecords: n.Missing,
	}
	for _, e := range s.exports {
		r.Telemetry.Exports = append(r.Telemetry.Exports, account(e.endpoint, n, e.Close()))
	}
	if r.Detail != nil {
		r.Detail.Series = s.series.All()
	}
	if s.series.Lost > 0 {
		r.Findings = append(r.Findings, report.Finding{
			Code: "series_truncated", Where: "telemetry.interval",
			Text: "series.csv ends early: more than 2,000,000 rows; choose a longer interval",
		})
		report.SortFindings(r.Findings)
	}
}

// account turns an exporter's counts into the result's: chains beyond the
// assembler's bound never reached it and count as dropped here too.
func account(endpoint string, n chain.Accounts, a otlp.Accounts) report.Export {
	d := a.Dropped()
	e := report.Export{
		Endpoint: endpoint, ChainsExported: a.Exported.Chains, ChainsDropped: d.Chains + n.Dropped,
		SpansExported: a.Exported.Spans, SpansDropped: d.Spans, LastError: a.LastError, DroppedBy: map[string]uint64{},
	}
	for name, c := range map[string]uint64{
		"sampling": a.Sampled.Chains, "queue_full": a.Queue.Chains, "failed": a.Failed.Chains, "closed": a.Closed.Chains, "open_limit": n.Dropped,
	} {
		if c > 0 {
			e.DroppedBy[name] = c
		}
	}
	return e
}

// WriteDir writes the listed chains into an output directory.
func (s *Session) WriteDir(path string) error {
	return chain.WriteFile(filepath.Join(path, report.ChainsFile), s.dir, s.kept)
}

// FlowName returns the name of a single flow as flows.csv has it.
func (s *Session) FlowName(id int32) string { return s.dir.FlowName(id) }
