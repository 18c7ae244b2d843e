// Package topology turns a fabric file into an immutable plan: devices, ports,
// cables, routes, effective settings, queue pairs, flows, faults. Parsing is
// strict and reports all errors at once; resolving fills every default and
// checks every relation, so nothing downstream tests for zero or missing
// values. The plan is a pure function of the file's text, its overlays and the
// seed: every process of a cluster resolves the same one. Start at [Plan].
package topology

import (
	"github.com/rocemu/rocemu/clock"
)

// Kind is the role of a device.
type Kind uint8

// Device roles.
const (
	RNIC Kind = iota
	Leaf
	Spine
	Core
)

// PortClass names a port's side of the tree, for settings by class.
type PortClass uint8

// Port classes (interface.md): server = leaf to RNIC, uplink = leaf to spine,
// downlink = spine to leaf, core = spine facing a core, or any port of a core.
const (
	ClassServer PortClass = iota
	ClassUplink
	ClassDownlink
	ClassCore
	ClassNIC // an RNIC's own port
)

// Until says when a run ends by itself.
type Until uint8

// Run ends.
const (
	UntilIdle Until = iota
	UntilTime
	UntilStopped
)

// Plan is a whole run, resolved. Read-only after Resolve.
type Plan struct {
	Name    string
	Seed    uint64
	Run     Run
	Devices []Device // cores, spines, leaves, then RNICs, each in number order; index = device id
	RNICs   []int32  // device id of RNIC number k at [k-1]
	Cables  []Cable
	QPs     []QP
	Flows   []Flow
	Lines   []Line // one a workload line, in file order
	Faults  []Fault
	Expect  []Expect
	Capture []Capture
	Telem   Telemetry
	// Window is W: the smallest fixed latency between a dequeue and the
	// receiver's first state change over all cables. Settle is how long past
	// the last work a run goes on before it is cut: 4 × the automatic window.
	Window clock.Duration
	Settle clock.Duration
	Hash   [32]byte // of the resolved text: peers of a cluster compare it
	Model  [32]byte // Hash without captures, telemetry, expectations: what acts on the run

	byName   map[string]int32
	resolved []byte
	root     *node // merged tree, for the places of findings
}

// Run is the run section.
type Run struct {
	Until   Until
	At      clock.Time // with UntilTime
	Limit   clock.Duration
	Stall   clock.Duration
	Warmup  clock.Duration // requests that start earlier are left out of percentiles
	Workers int            // 0 = automatic
	Memory  int64          // bytes a process may take, 0 = no limit
	ListAll bool           // list every completion, however many; in no file
}

// Device is one actor.
type Device struct {
	ID    int32
	Kind  Kind
	Name  string
	Num   int // number within its kind; for an RNIC its k
	Pod   int // from 1; 0 for cores
	Rack  int32
	Ports []Port // index = port number - 1
	// Route[k-1] is the route group toward RNIC number k, -1 = none. Nil on an
	// RNIC. Groups[g] lists egress port numbers in port order.
	Route  []int16
	Groups [][]uint16
	// Floods tells the groups whose frames leave at every port but the one they
	// came by (routes: flood); nil when there are none.
	Floods []bool
	// AltRoute is Route toward an RNIC's second port (alternate path,
	// destination address [AltAddr]); nil when no RNIC has two ports.
	AltRoute []int16
	Switch   *Switch // nil on an RNIC
	NIC      *NIC    // nil on a switch
	Addr     uint32  // IPv4 of an RNIC, 0 otherwise
}

// Port is one end of a cable as its device sees it. Unused ports do not exist.
type Port struct {
	Num      int
	Class    PortClass
	Cable    int32
	Peer     int32 // device id
	PeerPort int   // number
	Rate     clock.Rate
	Prop     clock.Duration // one way
	MTU      int            // largest frame L accepted and sent (switch); reason mtu beyond
	BER      float64        // from the file; the model uses BERNum
	BERNum   uint64         // probability that one bit is bad, times 2^64 (0 = none)
	// EgressHalf is this device's fixed time from dequeue to the MAC;
	// IngressHalf from the last bit to admission.
	EgressHalf  clock.Duration
	IngressHalf clock.Duration
	// PeerIngressHalf, PeerCutThrough and PeerResponse describe the receiver: At = MAC start +
	// serialisation (64 B if cut-through) + Prop + PeerIngressHalf.
	PeerIngressHalf clock.Duration
	PeerEgressHalf  clock.Duration
	PeerCutThrough  bool
	PeerResponse    clock.Duration // PFC receive-to-stop time of the peer
	Response        clock.Duration // own
	QoS             *QoS           // effective for this port; nil on an RNIC
	PFC             *PFC
	Lossy           *Lossy
	ECN             *[8]ECN  // per queue; Kmax 0 = off
	Headroom        [8]int64 // cells per PG, resolved from auto or bytes (switch)
}

// Cable joins two ports.
type Cable struct {
	A, B         int32 // device ids
	APort, BPort int
	Rate         clock.Rate
	Delay        clock.Duration
	LengthMM     int64 // 0 when given as delay
	BER          float64
}

// Alpha is a dynamic threshold factor, an exact rational.
type Alpha struct{ Num, Den int64 }

// Switch is the effective setting of one switch.
type Switch struct {
	ASIC         string
	CutThrough   bool
	Latency      clock.Duration
	MTU          int
	BufferBytes  int64
	Cell         int64
	Slices       int
	HeadroomPool int64 // bytes; 0 = private headroom
	CapPerPG     int64 // bytes; 0 = none ("cap_per_pg")
	ReserveOff   bool  // reserved space is taken off the shared pool (TD2 style)
	ECMP         ECMP
	Boot         clock.Duration
	SlicePorts   bool // reserved for profiles that map ports to slices
}

// ECMP is the hash setting.
type ECMP struct {
	Hash  string // murmur3 | crc32
	Seed  uint32 // resolved: auto = hash(run seed, device)
	Spray bool   // per packet
}

// QoS is classification and scheduling of one port class.
type QoS struct {
	DSCPToTC   [64]uint8
	TCToPG     [8]uint8
	TCToQueue  [8]uint8
	PFCToQueue [8]uint8
	Sched      [8]Sched
}

// Sched is one queue's scheduling: strict, or DWRR with Weight (bytes share).
type Sched struct {
	Strict bool
	Weight int // default 1
}

// PFC is priority flow control of one port.
type PFC struct {
	Lossless   [8]bool
	Alpha      [8]Alpha
	XOFF       [8]int64 // static threshold in bytes; 0 = dynamic
	Guaranteed [8]int64 // bytes
	XONOffset  [8]int64 // bytes
	Headroom   [8]int64 // bytes; -1 = auto
	Quanta     uint16
	Response   clock.Duration
	Watchdog   *Watchdog
}

// Watchdog is the PFC watchdog setting.
type Watchdog struct {
	Detect, Restore, Poll clock.Duration
	Action                string // drop | forward | alert
}

// Lossy limits queues that are not lossless, on egress.
type Lossy struct {
	Alpha Alpha
	Limit int64 // static bytes, 0 = dynamic
}

// ECN is WRED/ECN of one queue. PMax is probability × 2^32.
type ECN struct {
	On         bool
	KMin, KMax int64 // bytes
	PMax       uint64
	Enqueue    bool
	Weight     uint // averaging exponent n, 0 = instantaneous
	Mark       bool // ECT is marked (else WRED only drops)
	DropNotECT bool // Not-ECT selected is dropped
	DropMin    int64
	DropMax    int64
	DropPMax   uint64
}

// TimeoutMode says how path lifetime and ACK delay become a timeout.
type TimeoutMode uint8

// Timeout modes (transport §4 row 5).
const (
	TimeoutIBTA TimeoutMode = iota
	TimeoutLinux
	TimeoutExact
	TimeoutArticle
)

// NIC is the effective setting of one RNIC, personality applied.
type NIC struct {
	Model      string
	MTU        int    // path MTU, payload bytes
	Recovery   string // go-back-n | go-back-0 | selective-repeat
	Latency    clock.Duration
	Congestion string // dcqcn | swift | none
	DCQCN      DCQCN
	Swift      Swift
	DSCP       uint8
	CNPDSCP    uint8
	Lossless   [8]bool   // priorities whose PFC it honours
	PrioOf     [64]uint8 // DSCP → priority of the sent frame
	RxBuffer   int64
	SPort      uint16 // 0 = from QPs
	AckEvery   bool   // each packet carries AckReq
	Response   clock.Duration
	Quanta     uint16
	QP         QPParams
	Pers       Personality
	Host       Host
	TCP        TCPParams
}

// QPParams are the attributes of a queue pair.
type QPParams struct {
	Timeout      uint8
	RetryCnt     uint8
	RNRRetry     uint8
	MinRNRTimer  uint8
	MaxRdAtomic  int
	MaxDestRd    int // responder resources for READs and atomics
	RecvQueue    int
	RecvRepost   clock.Duration // after consumption; Never = never
	RecvBatch    int            // repost in batches of this many, default 1
	InitialPSN   uint32
	TimeoutMode  TimeoutMode
	WindowT4     bool // fires in [T, 4T] instead of at T
	TimeoutFloor clock.Duration
	RNRLinear    bool // article-linear decode
	DupAckAll    bool
	ConnectCM    bool
	PacketLife   uint8  // exponent, for CM
	AckDelay     uint8  // exponent, for CM
	AltPort      int    // 0 = no alternate path
	AltTimeout   uint8  // exponent on the alternate path
	PSNWindow    uint32 // most PSNs unacknowledged; 0 = the transport's 2^23 - 1
	RNREarly     string // drop | renak | execute (also execute_if_ready)
	PartialRead  bool   // a READ gap re-requests only the tail
	ImpliedNAK   bool   // false: timeout only
	SendQueue    int
	Credits      bool // real credits instead of code 31
}

// Personality is what distinguishes NIC models; see nodes/rnic/models.
type Personality struct {
	Name            string
	NakLatency      clock.Duration // gap seen → NAK leaves
	ReadNakLatency  clock.Duration // READ gap seen → re-request
	ReactLatency    clock.Duration // NAK received → first retransmission
	AckFreqLog      uint8          // AckReq every 2^n packets
	MBit            bool
	Retry7Infinite  bool
	NakReload       bool // a NAK reloads retry_cnt (qib)
	OOSBehindRNR    bool // rxe: sequence NAK for packets behind an RNR
	ReadGapTimeout  bool // rxe: no implied NAK on a READ gap
	ProbeOne        bool // resend one packet and wait (qib)
	NackTriggersCNP bool
	CNPScope        string // qp | port | dst-ip | ip-pair
	CNPFloor        clock.Duration
	TimeoutMax      uint8  // largest accepted exponent, 31 when free
	TimeoutRule     string // ibta | qedr | hip08: how the device turns the exponent into a timeout
	ADP             bool
	ADPProfile      ADPProfile
	SlowRestart     bool
	ReadNoAck       bool // old requesters: a READ response does not acknowledge earlier SENDs
	AckBeforeReplay bool // plain ACK ahead of a replayed READ or atomic
	Reorder         int  // selective repeat: packets held beyond a gap
}

// ADPProfile is the schedule of adaptive retransmission (transport §3.5);
// exponents count from Base.
type ADPProfile struct {
	Base               clock.Duration
	InitLow, InitRange uint8
	Ranges             [4][2]uint8 // low and high, ascending; unused ones are zero
	NRanges            uint8
	StartIndex         uint8
	PerValue           uint8          // expiries with one exponent
	Dec                uint8          // on progress; 0 = back to the range's low
	Total              clock.Duration // without progress; 0 = timeout × retry_cnt
}

// DCQCN parameters by their mlx5 names; integers only.
type DCQCN struct {
	GNum, GDen               int64          // g
	AlphaPeriod              clock.Duration // dce_tcp_rtt
	InitialAlpha             int64          // × 1/1024
	CNPInterval              clock.Duration // min_time_between_cnps
	TimeReset                clock.Duration // rpg_time_reset
	ByteReset                int64          // rpg_byte_reset, bytes
	Threshold                int64          // rpg_threshold
	AIRate, HAIRate, MinRate clock.Rate
	GD                       int64 // rpg_gd
	MinDecFac                int64 // percent
	ReducePeriod             clock.Duration
	ClampTgt, ClampTgtATI    bool
	FirstCNPRate             clock.Rate
}

// Verb is the operation of a work request.
type Verb uint8

// Verbs.
const (
	Send Verb = iota
	SendImm
	SendInv
	Write
	WriteImm
	Read
	CmpSwap
	FetchAdd
)

// Transport of a flow.
type Transport uint8

// Transports.
const (
	RC Transport = iota
	UDP
	TCP
)

// QP is a connected pair. The two ends are named by RNIC number.
type QP struct {
	ID         int32
	Name       string // from the file, or empty
	A, B       uint32 // requester and responder RNIC numbers
	AQPN, BQPN uint32
	SPort      uint16
	DSCP       uint8
	MTU        int
	Params     *QPParams // of A
	BParams    *QPParams // of B
	Flows      []int32   // requests posted on it, by (start, line)
}

// Flow is a single flow: a sequence of requests on one QP from one workload
// line, or a datagram stream.
type Flow struct {
	ID        int32
	Line      int32
	QP        int32 // -1 for UDP and TCP
	From, To  uint32
	Ordinal   int32 // NAME[from>to#n]: n
	Transport Transport
	Verb      Verb
	Size      int64
	Start     clock.Time
	Count     int64 // requests; -1 = forever
	Window    int32 // outstanding requests
	Interval  clock.Duration
	Rate      clock.Rate // pace, 0 = none
	DSCP      uint8
	SPort     uint16 // UDP and TCP
	Packet    int    // UDP payload per datagram, TCP segment size
	DCTCP     bool   // TCP: DCTCP instead of CUBIC
	Opt       *WorkOpt
	// Gate, when not -1, names a flow whose responder is From: request n of
	// this flow is posted once n+GateLag messages of that flow were received
	// there (ring all-reduce). The gate flow's messages raise it at arrival of
	// their last packet.
	Gate    int32
	GateLag int64
}

// WorkOpt holds the rarely used parts of a work request.
type WorkOpt struct {
	Fence, Unsignalled bool
	RKey               string // good | bad | read-only
	VA                 uint64
	HasVA              bool
	Add, Compare, Swap uint64
	Initial            uint64
}

// Line is a workload line.
type Line struct {
	Name    string
	Pattern string // "", incast, permutation, …
	From    string
	To      string
	Verb    string
	Flows   []int32
	Labels  []string // of a CSV trace: the rows' names, parallel to Flows
	Pos     string   // file:line:column
}

// Fault is one planned or live fault.
type Fault struct {
	Name   string
	Kind   string
	Target string // as written
	At     clock.Time
	NoAt   bool           // no time was given: a live fault, as soon as possible
	For    clock.Duration // 0 = for ever or until Count
	Count  int64          // 0 = unlimited
	Dev    int32          // resolved device, -1 = none
	Port   int            // resolved port number, 0 = whole device
	Cable  int32          // resolved cable, -1 = none
	Peer   int32          // other end of the cable
	PPort  int
	Match  Match
	Devs   []int32           // of a change of settings: the devices it addresses
	Params map[string]string // remaining parameters, validated; canonical text
	Pos    string
}

// Match selects frames (interface.md, faults).
type Match struct {
	Set       bool
	Flow      string
	FlowIDs   []int32
	QPN       uint32 // destination or source QPN at the named RNIC, 0 = any
	HasQP     bool
	Op        uint8
	HasOp     bool
	PSN       uint32
	HasPSN    bool
	PSNIndex  uint32 // 0 = any
	Iteration int    // 0 = any, default 1 when PSNIndex or PSN is set
	Ack       uint32
	Nak       uint32
	RNR       uint32
	CNP       uint32
	Kind      string // "", data, ack, nak, rnr, cnp, pfc
	Dir       string // out | in | "" = both
	anyIter   bool   // "iteration: any" was written
}

// Expect is one CEL expression with its place.
type Expect struct{ Expr, Pos string }

// Capture is one capture line.
type Capture struct {
	Dev  int32
	Port int
	File string
}

// Telemetry is the telemetry section.
type Telemetry struct {
	OTLP     string
	Interval clock.Duration
	Scale    int64
}
