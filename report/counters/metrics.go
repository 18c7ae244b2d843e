// Package counters names everything that a running fabric counts or measures,
// once, for all who show it: series.csv, OTLP and Prometheus metrics, gNMI
// paths, tables on a terminal. It holds plain numbers with names; whoever runs
// a fabric fills a [Snapshot], or [FromResult] makes one of a result. Start at
// [Metric].
package counters

// Scope says what a metric belongs to, and so what [Point.Index] is.
type Scope uint8

// Scopes.
const (
	Device   Scope = iota // Index unused
	Port                  // Index unused
	Priority              // a PFC priority of a port
	PG                    // an ingress priority group of a port
	Queue                 // an egress queue of a port
	Pool                  // a buffer pool of a device: PoolNames
	Reason                // a drop reason of a device, as report.Reason
)

// scopeKeys are the attribute or label that carries the index.
var scopeKeys = [...]string{"", "", "priority", "pg", "queue", "pool", "reason"}

// Key returns the name of the index: "priority", "pg", …, "" without one.
func (s Scope) Key() string { return scopeKeys[s] }

// OnPort reports whether metrics of the scope have a port.
func (s Scope) OnPort() bool { return s >= Port && s <= Queue }

// PoolNames are the pools by index.
var PoolNames = [...]string{"ingress_lossless_pool", "headroom"}

// ID numbers a metric.
type ID uint8

// Metrics of ports, priorities, priority groups, queues, pools and RNICs.
const (
	RxFrames ID = iota
	TxFrames
	RxBytes
	TxBytes
	CRCErrors
	InDrops
	PFCRxPause
	PFCRxResume
	PFCTxPause
	PFCTxResume
	PFCRxPaused
	PFCTxPaused
	PFCIgnored
	PFCOn2Off
	WdDetected
	WdRestored
	WdTxDropped
	WdRxDropped
	PGOccupancy
	PGSharedMark
	PGHeadroomMark
	PGXoff
	PGDrops
	QueueTx
	QueueDrops
	QueueOccupancy
	QueueMark
	QueueMarked
	PoolOccupancy
	PoolMark
	Drops
	firstRNIC // mlx5 counters follow, in the order of rnicNames
)

// Metric describes one metric.
type Metric struct {
	Name  string // as in series.csv
	Unit  string // UCUM, as OpenTelemetry has it
	Scope Scope
	Gauge bool // may fall; else it only grows
	Help  string
}

// Metrics is the table, by ID.
var Metrics = append([]Metric{
	RxFrames:       {"rx_frames", "{frame}", Port, false, "frames handed to the device, PFC apart"},
	TxFrames:       {"tx_frames", "{frame}", Port, false, "frames put onto the cable, PFC apart"},
	RxBytes:        {"rx_bytes", "By", Port, false, "bytes of rx_frames, destination MAC through FCS"},
	TxBytes:        {"tx_bytes", "By", Port, false, "bytes of tx_frames"},
	CRCErrors:      {"crc_errors", "{frame}", Port, false, "frames with a wrong FCS"},
	InDrops:        {"in_drops", "{frame}", Port, false, "frames dropped on ingress"},
	PFCRxPause:     {"pfc_rx_pause", "{frame}", Priority, false, "PFC frames received with a time above 0"},
	PFCRxResume:    {"pfc_rx_resume", "{frame}", Priority, false, "PFC frames received with time 0"},
	PFCTxPause:     {"pfc_tx_pause", "{frame}", Priority, false, "PFC frames sent with a time above 0, refreshes included"},
	PFCTxResume:    {"pfc_tx_resume", "{frame}", Priority, false, "PFC frames sent with time 0"},
	PFCRxPaused:    {"pfc_rx_paused", "ps", Priority, false, "virtual time this port was paused"},
	PFCTxPaused:    {"pfc_tx_paused", "ps", Priority, false, "virtual time it held its peer paused"},
	PFCIgnored:     {"pfc_ignored", "{frame}", Priority, false, "PFC frames for a priority that is not lossless here"},
	PFCOn2Off:      {"pfc_on2off", "{transition}", Priority, false, "ends of pauses, expiry included"},
	WdDetected:     {"pfcwd_detected", "{storm}", Priority, false, "storms the PFC watchdog detected"},
	WdRestored:     {"pfcwd_restored", "{storm}", Priority, false, "storms that were over"},
	WdTxDropped:    {"pfcwd_tx_dropped", "{frame}", Priority, false, "frames the watchdog dropped on egress"},
	WdRxDropped:    {"pfcwd_rx_dropped", "{frame}", Priority, false, "frames the watchdog dropped on ingress"},
	PGOccupancy:    {"pg_occupancy", "By", PG, true, "bytes of a priority group now, headroom included"},
	PGSharedMark:   {"pg_shared_watermark", "By", PG, true, "largest use of shared buffer"},
	PGHeadroomMark: {"pg_headroom_watermark", "By", PG, true, "largest use of headroom"},
	PGXoff:         {"pg_xoff", "{transition}", PG, false, "times the group went into XOFF"},
	PGDrops:        {"pg_drops", "{frame}", PG, false, "frames refused by the group"},
	QueueTx:        {"queue_tx_frames", "{frame}", Queue, false, "frames sent from the queue"},
	QueueDrops:     {"queue_drops", "{frame}", Queue, false, "frames the queue refused or discarded"},
	QueueOccupancy: {"queue_occupancy", "By", Queue, true, "bytes of a queue now"},
	QueueMark:      {"queue_watermark", "By", Queue, true, "largest depth of the queue"},
	QueueMarked:    {"queue_ecn_marked", "{frame}", Queue, false, "frames marked CE by the queue"},
	PoolOccupancy:  {"pool_occupancy", "By", Pool, true, "bytes of a pool in use now"},
	PoolMark:       {"pool_watermark", "By", Pool, true, "largest use of the pool"},
	Drops:          {"drops", "{frame}", Reason, false, "frames dropped, by reason"},
}, rnicMetrics()...)

// Point is one value at one place.
type Point struct {
	Value int64
	Dev   int32 // index into Snapshot.Devices
	Port  int16 // number, 0 = the device
	Index int8  // by the metric's scope, -1 = none
	ID    ID
}

// Metric describes the point.
func (p Point) Metric() *Metric { return &Metrics[p.ID] }
