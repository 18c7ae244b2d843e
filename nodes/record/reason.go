package record

// Reason says why a frame was dropped. The numbers and names are shared by
// switches and RNICs and follow the order of drops_by_reason in the result
// object.
type Reason uint8

// The drop reasons. NoReason means the frame was not dropped.
const (
	NoReason       Reason = iota
	BufferHeadroom        // lossless PG: its headroom is exhausted
	HeadroomPool          // lossless PG: the shared headroom pool is exhausted
	BufferShared          // lossy PG: the shared pool is exhausted
	EgressLimit           // lossy queue: egress threshold reached
	WRED                  // early drop by WRED
	MTU                   // longer than the port's MTU
	TTL                   // TTL expired
	CRC                   // frame check sequence wrong
	ICRC                  // invariant CRC wrong (RNIC)
	BadHeader             // Ethernet, IP or UDP header not accepted (RNIC)
	RxOverflow            // RNIC receive buffer full
	NoRoute               // no route to the destination
	PFCWatchdog           // storm on the queue or PG, action drop
	LinkDown              // the port's link is down
	DeviceDown            // the device is down
	Fault                 // a frame fault took it
	ACL                   // filtered
	NumReasons
)

var reasonNames = [NumReasons]string{
	"none", "buffer_headroom", "headroom_pool", "buffer_shared", "egress_limit", "wred",
	"mtu", "ttl", "crc", "icrc", "bad_header", "rx_overflow", "no_route", "pfc_watchdog",
	"link_down", "device_down", "fault", "acl",
}

// String returns the reason's key in drops_by_reason.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return "unknown"
}
