package report

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/rocemu/rocemu/clock"
)

// Meta is what a result needs from the plan of its run.
type Meta struct {
	Name   string
	Seed   uint64
	Warmup clock.Time // requests that start earlier are left out of distributions
	Lines  []LineMeta // in file order
	// NumFlows single flows have ids from 0; Flow describes one and must be
	// cheap and pure: a large run asks for millions.
	NumFlows int
	Flow     func(id int32) FlowMeta
	RNIC     func(num uint32) string // name of RNIC number num
	Links    []Link
	Faults   map[string]*FaultResult
}

// LineMeta is one workload line; Flows is its number of single flows.
type LineMeta struct {
	Name, From, To, Verb string
	Flows                int
}

// FlowMeta is one single flow.
type FlowMeta struct {
	Line     int32
	From, To uint32 // RNIC numbers
	Ordinal  int32  // the n of NAME[from>to#n]
	Size     int64  // payload of a request
	Count    int64  // requests; negative = for ever
	Start    clock.Time
	Ideal    clock.Duration // completion time of one request on an idle fabric; 0 = not known
	Datagram bool           // not RDMA: bytes are counted where they arrive
	PostCPU  clock.Duration // host software of one request, at its sender and its receiver
	RecvCPU  clock.Duration
}

// Link is one direction of a cable.
type Link struct {
	From     string
	FromPort int
	To       string
	ToPort   int
}

// End says how a run stopped.
type End struct {
	Verdict string // complete, limit, stalled or failed
	Reason  string
	At      clock.Time
}

// Detail is the part of an outcome that is too large for the result object:
// single flows, series, events. It backs the files of --out.
type Detail struct {
	Series   iter.Seq[SeriesRow] // nil: none
	Events   []Event
	Resolved []byte // the resolved fabric file

	meta *Meta
	agg  []flowAgg
	more []FlowPart

	end   clock.Time
	stall []lineStall // of lines
}

// flowAgg is a single flow, summed over its requests.
type flowAgg struct {
	first, last       clock.Time
	errAt             clock.Time
	completed, failed int64
	recvBytes         int64
	more              int32 // index into Detail.more, plus one
	errStatus         Status
	seen              bool
}

// Merge makes the result of a run out of its devices' parts. The order of the
// parts does not matter. Expectations are not judged yet: see [Expect.Judge].
func Merge(parts []*Part, meta *Meta, end End, eng Engine, digest string) *Result {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b *Part) int { return cmp.Compare(a.Device, b.Device) })
	r := &Result{
		Schema: 1, Name: meta.Name, Seed: meta.Seed, Verdict: end.Verdict, VerdictReason: end.Reason,
		VirtualNS: NS(end.At), Digest: digest, Engine: eng,
		Totals:    Totals{DropsByReason: map[string]uint64{}},
		Flows:     map[string]*FlowLine{},
		RNICs:     map[string]*RNICCounters{},
		Switches:  map[string]*SwitchCounters{},
		Deadlocks: []Deadlock{}, Findings: []Finding{}, Traces: []Trace{},
		Faults: meta.Faults,
		Detail: &Detail{meta: meta, agg: make([]flowAgg, meta.NumFlows)},
	}
	if r.Faults == nil {
		r.Faults = map[string]*FaultResult{}
	}
	addDevices(r, parts)
	mergeFlows(r, parts, end.At)
	r.lateFaults()
	for i := range r.Findings {
		if r.Findings[i].Code == CodeInvariant {
			r.Raise(Failed, r.Findings[i].Text)
		}
	}
	if text := conservation(parts, meta.Links); text != "" {
		r.Raise(Failed, text)
	}
	r.Exit = ExitCode(r.Verdict)
	return r
}

// CodeInvariant is the finding of a device whose own account or content is
// wrong: the run is failed.
const CodeInvariant = "invariant"

// CodeRecordsLost is the finding of a device that made more notes of exceptional
// events than it keeps until somebody takes them.
const CodeRecordsLost = "records_lost"

// Raise sets the verdict to v if it outranks the present one.
func (r *Result) Raise(v, reason string) {
	if verdictRank[v] > verdictRank[r.Verdict] {
		r.Verdict, r.VerdictReason = v, reason
		r.Exit = ExitCode(v)
	}
}

// addDevices takes over counters, totals and remarks of every device.
func addDevices(r *Result, parts []*Part) {
	var drops [NumReasons]uint64
	t := &r.Totals
	for _, p := range parts {
		for i, n := range p.Drops {
			drops[i] += n
			t.DroppedFrames += n
		}
		t.Retransmitted += p.Retransmitted
		r.Engine.FrameHops += p.FrameHops
		r.Engine.Events += p.Events
		r.Deadlocks = append(r.Deadlocks, p.Deadlocks...)
		r.Findings = append(r.Findings, p.Findings...)
		for _, f := range p.Faults {
			if x := r.Faults[f.Name]; x != nil {
				x.Hits += f.Hits
				if f.End != clock.Never {
					x.UntilNS = max(x.UntilNS, NS(f.End))
				}
			}
		}
		if c := p.RNIC; c != nil {
			r.RNICs[p.Device] = c
			t.CNPs += c.NPCNPSent
			for _, n := range c.TxPause {
				t.PauseFrames += n
			}
		}
		if p.Switch != nil {
			p.Switch.Drops = byReason(&p.Drops)
			r.Switches[p.Device] = p.Switch
			addPorts(t, p.Switch)
		}
	}
	for i, n := range drops {
		t.DropsByReason[Reason(i).String()] = n
	}
	slices.SortStableFunc(r.Deadlocks, func(a, b Deadlock) int {
		return cmp.Or(cmp.Compare(a.AtNS, b.AtNS), slices.Compare(a.Cycle, b.Cycle))
	})
	SortFindings(r.Findings)
}

// byReason names the reasons for which something was dropped.
func byReason(drops *[NumReasons]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for i, n := range drops {
		if n > 0 {
			out[Reason(i).String()] = n
		}
	}
	return out
}

// SortFindings puts findings into their order of output.
func SortFindings(f []Finding) {
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Where, b.Where), cmp.Compare(a.Text, b.Text))
	})
}

func addPorts(t *Totals, s *SwitchCounters) {
	for _, p := range s.Ports {
		for _, c := range p.PFC {
			t.PauseFrames += c.TxPause
		}
		for _, q := range p.Queue {
			t.ECNMarked += q.ECNMarked
		}
	}
}

// conservation checks every link and device; it returns the first breach with
// place and figures, or "".
func conservation(parts []*Part, links []Link) string {
	type end struct {
		dev  string
		port int
	}
	at := map[end]*LinkCounts{}
	for _, p := range parts {
		for i := range p.Links {
			at[end{p.Device, p.Links[i].Port}] = &p.Links[i]
		}
		b := &p.Balance
		if b.In.plus(b.Originated) != b.Out.plus(b.Consumed).plus(b.Dropped).plus(b.Stored) {
			return fmt.Sprintf("frames not conserved in %s: in %v + originated %v != out %v + consumed %v + dropped %v + stored %v",
				p.Device, b.In, b.Originated, b.Out, b.Consumed, b.Dropped, b.Stored)
		}
	}
	var zero LinkCounts
	for _, l := range links {
		tx, rx := at[end{l.From, l.FromPort}], at[end{l.To, l.ToPort}]
		if tx == nil {
			tx = &zero
		}
		if rx == nil {
			rx = &zero
		}
		flight := rx.InFlight.plus(tx.HeldOut).plus(rx.HeldIn)
		if tx.Sent.plus(tx.Injected).plus(rx.RxInjected) != tx.Lost.plus(rx.Delivered).plus(rx.RxDropped).plus(flight) {
			return fmt.Sprintf("frames not conserved on %s:%d -> %s:%d: sent %v + injected %v != lost %v + delivered %v + dropped on arrival %v + in flight %v",
				l.From, l.FromPort, l.To, l.ToPort, tx.Sent, tx.Injected.plus(rx.RxInjected), tx.Lost, rx.Delivered, rx.RxDropped, flight)
		}
	}
	return ""
}
