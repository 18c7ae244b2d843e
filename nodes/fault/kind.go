// Package fault is what goes wrong, as data: planned and live faults compiled
// from the plan, the schedule of one device's faults, and the verdict of each
// fault on each frame that crosses a port. It owns no queue, no counter of a
// device and no setting; a device asks it three questions: when is the next
// start or end ([Device.Next]), what changed ([Device.Step]), and what becomes
// of this frame ([Device.Send], [Device.In]). Which setting is in force is
// derived from the faults that are active ([Device.Active]), so an undo is
// exact by construction. Start at [Compile], then [Device].
package fault

// Kind is what a fault breaks (interface, "Faults").
type Kind uint8

// The kinds, grouped as in interface.md.
const (
	LinkDown Kind = iota
	LinkFlap
	OneWay
	DeviceDown
	Rate
	BER
	Loss
	MTU
	Hash
	Route
	Blackhole
	Drop
	Corrupt
	Duplicate
	Delay
	Reorder
	MarkCE
	Inject
	PauseStorm
	SlowReceiver
	PFCOff
	ECNOff
	Buffer
	DSCP
	RQEmpty
	RQPause
	MRNotReady
	NoResource
	RxOverflow
	PCIeStall
	EarlyRNR
	QPError
	Drain // takes a device out of every ECMP group, without loss; its end puts it back
	Set   // a change of settings; see topology.Timeline
	NumKinds
)

var kindNames = [NumKinds]string{
	"link-down", "link-flap", "one-way", "device-down",
	"rate", "ber", "loss", "mtu", "hash", "route", "blackhole",
	"drop", "corrupt", "duplicate", "delay", "reorder", "mark-ce", "inject",
	"pause-storm", "slow-receiver", "pfc-off", "ecn-off", "buffer", "dscp",
	"rq-empty", "rq-pause", "mr-not-ready", "no-resource", "rx-overflow", "pcie-stall",
	"early-rnr", "qp-error", "drain", "set",
}

// String returns the kind as fabric files spell it.
func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return "unknown"
}

// ParseKind is the inverse of String.
func ParseKind(s string) (Kind, bool) {
	for i, n := range kindNames {
		if n == s {
			return Kind(i), true
		}
	}
	return 0, false
}

// Kinds lists every kind's name in table order.
func Kinds() []string { return kindNames[:] }

// onFrames reports whether the kind judges single frames at a port.
func (k Kind) onFrames() bool {
	switch k {
	case BER, Loss, MTU, Blackhole, Drop, Corrupt, Duplicate, Delay, Reorder, MarkCE, DSCP, RxOverflow:
		return true
	}
	return false
}

// onLink reports whether both ends of a cable take part.
func (k Kind) onLink() bool {
	switch k {
	case LinkDown, LinkFlap, OneWay, DeviceDown, Rate, Drain:
		return true
	}
	return false
}

// Dir is a side of a port.
type Dir uint8

// Directions as seen from the named port.
const (
	Both Dir = iota
	Out      // leaving the port
	In       // arriving at it
)

func (d Dir) has(x Dir) bool { return d == Both || d == x }

// Field is what a corrupt fault flips.
type Field uint8

// Fields of a corrupt fault, and what a receiver makes of each: the header
// checks of the RNIC fail, the ICRC fails, the FCS fails, or nothing happens
// because the ICRC masks the field (transport §1.9).
const (
	FieldFCS Field = iota
	FieldEtherType
	FieldIPID
	FieldIPTTL
	FieldIPTOS
	FieldIPChecksum
	FieldUDPChecksum
	FieldBTHResv
	FieldBTHPSN
	FieldPad
	FieldICRC
	numFields
)

var fieldNames = [numFields]string{
	"fcs", "ethertype", "ip.id", "ip.ttl", "ip.tos", "ip.checksum", "udp.checksum",
	"bth.resv", "bth.psn", "pad", "icrc",
}

// String returns the field as fabric files spell it.
func (f Field) String() string { return fieldNames[f] }
