package report

// Result is a run's outcome: what --json prints and result.json holds. Field
// names are a contract; maps are keyed by strings and written in key order,
// so equal runs give equal bytes but for engine's wall-clock figures.
type Result struct {
	Schema        int                        `json:"schema"`
	Name          string                     `json:"name"`
	Seed          uint64                     `json:"seed"`
	Verdict       string                     `json:"verdict"`
	VerdictReason string                     `json:"verdict_reason"`
	VirtualNS     NS                         `json:"virtual_ns"`
	Digest        string                     `json:"digest"`
	Engine        Engine                     `json:"engine"`
	Totals        Totals                     `json:"totals"`
	Flows         map[string]*FlowLine       `json:"flows"`
	RNICs         map[string]*RNICCounters   `json:"rnics"`
	Switches      map[string]*SwitchCounters `json:"switches"`
	Deadlocks     []Deadlock                 `json:"deadlocks"`
	Findings      []Finding                  `json:"findings"`
	Faults        map[string]*FaultResult    `json:"faults"`
	Traces        []Trace                    `json:"traces"`
	Telemetry     *Telemetry                 `json:"telemetry,omitempty"`

	// Detail is what --out writes beside the result; absent when a result was
	// read back from a file.
	Detail *Detail `json:"-"`
	// Exit is the exit code: the verdict's, unless expectations named the
	// verdict and all held.
	Exit int `json:"-"`
}

// Engine tells what the run cost.
type Engine struct {
	FrameHops    uint64  `json:"frame_hops"` // link traversals by data and acknowledgement frames, PFC apart
	Events       uint64  `json:"events"`
	Windows      uint64  `json:"windows"`
	WallS        float64 `json:"wall_s"`
	CPUS         float64 `json:"cpu_s"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	Workers      int     `json:"workers"`
	Processes    int     `json:"processes"`
	Generations  int     `json:"generations"`
}

// Totals sum over the fabric. Flows, completed and failed count single flows.
type Totals struct {
	Flows         int64             `json:"flows"`
	Completed     int64             `json:"completed"`
	Failed        int64             `json:"failed"`
	Bytes         int64             `json:"bytes"`
	DroppedFrames uint64            `json:"dropped_frames"`
	DropsByReason map[string]uint64 `json:"drops_by_reason"`
	Retransmitted uint64            `json:"retransmitted_packets"`
	PauseFrames   uint64            `json:"pfc_pause_frames"` // XOFF sent, refreshes included
	ECNMarked     uint64            `json:"ecn_marked_frames"`
	CNPs          uint64            `json:"cnps"`
}

// FlowLine is one workload line. Requests, completed and failed count work
// requests. Distributions are absent when nothing completed. Goodput is bytes
// over the span from the first start to the last end, or, of a line that stands
// still at the run's end ([FlowLine.Stalled]), to the run's end.
type FlowLine struct {
	From          string           `json:"from"`
	To            string           `json:"to"`
	Verb          string           `json:"verb"`
	Bytes         int64            `json:"bytes"`
	Flows         int64            `json:"flows"`
	Requests      int64            `json:"requests"`
	Completed     int64            `json:"completed"`
	Failed        int64            `json:"failed"`
	Status        string           `json:"status"`
	Statuses      map[string]int64 `json:"statuses"`
	Folded        int64            `json:"requests_folded,omitempty"` // of which percentiles are right to 1/512, see [KeptSamples]
	FirstStartNS  NS               `json:"first_start_ns"`
	LastEndNS     NS               `json:"last_end_ns"`
	FCT           *Dist            `json:"fct_ns,omitempty"`
	OldestNS      NS               `json:"oldest_outstanding_ns,omitempty"` // age of the oldest outstanding request at the run's end
	Slowdown      *Ratios          `json:"slowdown,omitempty"`
	Latency       *LatencyDist     `json:"latency_ns,omitempty"`
	GoodputBPS    int64            `json:"goodput_bps"`
	Retransmitted uint64           `json:"retransmitted_packets"`
	Atomic        *Atomic          `json:"atomic,omitempty"`
	CPU           *HostCPU         `json:"host_cpu_ns,omitempty"`
	Why           string           `json:"why,omitempty"`
}

// HostCPU is the time of server cores that a line's requests took: copies and
// packets of the kernel path, or posting and polling of RDMA.
type HostCPU struct {
	Sender   NS `json:"sender"`
	Receiver NS `json:"receiver"`
}

// Dist is a distribution of spans over requests; percentiles by nearest rank.
type Dist struct {
	Min  NS `json:"min"`
	Mean NS `json:"mean"`
	P50  NS `json:"p50"`
	P95  NS `json:"p95"`
	P99  NS `json:"p99"`
	P999 NS `json:"p999"`
	Max  NS `json:"max"`
}

// Ratios is a distribution of completion time over ideal completion time,
// rounded to four decimals.
type Ratios struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// LatencyDist is first dequeue to last bit at the receiver, over requests of
// one packet.
type LatencyDist struct {
	Min NS `json:"min"`
	P50 NS `json:"p50"`
	Max NS `json:"max"`
}

// Atomic holds the last atomic's returned original value and the memory after.
type Atomic struct {
	Original uint64 `json:"original"`
	Memory   uint64 `json:"memory"`
}

// Deadlock is a closed cycle of pauses.
type Deadlock struct {
	AtNS  NS       `json:"at_ns"`
	Cycle []string `json:"cycle"` // device:port/priority
}

// Finding is a remark about the fabric or the run that a person should read.
type Finding struct {
	Code  string `json:"code"`
	Where string `json:"where"`
	Text  string `json:"text"`
}

// FaultResult is what became of a fault. UntilNS is 0 when it never ended; Hits
// are the frames it acted on, of a pause storm the XOFF frames it sent.
type FaultResult struct {
	Kind    string `json:"kind"`
	Target  string `json:"target"`
	AtNS    NS     `json:"at_ns"`
	UntilNS NS     `json:"until_ns"`
	Hits    uint64 `json:"hits"`
}

// Trace is one retransmit chain.
type Trace struct {
	Flow      string   `json:"flow"`
	QP        uint32   `json:"qp"`
	PSN       uint32   `json:"psn"`
	Cause     string   `json:"cause"`
	Retries   int      `json:"retries"`
	Recovered bool     `json:"recovered"`
	SpanIDs   []string `json:"span_ids"`
}

// Telemetry says what became of the retransmit chains of a run: each is listed
// in traces or counted as unlisted, and each export destination's share adds up
// to what was made.
type Telemetry struct {
	ChainsMade     uint64   `json:"chains_made"`
	ChainsListed   uint64   `json:"chains_listed"`
	ChainsUnlisted uint64   `json:"chains_unlisted"`
	MissingRecords uint64   `json:"missing_records"` // notes that devices did not keep
	Exports        []Export `json:"exports,omitempty"`
	Samples        *Pushed  `json:"samples,omitempty"`
	DialOut        *Pushed  `json:"dialout,omitempty"` // of each switch, added up
}

// Pushed says what became of the samples of counters that a collector was to
// get: exported + dropped = made. A collector that falls behind loses the oldest
// ones.
type Pushed struct {
	Endpoint  string `json:"endpoint"`
	Made      uint64 `json:"made"`
	Exported  uint64 `json:"exported"`
	Dropped   uint64 `json:"dropped"`
	LastError string `json:"last_error,omitempty"`
}

// Export is one destination of chains: exported + dropped = made.
type Export struct {
	Endpoint       string            `json:"endpoint"`
	ChainsExported uint64            `json:"chains_exported"`
	ChainsDropped  uint64            `json:"chains_dropped"`
	SpansExported  uint64            `json:"spans_exported"`
	SpansDropped   uint64            `json:"spans_dropped"`
	DroppedBy      map[string]uint64 `json:"chains_dropped_by,omitempty"` // sampling, queue_full, failed, closed
	LastError      string            `json:"last_error,omitempty"`
}
